// Tensors laid out in memory as a caller might have them: axes in any order,
// backwards, apart from each other, somewhere within an array, repeated.
//
//   Random random(7);
//   LaidOut x = LaidOut::Any(tensor, {false, false}, random);
//   kernel.RunInto({x.view()}, ..);
//   x.GapsUntouched();

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_LAYOUT_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/runtime/kernel.h"
#include "ops/tensor.h"
#include "testing/fuzz/differential/random.h"

namespace cleave::fuzz {

class LaidOut {
 public:
  // The elements of `tensor`, which must be the same along the axes that are
  // `repeated` (one bool per axis): those have the stride 0.
  static LaidOut Any(const Tensor& tensor, const std::vector<bool>& repeated,
                     Random& random);
  // The same in row-major order, somewhere within an array.
  static LaidOut Dense(const Tensor& tensor, Random& random);

  TensorView view() const;
  MutableTensorView mutable_view();
  // The elements as they are now.
  Tensor Elements() const;
  // Whether the bytes between, before and behind the elements are as they were.
  bool GapsUntouched() const;
  std::string Describe() const;  // the strides

 private:
  LaidOut(const Tensor& tensor, std::vector<int64_t> strides, int64_t low,
          int64_t high, Random& random);

  int64_t PlaceOf(int64_t element) const;  // in bytes

  const DType dtype_;
  const std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  int64_t first_ = 0;  // of all elements, the one that strides count from
  std::vector<std::byte> bytes_;
};

// `tensor` with the first elements along the axes that are `repeated`.
Tensor Repeated(const Tensor& tensor, const std::vector<bool>& repeated);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_LAYOUT_H_
