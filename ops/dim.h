// Dim: a symbolic extent or index, usable with no graph.
//
// A canonical polynomial with integer coefficients over atoms: variables, and
// floordiv, mod, min, max of Dims. Equal values that the normal form knows are
// equal objects: (n + 1) * 2 == 2 * n + 2. Extents are >= 0; zero is legal, so
// division simplifies only with proof of a nonzero divisor.
//
//   Dim n = Dim::Variable("n");
//   Dim m = (n + 1) * 2 - n;              // prints "n + 2"
//   Dim half = m / 2;                     // floor division, as `//` of rules
//   Compare(m, CompareOp::kGt, n);        // Truth::kTrue
//   Compare(n, CompareOp::kGe, 3);        // Truth::kUnknown
//
// A mistake makes an invalid Dim, which carries the status as a NaN would:
// Dim("3x"), n / 0, and arithmetic beyond the limits below. Arithmetic with it
// gives it again, Compare knows nothing of it, it prints `<invalid: ..>`, and
// all that takes extents refuses it with its own status.
//
//   Dim bad = (Dim("3x") + 1) * n;
//   bad.valid();                          // false
//   bad.status();                         // `3x` does not name a size

#ifndef CLEAVE_OPS_DIM_H_
#define CLEAVE_OPS_DIM_H_

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cleave {

enum class Truth : uint8_t { kFalse, kTrue, kUnknown };
enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };

// Limits: monomials of a Dim, its total degree, and the nodes of its printed
// tree. Arithmetic beyond them, or beyond int64 coefficients, is
// ResourceExhausted: returned by Checked*, carried by an invalid Dim otherwise.
inline constexpr int kMaxDimTerms = 256;
inline constexpr int kMaxDimDegree = 64;
inline constexpr int kMaxDimNodes = 4096;

class Dim {
 public:
  Dim() : Dim(0) {}
  Dim(int64_t value) : constant_(value) {}  // NOLINT: a number is a Dim.
  // Sizes are integers: Dim(2.5) does not compile.
  template <typename T,
            typename = std::enable_if_t<std::is_floating_point_v<T>>>
  Dim(T value) = delete;  // NOLINT
  // A variable >= 0: Dim("n") + 1. Names match [A-Za-z_][A-Za-z0-9_.]*; another
  // text makes an invalid Dim.
  explicit Dim(absl::string_view name) : Dim(Variable(name)) {}
  static Dim Variable(absl::string_view name);
  // The invalid Dim that a mistake makes. `status` is not OK.
  static Dim Invalid(absl::Status status);
  // The text that ToString prints; InvalidArgument with the offset otherwise.
  static absl::StatusOr<Dim> Parse(absl::string_view text);

  // False for a Dim that a mistake made; status() says which.
  bool valid() const { return rep_ == nullptr || RepIsValid(); }
  // OK of a valid Dim.
  absl::Status status() const;

  bool IsConstant() const { return rep_ == nullptr; }
  // The value of a constant.
  std::optional<int64_t> Value() const {
    if (rep_ != nullptr) return std::nullopt;
    return constant_;
  }

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  Dim operator-() const;
  // Floor division and its remainder (sign of the divisor), as `//` and `%` of
  // the rule language. Division by a literal 0 makes an invalid Dim; by what
  // turns out to be 0, it fails in Evaluate.
  friend Dim operator/(const Dim& a, const Dim& b) { return FloorDiv(a, b); }
  friend Dim operator%(const Dim& a, const Dim& b) { return Mod(a, b); }
  static Dim FloorDiv(const Dim& a, const Dim& b);
  static Dim Mod(const Dim& a, const Dim& b);
  static Dim Min(const Dim& a, const Dim& b);
  static Dim Max(const Dim& a, const Dim& b);
  static Dim Min(const std::vector<Dim>& values);  // of at least one
  static Dim Max(const std::vector<Dim>& values);

