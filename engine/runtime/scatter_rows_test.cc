#include "engine/runtime/scatter_rows.h"

#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/kernel_call.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/reference/reference.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave::internal_kernel {
namespace {

Tensor Numbers(DType dtype, const std::vector<int64_t>& shape,
               std::mt19937& generator) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const auto drawn = static_cast<int64_t>(generator() % 2001);
    if (IsFloat(dtype)) {
      // Sums of these are exact in f64: the reference rounds its own once.
      tensor.SetDouble(i, static_cast<double>(drawn - 1000) / 64);
    } else {
      tensor.SetInt(i, ByteSize(dtype) == 1 ? drawn % 2 : drawn);
    }
  }
  return tensor;
}

// The rows of so many updates; some are no rows.
Tensor Indices(int64_t updates, int64_t rows, std::mt19937& generator) {
  Tensor indices(DType::kI64, {updates, 1});
  for (int64_t i = 0; i < updates; ++i) {
    indices.SetInt(i, static_cast<int64_t>(generator() % (rows + 2)) - 1);
  }
  return indices;
}

// A scatter of rows, behind so many axes of a batch.
Attributes OfRows(const char* mode, int batch = 0) {
  return {{"axes", StaticValue::Ints(std::vector<int>{batch})},
          {"batch", batch},
          {"mode", mode}};
}

// The rows `u` scattered into `y`, from zeros on; they outlive the result.
ScatteredRows Scattered(const Tensor& indices, const Tensor& u, Tensor* y) {
  ScatteredRows array;
  array.dtype = y->dtype();
  array.rows = y->shape()[0];
  array.width = y->shape()[1];
  array.updates = u.shape()[0];
  array.indices = reinterpret_cast<const int64_t*>(indices.data());
  array.u = u.data();
  array.y = y->mutable_data();
  return array;
}

bool HasSameBytes(const Tensor& a, const Tensor& b) {
  const auto bytes = [](const Tensor& x) {
    return absl::string_view(reinterpret_cast<const char*>(x.data()),
                             x.byte_size());
  };
  return bytes(a) == bytes(b);
}

TEST(AddRows, AddsAsTheReferenceDoes) {
  std::mt19937 generator(20261126);
  struct Extents {
    int64_t rows;
    int64_t width;
    int64_t updates;
  };
  for (const DType dtype :
       {DType::kF32, DType::kF64, DType::kI32, DType::kU64}) {
    for (const Extents& e : std::vector<Extents>{{0, 3, 4},
                                                 {3, 0, 4},
                                                 {5, 2, 0},
                                                 {1, 1, 9},
                                                 {7, 3, 50},
                                                 {300, 40, 100},
                                                 {5000, 9, 70},
                                                 {5000, 9, 40000},
                                                 {200000, 1, 1000},
                                                 {200000, 1, 100000},
                                                 {40000, 3, 50000},
                                                 {4, 1025, 11}}) {
      for (const bool zeros : {false, true}) {
        SCOPED_TRACE(absl::StrCat(DTypeName(dtype), ", ", e.rows, " rows of ",
                                  e.width, ", ", e.updates, " updates"));
        const Tensor x = zeros ? Tensor(dtype, {e.rows, e.width})
                               : Numbers(dtype, {e.rows, e.width}, generator);
        const Tensor u = Numbers(dtype, {e.updates, e.width}, generator);
        const Tensor indices = Indices(e.updates, e.rows, generator);
        ASSERT_OK_AND_ASSIGN(
            const std::vector<Tensor> want,
            EvalReference(Primitive::kScatter, OfRows("add"), {x, indices, u}));
        Tensor y(dtype, {e.rows, e.width});
        KernelCall call;
        ScatteredRows array = Scattered(indices, u, &y);
        if (!zeros) array.x = x.data();
        ASSERT_OK(AddRows(array, call));
        EXPECT_TRUE(HasSameBytes(y, want[0]));
        // The same, added to numbers: -0 is 0 where there are no updates.
        Tensor base = Numbers(dtype, {e.rows, e.width}, generator);
        if (IsFloat(dtype) && base.size() > 0) base.SetDouble(0, -0.0);
        ASSERT_OK_AND_ASSIGN(
            const std::vector<Tensor> sum,
            EvalReference(Primitive::kAdd, {}, {base, want[0]}));
        array.base = base.data();
        ASSERT_OK(AddRows(array, call));
        EXPECT_TRUE(HasSameBytes(y, sum[0]));
      }
    }
  }
}

