#include "testing/fuzz/differential/layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cleave::fuzz {
namespace {

// The bytes between elements: no number that anything computes.
constexpr std::byte kGap{0xA5};

}  // namespace

LaidOut::LaidOut(const Tensor& tensor, std::vector<int64_t> strides,
                 int64_t low, int64_t high, Random& random)
    : dtype_(tensor.dtype()),
      shape_(tensor.shape()),
      strides_(std::move(strides)) {
  first_ = (random.OneIn(2) ? random.Between(1, 9) : 0) - low;
  bytes_.assign((first_ + high + 1 + random.Between(0, 9)) * ByteSize(dtype_),
                kGap);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    std::memcpy(bytes_.data() + PlaceOf(i),
                tensor.data() + i * ByteSize(dtype_), ByteSize(dtype_));
  }
}

LaidOut LaidOut::Dense(const Tensor& tensor, Random& random) {
  return LaidOut(tensor, DenseStrides(tensor.shape()), 0,
                 std::max<int64_t>(tensor.size() - 1, 0), random);
}

LaidOut LaidOut::Any(const Tensor& tensor, const std::vector<bool>& repeated,
                     Random& random) {
  const std::vector<int64_t>& shape = tensor.shape();
  std::vector<int64_t> strides(shape.size(), 0);
  std::vector<int> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  if (random.OneIn(2)) {
    for (int d = tensor.rank() - 1; d > 0; --d) {
      std::swap(order[d], order[random.Between(0, d)]);
    }
  }
  int64_t stride = random.OneIn(3) ? random.Between(2, 3) : 1;
  int64_t low = 0, high = 0;
  for (int i = tensor.rank(); i-- > 0;) {
    const int d = order[i];
    if (repeated[d]) continue;
    const int64_t last = std::max<int64_t>(shape[d] - 1, 0) * stride;
    const bool backwards = random.OneIn(3);
    strides[d] = backwards ? -stride : stride;
    (backwards ? low : high) += backwards ? -last : last;
    stride *= std::max<int64_t>(shape[d], 1);
    if (random.OneIn(3)) stride += random.Between(1, 5);
  }
  return LaidOut(tensor, std::move(strides), low, high, random);
}

int64_t LaidOut::PlaceOf(int64_t element) const {
  int64_t place = first_;
  for (size_t d = shape_.size(); d-- > 0;) {
    place += element % shape_[d] * strides_[d];
    element /= shape_[d];
  }
  return place * ByteSize(dtype_);
}

TensorView LaidOut::view() const {
  return {bytes_.data() + first_ * ByteSize(dtype_), dtype_, shape_, strides_};
}

MutableTensorView LaidOut::mutable_view() {
  return {bytes_.data() + first_ * ByteSize(dtype_), dtype_, shape_, strides_};
}

Tensor LaidOut::Elements() const {
  Tensor tensor(dtype_, shape_);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    std::memcpy(tensor.mutable_data() + i * ByteSize(dtype_),
                bytes_.data() + PlaceOf(i), ByteSize(dtype_));
  }
  return tensor;
}

bool LaidOut::GapsUntouched() const {
  std::vector<bool> element(bytes_.size(), false);
  const int64_t size = Tensor(dtype_, shape_).size();
  for (int64_t i = 0; i < size; ++i) {
    const int64_t place = PlaceOf(i);
    for (int b = 0; b < ByteSize(dtype_); ++b) element[place + b] = true;
  }
  for (size_t i = 0; i < bytes_.size(); ++i) {
    if (!element[i] && bytes_[i] != kGap) return false;
  }
  return true;
}

std::string LaidOut::Describe() const {
  return absl::StrCat("[", absl::StrJoin(shape_, ", "), "] strides [",
                      absl::StrJoin(strides_, ", "), "] at ", first_);
}

Tensor Repeated(const Tensor& tensor, const std::vector<bool>& repeated) {
  Tensor result(tensor.dtype(), tensor.shape());
  const int width = ByteSize(tensor.dtype());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    int64_t rest = i, from = 0, stride = 1;
    for (int d = tensor.rank(); d-- > 0;) {
      const int64_t extent = tensor.shape()[d];
      if (!repeated[d]) from += rest % extent * stride;
      rest /= extent;
      stride *= extent;
    }
    std::memcpy(result.mutable_data() + i * width, tensor.data() + from * width,
                width);
  }
  return result;
}

}  // namespace cleave::fuzz