  // The same with ResourceExhausted beyond the limits, InvalidArgument for
  // division by a literal 0 or a min or max of nothing, and the status of an
  // operand that is invalid.
  static absl::StatusOr<Dim> CheckedAdd(const Dim& a, const Dim& b);
  static absl::StatusOr<Dim> CheckedSub(const Dim& a, const Dim& b);
  static absl::StatusOr<Dim> CheckedMul(const Dim& a, const Dim& b);
  static absl::StatusOr<Dim> CheckedFloorDiv(const Dim& a, const Dim& b);
  static absl::StatusOr<Dim> CheckedMod(const Dim& a, const Dim& b);
  static absl::StatusOr<Dim> CheckedMin(const std::vector<Dim>& values);
  static absl::StatusOr<Dim> CheckedMax(const std::vector<Dim>& values);
  // As Substitute, below. A divisor that becomes 0 is InvalidArgument.
  absl::StatusOr<Dim> CheckedSubstitute(
      const std::map<std::string, Dim>& values) const;

  // Structural equality of the normal forms: equal as numbers for every value
  // of the variables. Unequal objects may still be equal for some values.
  // Invalid Dims are equal where their statuses are, so that containers work.
  friend bool operator==(const Dim& a, const Dim& b);
  friend bool operator!=(const Dim& a, const Dim& b) { return !(a == b); }
  // A total order for containers, without numeric meaning.
  static int Order(const Dim& a, const Dim& b);
  size_t Hash() const;
  template <typename H>
  friend H AbslHashValue(H h, const Dim& d) {
    return H::combine(std::move(h), d.Hash());
  }

  // `n + 2`, or `<invalid: ..>` with the message.
  std::string ToString() const;
  friend std::ostream& operator<<(std::ostream& out, const Dim& dim);
  // The variables that occur, in name order; none of an invalid Dim.
  std::set<std::string> Variables() const;

  // Replaces variables; those not named stay. Invalid beyond the limits and
  // where a divisor becomes 0.
  Dim Substitute(const std::map<std::string, Dim>& values) const;
  // The number, if every variable has a value; InvalidArgument names one that
  // has none, or a division by zero or overflow with its expression.
  absl::StatusOr<int64_t> Evaluate(
      const std::map<std::string, int64_t>& values) const;

  // The closed interval that the value lies in, as far as known (variables
  // are >= 0); nullopt stands for an unbounded side. Nothing is known of an
  // invalid Dim.
  struct Interval {
    std::optional<int64_t> low;
    std::optional<int64_t> high;
  };
  Interval Bounds() const;

 private:
  struct Rep;
  explicit Dim(std::shared_ptr<const Rep> rep);
  bool RepIsValid() const;
  int64_t constant_ = 0;            // the value when rep_ is null
  std::shared_ptr<const Rep> rep_;  // null for constants
  friend struct DimBuilder;
};

// Linear facts about variables (`a >= b`), for comparisons that need them.
class Constraints {
 public:
  // Assumes `a op b`; InvalidArgument if it contradicts what is known, and the
  // status of an invalid Dim.
  absl::Status Assume(const Dim& a, CompareOp op, const Dim& b);
  const std::vector<Dim>& non_negative() const { return non_negative_; }
  const std::vector<Dim>& non_zero() const { return non_zero_; }

 private:
  std::vector<Dim> non_negative_;  // each >= 0
  std::vector<Dim> non_zero_;      // each != 0
};

// Three-valued comparison. kUnknown where intervals and linear reasoning with
// `constraints` decide neither way, and for invalid Dims. A claim is about the
// values that exist: `n // (m % k) >= 0` says nothing of m = 0.
Truth Compare(const Dim& a, CompareOp op, const Dim& b,
              const Constraints& constraints = {});

// The constraint that would decide an unknown comparison, as text for messages:
// "n - 3 >= 0".
std::string DecidingConstraint(const Dim& a, CompareOp op, const Dim& b);

}  // namespace cleave

#endif  // CLEAVE_OPS_DIM_H_
