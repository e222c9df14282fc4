#include "testing/check/samples/int_points.h"

#include <algorithm>

namespace cleave {
namespace {

int WidthOf(DType dtype) { return 8 * static_cast<int>(ByteSize(dtype)); }

// Keeps the order.
void DropRepeated(std::vector<int64_t>& values) {
  std::vector<int64_t> kept;
  for (int64_t value : values) {
    if (std::find(kept.begin(), kept.end(), value) == kept.end()) {
      kept.push_back(value);
    }
  }
  values = std::move(kept);
}

}  // namespace

int64_t IntFromBits(uint64_t bits, DType dtype) {
  const int width = WidthOf(dtype);
  if (width == 64) return static_cast<int64_t>(bits);
  bits &= (uint64_t{1} << width) - 1;
  const bool negative = IsSigned(dtype) && (bits >> (width - 1)) != 0;
  return static_cast<int64_t>(bits) -
         (negative ? int64_t{1} << width : int64_t{0});
}

std::vector<int64_t> SpecialInts(DType dtype) {
  std::vector<int64_t> values = {0};
  for (int k = 0; k < WidthOf(dtype); ++k) {
    const uint64_t power = uint64_t{1} << k;
    for (const uint64_t bits : {power - 1, power, power + 1}) {
      values.push_back(IntFromBits(bits, dtype));
      if (IsSigned(dtype)) values.push_back(IntFromBits(-bits, dtype));
    }
  }
  if (!IsSigned(dtype)) values.push_back(IntFromBits(~uint64_t{0}, dtype));
  DropRepeated(values);
  return values;
}

std::vector<int64_t> IntsNear(const std::vector<int64_t>& constants,
                              DType dtype) {
  std::vector<int64_t> values;
  for (const int64_t constant : constants) {
    for (const uint64_t offset : {~uint64_t{0}, uint64_t{0}, uint64_t{1}}) {
      const uint64_t bits = static_cast<uint64_t>(constant) + offset;
      for (const uint64_t near : {bits, -bits}) {
        // A number that the dtype has not would be another one in it.
        const int64_t value = IntFromBits(near, dtype);
        if (static_cast<uint64_t>(value) == near) values.push_back(value);
      }
    }
  }
  DropRepeated(values);
  return values;
}

int64_t AnyInt(DType dtype, std::mt19937_64& random) {
  return IntFromBits(random(), dtype);
}

int64_t LogUniformInt(DType dtype, std::mt19937_64& random) {
  const int width = WidthOf(dtype) - (IsSigned(dtype) ? 1 : 0);
  // The highest bit, and any below it.
  const int top = static_cast<int>(random() % width);
  const uint64_t high = uint64_t{1} << top;
  const uint64_t bits = high | (random() & (high - 1));
  const bool negative = IsSigned(dtype) && random() % 2 == 0;
  return IntFromBits(negative ? -bits : bits, dtype);
}

}  // namespace cleave
