// Kernels of the structured primitives, each written once over an arithmetic
// (ops/reference/arithmetic.h): EvalReference runs them on Tensors, EvalReal on
// RealTensors. Operands and attributes were accepted by InferType. Internal to
// ops.

#ifndef CLEAVE_OPS_REFERENCE_STRUCTURED_KERNELS_H_
#define CLEAVE_OPS_REFERENCE_STRUCTURED_KERNELS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ops/budget.h"
#include "ops/primitive.h"
#include "ops/reference/arithmetic.h"
#include "ops/reference/index_map.h"
#include "ops/static_value.h"

namespace cleave {

// Sums begin with +0, so that a sum of nothing and a sum of -0 are +0.
template <typename A>
std::vector<typename A::Value> ReduceKernel(
    const A& a, Primitive primitive, const Attributes& attributes,
    const Extents& shape, const std::vector<typename A::Value>& x) {
  const std::vector<int64_t> axes = attributes.GetInts("axes");
  BudgetPolls polls;
  const Extents kept = OffsetsOf(shape, OtherAxes(shape.size(), axes));
  // A result without elements needs no reduction, however large the reduced
  // extents are.
  if (kept.empty()) return {};
  const Extents reduced = OffsetsOf(shape, axes);
  std::vector<typename A::Value> results;
  results.reserve(kept.size());
  for (const int64_t base : kept) {
    if (polls.Ended()) {
      results.resize(kept.size(), a.Zero());
      break;
    }
    if (primitive == Primitive::kReduceSum) {
      typename A::Acc sum = a.Make(a.Zero());
      for (const int64_t r : reduced) a.Add(sum, x[base + r]);
      results.push_back(a.Round(sum));
    } else if (primitive == Primitive::kReduceProd) {
      std::vector<typename A::Value> factors;
      factors.reserve(reduced.size());
      for (const int64_t r : reduced) factors.push_back(x[base + r]);
      results.push_back(a.Product(factors));
    } else if constexpr (kIsOrdered<A>) {
      // On bools all is min and any is max.
      const bool max = primitive == Primitive::kReduceMax ||
                       primitive == Primitive::kReduceAny;
      typename A::Value best = max ? a.Lowest() : a.Highest();
      for (const int64_t r : reduced) {
        best = max ? MaxOf(a, best, x[base + r]) : MinOf(a, best, x[base + r]);
      }
      results.push_back(std::move(best));
    }
  }
  return results;
}

// The number, within the axes, of the first greatest (least) element; the
// first NaN where there is one; -1 of nothing.
template <typename A>
std::vector<int64_t> ArgKernel(const A& a, bool max,
                               const std::vector<int64_t>& axes,
                               const Extents& shape,
                               const std::vector<typename A::Value>& x) {
  BudgetPolls polls;
  const Extents kept = OffsetsOf(shape, OtherAxes(shape.size(), axes));
  if (kept.empty()) return {};
  const Extents reduced = OffsetsOf(shape, axes);
  std::vector<int64_t> results;
  results.reserve(kept.size());
  for (const int64_t base : kept) {
    int64_t best = -1;
    for (size_t i = 0; i < reduced.size() && !polls.Ended(); ++i) {
      const auto& v = x[base + reduced[i]];
      if (best >= 0) {
        const auto& b = x[base + reduced[best]];
        if (a.IsNaN(b)) break;
        const bool better = a.IsNaN(v) || (max ? a.Less(b, v) : a.Less(v, b));
        if (!better) continue;
      }
      best = static_cast<int64_t>(i);
    }
    results.push_back(best);
  }
  return results;
}

template <typename A>
std::vector<typename A::Value> DotGeneralKernel(
    const A& a, const Attributes& attributes, const Extents& x_shape,
    const std::vector<typename A::Value>& x, const Extents& y_shape,
    const std::vector<typename A::Value>& y, const Extents& result) {
  const std::vector<int64_t> batch_x = attributes.GetInts("batch_a");
  const std::vector<int64_t> batch_y = attributes.GetInts("batch_b");
  const std::vector<int64_t> contract_x = attributes.GetInts("contract_a");
  const std::vector<int64_t> contract_y = attributes.GetInts("contract_b");
  if (CountOf(result) == 0) return {};
  std::vector<int64_t> bound_x = batch_x;
  bound_x.insert(bound_x.end(), contract_x.begin(), contract_x.end());
  std::vector<int64_t> bound_y = batch_y;
  bound_y.insert(bound_y.end(), contract_y.begin(), contract_y.end());
  const Extents batches_x = OffsetsOf(x_shape, batch_x);
  const Extents batches_y = OffsetsOf(y_shape, batch_y);
  const Extents free_x = OffsetsOf(x_shape, OtherAxes(x_shape.size(), bound_x));
  const Extents free_y = OffsetsOf(y_shape, OtherAxes(y_shape.size(), bound_y));
  const Extents terms_x = OffsetsOf(x_shape, contract_x);
  const Extents terms_y = OffsetsOf(y_shape, contract_y);
  BudgetPolls polls;
  std::vector<typename A::Value> results;
  results.reserve(batches_x.size() * free_x.size() * free_y.size());
  for (size_t batch = 0; batch < batches_x.size(); ++batch) {
    for (const int64_t i : free_x) {
      for (const int64_t j : free_y) {
        typename A::Acc sum = a.Make(a.Zero());
        for (size_t t = 0; t < terms_x.size() && !polls.Ended(); ++t) {
          a.AddProduct(sum, x[batches_x[batch] + i + terms_x[t]],
                       y[batches_y[batch] + j + terms_y[t]]);
        }
        results.push_back(a.Round(sum));
      }
    }
  }
  return results;
}

// For each output position, row-major, the pairs of offsets (in the kernel,
// in the input) that meet there.
std::vector<std::vector<std::pair<int64_t, int64_t>>> ConvMeetings(
    const Attributes& attributes, const Extents& input, const Extents& kernel,
    const Extents& output);

template <typename A>
std::vector<typename A::Value> ConvKernel(
    const A& a, const Attributes& attributes, const Extents& x_shape,
    const std::vector<typename A::Value>& x, const Extents& w_shape,
    const std::vector<typename A::Value>& w, const Extents& result) {
  const int64_t groups = attributes.GetInt("groups");
  const int64_t batch_groups = attributes.GetInt("batch_groups");
  const Extents input(x_shape.begin() + 2, x_shape.end());
  const Extents kernel(w_shape.begin() + 2, w_shape.end());
  const Extents output(result.begin() + 2, result.end());
  if (CountOf(result) == 0) return {};
  if (CountOf(w_shape) == 0) {
    return std::vector<typename A::Value>(CountOf(result), a.Zero());
  }
  BudgetPolls polls;
  const auto meetings = ConvMeetings(attributes, input, kernel, output);
  const int64_t input_size = CountOf(input);
  const int64_t kernel_size = CountOf(kernel);
  const int64_t channels = w_shape[1];  // that one output reads
  const int64_t outputs_per_group =
      std::max<int64_t>(1, w_shape[0] / (groups * batch_groups));
  std::vector<typename A::Value> results;
  results.reserve(CountOf(result));
  for (int64_t n = 0; n < result[0]; ++n) {
    for (int64_t o = 0; o < result[1]; ++o) {
      const int64_t group = o / outputs_per_group;
      const int64_t row = batch_groups > 1 ? group * result[0] + n : n;
      const int64_t channel = batch_groups > 1 ? 0 : group * channels;
      for (const auto& position : meetings) {
        typename A::Acc sum = a.Make(a.Zero());
        for (int64_t c = 0; c < channels && !polls.Ended(); ++c) {
          const int64_t x_base = (row * x_shape[1] + channel + c) * input_size;
          const int64_t w_base = (o * channels + c) * kernel_size;
          for (const auto& [k, i] : position) {
            a.AddProduct(sum, x[x_base + i], w[w_base + k]);
          }
        }
        results.push_back(a.Round(sum));
      }
    }
  }
  return results;
}

// Offsets of the lines along `axis`, the step within one, and its length.
struct Lines {
  Extents starts;
  int64_t step;
  int64_t length;
  // None where the lines are empty.
  Lines(const Extents& shape, int64_t axis)
      : starts(CountOf(shape) == 0
                   ? Extents()
                   : OffsetsOf(shape, OtherAxes(shape.size(), {axis}))),
        step(StridesOf(shape)[axis]),
        length(shape[axis]) {}
};

template <typename A>
std::vector<typename A::Value> LinearScanKernel(
    const A& a, const Attributes& attributes, const Extents& shape,
    const std::vector<typename A::Value>& factor,
    const std::vector<typename A::Value>& addend,
    const std::vector<typename A::Value>& init) {
  const Lines lines(shape, attributes.GetInt("axis"));
  const bool reverse = attributes.GetBool("reverse");
  BudgetPolls polls;
  std::vector<typename A::Value> results = addend;
  for (size_t line = 0; line < lines.starts.size(); ++line) {
    typename A::Acc state = a.Make(init[line]);
    for (int64_t t = 0; t < lines.length && !polls.Ended(); ++t) {
      const int64_t i = reverse ? lines.length - 1 - t : t;
      const int64_t at = lines.starts[line] + i * lines.step;
      a.MultiplyAdd(state, factor[at], addend[at]);
      results[at] = a.Round(state);
    }
  }
  return results;
}

template <typename A>
std::vector<typename A::Value> CumulativeKernel(
    const A& a, bool max, const Attributes& attributes, const Extents& shape,
    std::vector<typename A::Value> x) {
  BudgetPolls polls;
  const Lines lines(shape, attributes.GetInt("axis"));
  const bool reverse = attributes.GetBool("reverse");
  for (const int64_t start : lines.starts) {
    for (int64_t t = 1; t < lines.length && !polls.Ended(); ++t) {
      const int64_t i = reverse ? lines.length - 1 - t : t;
      const int64_t at = start + i * lines.step;
      const auto& before = x[reverse ? at + lines.step : at - lines.step];
      x[at] = max ? MaxOf(a, before, x[at]) : MinOf(a, before, x[at]);
    }
  }
  return x;
}

// Updates in row-major order; map gives the place of each, -1 to drop it.
template <typename A>
std::vector<typename A::Value> ScatterKernel(
    const A& a, const std::string& mode, const IndexMap& map,
    std::vector<typename A::Value> x,
    const std::vector<typename A::Value>& updates) {
  if (mode == "add" || mode == "mul") {
    // Places that nothing is written to keep their values as they are.
    std::vector<typename A::Acc> sums;
    std::vector<int64_t> slot(x.size(), -1);
    for (size_t i = 0; i < map.size(); ++i) {
      if (map[i] < 0) continue;
      if (slot[map[i]] < 0) {
        slot[map[i]] = static_cast<int64_t>(sums.size());
        sums.push_back(a.Make(x[map[i]]));
      }
      typename A::Acc& sum = sums[slot[map[i]]];
      if (mode == "add") {
        a.Add(sum, updates[i]);
      } else {
        a.Multiply(sum, updates[i]);
      }
    }
    for (size_t i = 0; i < x.size(); ++i) {
      if (slot[i] >= 0) x[i] = a.Round(sums[slot[i]]);
    }
    return x;
  }
  for (size_t i = 0; i < map.size(); ++i) {
    if (map[i] < 0) continue;
    auto& place = x[map[i]];
    if constexpr (kIsOrdered<A>) {
      if (mode == "max") {
        place = MaxOf(a, place, updates[i]);
        continue;
      }
      if (mode == "min") {
        place = MinOf(a, place, updates[i]);
        continue;
      }
    }
    place = updates[i];
  }
  return x;
}

// The place in its line of each element of the sorted lines. Stable; NaN is
// the largest, so that it comes last, or first if descending.
template <typename A>
std::vector<int64_t> SortKernel(const A& a, const Attributes& attributes,
                                const Extents& shape,
                                const std::vector<typename A::Value>& x) {
  const Lines lines(shape, attributes.GetInt("axis"));
  const bool descending = attributes.GetBool("descending");
  const auto less = [&](const auto& p, const auto& q) {
    if (a.IsNaN(p) || a.IsNaN(q)) return !a.IsNaN(p);
    return a.Less(p, q);
  };
  std::vector<int64_t> places(x.size());
  if (lines.starts.empty()) return places;
  BudgetPolls polls;
  std::vector<int64_t> order(lines.length);
  for (const int64_t start : lines.starts) {
    if (polls.Ended()) break;
    for (int64_t i = 0; i < lines.length; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      const auto& p = x[start + i * lines.step];
      const auto& q = x[start + j * lines.step];
      return descending ? less(q, p) : less(p, q);
    });
    for (int64_t i = 0; i < lines.length; ++i) {
      places[start + i * lines.step] = order[i];
    }
  }
  return places;
}

// The elements that sorting puts at each place, as a map into x.
IndexMap MapOfSort(const Extents& shape, int64_t axis,
                   const std::vector<int64_t>& places);

// Row-major indices of the elements that are not zero (NaN is not).
template <typename A>
std::vector<int64_t> NonzeroKernel(const A& a, const Extents& shape,
                                   const std::vector<typename A::Value>& x) {
  std::vector<int64_t> rows;
  size_t i = 0;
  ForEachIndex(shape, [&](const Extents& index) {
    if (!a.IsZero(x[i++])) rows.insert(rows.end(), index.begin(), index.end());
    return true;
  });
  return rows;
}

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_STRUCTURED_KERNELS_H_
