// The representation of Dims, shared by the files of //ops:dim.

#ifndef CLEAVE_OPS_DIM_INTERNAL_H_
#define CLEAVE_OPS_DIM_INTERNAL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/dim.h"

namespace cleave {

// A factor of a polynomial that is no number: a variable, or a floordiv, mod,
// min or max of Dims.
struct DimAtom {
  enum class Kind : uint8_t { kVariable, kFloorDiv, kMod, kMin, kMax };
  Kind kind = Kind::kVariable;
  std::string name;       // variables
  std::vector<Dim> args;  // the others; min and max: sorted, two or more
  size_t hash = 0;
  int nodes = 1;  // size of the printed tree, bounded by kMaxDimNodes
  Dim::Interval bounds;
};
using DimAtomPtr = std::shared_ptr<const DimAtom>;

struct DimFactor {
  DimAtomPtr atom;
  int power = 1;  // >= 1
};
// Factors in the order of their atoms; empty for the constant term.
using DimMonomial = std::vector<DimFactor>;

struct DimTerm {
  DimMonomial monomial;
  int64_t coefficient = 0;  // never 0
};

// Terms in descending order of monomials, so that the constant comes last. An
// invalid Dim has a status and no terms: what reads terms looks at valid()
// first, or it would take the Dim for 0.
struct Dim::Rep {
  std::vector<DimTerm> terms;
  absl::Status status;
  size_t hash = 0;
  int nodes = 0;
};

// Access to the representation, and the arithmetic that reports overflow.
struct DimBuilder {
  // The terms of any Dim; a constant c != 0 has one.
  static std::vector<DimTerm> Terms(const Dim& dim);
  // Sorts, merges and drops zero terms. ResourceExhausted beyond the limits.
  static absl::StatusOr<Dim> FromTerms(std::vector<DimTerm> terms);
  // A Dim of terms that are in order already, of different monomials, none of
  // them 0.
  static absl::StatusOr<Dim> FromSorted(std::vector<DimTerm> terms);
  // a + b, or a - b.
  static absl::StatusOr<Dim> Sum(const Dim& a, const Dim& b, bool negate);
  static const Dim::Rep* Get(const Dim& dim) { return dim.rep_.get(); }
  // An atom as a Dim.
  static absl::StatusOr<Dim> FromAtom(DimAtom atom);

  static int OrderAtoms(const DimAtom& a, const DimAtom& b);
  static int OrderMonomials(const DimMonomial& a, const DimMonomial& b);
  static int Degree(const DimMonomial& monomial);
  static absl::StatusOr<DimMonomial> Product(const DimMonomial& a,
                                             const DimMonomial& b);
  // The quotient where b divides a; nullopt otherwise.
  static std::optional<DimMonomial> Quotient(const DimMonomial& a,
                                             const DimMonomial& b);
  static Dim::Interval MonomialBounds(const DimMonomial& monomial);
  static Dim::Interval AtomBounds(const DimAtom& atom);
};

namespace internal_dim {

// ResourceExhausted: beyond the limits, as `what` says.
absl::Status TooLarge(absl::string_view what);
// The value, or the invalid Dim with the status.
Dim ValueOrInvalid(absl::StatusOr<Dim> dim);
// The status of the first of them that is invalid.
inline absl::Status CheckValid(const Dim& a, const Dim& b) {
  if (ABSL_PREDICT_TRUE(a.valid() && b.valid())) return absl::OkStatus();
  return a.valid() ? b.status() : a.status();
}
inline bool IsConstantMonomial(const DimTerm& term) {
  return term.monomial.empty();
}

}  // namespace internal_dim

// Whether dim >= 0 follows from intervals, the laws of its atoms and `facts`
// (each >= 0). Sound, not complete.
bool ProveNonNegative(const Dim& dim, const std::vector<Dim>& facts);
// Whether dim != 0 for all values of its variables, as far as known.
bool ProveNonZero(const Dim& dim);

// Floor division of numbers; the divisor is not 0 and the result fits.
template <typename Int>
Int FloorDivide(Int a, Int b) {
  const Int quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

}  // namespace cleave

#endif  // CLEAVE_OPS_DIM_INTERNAL_H_
