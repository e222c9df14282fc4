#include "ops/reference/index_map.h"

#include <algorithm>
#include <cstring>

#include "ops/budget.h"
#include "ops/check.h"

namespace cleave {
namespace {

// The sources of each element of `result`, by `source(index)`. Where the call
// is to end, those that are left are 0.
template <typename Source>
IndexMap MapOf(const Extents& result, Source&& source) {
  IndexMap map(CountOf(result));
  size_t next = 0;
  BudgetPolls polls;
  ForEachIndex(result, [&](const Extents& index) {
    map[next++] = source(index);
    return !polls.Ended();
  });
  return map;
}

IndexMap MapOfPad(const Attributes& attributes, const Extents& x,
                  const Extents& result) {
  const Extents strides = StridesOf(x);
  const Extents low = attributes.GetInts("low");
  const Extents interior = attributes.GetInts("interior");
  const int64_t fill = CountOf(x);
  return MapOf(result, [&](const Extents& index) {
    int64_t source = 0;
    for (size_t d = 0; d < x.size(); ++d) {
      const int64_t position = index[d] - low[d];
      const int64_t step = interior[d] + 1;
      if (position < 0 || position % step != 0 || position / step >= x[d]) {
        return fill;
      }
      source += position / step * strides[d];
    }
    return source;
  });
}

IndexMap MapOfConcatenate(const Attributes& attributes,
                          absl::Span<const Extents> operands,
                          const Extents& result) {
  const int64_t axis = attributes.GetInt("axis");
  std::vector<Extents> strides;
  for (const Extents& shape : operands) strides.push_back(StridesOf(shape));
  return MapOf(result, [&](const Extents& index) {
    int64_t along = index[axis];
    int64_t source = 0;
    size_t operand = 0;
    for (; along >= operands[operand][axis]; ++operand) {
      along -= operands[operand][axis];
      source += CountOf(operands[operand]);
    }
    for (size_t d = 0; d < index.size(); ++d) {
      const bool is_axis = static_cast<int64_t>(d) == axis;
      source += (is_axis ? along : index[d]) * strides[operand][d];
    }
    return source;
  });
}

}  // namespace

Extents StridesOf(const Extents& shape) {
  Extents strides(shape.size(), 1);
  if (CountOf(shape) == 0) return strides;  // of no element
  for (size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * shape[d];
  }
  return strides;
}

int64_t CountOf(const Extents& shape) {
  // In an empty array any other extent may be of any size.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

bool NextIndex(const Extents& shape, Extents& index) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

Extents OffsetsOf(const Extents& shape, const std::vector<int64_t>& axes) {
  const Extents strides = StridesOf(shape);
  Extents extents;
  for (const int64_t axis : axes) extents.push_back(shape[axis]);
  return MapOf(extents, [&](const Extents& index) {
    int64_t offset = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      offset += index[i] * strides[axes[i]];
    }
    return offset;
  });
}

std::vector<int64_t> OtherAxes(size_t rank, const std::vector<int64_t>& axes) {
  std::vector<int64_t> others;
  for (size_t d = 0; d < rank; ++d) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) ==
        axes.end()) {
      others.push_back(static_cast<int64_t>(d));
    }
  }
  return others;
}

IndexMap MapOfMovement(Primitive primitive, const Attributes& attributes,
                       absl::Span<const Extents> operands,
                       const Extents& result) {
  const Extents& x = operands[0];
  const Extents strides = StridesOf(x);
  switch (primitive) {
    case Primitive::kBroadcastInDim: {
      const std::vector<int64_t> axes = attributes.GetInts("axes");
      return MapOf(result, [&](const Extents& index) {
        int64_t source = 0;
        for (size_t d = 0; d < x.size(); ++d) {
          if (x[d] != 1) source += index[axes[d]] * strides[d];
        }
        return source;
      });
    }
    case Primitive::kReshape: {
      int64_t next = 0;
      return MapOf(result, [&](const Extents&) { return next++; });
    }
    case Primitive::kTranspose: {
      const std::vector<int64_t> axes = attributes.GetInts("axes");
      return MapOf(result, [&](const Extents& index) {
        int64_t source = 0;
        for (size_t d = 0; d < axes.size(); ++d) {
          source += index[d] * strides[axes[d]];
        }
        return source;
      });
    }
    case Primitive::kSlice: {
      const Extents start = attributes.GetInts("start");
      const Extents stride = attributes.GetInts("stride");
      return MapOf(result, [&](const Extents& index) {
        int64_t source = 0;
        for (size_t d = 0; d < x.size(); ++d) {
          source += (start[d] + index[d] * stride[d]) * strides[d];
        }
        return source;
      });
    }
    case Primitive::kReverse: {
      std::vector<bool> reversed(x.size(), false);
      for (const int64_t axis : attributes.GetInts("axes")) {
        reversed[axis] = true;
      }
      return MapOf(result, [&](const Extents& index) {
        int64_t source = 0;
        for (size_t d = 0; d < x.size(); ++d) {
          source += (reversed[d] ? x[d] - 1 - index[d] : index[d]) * strides[d];
        }
        return source;
      });
    }
    case Primitive::kPad:
      return MapOfPad(attributes, x, result);
    case Primitive::kConcatenate:
      return MapOfConcatenate(attributes, operands, result);
    case Primitive::kWindows: {
      IndexMap map = MapOfWindows(attributes, x);
      const int64_t fill = CountOf(x);
      for (int64_t& source : map) {
        if (source < 0) source = fill;
      }
      return map;
    }
    default:
      CLEAVE_CHECK(false) << PrimitiveName(primitive) << " is no movement";
      return {};
  }
}

