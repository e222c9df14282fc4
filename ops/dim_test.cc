#include "ops/dim.h"

#include <limits>
#include <random>
#include <sstream>
#include <type_traits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kGreatest = std::numeric_limits<int64_t>::max();

Dim P(absl::string_view text) {
  auto dim = Dim::Parse(text);
  EXPECT_TRUE(dim.ok()) << dim.status();
  return dim.ok() ? *dim : Dim(-987654321);
}

// The normal form of `text`, printed.
std::string Normal(absl::string_view text) { return P(text).ToString(); }

TEST(Dim, PolynomialsAreCanonical) {
  EXPECT_EQ(Normal("(n + 1) * 2 - n"), "n + 2");
  EXPECT_EQ(P("(n + 1) * 2"), P("2*n + 2"));
  EXPECT_EQ(P("(a + b) * (a - b)"), P("a*a - b*b"));
  EXPECT_EQ(Normal("m*n + n*m"), "2*m*n");
  EXPECT_EQ(P("n - n"), Dim(0));
  EXPECT_TRUE(P("n - n").IsConstant());
  EXPECT_EQ(P("n - n + 3").Value(), 3);
  EXPECT_EQ(Normal("3 - n"), "-n + 3");
  EXPECT_EQ(P("n").Value(), std::nullopt);
  EXPECT_NE(P("n"), P("m"));
  EXPECT_EQ(P("2*n").Hash(), P("n + n").Hash());
}

TEST(Dim, NamesAndNumbersAreToldApart) {
  EXPECT_EQ(Dim("n") + 1, Dim::Variable("n") + 1);
  EXPECT_EQ(Dim(absl::string_view("n")), Dim::Variable("n"));
  EXPECT_EQ(Dim(0).Value(), 0);  // no null pointer to a name
  EXPECT_EQ(Dim('a').Value(), 97);
  static_assert(!std::is_convertible_v<const char*, Dim>);
  static_assert(std::is_convertible_v<int, Dim>);
}

TEST(Dim, FloorDivPullsMultiplesOut) {
  EXPECT_EQ(Normal("(4*n + 7) // 2"), "2*n + 3");
  EXPECT_EQ(Normal("(3*n + 1) // 2"), "n + (n + 1) // 2");
  EXPECT_EQ(Normal("(n - 3) // 2"), "(n + 1) // 2 - 2");
  EXPECT_EQ(Normal("(2*n + 1) // 4"), "n // 2");
  EXPECT_EQ(Normal("n // 2 // 3"), "n // 6");
  EXPECT_EQ(Normal("(n // 2 + 1) // 3"), "(n + 2) // 6");
  EXPECT_EQ(Normal("n // -2"), Normal("-n // 2"));
  EXPECT_EQ(Normal("(n % 4) // 4"), "0");
  EXPECT_EQ(Normal("7 // 2"), "3");
  EXPECT_EQ(Normal("-7 // 2"), "-4");
  EXPECT_EQ(Normal("7 // -2"), "-4");
}

// Zero is a legal extent: n // n is not 1 before n is known to be nonzero.
TEST(Dim, DivisionNeedsProofOfANonzeroDivisor) {
  EXPECT_EQ(Normal("n*m // n"), "(m*n) // n");
  EXPECT_EQ(Normal("n // n"), "n // n");
  EXPECT_EQ(Normal("0 // n"), "0 // n");
  EXPECT_EQ(Normal("m*(n + 1) // (n + 1)"), "m");
  EXPECT_EQ(Normal("(n + 1) // (n + 1)"), "1");
  EXPECT_EQ(Normal("n // (n + 1)"), "0");
  EXPECT_EQ(Normal("n % (n + 1)"), "n");
  EXPECT_EQ(Normal("(n*m + m) % (n + 1)"), "0");
}

