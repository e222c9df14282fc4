#include "testing/check/layers/check_rewrite.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/rewrite_rule.h"
#include "ops/check.h"
#include "ops/reference/real.h"
#include "ops/status_macros.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/int_points.h"
#include "testing/check/samples/shrink.h"
#include "transforms/jvp/jvp.h"

namespace cleave {
namespace {

constexpr int64_t kRandomPoints = 4000;
constexpr int64_t kEdgePoints = 4000;
constexpr int64_t kRealPoints = 300;
constexpr int kBits = 400;
// Sides agree over the reals where they differ by less than 2^-kAgreeingBits
// of the largest number in sight: the others are lost where terms cancel.
constexpr int kAgreeingBits = 200;

int BitsOf(DType dtype) { return static_cast<int>(ByteSize(dtype)) * 8; }

Tensor OfInts(DType dtype, const std::vector<int64_t>& values) {
  Tensor tensor(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.SetInt(i, values[i]);
  return tensor;
}

Tensor OfDoubles(DType dtype, const std::vector<double>& values) {
  return Tensor::FromDoubles(dtype, {static_cast<int64_t>(values.size())},
                             values);
}

// `alone`: of the only operand.
Tensor Specials(DType dtype, bool alone) {
  if (IsFloat(dtype)) return OfDoubles(dtype, SpecialValues(dtype));
  if (IsBool(dtype)) return OfInts(dtype, {0, 1});
  if (IsComplex(dtype)) {
    const double inf = std::numeric_limits<double>::infinity();
    const std::vector<double> parts = {0.0, -0.0, 1,    -1,
                                       2.5, inf,  -inf, std::nan("")};
    const int64_t count = static_cast<int64_t>(parts.size());
    Tensor tensor(dtype, {count * count});
    for (int64_t i = 0; i < tensor.size(); ++i) {
      tensor.SetComplex(i, {parts[i / count], parts[i % count]});
    }
    return tensor;
  }
  if (alone) return OfInts(dtype, SpecialInts(dtype));
  std::vector<int64_t> values;
  const uint64_t high = uint64_t{1} << (BitsOf(dtype) - 1);
  for (uint64_t bits : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{2},
                        uint64_t{7}, ~uint64_t{1}, high, high - 1, high + 1}) {
    values.push_back(IntFromBits(bits, dtype));
  }
  return OfInts(dtype, values);
}

// All values of a dtype of 16 bits or fewer.
Tensor All(DType dtype) {
  if (IsFloat(dtype)) return OfDoubles(dtype, AllValues(dtype));
  if (IsBool(dtype)) return OfInts(dtype, {0, 1});
  std::vector<int64_t> values;
  for (uint64_t bits = 0; bits < uint64_t{1} << BitsOf(dtype); ++bits) {
    values.push_back(IntFromBits(bits, dtype));
  }
  return OfInts(dtype, values);
}

class Points {
 public:
  explicit Points(uint64_t seed) : random_(seed) {}

