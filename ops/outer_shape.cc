#include "ops/outer_shape.h"

#include <algorithm>
#include <cstdint>

#include "ops/dim.h"

namespace cleave {
namespace {

// How many elements of a value share one of what it is computed from.
constexpr int64_t kMinShare = 8;

// Without open extents.
int64_t KnownElements(const Shape& shape) {
  int64_t size = 1;
  for (const Dim& dim : shape) size *= dim.Value().value_or(1);
  return size;
}

}  // namespace

bool IsOuter(const Shape& shape, const Shape& from) {
  const auto open = [](const Shape& s) {
    return std::count_if(s.begin(), s.end(),
                         [](const Dim& dim) { return !dim.Value(); });
  };
  if (open(shape) != open(from)) return open(shape) > open(from);
  return KnownElements(shape) / kMinShare >= KnownElements(from);
}

}  // namespace cleave
