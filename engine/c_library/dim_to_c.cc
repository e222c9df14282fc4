#include "engine/c_library/dim_to_c.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ops/check.h"
#include "ops/dim_internal.h"

namespace cleave {
namespace {

using Names = std::map<std::string, std::string>;

std::string Literal(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min()) return "INT64_MIN";
  // An int where it is one: what is written is what one would write.
  const bool is_int = value == static_cast<int32_t>(value);
  return is_int ? absl::StrCat(value) : absl::StrCat("INT64_C(", value, ")");
}

std::string Call(absl::string_view function, absl::string_view a,
                 absl::string_view b) {
  return absl::StrCat("cleave_", function, "(", a, ", ", b, ", bad)");
}

std::string AtomToC(const DimAtom& atom, const Names& variables) {
  if (atom.kind == DimAtom::Kind::kVariable) {
    const auto it = variables.find(atom.name);
    CLEAVE_CHECK(it != variables.end()) << atom.name << " has no expression";
    return it->second;
  }
  std::vector<std::string> args;
  for (const Dim& arg : atom.args) args.push_back(DimToC(arg, variables));
  switch (atom.kind) {
    case DimAtom::Kind::kFloorDiv:
      return Call("floor_divide", args[0], args[1]);
    case DimAtom::Kind::kMod:
      return Call("modulo", args[0], args[1]);
    default:
      break;
  }
  const char* const function =
      atom.kind == DimAtom::Kind::kMin ? "cleave_min" : "cleave_max";
  std::string result = args[0];
  for (size_t i = 1; i < args.size(); ++i) {
    result = absl::StrCat(function, "(", result, ", ", args[i], ")");
  }
  return result;
}

std::string TermToC(const DimTerm& term, const Names& variables) {
  std::string result;
  if (term.coefficient != 1 || term.monomial.empty()) {
    result = Literal(term.coefficient);
  }
  for (const DimFactor& factor : term.monomial) {
    const std::string atom = AtomToC(*factor.atom, variables);
    for (int i = 0; i < factor.power; ++i) {
      result = result.empty() ? atom : Call("times", result, atom);
    }
  }
  return result;
}

}  // namespace

const char kDimFunctions[] = R"c(
/* Arithmetic on sizes. *bad becomes 1 where a result has no value. */
__extension__ typedef __int128 cleave_wide;

__attribute__((unused)) static cleave_wide cleave_plus(cleave_wide a, cleave_wide b, int *bad) {
  cleave_wide sum;
  *bad |= __builtin_add_overflow(a, b, &sum);
  return sum;
}

__attribute__((unused)) static cleave_wide cleave_times(cleave_wide a, cleave_wide b, int *bad) {
  cleave_wide product;
  *bad |= __builtin_mul_overflow(a, b, &product);
  return product;
}

__attribute__((unused)) static int64_t cleave_narrow(cleave_wide value, int *bad) {
  *bad |= value < INT64_MIN || value > INT64_MAX;
  return (int64_t)value;
}

/* Rounds down, as // does. */
__attribute__((unused)) static int64_t cleave_floor_divide(int64_t a, int64_t b, int *bad) {
  if (b == 0 || (a == INT64_MIN && b == -1)) {
    *bad = 1;
    return 0;
  }
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* The remainder of that: it has the sign of b. */
__attribute__((unused)) static int64_t cleave_modulo(int64_t a, int64_t b, int *bad) {
  int64_t remainder;
  if (b == 0 || b == -1) {
    *bad |= b == 0;
    return 0;
  }
  remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b
                                                      : remainder;
}

__attribute__((unused)) static int64_t cleave_min(int64_t a, int64_t b) { return a < b ? a : b; }
__attribute__((unused)) static int64_t cleave_max(int64_t a, int64_t b) { return a > b ? a : b; }
)c";

std::string DimToC(const Dim& dim, const Names& variables) {
  const std::vector<DimTerm> terms = DimBuilder::Terms(dim);
  if (terms.empty()) return "0";
  std::string result = TermToC(terms[0], variables);
  if (terms.size() == 1) {
    // One number, or one atom, is an int64_t already.
    int factors = terms[0].coefficient != 1;
    for (const DimFactor& factor : terms[0].monomial) factors += factor.power;
    if (factors <= 1) return result;
  }
  for (size_t i = 1; i < terms.size(); ++i) {
    result = Call("plus", result, TermToC(terms[i], variables));
  }
  return absl::StrCat("cleave_narrow(", result, ", bad)");
}

absl::string_view ComparisonInC(CompareOp op) {
  switch (op) {
    case CompareOp::kEq:
      return "==";
    case CompareOp::kNe:
      return "!=";
    case CompareOp::kLt:
      return "<";
    case CompareOp::kLe:
      return "<=";
    case CompareOp::kGt:
      return ">";
    case CompareOp::kGe:
      return ">=";
  }
  return "";
}

}  // namespace cleave
