#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/eager/functional_testing.h"
#include "engine/eager/tensor.h"
#include "engine/eager/trace_scope.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave::functional {
namespace {

using ::testing::HasSubstr;

class IndexingTest : public SessionTest {};

cleave::Tensor Counting(const std::vector<int64_t>& shape) {
  cleave::Tensor tensor(DType::kI64, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.SetInt(i, i);
  return tensor;
}

// Python's slice.indices, and the elements that it names.
std::vector<int64_t> SliceIndices(std::optional<int64_t> start,
                                  std::optional<int64_t> stop, int64_t step,
                                  int64_t n) {
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? n : n - 1;
  const auto clamp = [&](int64_t bound) {
    if (bound < 0) bound += n;
    return std::min(std::max(bound, low), high);
  };
  const int64_t first =
      start.has_value() ? clamp(*start) : (step > 0 ? low : high);
  const int64_t last =
      stop.has_value() ? clamp(*stop) : (step > 0 ? high : low);
  std::vector<int64_t> indices;
  for (int64_t i = first; step > 0 ? i < last : i > last; i += step) {
    indices.push_back(i);
  }
  return indices;
}

// A random basic index of a tensor, and what NumPy reads by it: the list of
// elements for each axis of the result, a new axis having none.
struct Case {
  std::vector<Index> indices;
  std::vector<std::vector<int64_t>> of_axis;  // per axis of the operand
  std::vector<int64_t> shape;                 // of the result
};

std::optional<Dim> ToDim(std::optional<int64_t> x) {
  if (!x.has_value()) return std::nullopt;
  return Dim(*x);
}

Case RandomCase(std::mt19937& random, const std::vector<int64_t>& shape) {
  const auto up = [&](int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint32_t>(below));
  };
  Case result;
  const size_t named = up(static_cast<int64_t>(shape.size()) + 1);
  const bool ellipsis = up(3) == 0;
  const size_t ellipsis_at = ellipsis ? up(named + 1) : named;
  const auto keep = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const int64_t n = shape[result.of_axis.size()];
      result.shape.push_back(n);
      result.of_axis.push_back(SliceIndices({}, {}, 1, n));
    }
  };
  for (size_t i = 0; i <= named; ++i) {
    if (up(4) == 0) {
      result.indices.push_back(kNewAxis);
      result.shape.push_back(1);
    }
    if (ellipsis && i == ellipsis_at) {
      result.indices.push_back(kEllipsis);
      keep(shape.size() - named);
    }
    if (i == named) break;
    const int64_t n = shape[result.of_axis.size()];
    if (n > 0 && up(3) == 0) {
      const int64_t at = up(2 * n) - n;
      result.indices.push_back(Index(at));
      result.of_axis.push_back({at < 0 ? at + n : at});
      continue;
    }
    const auto bound = [&]() -> std::optional<int64_t> {
      if (up(3) == 0) return std::nullopt;
      return up(2 * n + 5) - n - 2;
    };
    const std::optional<int64_t> start = bound();
    const std::optional<int64_t> stop = bound();
    const int64_t steps[] = {1, 1, 2, 3, -1, -2, -3};
    const int64_t step = steps[up(7)];
    result.indices.push_back(Index(ToDim(start), ToDim(stop), step));
    result.of_axis.push_back(SliceIndices(start, stop, step, n));
    result.shape.push_back(static_cast<int64_t>(result.of_axis.back().size()));
  }
  keep(shape.size() - result.of_axis.size());
  return result;
}

// Row by row, the numbers of the elements that the case names.
std::vector<int64_t> Places(const Case& c, const std::vector<int64_t>& shape) {
  std::vector<int64_t> places = {0};
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<int64_t> next;
    for (const int64_t place : places) {
      for (const int64_t at : c.of_axis[d])
        next.push_back(place * shape[d] + at);
    }
    places = std::move(next);
  }
  return places;
}

TEST_F(IndexingTest, RandomBasicIndicesReadWhatNumPyReads) {
  std::mt19937 random(1);
  const std::vector<std::vector<int64_t>> shapes = {
      {}, {0}, {1}, {7}, {4, 3}, {1, 5}, {2, 0, 3}, {3, 4, 5}};
  for (int i = 0; i < 600; ++i) {
    const std::vector<int64_t>& shape = shapes[i % shapes.size()];
    const Case c = RandomCase(random, shape);
    const Tensor x = Counting(shape);
    const Tensor y = x.At(c.indices);
    SCOPED_TRACE(absl::StrCat("case ", i, ": ", y.view().ToString()));
    ASSERT_OK(y.status());
    EXPECT_TRUE(y.SharesStorage(x));
    ASSERT_OK_AND_ASSIGN(const cleave::Tensor value, y.Concrete());
    ASSERT_EQ(value.shape(), c.shape);
    const std::vector<int64_t> places = Places(c, shape);
    ASSERT_EQ(value.size(), static_cast<int64_t>(places.size()));
    for (int64_t k = 0; k < value.size(); ++k) {
      ASSERT_EQ(value.GetInt(k), places[k]);
    }
  }
}

