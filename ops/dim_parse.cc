// The text of Dims: printed so that reading it builds the same Dim.

#include <limits>
#include <ostream>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/dim.h"
#include "ops/dim_internal.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = DimAtom::Kind;

constexpr int kMaxNesting = 200;
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

// Whether `text` needs no parentheses beside an operator.
bool IsPrimary(absl::string_view text) {
  int depth = 0;
  for (char c : text) {
    depth += (c == '(') - (c == ')');
    const bool inside = depth > 0 || c == ')';
    if (!inside && !absl::ascii_isalnum(c) && c != '_' && c != '.') {
      return false;
    }
  }
  return true;
}

std::string Parenthesized(std::string text) {
  return IsPrimary(text) ? text : absl::StrCat("(", text, ")");
}

std::string AtomToString(const DimAtom& atom) {
  const auto join = [&] {
    return absl::StrJoin(atom.args, ", ", [](std::string* out, const Dim& arg) {
      absl::StrAppend(out, arg.ToString());
    });
  };
  switch (atom.kind) {
    case Kind::kVariable:
      return atom.name;
    case Kind::kFloorDiv:
    case Kind::kMod:
      return absl::StrCat(Parenthesized(atom.args[0].ToString()),
                          atom.kind == Kind::kMod ? " % " : " // ",
                          Parenthesized(atom.args[1].ToString()));
    case Kind::kMin:
      return absl::StrCat("min(", join(), ")");
    case Kind::kMax:
      return absl::StrCat("max(", join(), ")");
  }
  return "";
}

// The term with the absolute value of its coefficient.
std::string TermToString(const DimTerm& term, uint64_t magnitude) {
  std::vector<std::string> factors;
  if (magnitude != 1 || term.monomial.empty()) {
    factors.push_back(absl::StrCat(magnitude));
  }
  for (const DimFactor& factor : term.monomial) {
    for (int i = 0; i < factor.power; ++i) {
      factors.push_back(AtomToString(*factor.atom));
    }
  }
  if (factors.size() == 1) return factors[0];
  for (std::string& factor : factors) factor = Parenthesized(factor);
  return absl::StrJoin(factors, "*");
}

// sum = product {("+" | "-") product}
// product = unary {("*" | "//" | "%") unary}
// unary = "-" unary | number | name | ("min" | "max") "(" sum {"," sum} ")"
//       | "(" sum ")"
class DimParser {
 public:
  explicit DimParser(absl::string_view text) : text_(text) {}

  absl::StatusOr<Dim> Parse() {
    CLEAVE_ASSIGN_OR_RETURN(Dim result, Sum());
    SkipSpace();
    if (at_ < text_.size()) return Error("expected an operator");
    return result;
  }