TEST(AddRows, KeepsTheLargestAsTheReferenceDoes) {
  std::mt19937 generator(20261128);
  for (const DType dtype :
       {DType::kI32, DType::kI64, DType::kU32, DType::kU64}) {
    for (const int64_t updates : {int64_t{0}, int64_t{100}, int64_t{40000}}) {
      for (const bool filled : {false, true}) {
        SCOPED_TRACE(absl::StrCat(DTypeName(dtype), ", ", updates, " updates"));
        constexpr int64_t kRows = 3000;
        Tensor x = Numbers(dtype, {kRows, 1}, generator);
        if (filled) {
          for (int64_t i = 0; i < kRows; ++i) x.SetInt(i, 7);
        }
        const Tensor u = Numbers(dtype, {updates, 1}, generator);
        const Tensor indices = Indices(updates, kRows, generator);
        ASSERT_OK_AND_ASSIGN(
            const std::vector<Tensor> want,
            EvalReference(Primitive::kScatter, OfRows("max"), {x, indices, u}));
        Tensor y(dtype, {kRows, 1});
        ScatteredRows array = Scattered(indices, u, &y);
        array.combination = RowCombination::kLargest;
        array.fill = 7;
        if (!filled) array.x = x.data();
        KernelCall call;
        ASSERT_OK(AddRows(array, call));
        EXPECT_TRUE(HasSameBytes(y, want[0]));
      }
    }
  }
}

TEST(AddRows, KeepsTheLastOfEachRow) {
  std::mt19937 generator(20261129);
  for (const DType dtype :
       {DType::kBool, DType::kI8, DType::kF16, DType::kF32, DType::kI64}) {
    for (const int64_t updates : {int64_t{0}, int64_t{100}, int64_t{40000}}) {
      for (const int64_t width : {1, 3, 40}) {
        SCOPED_TRACE(absl::StrCat(DTypeName(dtype), ", ", updates,
                                  " updates of ", width));
        constexpr int64_t kRows = 3000;
        const Tensor x = Numbers(dtype, {kRows, width}, generator);
        const Tensor u = Numbers(dtype, {updates, width}, generator);
        const Tensor indices = Indices(updates, kRows, generator);
        ASSERT_OK_AND_ASSIGN(
            const std::vector<Tensor> want,
            EvalReference(Primitive::kScatter, OfRows("set"), {x, indices, u}));
        Tensor y(dtype, {kRows, width});
        ScatteredRows array = Scattered(indices, u, &y);
        array.combination = RowCombination::kLast;
        array.x = x.data();
        KernelCall call;
        ASSERT_OK(AddRows(array, call));
        EXPECT_TRUE(HasSameBytes(y, want[0]));
      }
    }
  }
}

// Lines that are short, long, few and many.
TEST(AddRows, TakesEachLineByItself) {
  std::mt19937 generator(20261130);
  struct Extents {
    int64_t lines;
    int64_t rows;
    int64_t width;
    int64_t updates;
  };
  for (const Extents& e : std::vector<Extents>{{0, 3, 1, 4},
                                               {3, 5, 1, 0},
                                               {2, 3, 2, 9},
                                               {300, 50, 1, 20},
                                               {300, 7, 3, 11},
                                               {3, 3000, 1, 2000},
                                               {20, 40000, 1, 300}}) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32}) {
      for (const char* mode : {"add", "set"}) {
        SCOPED_TRACE(absl::StrCat(DTypeName(dtype), ", ", mode, ", ", e.lines,
                                  " lines of ", e.rows, " rows of ", e.width));
        const std::vector<int64_t> shape = {e.lines, e.rows, e.width};
        const Tensor x = Numbers(dtype, shape, generator);
        const Tensor u =
            Numbers(dtype, {e.lines, e.updates, e.width}, generator);
        Tensor indices(DType::kI64, {e.lines, e.updates, 1});
        for (int64_t i = 0; i < indices.size(); ++i) {
          indices.SetInt(i,
                         static_cast<int64_t>(generator() % (e.rows + 2)) - 1);
        }
        ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                             EvalReference(Primitive::kScatter, OfRows(mode, 1),
                                           {x, indices, u}));
        Tensor y(dtype, shape);
        ScatteredRows array;
        array.dtype = dtype;
        array.combination = absl::string_view(mode) == "set"
                                ? RowCombination::kLast
                                : RowCombination::kSum;
        array.lines = e.lines;
        array.rows = e.rows;
        array.width = e.width;
        array.updates = e.updates;
        array.x = x.data();
        array.indices = reinterpret_cast<const int64_t*>(indices.data());
        array.u = u.data();
        array.y = y.mutable_data();
        KernelCall call;
        ASSERT_OK(AddRows(array, call));
        EXPECT_TRUE(HasSameBytes(y, want[0]));
        if (array.combination == RowCombination::kLast) continue;
        const Tensor base = Numbers(dtype, shape, generator);
        ASSERT_OK_AND_ASSIGN(
            const std::vector<Tensor> sum,
            EvalReference(Primitive::kAdd, {}, {base, want[0]}));
        array.base = base.data();
        ASSERT_OK(AddRows(array, call));
        EXPECT_TRUE(HasSameBytes(y, sum[0]));
      }
    }
  }
}

}  // namespace
}  // namespace cleave::internal_kernel