TEST_F(IndexingTest, RandomBasicIndicesHoldAtSymbolicExtents) {
  // The same index under a trace, whose graph then runs at several extents.
  std::mt19937 random(2);
  const Dim n = Dim::Variable("n");
  for (int i = 0; i < 150; ++i) {
    // Elements are those that every extent has.
    Case c = RandomCase(random, {5, 3});
    TraceScope trace(std::make_shared<Context>());
    const Tensor x = trace.Input("x", {DType::kI64, {n + 5, 3}});
    const Tensor y = x.At(c.indices);
    ASSERT_OK(y.status());
    ASSERT_OK_AND_ASSIGN(const Value out, trace.Read(y));
    ASSERT_OK_AND_ASSIGN(const Graph graph,
                         std::move(trace).Finish({{"y", out}}));
    for (const int64_t extent : {5, 6, 9}) {
      const cleave::Tensor at = Counting({extent, 3});
      ASSERT_OK_AND_ASSIGN(const std::vector<cleave::Tensor> results,
                           Interpret(graph, {at}));
      ASSERT_OK_AND_ASSIGN(const cleave::Tensor expected,
                           Tensor(at).At(c.indices).Concrete());
      EXPECT_TRUE(SameValue(results[0], expected))
          << "case " << i << " at " << extent << ": " << results[0].ToString()
          << " is not " << expected.ToString();
    }
  }
}

TEST_F(IndexingTest, RandomBasicIndicesAreWrittenThrough) {
  std::mt19937 random(3);
  for (int i = 0; i < 12; ++i) {
    const Case c = RandomCase(random, {4, 3});
    Tensor x = Counting({4, 3});
    ASSERT_OK(x.AssignAt(c.indices, -1));
    cleave::Tensor expected = Counting({4, 3});
    for (const int64_t place : Places(c, {4, 3})) expected.SetInt(place, -1);
    ExpectValue(x, expected);
  }
}

TEST_F(IndexingTest, TensorsAsIndicesGather) {
  const Tensor x = Counting({3, 4});
  const Tensor rows = Ints({2}, {2, -3});
  // NumPy: x[rows], x[:, rows], x[[2, -3], [1, 3]], x[rows[:, None], [0, 1]].
  ExpectValue(x[{rows}], Ints({2, 4}, {8, 9, 10, 11, 0, 1, 2, 3}));
  ExpectValue(x[{kAll, rows}], Ints({3, 2}, {2, 1, 6, 5, 10, 9}));
  ExpectValue(x[{rows, Tensor(Ints({2}, {1, 3}))}], Ints({2}, {9, 3}));
  ExpectValue(x[{rows[{kAll, kNewAxis}], Tensor(Ints({2}, {0, 1}))}],
              Ints({2, 2}, {8, 9, 0, 1}));
  // The result has the axes of the index tensor in the place of the axis.
  const Tensor z = Counting({2, 3, 2});
  EXPECT_EQ((z[{kAll, Tensor(Ints({1, 2}, {0, 2}))}].shape()),
            (Shape{2, 1, 2, 2}));
  // Apart, they come first: NumPy's z[[0, 1], :, [1, 0]].
  ExpectValue(z[{Tensor(Ints({2}, {0, 1})), kAll, Tensor(Ints({2}, {1, 0}))}],
              Ints({2, 3}, {1, 3, 5, 6, 8, 10}));
  // With slices and numbers around them.
  ExpectValue(x[{{kNone, kNone, -1}, rows}], Ints({3, 2}, {10, 9, 6, 5, 2, 1}));
  ExpectValue(x[{kNewAxis, 1, rows}], Ints({1, 2}, {6, 5}));
  EXPECT_FALSE(x[{rows}].SharesStorage(x));
  ExpectValue(x[{Tensor(Ints({0}, {}))}], Ints({0, 4}, {}));
}

TEST_F(IndexingTest, TensorsAsIndicesScatter) {
  Tensor x = Counting({3, 4});
  // NumPy: x[[2, 0], 1:3] = [[10, 20], [30, 40]]
  ASSERT_OK(x.AssignAt({Tensor(Ints({2}, {2, 0})), {1, 3}},
                       Ints({2, 2}, {10, 20, 30, 40})));
  ExpectValue(x, Ints({3, 4}, {0, 30, 40, 3, 4, 5, 6, 7, 8, 10, 20, 11}));
  // The last one stays; a number is broadcast; columns in their place.
  ASSERT_OK(x.AssignAt({0, Tensor(Ints({2}, {3, 3}))}, Ints({2}, {1, 2})));
  ASSERT_OK(x.AssignAt({kAll, Tensor(Ints({1}, {-4}))}, -1));
  ExpectValue(x, Ints({3, 4}, {-1, 30, 40, 2, -1, 5, 6, 7, -1, 10, 20, 11}));
  // NumPy: y[:, [1, 0]] = [[1, 2], [3, 4]]
  Tensor y = Counting({2, 2});
  ASSERT_OK(y.AssignAt({kAll, Tensor(Ints({2}, {1, 0}))},
                       Ints({2, 2}, {1, 2, 3, 4})));
  ExpectValue(y, Ints({2, 2}, {2, 1, 4, 3}));
  EXPECT_EQ(y.version(), 1u);
}

TEST_F(IndexingTest, MistakesAreCarried) {
  const Tensor x = Counting({3, 4});
  EXPECT_THAT(x[{3}].status(),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("extent 3")));
  EXPECT_THAT(x[{-4}].status(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT((x[{0, 0, 0}]).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("3 indices for i64[3, 4]")));
  EXPECT_THAT((x[{kEllipsis, kEllipsis}]).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      (x[{{0, 1, 0}}]).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("step 0")));
  EXPECT_THAT((x[{Tensor(Ints({1}, {5}))}]).status(),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(
      (x[{Tensor(Floats({1}, {0}))}]).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not supported")));
  EXPECT_THAT(
      (x[{Tensor(Bools({3}, {1, 0, 1}))}]).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not supported")));
  EXPECT_FALSE((x[{x[{9}]}]).valid());
}

}  // namespace
}  // namespace cleave::functional