TEST(Dim, ModDropsMultiples) {
  EXPECT_EQ(Normal("(3*n + m) % 2"), "(m + n) % 2");
  EXPECT_EQ(Normal("(4*n + 6) % 4"), "2");
  EXPECT_EQ(Normal("(2*n + 1) % 4"), "2*(n % 2) + 1");
  EXPECT_EQ(Normal("(n % 6) % 3"), "n % 3");
  EXPECT_EQ(Normal("(n % 6 + m) % 3"), "(m + n) % 3");
  EXPECT_EQ(Normal("n % 1"), "0");
  EXPECT_EQ(Normal("-7 % 3"), "2");
  EXPECT_EQ(Normal("7 % -3"), "-2");
}

TEST(Dim, MinAndMaxFlattenSortAndFold) {
  EXPECT_EQ(Normal("min(n, min(m, 3), n + 1)"), "min(m, n, 3)");
  EXPECT_EQ(Normal("max(n, 0)"), "n");
  EXPECT_EQ(Normal("max(3, 5, n)"), "max(n, 5)");
  EXPECT_EQ(Normal("min(n, max(n, m))"), "n");
  EXPECT_EQ(P("min(a, b)"), P("min(b, a)"));
  EXPECT_EQ(Normal("min(n)"), "n");
  EXPECT_FALSE(Dim::CheckedMin({}).ok());
}

