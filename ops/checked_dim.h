// CheckedDim: arithmetic on extents that come from outside, where a result may
// be beyond the limits of Dim. The first failure sticks and is the value.
//
//   CheckedDim end = CheckedDim(start) + (CheckedDim(size) - 1) * stride + 1;
//   CLEAVE_ASSIGN_OR_RETURN(const Dim checked, end.value());

#ifndef CLEAVE_OPS_CHECKED_DIM_H_
#define CLEAVE_OPS_CHECKED_DIM_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "ops/dim.h"

namespace cleave {

class CheckedDim {
 public:
  CheckedDim(Dim dim) : value_(std::move(dim)) {}    // NOLINT: a Dim is one.
  CheckedDim(int64_t value) : value_(Dim(value)) {}  // NOLINT: so is a number.

  // ResourceExhausted beyond the limits of Dim, InvalidArgument for a division
  // by a literal 0.
  const absl::StatusOr<Dim>& value() const { return value_; }

  friend CheckedDim operator+(const CheckedDim& a, const CheckedDim& b) {
    return Combine(a, b, Dim::CheckedAdd);
  }
  friend CheckedDim operator-(const CheckedDim& a, const CheckedDim& b) {
    return Combine(a, b, Dim::CheckedSub);
  }
  friend CheckedDim operator*(const CheckedDim& a, const CheckedDim& b) {
    return Combine(a, b, Dim::CheckedMul);
  }
  static CheckedDim FloorDiv(const CheckedDim& a, const CheckedDim& b) {
    return Combine(a, b, Dim::CheckedFloorDiv);
  }
  static CheckedDim Mod(const CheckedDim& a, const CheckedDim& b) {
    return Combine(a, b, Dim::CheckedMod);
  }
  static CheckedDim Min(const CheckedDim& a, const CheckedDim& b) {
    return Combine(a, b, [](const Dim& x, const Dim& y) {
      return Dim::CheckedMin({x, y});
    });
  }
  static CheckedDim Max(const CheckedDim& a, const CheckedDim& b) {
    return Combine(a, b, [](const Dim& x, const Dim& y) {
      return Dim::CheckedMax({x, y});
    });
  }

 private:
  explicit CheckedDim(absl::StatusOr<Dim> value) : value_(std::move(value)) {}

  template <typename Operation>
  static CheckedDim Combine(const CheckedDim& a, const CheckedDim& b,
                            Operation operation) {
    if (!a.value_.ok()) return a;
    if (!b.value_.ok()) return b;
    return CheckedDim(operation(*a.value_, *b.value_));
  }

  absl::StatusOr<Dim> value_;
};

}  // namespace cleave

#endif  // CLEAVE_OPS_CHECKED_DIM_H_
