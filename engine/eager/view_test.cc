#include "engine/eager/view.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave::functional {
namespace {

using ::testing::HasSubstr;

cleave::Tensor Counting(const std::vector<int64_t>& shape, int64_t first = 0) {
  cleave::Tensor tensor(DType::kI64, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.SetInt(i, first + i);
  return tensor;
}

// The five steps as ops/primitive.h defines them, element by element: `places`
// are the row-major numbers in the base of the elements that a step reads.
struct Elements {
  std::vector<int64_t> shape;
  std::vector<int64_t> places;
};

int64_t Product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

int64_t RowMajor(const std::vector<int64_t>& index,
                 const std::vector<int64_t>& shape) {
  int64_t place = 0;
  for (size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + index[d];
  return place;
}

// The elements of shape `to` that `source_of` finds in `from`.
Elements Map(const Elements& from, const std::vector<int64_t>& to,
             const std::function<std::vector<int64_t>(std::vector<int64_t>)>&
                 source_of) {
  Elements result{to, {}};
  for (int64_t i = 0; i < Product(to); ++i) {
    std::vector<int64_t> index(to.size());
    int64_t rest = i;
    for (size_t d = to.size(); d-- > 0;) {
      index[d] = rest % to[d];
      rest /= to[d];
    }
    result.places.push_back(
        from.places[RowMajor(source_of(index), from.shape)]);
  }
  return result;
}

std::vector<int64_t> Numbers(const std::vector<Dim>& dims,
                             const std::map<std::string, int64_t>& values) {
  std::vector<int64_t> numbers;
  for (const Dim& dim : dims) numbers.push_back(*dim.Evaluate(values));
  return numbers;
}

// A random chain and what it reads by the oracle. Extents may be polynomials in
// the variables of `values`.
struct Chain {
  View view;
  Elements elements;
};

class RandomChain {
 public:
  RandomChain(uint32_t seed, std::map<std::string, int64_t> values)
      : random_(seed), values_(std::move(values)) {}

  Chain Make(const Shape& shape, int steps, bool broadcasts) {
    Chain chain;
    chain.view = View(TensorType{DType::kI64, shape});
    chain.elements.shape = Numbers(shape, values_);
    for (int64_t i = 0; i < Product(chain.elements.shape); ++i) {
      chain.elements.places.push_back(i);
    }
    for (int i = 0; i < steps; ++i) Grow(chain, broadcasts);
    return chain;
  }

 private:
  int Up(int below) {
    return static_cast<int>(random_() % static_cast<uint32_t>(below));
  }

  void Grow(Chain& chain, bool broadcasts) {
    const Shape shape = chain.view.type().shape;
    const int rank = static_cast<int>(shape.size());
    const Elements before = chain.elements;
    switch (Up(broadcasts ? 5 : 4)) {
      case 0: {  // slice: leaves out some elements at both ends of each axis
        std::vector<Dim> start, size;
        std::vector<int64_t> stride;
        for (int d = 0; d < rank; ++d) {
          const int64_t extent = before.shape[d];
          const int64_t low = extent == 0 ? 0 : Up(std::min<int>(extent, 3));
          if (shape[d].IsConstant()) {
            stride.push_back(1 + Up(3));
            const int64_t most =
                extent == 0 ? 0 : (extent - low - 1) / stride.back() + 1;
            start.push_back(low);
            size.push_back(Up(static_cast<int>(most) + 1));
          } else {  // all but the first `low`
            stride.push_back(1);
            start.push_back(low);
            size.push_back(shape[d] - low);
          }
        }
        chain.view = *chain.view.Slice(start, size, stride);
        const std::vector<int64_t> from = Numbers(start, values_);
        chain.elements =
            Map(before, Numbers(size, values_), [&](std::vector<int64_t> at) {
              for (int d = 0; d < rank; ++d)
                at[d] = from[d] + at[d] * stride[d];
              return at;
            });
        break;
      }
      case 1: {
        std::vector<int> axes(rank);
        for (int d = 0; d < rank; ++d) axes[d] = d;
        std::shuffle(axes.begin(), axes.end(), random_);
        chain.view = *chain.view.Transpose(axes);
        std::vector<int64_t> to;
        for (const int axis : axes) to.push_back(before.shape[axis]);
        chain.elements = Map(before, to, [&](const std::vector<int64_t>& at) {
          std::vector<int64_t> from(rank);
          for (int d = 0; d < rank; ++d) from[axes[d]] = at[d];
          return from;
        });
        break;
      }
      case 2: {
        std::vector<int> axes;
        for (int d = 0; d < rank; ++d) {
          if (Up(2) == 0) axes.push_back(d);
        }
        chain.view = *chain.view.Reverse(axes);
        chain.elements =
            Map(before, before.shape, [&](std::vector<int64_t> at) {
              for (const int axis : axes) {
                at[axis] = before.shape[axis] - 1 - at[axis];
              }
              return at;
            });
        break;
      }
      case 3: {  // joins two axes, or inserts one
        Shape to = shape;
        if (rank >= 2 && Up(2) == 0) {
          const int d = Up(rank - 1);
          to[d] = to[d] * to[d + 1];
          to.erase(to.begin() + d + 1);
        } else if (rank < 4) {
          to.insert(to.begin() + Up(rank + 1), Dim(1));
        }
        chain.view = *chain.view.Reshape(to);
        chain.elements.shape = Numbers(to, values_);
        break;
      }
      default: {
        if (rank >= 4) break;
        Shape to = shape;
        const int64_t extent = Up(3);
        to.insert(to.begin(), Dim(extent));
        chain.view = *chain.view.BroadcastTo(to);
        chain.elements =
            Map(before, Numbers(to, values_), [&](std::vector<int64_t> at) {
              at.erase(at.begin());
              return at;
            });
        break;
      }
    }
    ASSERT_EQ(Numbers(chain.view.type().shape, values_), chain.elements.shape);
  }

  std::mt19937 random_;
  const std::map<std::string, int64_t> values_;
};

// Builds y = fn(base), and evaluates it.
absl::StatusOr<cleave::Tensor> Evaluate(
    const TensorType& base_type, const cleave::Tensor& base,
    const std::vector<std::pair<TensorType, cleave::Tensor>>& others,
    const std::function<absl::StatusOr<Value>(GraphBuilder&, Value,
                                              const std::vector<Value>&)>& fn) {
  GraphBuilder builder(std::make_shared<Context>());
  const Value x = builder.Input("x", base_type);
  std::vector<Value> values;
  std::vector<cleave::Tensor> tensors = {base};
  for (const auto& [type, tensor] : others) {
    values.push_back(builder.Input("v" + std::to_string(values.size()), type));
    tensors.push_back(tensor);
  }
  absl::StatusOr<Value> y = fn(builder, x, values);
  if (!y.ok()) return y.status();
  const Graph graph = *std::move(builder).Build({{"y", *y}});
  absl::StatusOr<std::vector<cleave::Tensor>> results =
      Interpret(graph, tensors);
  if (!results.ok()) return results.status();
  return (*results)[0];
}

void CheckChain(const Shape& shape,
                const std::map<std::string, int64_t>& values, uint32_t seed,
                bool broadcasts) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomChain random(seed, values);
  const Chain chain = random.Make(shape, 1 + seed % 5, broadcasts);
  SCOPED_TRACE(chain.view.ToString());
  const cleave::Tensor base = Counting(Numbers(shape, values));
  const TensorType type{DType::kI64, shape};

  ASSERT_OK_AND_ASSIGN(
      const cleave::Tensor read,
      Evaluate(type, base, {},
               [&](GraphBuilder& builder, Value x, const auto&) {
                 return ReadView(builder, x, chain.view);
               }));
  EXPECT_EQ(read.shape(), chain.elements.shape);
  for (int64_t i = 0; i < read.size(); ++i) {
    ASSERT_EQ(read.GetInt(i), chain.elements.places[i]) << i;
  }
  if (values.empty()) {
    ASSERT_OK_AND_ASSIGN(const cleave::Tensor copy, CopyView(base, chain.view));
    EXPECT_TRUE(SameValue(copy, read))
        << copy.ToString() << " " << read.ToString();
  }

  const cleave::Tensor value = Counting(chain.elements.shape, 1000);
  const auto write = Evaluate(
      type, base, {{chain.view.type(), value}},
      [&](GraphBuilder& builder, Value x, const std::vector<Value>& v) {
        return WriteView(builder, x, chain.view, v[0]);
      });
  if (!chain.view.writable()) {
    EXPECT_THAT(write, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("broadcast")));
    return;
  }
  ASSERT_OK(write);
  cleave::Tensor expected = Counting(Numbers(shape, values));
  for (size_t i = 0; i < chain.elements.places.size(); ++i) {
    expected.SetInt(chain.elements.places[i], 1000 + static_cast<int64_t>(i));
  }
  EXPECT_TRUE(SameValue(*write, expected))
      << write->ToString() << " " << expected.ToString();
}

TEST(View, RandomChainsReadAndWriteWhatTheOracleSays) {
  const std::vector<Shape> shapes = {{},     {0},      {1},       {5},
                                     {4, 3}, {1, 6},   {3, 0, 2}, {2, 3, 4},
                                     {7, 5}, {2, 1, 3}};
  for (uint32_t seed = 0; seed < 300; ++seed) {
    CheckChain(shapes[seed % shapes.size()], {}, seed, seed % 3 == 0);
    if (HasFatalFailure()) return;
  }
}

TEST(View, RandomChainsHoldAtSymbolicExtents) {
  const Dim n = Dim::Variable("n");
  const Dim m = Dim::Variable("m");
  const std::vector<Shape> shapes = {
      {n}, {n, m}, {3, n}, {n + 2, 4}, {n, 2, m}};
  for (uint32_t seed = 0; seed < 200; ++seed) {
    CheckChain(shapes[seed % shapes.size()], {{"n", 12 + seed % 3}, {"m", 11}},
               seed, seed % 3 == 0);
    if (HasFatalFailure()) return;
  }
}

TEST(View, WritesKeepTheBitsOfAllOtherElements) {
  // NaN payloads, signed zeros and infinities pass through select and pad.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  cleave::Tensor base = cleave::Tensor::FromDoubles(
      DType::kF32, {6}, {-0.0, nan, INFINITY, -0.0, nan, 1});
  const uint32_t payload = 0x7fc12345;
  std::memcpy(base.mutable_data() + 4, &payload, 4);
  const View view = *View(base.type()).Slice({1}, {2}, {2});
  ASSERT_OK_AND_ASSIGN(
      const cleave::Tensor result,
      Evaluate(
          base.type(), base,
          {{view.type(),
            cleave::Tensor::FromDoubles(DType::kF32, {2}, {-0.0, nan})}},
          [&](GraphBuilder& builder, Value x, const std::vector<Value>& v) {
            return WriteView(builder, x, view, v[0]);
          }));
  std::vector<uint32_t> bits(6), old(6);
  std::memcpy(bits.data(), result.data(), 24);
  std::memcpy(old.data(), base.data(), 24);
  EXPECT_EQ(bits[0], old[0]);
  EXPECT_EQ(bits[1], 0x80000000u);
  EXPECT_EQ(bits[2], old[2]);
  EXPECT_TRUE(std::isnan(result.GetDouble(3)));
  EXPECT_EQ(bits[4], old[4]);
  EXPECT_EQ(bits[5], old[5]);
}

