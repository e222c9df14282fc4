// Tensor: an array that behaves as one of NumPy does, eagerly and under a
// trace.
//
//   Session session(rules);                  // session.h
//   SessionScope scope(session);
//   Tensor x = cleave::Tensor::FromDoubles(DType::kF32, {2, 3},
//                                          {1, 2, 3, 4, 5, 6});
//   Tensor y = 2 * x + Exp(x[{1}]);          // core_ops.h; broadcast
//   x[{kAll, {0, 2}}] += 1;                  // writes x itself
//   std::cout << y;                          // f32[2, 3] [7.4, 150.4, ..]
//   absl::StatusOr<double> sum = Sum(y).Item();
//
// A Tensor is a handle: a storage and a view of it (view.h). Copies of the
// handle, and views, share the storage, as NumPy's references do; Clone() does
// not. Shapes are numbers in eager code, and Dims under a trace.
//
// Dtypes never mix without Convert. A number takes the dtype of what it meets,
// rounded once (0.1 is the double; Exact::Parse("0.1") the decimal), and so
// does a Dim, which is a number known from the shapes.
//
// A mistake makes a tensor that is not valid and carries the status, as is what
// is computed of it; nothing crashes. Its type() is f32[], its extents are
// invalid Dims with the same status, so that the first mistake is the one that
// is told in the end:
//
//   Tensor z = Matmul(x, y);                 // of shapes that do not fit
//   z.Reshape({z.extent(0) * z.extent(1)});  // says why, of the Matmul
//
// A write that is refused changes nothing: the storage, its views and their
// values stay as they were. Assign returns the status. An in-place operator has
// none to return; write_status() of the handle has it, and the first one of a
// session is what Session::Run() or the end of an AtomicScope returns, the
// first one of a trace its status.
//
//   w += wrong;                              // w is what it was
//   w.write_status();                        // cannot assign f64[2] to f32[2]
//
// Not thread-safe: a storage is used on one thread at a time.

#ifndef CLEAVE_ENGINE_EAGER_TENSOR_H_
#define CLEAVE_ENGINE_EAGER_TENSOR_H_

#include <complex>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/eager/view.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave::functional {

class Index;
class Recorder;
struct Storage;

class Tensor {
 public:
  Tensor();  // not valid
  // A new storage with that value.
  Tensor(cleave::Tensor value);  // NOLINT: concrete tensors are tensors.
  // The same for one who makes many of a type: `whole`, where it is the whole
  // of the value's type, becomes the tensor's view, and no other is made.
  Tensor(cleave::Tensor value, const View& whole);
  // A number that waits for the dtype of what it meets.
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Tensor(T number)  // NOLINT: numbers mix with tensors.
      : Tensor(FromNumber(number)) {}
  Tensor(Exact number);  // NOLINT
  Tensor(Dim number);    // NOLINT
  static Tensor Invalid(absl::Status status);

  // Whether this is a tensor: false for numbers and after a mistake.
  bool valid() const { return storage_ != nullptr && status().ok(); }
  const absl::Status& status() const;
  bool is_number() const { return number_.has_value(); }