IndexMap MapOfWindows(const Attributes& attributes, const Extents& x) {
  const Extents sizes = attributes.GetInts("sizes");
  const Extents window_strides = attributes.GetInts("strides");
  const Extents dilations = attributes.GetInts("dilations");
  const Extents low = attributes.GetInts("low");
  const Extents counts = attributes.GetInts("counts");
  const size_t k = sizes.size();
  const size_t lead = x.size() - k;
  const Extents strides = StridesOf(x);
  Extents result(x.begin(), x.begin() + lead);
  result.insert(result.end(), counts.begin(), counts.end());
  result.insert(result.end(), sizes.begin(), sizes.end());
  return MapOf(result, [&](const Extents& index) {
    int64_t source = 0;
    for (size_t d = 0; d < lead; ++d) source += index[d] * strides[d];
    for (size_t d = 0; d < k; ++d) {
      const int64_t position = index[lead + d] * window_strides[d] +
                               index[lead + k + d] * dilations[d] - low[d];
      if (position < 0 || position >= x[lead + d]) return int64_t{-1};
      source += position * strides[lead + d];
    }
    return source;
  });
}

IndexMap MapOfIndexing(const Extents& x, const Extents& index,
                       const std::vector<int64_t>& index_values,
                       const std::vector<int64_t>& axes, int64_t batch) {
  const Extents strides = StridesOf(x);
  std::vector<int64_t> fixed = axes;
  for (int64_t d = 0; d < batch; ++d) fixed.push_back(d);
  const Extents rest = OffsetsOf(x, OtherAxes(x.size(), fixed));
  // The batch offset of each block of index tuples that share it.
  std::vector<int64_t> batch_axes;
  for (int64_t d = 0; d < batch; ++d) batch_axes.push_back(d);
  const Extents bases = OffsetsOf(x, batch_axes);
  const int64_t tuples =
      CountOf(Extents(index.begin() + batch, index.end() - 1));
  const size_t k = axes.size();
  IndexMap map;
  map.reserve(bases.size() * tuples * rest.size());
  size_t next = 0;
  BudgetPolls polls;
  for (const int64_t base : bases) {
    for (int64_t t = 0; t < tuples; ++t) {
      int64_t offset = base;
      bool inside = true;
      for (size_t i = 0; i < k; ++i) {
        const int64_t at = index_values[next++];
        inside &= at >= 0 && at < x[axes[i]];
        if (inside) offset += at * strides[axes[i]];
      }
      if (polls.Ended()) inside = false;
      for (const int64_t r : rest) map.push_back(inside ? offset + r : -1);
    }
  }
  return map;
}

Tensor Pick(const IndexMap& map, const Extents& shape,
            absl::Span<const Tensor> operands) {
  Tensor result(operands[0].dtype(), shape);
  if (BudgetEnded()) return result;
  const size_t bytes = ByteSize(operands[0].dtype());
  std::byte* out = result.mutable_data();
  for (int64_t source : map) {
    size_t operand = 0;
    while (source >= operands[operand].size()) {
      source -= operands[operand++].size();
    }
    std::memcpy(out, operands[operand].data() + source * bytes, bytes);
    out += bytes;
  }
  return result;
}

}  // namespace cleave