TEST(View, NeighboursOfOneKindAreJoined) {
  const TensorType type{DType::kF32, {10, 6}};
  const View view(type);
  EXPECT_EQ(*view.Transpose({1, 0})->Transpose({1, 0}), view);
  EXPECT_EQ(*view.Reverse({0})->Reverse({1, 0}), *view.Reverse({1}));
  EXPECT_EQ(*view.Reshape({60})->Reshape({10, 6}), view);
  EXPECT_EQ(*view.Slice({1, 0}, {4, 6}, {2, 1})->Slice({1, 2}, {2, 3}, {2, 1}),
            *view.Slice({3, 2}, {2, 3}, {4, 1}));
  EXPECT_EQ(*view.Slice({0, 0}, {10, 6}), view);
  EXPECT_TRUE(view.IsIdentity());
  EXPECT_FALSE(view.BroadcastTo({2, 10, 6})->writable());
  EXPECT_EQ(view.Slice({2, 0}, {1, 6})->Reshape({6})->ToString(),
            "base f32[10, 6]: slice(size: [1, 6], start: [2, 0], "
            "stride: [1, 1]) -> f32[1, 6]: reshape(shape: [6]) -> f32[6]");
}

TEST(View, RejectsWhatDoesNotFit) {
  const View view(TensorType{DType::kF32, {4, 3}});
  EXPECT_THAT(view.Slice({2, 0}, {3, 3}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("end")));
  EXPECT_THAT(view.Transpose({0, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(view.Reshape({5}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(view.BroadcastTo({3}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(view.Then(Primitive::kExp, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no step of a view")));

  GraphBuilder builder(std::make_shared<Context>());
  const Value x = builder.Input("x", {DType::kF32, {4, 3}});
  const Value y = builder.Input("y", {DType::kF64, {4, 3}});
  EXPECT_THAT(ReadView(builder, y, view),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the base is f64[4, 3]")));
  EXPECT_THAT(WriteView(builder, x, view, y),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the value is f64[4, 3]")));
  const Value keys = builder.Input("k", {DType::kKey, {4}});
  const View some = *View(TensorType{DType::kKey, {4}}).Slice({0}, {2});
  EXPECT_THAT(WriteView(builder, keys, some, *ReadView(builder, keys, some)),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("keys")));
}

}  // namespace
}  // namespace cleave::functional
