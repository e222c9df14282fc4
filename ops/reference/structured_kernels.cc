#include "ops/reference/structured_kernels.h"

#include "ops/budget.h"

namespace cleave {

std::vector<std::vector<std::pair<int64_t, int64_t>>> ConvMeetings(
    const Attributes& attributes, const Extents& input, const Extents& kernel,
    const Extents& output) {
  const Extents stride = attributes.GetInts("stride");
  const Extents low = attributes.GetInts("low");
  const Extents lhs_dilation = attributes.GetInts("lhs_dilation");
  const Extents rhs_dilation = attributes.GetInts("rhs_dilation");
  const Extents strides = StridesOf(input);
  std::vector<std::vector<std::pair<int64_t, int64_t>>> meetings;
  BudgetPolls polls;
  meetings.reserve(CountOf(output));
  ForEachIndex(output, [&](const Extents& p) {
    auto& pairs = meetings.emplace_back();
    int64_t kernel_offset = -1;
    ForEachIndex(kernel, [&](const Extents& k) {
      ++kernel_offset;
      if (polls.Ended()) return false;
      int64_t offset = 0;
      for (size_t d = 0; d < input.size(); ++d) {
        const int64_t at = p[d] * stride[d] + k[d] * rhs_dilation[d] - low[d];
        if (at < 0 || at % lhs_dilation[d] != 0 ||
            at / lhs_dilation[d] >= input[d]) {
          return true;
        }
        offset += at / lhs_dilation[d] * strides[d];
      }
      pairs.emplace_back(kernel_offset, offset);
      return true;
    });
    return true;
  });
  return meetings;
}

IndexMap MapOfSort(const Extents& shape, int64_t axis,
                   const std::vector<int64_t>& places) {
  const int64_t step = StridesOf(shape)[axis];
  IndexMap map;
  map.reserve(places.size());
  ForEachIndex(shape, [&](const Extents& index) {
    const int64_t here = static_cast<int64_t>(map.size());
    map.push_back(here + (places[here] - index[axis]) * step);
    return true;
  });
  return map;
}

}  // namespace cleave