TEST(Dim, OverflowIsAnErrorNeverWrong) {
  EXPECT_EQ(Dim::CheckedAdd(kGreatest, 1).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(Dim::CheckedMul(kLeast, -1).ok());
  EXPECT_FALSE(Dim::CheckedFloorDiv(kLeast, -1).ok());
  EXPECT_EQ(Dim::CheckedMod(kLeast, -1).value(), Dim(0));
  EXPECT_EQ(Dim::CheckedMod(5, kLeast).value(), Dim(kLeast + 5));
  EXPECT_EQ(Dim::CheckedMod(-5, kLeast).value(), Dim(-5));
  EXPECT_EQ(Dim::CheckedMod(kLeast, kLeast).value(), Dim(0));
  EXPECT_FALSE(Dim::CheckedSub(0, kLeast).ok());
  EXPECT_FALSE(Dim::CheckedMul(P("4611686018427387904*n"), 2).ok());
  EXPECT_EQ(Compare(P("n") - Dim(kGreatest), CompareOp::kGe, Dim(kGreatest)),
            Truth::kUnknown);
}

// Each would have ended the process.
TEST(Dim, MistakesMakeInvalidDims) {
  const Dim n("n");
  const struct {
    Dim dim;
    absl::StatusCode code;
    const char* message;
  } kMistakes[] = {
      {Dim("3x"), absl::StatusCode::kInvalidArgument,
       "`3x` does not name a size"},
      {Dim::Variable(""), absl::StatusCode::kInvalidArgument,
       "`` does not name a size"},
      {Dim(kGreatest) + 1, absl::StatusCode::kResourceExhausted,
       "exceeds 64 bits"},
      {Dim(kLeast) - 1, absl::StatusCode::kResourceExhausted,
       "exceeds 64 bits"},
      {-Dim(kLeast), absl::StatusCode::kResourceExhausted, "exceeds 64 bits"},
      {n * kGreatest * 2, absl::StatusCode::kResourceExhausted,
       "exceeds 64 bits"},
      {n / 0, absl::StatusCode::kInvalidArgument, "division by zero"},
      {n % 0, absl::StatusCode::kInvalidArgument, "division by zero"},
      {Dim::Max(std::vector<Dim>{}), absl::StatusCode::kInvalidArgument,
       "no sizes"},
      {Dim(7).Substitute({}) / (n - n), absl::StatusCode::kInvalidArgument,
       "division by zero"},
      {P("7 // n").Substitute({{"n", 0}}), absl::StatusCode::kInvalidArgument,
       "division by zero"},
      {Dim::Invalid(absl::NotFoundError("no such size")),
       absl::StatusCode::kNotFound, "no such size"},
      {Dim::Invalid(absl::OkStatus()), absl::StatusCode::kInvalidArgument,
       "a mistake"},
  };
  for (const auto& mistake : kMistakes) {
    SCOPED_TRACE(mistake.dim.ToString());
    const Dim& bad = mistake.dim;
    EXPECT_FALSE(bad.valid());
    EXPECT_EQ(bad.status().code(), mistake.code);
    EXPECT_THAT(std::string(bad.status().message()),
                HasSubstr(mistake.message));
    EXPECT_THAT(bad.ToString(), HasSubstr("<invalid: "));
    EXPECT_FALSE(bad.IsConstant());
    EXPECT_EQ(bad.Value(), std::nullopt);
    EXPECT_TRUE(bad.Variables().empty());
    EXPECT_EQ(bad.Bounds().low, std::nullopt);
    EXPECT_EQ(bad.Bounds().high, std::nullopt);
    EXPECT_EQ(bad.Evaluate({{"n", 1}}).status(), bad.status());
    EXPECT_FALSE(Dim::Parse(bad.ToString()).ok());
  }
}

TEST(Dim, ArithmeticWithAnInvalidDimGivesItAgain) {
  const Dim n("n");
  const Dim bad("3x");
  const Dim results[] = {bad + 1,
                         1 + bad,
                         n - bad,
                         bad - bad,
                         bad * 0,
                         0 * bad,
                         -bad,
                         bad / 1,
                         1 / bad,
                         bad % 1,
                         n % bad,
                         Dim::Min(n, bad),
                         Dim::Max(bad, 3),
                         bad.Substitute({}),
                         (n + 1).Substitute({{"n", bad}})};
  for (const Dim& result : results) {
    EXPECT_EQ(result.status(), bad.status()) << result;
    EXPECT_EQ(result, bad);
    EXPECT_EQ(result.Hash(), bad.Hash());
  }
  EXPECT_NE(bad, Dim("4x"));
  EXPECT_NE(bad, n);
  EXPECT_NE(bad, Dim(0));
  EXPECT_EQ(Dim::Order(bad, Dim("4x")), -Dim::Order(Dim("4x"), bad));
  EXPECT_EQ(Dim::Order(bad, n), -Dim::Order(n, bad));
  for (int op = 0; op < 6; ++op) {
    const auto compare = static_cast<CompareOp>(op);
    EXPECT_EQ(Compare(bad, compare, bad), Truth::kUnknown);
    EXPECT_EQ(Compare(bad, compare, 1), Truth::kUnknown);
    EXPECT_EQ(Compare(n, compare, bad), Truth::kUnknown);
    Constraints constraints;
    EXPECT_EQ(constraints.Assume(n, compare, bad), bad.status());
  }
  EXPECT_THAT(DecidingConstraint(bad, CompareOp::kGe, n), HasSubstr("3x"));
}

TEST(Dim, OperatorsAndStreams) {
  const Dim n("n");
  EXPECT_EQ((2 * n + 1) / 2, n);
  EXPECT_EQ((2 * n + 1) % 2, Dim(1));
  EXPECT_EQ(Dim(-7) / 2, Dim(-4));
  EXPECT_EQ(Dim(-7) % 2, Dim(1));
  std::ostringstream out;
  out << n / 3 << ", " << Dim("3x");
  EXPECT_EQ(out.str(), "n // 3, <invalid: `3x` does not name a size>");
  static_assert(!std::is_constructible_v<Dim, double>);
  static_assert(sizeof(Dim) == 24);
}

TEST(Dim, SizeIsLimited) {
  // (a + b + ... )^k grows; the limit is an error, not a hang.
  Dim sum = 1;
  for (char c = 'a'; c <= 'j'; ++c) {
    sum = sum + Dim::Variable(std::string(1, c));
  }
  Dim power = sum;
  absl::Status status;
  for (int i = 0; i < 10 && status.ok(); ++i) {
    auto next = Dim::CheckedMul(power, sum);
    status = next.status();
    if (next.ok()) power = *next;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  // Sharing makes this exponential in print.
  Dim nested = P("n");
  status = absl::OkStatus();
  for (int i = 0; i < 100 && status.ok(); ++i) {
    auto next = Dim::CheckedFloorDiv(nested, 3);
    if (next.ok()) next = Dim::CheckedMin({nested, P("m"), *next});
    if (next.ok()) next = Dim::CheckedMul(*next, *next);
    status = next.status();
    if (next.ok()) nested = *next;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

TEST(Dim, DivisionByALiteralZero) {
  EXPECT_EQ(Dim::CheckedFloorDiv(P("n"), 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Dim::Parse("n % 0").ok());
  const Dim quotient = Dim::FloorDiv(5, 0);
  EXPECT_FALSE(quotient.IsConstant());
  EXPECT_THAT(std::string(quotient.Evaluate({}).status().message()),
              HasSubstr("division by zero: `(5) // 0`"));
  EXPECT_FALSE(P("m // n").CheckedSubstitute({{"n", 0}}).ok());
}

TEST(Dim, DivisionByAnExpressionThatIsAlwaysZero) {
  // Such a quotient has no value, so it would be both less and not less.
  EXPECT_THAT(std::string(Dim::Parse("m // (0 // (m % k))").status().message()),
              HasSubstr("division by zero: `(m) // (0 // (m % k))`"));
  EXPECT_FALSE(Dim::Parse("m % min(0, n)").ok());
  EXPECT_FALSE(P("m // (n // k)").CheckedSubstitute({{"n", 0}}).ok());
}

TEST(Dim, Evaluate) {
  EXPECT_EQ(*P("n*n - m // 2").Evaluate({{"n", 5}, {"m", 7}}), 22);
  EXPECT_THAT(std::string(P("n + m").Evaluate({{"n", 1}}).status().message()),
              HasSubstr("`m` has no value"));
  EXPECT_THAT(
      std::string(P("n*n").Evaluate({{"n", kGreatest}}).status().message()),
      HasSubstr("`n*n` exceeds 64 bits"));
  EXPECT_FALSE(P("m // n").Evaluate({{"m", 1}, {"n", 0}}).ok());
}

TEST(Dim, SubstituteAndVariables) {
  EXPECT_EQ(P("n*m + n // 2").Substitute({{"n", P("2*k")}}), P("2*k*m + k"));
  EXPECT_EQ(P("min(n, m)").Substitute({{"n", 3}, {"m", 4}}), Dim(3));
  EXPECT_THAT(P("n + min(b, a // c)").Variables(),
              ::testing::ElementsAre("a", "b", "c", "n"));
}

TEST(Dim, ParseErrorsNameTheOffset) {
  const std::pair<const char*, const char*> kBad[] = {
      {"", "expected a size at offset 0"},
      {"n +", "expected a size at offset 3"},
      {"(n", "expected `)` at offset 2"},
      {"n m", "expected an operator at offset 2"},
      {"min(n", "expected `,` or `)` at offset 5"},
      {"9223372036854775808", "exceeds 64 bits"},
      {"n$", "expected an operator at offset 1"}};
  for (const auto& [text, message] : kBad) {
    auto dim = Dim::Parse(text);
    EXPECT_EQ(dim.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(dim.status().message()), HasSubstr(message));
  }
  EXPECT_FALSE(Dim::Parse(std::string(100000, '(')).ok());
  EXPECT_EQ(P("-9223372036854775808").Value(), kLeast);
  const Dim least = P("m - 9223372036854775807*n - n");
  EXPECT_EQ(P(least.ToString()), least);
}

TEST(Dim, Bounds) {
  const auto bounds = P("3*(n % 4) + 2").Bounds();
  EXPECT_EQ(bounds.low, 2);
  EXPECT_EQ(bounds.high, 11);
  EXPECT_EQ(P("n - m").Bounds().low, std::nullopt);
  EXPECT_EQ(P("-n").Bounds().high, 0);
  EXPECT_EQ(P("min(n, 7)").Bounds().high, 7);
  EXPECT_EQ(P("max(n, 7)").Bounds().low, 7);
}

TEST(Compare, DecidesWhatFollows) {
  const Dim n = P("n"), m = P("m");
  EXPECT_EQ(Compare(n + 2, CompareOp::kGt, n), Truth::kTrue);
  EXPECT_EQ(Compare(n, CompareOp::kGe, 3), Truth::kUnknown);
  EXPECT_EQ(Compare(n, CompareOp::kLt, 0), Truth::kFalse);
  EXPECT_EQ(Compare(n * 2 + 1, CompareOp::kEq, m * 2), Truth::kFalse);
  EXPECT_EQ(Compare(n * n, CompareOp::kGe, n), Truth::kTrue);
  EXPECT_EQ(Compare(P("max(n, m)"), CompareOp::kLe, n + m), Truth::kTrue);
  EXPECT_EQ(Compare(P("min(n, m)"), CompareOp::kLe, n), Truth::kTrue);
  EXPECT_EQ(Compare(P("2*(n // 2)"), CompareOp::kLe, n), Truth::kTrue);
  EXPECT_EQ(Compare(P("2*(n // 2) + n % 2"), CompareOp::kLe, n + 1),
            Truth::kTrue);
  EXPECT_EQ(Compare(n, CompareOp::kEq, m), Truth::kUnknown);
}

TEST(Compare, UsesConstraints) {
  const Dim n = P("n"), m = P("m"), k = P("k");
  Constraints facts;
  ASSERT_TRUE(facts.Assume(n, CompareOp::kGe, m).ok());
  ASSERT_TRUE(facts.Assume(m, CompareOp::kGt, k).ok());
  EXPECT_EQ(Compare(n, CompareOp::kGt, k, facts), Truth::kTrue);
  EXPECT_EQ(Compare(n * 2, CompareOp::kGe, m + k + 1, facts), Truth::kTrue);
  EXPECT_EQ(Compare(n * k, CompareOp::kGe, m * k, facts), Truth::kTrue);
  EXPECT_EQ(Compare(n, CompareOp::kGt, m, facts), Truth::kUnknown);
  EXPECT_THAT(std::string(facts.Assume(k, CompareOp::kGe, n).message()),
              HasSubstr("`k >= n` contradicts what is known"));
  Constraints equal;
  ASSERT_TRUE(equal.Assume(n, CompareOp::kEq, m * 2).ok());
  EXPECT_EQ(Compare(n, CompareOp::kGe, m, equal), Truth::kTrue);
  EXPECT_EQ(Compare(n + m, CompareOp::kEq, m * 3, equal), Truth::kTrue);
  Constraints apart;
  ASSERT_TRUE(apart.Assume(n, CompareOp::kNe, m).ok());
  EXPECT_EQ(Compare(m, CompareOp::kNe, n, apart), Truth::kTrue);
  EXPECT_FALSE(apart.Assume(n, CompareOp::kEq, m).ok());
}

TEST(Compare, NamesTheDecidingConstraint) {
  const Dim n = P("n"), m = P("m");
  EXPECT_EQ(DecidingConstraint(n, CompareOp::kGe, 3), "n - 3 >= 0");
  EXPECT_EQ(DecidingConstraint(n, CompareOp::kLt, m), "m - n > 0");
  EXPECT_EQ(DecidingConstraint(n, CompareOp::kEq, m), "m - n == 0");
}

// A tree of operations, evaluated directly and as a Dim.
struct Sample {
  Dim dim;
  std::function<std::optional<int64_t>(const std::map<std::string, int64_t>&)>
      evaluate;
};

Sample RandomSample(int depth, std::mt19937_64* rng) {
  const auto pick = [&](int n) { return static_cast<int>((*rng)() % n); };
  if (depth == 0 || pick(5) == 0) {
    if (pick(2) == 0) {
      const int64_t value = pick(12) - 4;
      return {Dim(value), [value](const auto&) { return value; }};
    }
    const std::string name(1, static_cast<char>('a' + pick(3)));
    return {Dim::Variable(name),
            [name](const auto& values) { return values.at(name); }};
  }
  const Sample x = RandomSample(depth - 1, rng);
  const Sample y = RandomSample(depth - 1, rng);
  const int op = pick(8);
  absl::StatusOr<Dim> dim = Dim(0);
  switch (op) {
    case 0:
    case 1:
      dim = Dim::CheckedAdd(x.dim, y.dim);
      break;
    case 2:
      dim = Dim::CheckedSub(x.dim, y.dim);
      break;
    case 3:
      dim = Dim::CheckedMul(x.dim, y.dim);
      break;
    case 4:
      dim = Dim::CheckedFloorDiv(x.dim, y.dim);
      break;
    case 5:
      dim = Dim::CheckedMod(x.dim, y.dim);
      break;
    case 6:
      dim = Dim::CheckedMin({x.dim, y.dim});
      break;
    default:
      dim = Dim::CheckedMax({x.dim, y.dim});
  }
  if (!dim.ok()) return x;  // beyond the limits, or a literal division by 0
  return {*dim, [x, y, op](const auto& values) -> std::optional<int64_t> {
            const auto a = x.evaluate(values), b = y.evaluate(values);
            if (!a || !b) return std::nullopt;
            const __int128 p = *a, q = *b;
            __int128 result = 0;
            if (op <= 1) result = p + q;
            if (op == 2) result = p - q;
            if (op == 3) result = p * q;
            if (op == 4 || op == 5) {
              if (q == 0) return std::nullopt;
              __int128 rest = p % q;
              if (rest != 0 && (rest < 0) != (q < 0)) rest += q;
              result = op == 4 ? (p - rest) / q : rest;
            }
            if (op == 6) result = p < q ? p : q;
            if (op == 7) result = p > q ? p : q;
            if (result != static_cast<int64_t>(result)) return std::nullopt;
            return static_cast<int64_t>(result);
          }};
}

std::map<std::string, int64_t> RandomValues(std::mt19937_64* rng) {
  std::map<std::string, int64_t> values;
  for (const char* name : {"a", "b", "c"}) {
    values[name] = static_cast<int64_t>((*rng)() % 9);
  }
  return values;
}

bool Holds(int64_t a, CompareOp op, int64_t b) {
  const bool truths[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
  return truths[static_cast<int>(op)];
}

TEST(DimProperty, NormalFormComparisonAndTextAgreeWithEvaluation) {
  const uint64_t seed = 20240607;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  int evaluated = 0, decided = 0;
  for (int round = 0; round < 1500; ++round) {
    const Sample x = RandomSample(3, &rng), y = RandomSample(3, &rng);
    const std::string text = x.dim.ToString();
    SCOPED_TRACE(testing::Message() << text << " against " << y.dim.ToString());
    auto parsed = Dim::Parse(text);
    // A division by an expression that folds to 0 has no text to read back.
    if (parsed.ok()) {
      ASSERT_EQ(*parsed, x.dim) << parsed->ToString();
      ASSERT_EQ(parsed->Hash(), x.dim.Hash());
    } else {
      ASSERT_THAT(std::string(parsed.status().message()),
                  HasSubstr("division by zero"));
    }
    if (x.dim == y.dim) {
      ASSERT_EQ(x.dim.Hash(), y.dim.Hash());
    }
    ASSERT_EQ(x.dim == y.dim, Dim::Order(x.dim, y.dim) == 0);
    ASSERT_EQ(Dim::Order(x.dim, y.dim), -Dim::Order(y.dim, x.dim));
    std::vector<Truth> truths;
    for (int op = 0; op < 6; ++op) {
      truths.push_back(Compare(x.dim, static_cast<CompareOp>(op), y.dim));
      decided += truths.back() != Truth::kUnknown;
    }
    const Dim::Interval bounds = x.dim.Bounds();
    for (int point = 0; point < 12; ++point) {
      const auto values = RandomValues(&rng);
      const auto a = x.evaluate(values), b = y.evaluate(values);
      if (!a) continue;
      const auto value = x.dim.Evaluate(values);
      ASSERT_TRUE(value.ok()) << value.status();
      ASSERT_EQ(*value, *a);
      ++evaluated;
      ASSERT_TRUE(!bounds.low || *bounds.low <= *a);
      ASSERT_TRUE(!bounds.high || *a <= *bounds.high);
      if (!b) continue;
      for (int op = 0; op < 6; ++op) {
        if (truths[op] == Truth::kUnknown) continue;
        ASSERT_EQ(truths[op] == Truth::kTrue,
                  Holds(*a, static_cast<CompareOp>(op), *b))
            << "op " << op << " at " << *a << ", " << *b;
      }
    }
  }
  // The samples must have meant something.
  EXPECT_GT(evaluated, 9000);
  EXPECT_GT(decided, 1500);
}

}  // namespace
}  // namespace cleave