 private:
  absl::Status Error(absl::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the size `", text_.substr(0, 200), "`: ", why,
                     " at offset ", at_));
  }

  // The limits of Dims are errors of the text here.
  absl::StatusOr<Dim> Place(absl::StatusOr<Dim> dim) const {
    if (dim.ok()) return dim;
    return Error(dim.status().message());
  }

  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }

  bool Take(absl::string_view token) {
    SkipSpace();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  absl::StatusOr<Dim> Sum() {
    CLEAVE_ASSIGN_OR_RETURN(Dim left, Product());
    while (true) {
      if (Take("+")) {
        CLEAVE_ASSIGN_OR_RETURN(const Dim right, Product());
        CLEAVE_ASSIGN_OR_RETURN(left, Place(Dim::CheckedAdd(left, right)));
      } else if (Take("-")) {
        CLEAVE_ASSIGN_OR_RETURN(const Dim right, Product());
        CLEAVE_ASSIGN_OR_RETURN(left, Place(Dim::CheckedSub(left, right)));
      } else {
        return left;
      }
    }
  }

  absl::StatusOr<Dim> Product() {
    CLEAVE_ASSIGN_OR_RETURN(Dim left, Unary());
    while (true) {
      if (Take("*")) {
        CLEAVE_ASSIGN_OR_RETURN(const Dim right, Unary());
        CLEAVE_ASSIGN_OR_RETURN(left, Place(Dim::CheckedMul(left, right)));
      } else if (Take("//")) {
        CLEAVE_ASSIGN_OR_RETURN(const Dim right, Unary());
        CLEAVE_ASSIGN_OR_RETURN(left, Place(Dim::CheckedFloorDiv(left, right)));
      } else if (Take("%")) {
        CLEAVE_ASSIGN_OR_RETURN(const Dim right, Unary());
        CLEAVE_ASSIGN_OR_RETURN(left, Place(Dim::CheckedMod(left, right)));
      } else {
        return left;
      }
    }
  }

  absl::StatusOr<Dim> Unary() {
    if (++nesting_ > kMaxNesting) {
      return Error(absl::StrCat("nested deeper than ", kMaxNesting));
    }
    auto result = UnaryBody();
    --nesting_;
    return result;
  }

  absl::StatusOr<Dim> UnaryBody() {
    if (Take("-")) {
      SkipSpace();
      if (at_ < text_.size() && absl::ascii_isdigit(text_[at_])) {
        return Number(/*negative=*/true);
      }
      CLEAVE_ASSIGN_OR_RETURN(const Dim operand, Unary());
      return Place(Dim::CheckedMul(operand, -1));
    }
    if (Take("(")) {
      CLEAVE_ASSIGN_OR_RETURN(const Dim inner, Sum());
      if (!Take(")")) return Error("expected `)`");
      return inner;
    }
    SkipSpace();
    if (at_ == text_.size()) return Error("expected a size");
    if (absl::ascii_isdigit(text_[at_])) return Number(/*negative=*/false);
    if (!absl::ascii_isalpha(text_[at_]) && text_[at_] != '_') {
      return Error("expected a size");
    }
    const size_t start = at_;
    while (at_ < text_.size() && (absl::ascii_isalnum(text_[at_]) ||
                                  text_[at_] == '_' || text_[at_] == '.')) {
      ++at_;
    }
    const absl::string_view name = text_.substr(start, at_ - start);
    if ((name == "min" || name == "max") && Take("(")) return MinMax(name);
    return Dim::Variable(name);
  }

  absl::StatusOr<Dim> MinMax(absl::string_view name) {
    std::vector<Dim> args;
    do {
      CLEAVE_ASSIGN_OR_RETURN(args.emplace_back(), Sum());
    } while (Take(","));
    if (!Take(")")) return Error("expected `,` or `)`");
    return Place(name == "min" ? Dim::CheckedMin(args) : Dim::CheckedMax(args));
  }

  absl::StatusOr<Dim> Number(bool negative) {
    int64_t value = 0;  // negative or 0: the side with one more number
    while (at_ < text_.size() && absl::ascii_isdigit(text_[at_])) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_sub_overflow(value, text_[at_] - '0', &value)) {
        return Error("the number exceeds 64 bits");
      }
      ++at_;
    }
    if (negative) return Dim(value);
    if (value == kLeast) return Error("the number exceeds 64 bits");
    return Dim(-value);
  }

  absl::string_view text_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace

std::string Dim::ToString() const {
  if (IsConstant()) return absl::StrCat(constant_);
  if (!valid()) return absl::StrCat("<invalid: ", status().message(), ">");
  std::string result;
  for (const DimTerm& term : DimBuilder::Terms(*this)) {
    const int64_t coefficient = term.coefficient;
    const bool first = result.empty();
    // The least number has no positive counterpart to subtract.
    if (coefficient == kLeast) {
      absl::StrAppend(&result, first ? "-" : " + -",
                      TermToString(term, uint64_t{1} << 63));
    } else if (coefficient > 0) {
      absl::StrAppend(&result, first ? "" : " + ",
                      TermToString(term, static_cast<uint64_t>(coefficient)));
    } else {
      const std::string text =
          TermToString(term, static_cast<uint64_t>(-coefficient));
      // Unary minus binds tighter than `//` and `%`.
      const bool lone = coefficient == -1 && term.monomial.size() == 1 &&
                        term.monomial[0].power == 1;
      absl::StrAppend(&result, first ? "-" : " - ",
                      lone ? Parenthesized(text) : text);
    }
  }
  return result;
}

std::ostream& operator<<(std::ostream& out, const Dim& dim) {
  return out << dim.ToString();
}

absl::StatusOr<Dim> Dim::Parse(absl::string_view text) {
  return DimParser(text).Parse();
}

}  // namespace cleave