  // Values anywhere, small numbers, and such that operands share.
  std::vector<Tensor> Random(const std::vector<DType>& dtypes, int64_t count) {
    std::vector<Tensor> tensors;
    for (size_t k = 0; k < dtypes.size(); ++k) {
      Tensor tensor(dtypes[k], {count});
      for (int64_t i = 0; i < count; ++i) {
        if (k > 0 && dtypes[k - 1] == dtypes[k] && random_() % 4 == 0) {
          CopyElement(tensors[k - 1], i, tensor, i);
        } else {
          SetRandom(tensor, i);
        }
      }
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  // The special values of each operand, crossed, or as many of the tuples.
  std::vector<Tensor> Edges(const std::vector<DType>& dtypes, int64_t limit) {
    std::vector<Tensor> lists;
    int64_t total = 1;
    for (DType dtype : dtypes) {
      lists.push_back(Specials(dtype, dtypes.size() == 1));
      total = std::min<int64_t>(total * lists.back().size(), 1 << 30);
    }
    const int64_t count = std::min(total, limit);
    std::vector<Tensor> tensors;
    for (DType dtype : dtypes) {
      tensors.emplace_back(dtype, std::vector<int64_t>{count});
    }
    for (int64_t i = 0; i < count; ++i) {
      int64_t place = total <= limit ? i : random_() % total;
      for (size_t k = 0; k < dtypes.size(); ++k) {
        CopyElement(lists[k], place % lists[k].size(), tensors[k], i);
        place /= lists[k].size();
      }
    }
    return tensors;
  }

  // Ordinary numbers for derivatives, and zeros and ties among them.
  std::vector<Tensor> Ordinary(const std::vector<DType>& dtypes, int64_t count,
                               bool zeros) {
    std::vector<Tensor> tensors;
    for (size_t k = 0; k < dtypes.size(); ++k) {
      Tensor tensor(dtypes[k], {count});
      for (int64_t i = 0; i < count; ++i) {
        if (!IsFloat(dtypes[k])) {
          SetRandom(tensor, i);
          continue;
        }
        const double sign = random_() % 2 == 0 ? 1 : -1;
        double value = sign * std::exp2(Uniform(-20, 6));
        if (i % 3 == 0) value = Uniform(-3, 3);
        if (zeros && random_() % 4 == 0) {
          value = static_cast<double>(random_() % 3) - 1;
        }
        tensor.SetDouble(i, value);
      }
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

 private:
  double Uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  double Float(DType dtype) {
    switch (random_() % 3) {
      case 0: {
        const int64_t max = MaxOrdinal(dtype);
        return FromOrdinal(
            std::uniform_int_distribution<int64_t>(-max - 1, max + 1)(random_),
            dtype);
      }
      case 1:
        return static_cast<double>(random_() % 9) - 4;
      default:
        return Uniform(-4, 4);
    }
  }

  int64_t Int(DType dtype) {
    switch (random_() % 4) {
      case 0:
        return AnyInt(dtype, random_);
      case 1:
        return LogUniformInt(dtype, random_);
      default:
        return IntFromBits(random_() % 17 - uint64_t{8}, dtype);
    }
  }

  void SetRandom(Tensor& tensor, int64_t i) {
    const DType dtype = tensor.dtype();
    if (IsFloat(dtype)) {
      tensor.SetDouble(i, Float(dtype));
    } else if (IsComplex(dtype)) {
      const DType part = dtype == DType::kC64 ? DType::kF32 : DType::kF64;
      const double real = Float(part);
      tensor.SetComplex(i, {real, Float(part)});
    } else if (IsBool(dtype)) {
      tensor.SetInt(i, random_() % 2);
    } else {
      tensor.SetInt(i, Int(dtype));
    }
  }

  std::mt19937_64 random_;
};

// A rewrite at one choice of dtypes.
struct Sides {
  std::vector<DType> dtypes;  // of the operands
  Graph left;
  Graph right;
};

// How one point differs, in words of values.
struct Difference {
  std::string expected;
  std::string got;
};

class RewriteChecker {
 public:
  explicit RewriteChecker(const OpContext& context)
      : context_(context), points_(context.seed + 20) {
    const Rewrite* rewrite =
        context.rules().rewrites().Find(context.item->name);
    CLEAVE_CHECK(rewrite != nullptr) << context.item->name;
    rewrite_ = *rewrite;
    choices_ = TypingChoices(rewrite_, *context.rules().context());
  }

  const Rewrite& rewrite() const { return rewrite_; }
  const std::vector<std::vector<DType>>& choices() const { return choices_; }
  Points& points() { return points_; }
  const OpContext& context() const { return context_; }

  // The sides at vectors; nullopt where dtypes are not wanted.
  std::optional<Sides> SidesAt(const std::vector<DType>& chosen) const {
    Sides sides;
    bool wanted = false;
    for (int place : rewrite_.operand_dtypes) {
      sides.dtypes.push_back(chosen[place]);
      wanted = wanted || context_.Wants(chosen[place]);
    }
    if (!wanted) return std::nullopt;
    const auto make = [&](const RewriteSide& side) {
      return GraphOfSide(rewrite_, side, chosen, {Dim::Variable("n")},
                         context_.rules().context());
    };
    sides.left = make(rewrite_.left);
    sides.right = make(rewrite_.right);
    return sides;
  }

  // Compares points for each choice; `differ` says how elements of one point
  // differ, if they do.
  Counterexample Example(
      const Sides& sides, std::vector<Tensor> point, std::string what,
      const std::function<std::optional<Difference>(absl::Span<const Tensor>)>&
          differ) const {
    Difference shown = differ(point).value_or(Difference());
    const auto fails = [&](absl::Span<const Tensor> trial) {
      if (context_.Expired()) return false;
      std::optional<Difference> again = differ(trial);
      if (again.has_value()) shown = *std::move(again);
      return again.has_value();
    };
    point = ShrinkValues(std::move(point), fails, context_.ShrinkTrials());
    Counterexample example;
    std::vector<std::string> operands;
    std::vector<std::string> names = rewrite_.operands;
    for (size_t i = 0; i < sides.dtypes.size(); ++i) {
      operands.push_back(
          absl::StrCat(rewrite_.operands[i], ": ", DTypeName(sides.dtypes[i])));
    }
    example.call =
        absl::StrCat(rewrite_.name(), "(", absl::StrJoin(operands, ", "), ")");
    for (size_t i = 0; names.size() < point.size(); ++i) {
      if (IsFloat(sides.dtypes[i])) {
        names.push_back(absl::StrCat(names[i], ".tangent"));
      }
    }
    example.inputs = DescribeInputs(names, point);
    example.what = std::move(what);
    example.expected = std::move(shown.expected);
    example.got = std::move(shown.got);
    example.ulp = std::numeric_limits<double>::infinity();
    example.place = context_.Place();
    example.replay = context_.Replay();
    return example;
  }

 private:
  const OpContext& context_;
  Points points_;
  Rewrite rewrite_;
  std::vector<std::vector<DType>> choices_;
};

std::string ValueText(const Tensor& one) {
  return IsFloat(one.dtype()) ? FloatToString(one.GetDouble(0), one.dtype())
                              : one.ToString();
}

Tensor Element(const Tensor& tensor, int64_t i) {
  return SelectElements({tensor}, {i})[0];
}

// How the sides differ at one point; nullopt where they do not, or where the
// left one has no value.
std::optional<Difference> DifferInBits(const Sides& sides,
                                       absl::Span<const Tensor> point) {
  const absl::StatusOr<std::vector<Tensor>> left = Interpret(sides.left, point);
  if (!left.ok()) return std::nullopt;
  const absl::StatusOr<std::vector<Tensor>> right =
      Interpret(sides.right, point);
  if (!right.ok()) {
    return Difference{ValueText((*left)[0]),
                      std::string(right.status().message())};
  }
  if (SameValue((*left)[0], (*right)[0])) return std::nullopt;
  return Difference{ValueText((*left)[0]), ValueText((*right)[0])};
}

// The points at which both sides are not the same bits; bad ones are left out
// of the count.
Verdict CompareBits(const RewriteChecker& checker, const Sides& sides,
                    const std::vector<Tensor>& points) {
  Verdict verdict;
  verdict.kind = VerdictKind::kAgrees;
  const int64_t count = points[0].size();
  const absl::StatusOr<std::vector<Tensor>> left =
      Interpret(sides.left, points);
  const absl::StatusOr<std::vector<Tensor>> right =
      Interpret(sides.right, points);
  for (const auto* side : {&left, &right}) {
    if (!side->ok() && !IsBadSample(side->status())) {
      return Verdict::Inconclusive(std::string(side->status().message()));
    }
  }
  // A sample that one side cannot take stops all: they are taken one by one.
  const bool apart = !left.ok() || !right.ok();
  if (!apart && SameValue((*left)[0], (*right)[0])) {
    verdict.samples = count;
    return verdict;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (checker.context().Expired())
      return Verdict::Inconclusive("out of time");
    if (!apart && SameValue(Element((*left)[0], i), Element((*right)[0], i))) {
      continue;
    }
    std::vector<Tensor> point = SelectElements(points, {i});
    if (!DifferInBits(sides, point).has_value()) {
      verdict.samples += Interpret(sides.left, point).ok();
      continue;
    }
    return Verdict::Disagrees(
        checker.Example(sides, std::move(point), "the left side's bits",
                        [&](absl::Span<const Tensor> trial) {
                          return DifferInBits(sides, trial);
                        }));
  }
  if (!apart) verdict.samples = count;
  return verdict;
}

// Each choice of dtypes by `check`, merged.
Verdict ForEachChoice(RewriteChecker& checker,
                      const std::function<Verdict(const Sides& sides)>& check) {
  Verdict verdict = Verdict::NotChecked("it takes none of these dtypes");
  for (const std::vector<DType>& chosen : checker.choices()) {
    if (checker.context().Expired()) {
      Merge(verdict, Verdict::Inconclusive("out of time"));
      return verdict;
    }
    const std::optional<Sides> sides = checker.SidesAt(chosen);
    if (!sides.has_value()) continue;
    const Verdict next = check(*sides);
    if (verdict.kind == VerdictKind::kNotChecked) {
      verdict = next;
    } else {
      Merge(verdict, next);
    }
    if (verdict.kind == VerdictKind::kDisagrees) return verdict;
  }
  return verdict;
}

// Over the reals: whether `a`, where it is finite, is `b` up to the digits that
// cancelling terms of size `scale` lose.
bool AgreeAsReals(const Real& a, const Real& b, const Real& scale) {
  if (mpfr_number_p(b.get()) == 0) return false;
  Real difference(kBits);
  mpfr_sub(difference.get(), a.get(), b.get(), MPFR_RNDN);
  mpfr_abs(difference.get(), difference.get(), MPFR_RNDN);
  Real bound = scale;
  for (const Real* value : {&a, &b}) {
    Real magnitude(kBits);
    mpfr_abs(magnitude.get(), value->get(), MPFR_RNDN);
    mpfr_max(bound.get(), bound.get(), magnitude.get(), MPFR_RNDN);
  }
  mpfr_mul_2si(bound.get(), bound.get(), -kAgreeingBits, MPFR_RNDN);
  return mpfr_lessequal_p(difference.get(), bound.get()) != 0;
}

// How outputs number `output` of two graphs differ over the reals at one point.
// `outside` counts points at which the left one has no finite value.
struct RealComparer {
  const Graph& left;
  const Graph& right;
  size_t output = 0;
  int64_t outside = 0;
  std::string problem;  // what could not be evaluated

  std::optional<Difference> operator()(absl::Span<const Tensor> point) {
    std::vector<RealTensor> inputs;
    Real scale(1.0, kBits);
    for (const Tensor& tensor : point) {
      inputs.push_back(RealTensor::FromTensor(tensor, kBits));
      for (const Real& value : inputs.back().reals) {
        Real magnitude(kBits);
        mpfr_abs(magnitude.get(), value.get(), MPFR_RNDN);
        mpfr_max(scale.get(), scale.get(), magnitude.get(), MPFR_RNDN);
      }
    }
    const auto a = InterpretReal(left, inputs, kBits);
    const auto b = InterpretReal(right, inputs, kBits);
    if (!a.ok() || !b.ok()) {
      const absl::Status& status = a.ok() ? b.status() : a.status();
      if (!IsBadSample(status)) problem = std::string(status.message());
      ++outside;
      return std::nullopt;
    }
    const RealTensor& x = (*a)[output];
    const RealTensor& y = (*b)[output];
    if (x.reals.empty()) {
      if (SameValue(x.discrete, y.discrete)) return std::nullopt;
      return Difference{x.discrete.ToString(), y.discrete.ToString()};
    }
    if (mpfr_number_p(x.reals[0].get()) == 0) {
      ++outside;
      return std::nullopt;
    }
    if (AgreeAsReals(x.reals[0], y.reals[0], scale)) return std::nullopt;
    return Difference{x.reals[0].ToString(30), y.reals[0].ToString(30)};
  }
};

// Point by point; `compare` is called for each.
Verdict CompareReals(RewriteChecker& checker, const Sides& sides,
                     RealComparer compare, const std::vector<Tensor>& points,
                     const std::string& what) {
  Verdict verdict;
  verdict.kind = VerdictKind::kAgrees;
  const int64_t count = points[0].size();
  for (int64_t i = 0; i < count; ++i) {
    if (checker.context().Expired())
      return Verdict::Inconclusive("out of time");
    std::vector<Tensor> point = SelectElements(points, {i});
    if (!compare(point).has_value()) continue;
    return Verdict::Disagrees(checker.Example(
        sides, std::move(point), what,
        [&](absl::Span<const Tensor> trial) { return compare(trial); }));
  }
  if (!compare.problem.empty()) return Verdict::Inconclusive(compare.problem);
  if (compare.outside == count) {
    return Verdict::Inconclusive(
        "the left side has a finite value at none of the points");
  }
  verdict.samples = count - compare.outside;
  if (compare.outside > 0) {
    verdict.notes.push_back(
        absl::StrCat("the left side has no finite value at ", compare.outside,
                     " of ", count, " points"));
  }
  return verdict;
}

}  // namespace

Verdict CheckRewriteTypes(const OpContext& context) {
  const RewriteChecker checker(context);
  Verdict verdict;
  verdict.kind = VerdictKind::kAgrees;
  verdict.strength = Strength::kExhaustive;
  verdict.samples = static_cast<int64_t>(checker.choices().size());
  return verdict;
}

Verdict CheckRewriteReals(const OpContext& context) {
  RewriteChecker checker(context);
  if (!checker.rewrite().real) {
    return Verdict::NotChecked("its bits are compared");
  }
  // Over the reals one float dtype is as good as another.
  return ForEachChoice(checker, [&](const Sides& sides) {
    if (std::any_of(sides.dtypes.begin(), sides.dtypes.end(), [](DType dtype) {
          return IsFloat(dtype) && dtype != DType::kF64;
        })) {
      return Verdict::NotChecked("");
    }
    return CompareReals(
        checker, sides, RealComparer{sides.left, sides.right, 0, 0, ""},
        checker.points().Ordinary(sides.dtypes, kRealPoints, /*zeros=*/true),
        "the left side over the reals");
  });
}

Verdict CheckRewriteBits(const OpContext& context) {
  RewriteChecker checker(context);
  if (checker.rewrite().real) {
    return Verdict::NotChecked("it is true over the reals only");
  }
  return ForEachChoice(checker, [&](const Sides& sides) {
    const bool exhaustive = sides.dtypes.size() == 1 &&
                            ByteSize(sides.dtypes[0]) <= 2 &&
                            sides.dtypes[0] != DType::kKey;
    Verdict verdict = CompareBits(
        checker, sides,
        exhaustive ? std::vector<Tensor>{All(sides.dtypes[0])}
                   : checker.points().Random(sides.dtypes, kRandomPoints));
    if (exhaustive && verdict.kind == VerdictKind::kAgrees) {
      verdict.strength = Strength::kExhaustive;
    }
    return verdict;
  });
}

Verdict CheckRewriteEdges(const OpContext& context) {
  RewriteChecker checker(context);
  if (checker.rewrite().real) {
    return Verdict::NotChecked("it is true over the reals only");
  }
  return ForEachChoice(checker, [&](const Sides& sides) {
    return CompareBits(checker, sides,
                       checker.points().Edges(sides.dtypes, kEdgePoints));
  });
}

Verdict CheckRewriteJvp(const OpContext& context) {
  RewriteChecker checker(context);
  const RuleSet& rules = context.rules();
  JvpOptions options;
  options.transform.simplify = false;
  const Verdict discrete = Verdict::NotChecked("no operand is a float");
  Verdict verdict = ForEachChoice(checker, [&](const Sides& sides) {
    std::vector<bool> active;
    std::vector<DType> dtypes = sides.dtypes;
    for (DType dtype : sides.dtypes) active.push_back(IsFloat(dtype));
    if (std::none_of(sides.dtypes.begin(), sides.dtypes.end(),
                     [](DType dtype) { return dtype == DType::kF64; }) ||
        !IsFloat(sides.left.type(sides.left.outputs()[0].value).dtype)) {
      return discrete;
    }
    for (DType dtype : sides.dtypes) {
      if (IsFloat(dtype)) dtypes.push_back(dtype);
    }
    std::vector<Graph> tangents;
    for (const Graph* side : {&sides.left, &sides.right}) {
      absl::StatusOr<JvpResult> jvp = Jvp(*side, active, rules, options);
      absl::StatusOr<Graph> graph =
          jvp.ok() ? Expand(jvp->graph, rules) : jvp.status();
      if (!graph.ok()) {
        return graph.status().code() == absl::StatusCode::kUnimplemented
                   ? Verdict::NotChecked(std::string(graph.status().message()))
                   : Verdict::Inconclusive(
                         std::string(graph.status().message()));
      }
      tangents.push_back(*std::move(graph));
    }
    return CompareReals(
        checker, sides, RealComparer{tangents[0], tangents[1], 1, 0, ""},
        checker.points().Ordinary(dtypes, kRealPoints, /*zeros=*/true),
        "the left side's derivative");
  });
  return verdict;
}

}  // namespace cleave