  // f32[] of what is no valid tensor.
  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }
  int rank() const { return type().rank(); }
  // An axis may be negative: counted from the last. An invalid Dim for one that
  // is not there (OutOfRange), and of what is no valid tensor (its status).
  Dim extent(int axis) const;

  // Views: tensors of the same storage. Axes may be negative.
  Tensor Transpose(const std::vector<int>& axes) const;
  Tensor Transpose() const;  // all axes, in reverse order
  // One extent may be -1: what is left. Always a view.
  Tensor Reshape(const Shape& shape) const;
  Tensor Slice(const std::vector<Dim>& start, const std::vector<Dim>& size,
               const std::vector<int64_t>& stride = {}) const;
  Tensor Reverse(const std::vector<int>& axes) const;
  Tensor BroadcastTo(const Shape& shape) const;  // can be read only
  // NumPy's x[..]: see Index. A view, unless there is a tensor among the
  // indices: then a new tensor.
  Tensor operator[](std::initializer_list<Index> indices) const;
  Tensor At(const std::vector<Index>& indices) const;
  // Seen through `view` of this tensor's storage.
  Tensor WithView(View view) const;

  // Writes `value`, broadcast to this shape, through the view: all tensors of
  // the storage see it. FailedPrecondition for a storage that is not this
  // trace's; InvalidArgument where dtypes or shapes do not fit, or for a
  // broadcast view. Nothing is written then.
  absl::Status Assign(const Tensor& value);
  // x[indices] = value, also with tensors as indices. If an element is named
  // twice, the last in row-major order counts; one out of range is dropped.
  absl::Status AssignAt(const std::vector<Index>& indices, const Tensor& value);
  Tensor& operator+=(const Tensor& value);
  Tensor& operator-=(const Tensor& value);
  Tensor& operator*=(const Tensor& value);
  Tensor& operator/=(const Tensor& value);
  // The status of the last in-place operator on this handle. If it is not OK,
  // nothing was written.
  const absl::Status& write_status() const { return write_status_; }

  // A new storage with this value.
  Tensor Clone() const;

  // The value, computed if it waits. FailedPrecondition under a trace, where a
  // tensor has none; else what went wrong.
  absl::StatusOr<cleave::Tensor> Concrete() const;
  // The value where it is there as it stands, for as long as nothing writes the
  // storage. Null where Concrete has something to do, or an error to tell: for
  // a view, and for what waits or is traced.
  const cleave::Tensor* Known() const;
  // The number in a tensor with one element. Item is for real dtypes and bool,
  // IntItem for integers.
  absl::StatusOr<double> Item() const;
  absl::StatusOr<int64_t> IntItem() const;
  // `f32[2] [1, 2.5]`; of a traced tensor its type, of a mistake its status.
  std::string ToString() const;
  friend std::ostream& operator<<(std::ostream& out, const Tensor& x) {
    return out << x.ToString();
  }

  // Whether this is not its storage's whole value as it stands.
  bool IsView() const { return !view_.IsIdentity(); }
  bool SharesStorage(const Tensor& other) const {
    return storage_ != nullptr && storage_ == other.storage_;
  }
  const View& view() const { return view_; }
  // The storage as a value to compare and hash; null for numbers.
  const void* storage_id() const { return storage_.get(); }
  // How often the storage was written.
  uint64_t version() const;
  // All of the storage. Not valid where this is not.
  Tensor Base() const;
  bool IsTraced() const;
  // Whether the value waits for a run.
  bool IsPending() const;

  // Elementwise, with NumPy's broadcasting.
  friend Tensor operator+(const Tensor& a, const Tensor& b);
  friend Tensor operator-(const Tensor& a, const Tensor& b);
  friend Tensor operator*(const Tensor& a, const Tensor& b);
  friend Tensor operator/(const Tensor& a, const Tensor& b);  // inexact dtypes
  friend Tensor operator%(const Tensor& a, const Tensor& b);  // floor_mod
  friend Tensor operator==(const Tensor& a, const Tensor& b);
  friend Tensor operator!=(const Tensor& a, const Tensor& b);
  friend Tensor operator<(const Tensor& a, const Tensor& b);
  friend Tensor operator<=(const Tensor& a, const Tensor& b);
  friend Tensor operator>(const Tensor& a, const Tensor& b);
  friend Tensor operator>=(const Tensor& a, const Tensor& b);
  friend Tensor operator&(const Tensor& a, const Tensor& b);
  friend Tensor operator|(const Tensor& a, const Tensor& b);
  friend Tensor operator^(const Tensor& a, const Tensor& b);
  Tensor operator-() const;
  Tensor operator~() const;

 private:
  friend struct TensorAccess;
  using Number = std::variant<Exact, Dim>;

  static Exact FromNumber(bool number) { return Exact(number ? 1 : 0); }
  template <typename T>
  static Exact FromNumber(T number) {
    if constexpr (std::is_floating_point_v<T>) {
      return Exact::FromDouble(static_cast<double>(number));
    } else if constexpr (std::is_signed_v<T>) {
      return Exact(static_cast<int64_t>(number));
    } else {  // u64 goes beyond i64
      return Exact(static_cast<int64_t>(number >> 1)) * Exact(2) +
             Exact(static_cast<int64_t>(number & 1));
    }
  }

  // Through one more step of the view.
  Tensor Seen(absl::StatusOr<View> view) const;
  // *this = op(*this, value), in place.
  Tensor& Update(absl::string_view op, const Tensor& value);
  // Writes a value of the view's type that `make` adds to the recorder.
  absl::Status Write(
      absl::FunctionRef<absl::StatusOr<cleave::Value>(Recorder&)> make);

  std::shared_ptr<Storage> storage_;  // null for numbers and mistakes
  View view_;
  std::optional<Number> number_;
  absl::Status status_;
  absl::Status write_status_;
};

// One index of x[{..}], as in NumPy:
//   3, n - 1       an element: the axis goes; negative ones count from the end
//   {1, 5}, {kNone, kNone, -1}, kAll    a slice: start, stop, step; bounds are
//                  cut to the axis
//   kEllipsis      all axes that the others leave
//   kNewAxis       a new axis of extent 1
//   a tensor       of an integer dtype: the elements it names, in its shape;
//                  several are broadcast together, and stand where the first
//                  one does if they are next to each other, else in front. An
//                  element out of range is OutOfRange when it is read.
// A Dim with variables counts from the front and must be at least 0: what it
// means does not depend on its sign (OutOfRange, or a guard of the trace).
class Index {
 public:
  struct Ellipsis {};
  struct NewAxis {};
  struct Slice {
    std::optional<Dim> start;
    std::optional<Dim> stop;
    int64_t step = 1;
  };
  using Kind = std::variant<Dim, Slice, Ellipsis, NewAxis, Tensor>;

  template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
  Index(T at) : kind_(ToDim(at)) {}        // NOLINT
  Index(Dim at) : kind_(std::move(at)) {}  // NOLINT
  Index(std::optional<Dim> start, std::optional<Dim> stop, int64_t step = 1)
      : kind_(Slice{std::move(start), std::move(stop), step}) {}
  Index(Slice slice) : kind_(std::move(slice)) {}     // NOLINT
  Index(Ellipsis ellipsis) : kind_(ellipsis) {}       // NOLINT
  Index(NewAxis new_axis) : kind_(new_axis) {}        // NOLINT
  Index(Tensor tensor) : kind_(std::move(tensor)) {}  // NOLINT

  const Kind& kind() const { return kind_; }

 private:
  template <typename T>
  static Dim ToDim(T at) {
    // A u64 may be beyond i64: -1 would be the last element.
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(int64_t)) {
      if (at > static_cast<T>(INT64_MAX)) {
        return Dim::Invalid(absl::OutOfRangeError("an index beyond 64 bits"));
      }
    }
    return Dim(static_cast<int64_t>(at));
  }

  Kind kind_;
};

inline constexpr std::nullopt_t kNone = std::nullopt;
inline const Index::Slice kAll = {};
inline constexpr Index::Ellipsis kEllipsis = {};
inline constexpr Index::NewAxis kNewAxis = {};

// New tensors. Under a trace they are constants of it.
Tensor Full(DType dtype, const Shape& shape, const Tensor& number);
Tensor Zeros(DType dtype, const Shape& shape);
Tensor Ones(DType dtype, const Shape& shape);
// 0, 1, .., count - 1 of i64.
Tensor Arange(const Dim& count);

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_TENSOR_H_
