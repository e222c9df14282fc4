#include "engine/runtime/concatenate_parts.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/runtime/kernel_call.h"
#include "gtest/gtest.h"

namespace cleave::internal_kernel {
namespace {

// Parts of many lengths, none too, over tasks that end within rows and parts.
TEST(ConcatenateParts, PutsEachByteWhereItBelongs) {
  const std::vector<std::vector<int64_t>> lengths = {
      {1},         {3, 5},           {0, 7, 0},        {0, 0},
      {100'003},   {4, 300'001, 12}, {65'536, 65'536}, {1, 1, 1, 1, 2},
      {16, 8, 999}};
  for (const std::vector<int64_t>& row_bytes : lengths) {
    for (const int64_t rows : {0, 1, 2, 33, 20}) {
      std::vector<std::vector<uint8_t>> x;
      std::vector<ConcatenatedPart> parts;
      uint8_t next = 1;
      for (const int64_t bytes : row_bytes) {
        x.emplace_back(bytes * rows);
        for (uint8_t& byte : x.back()) byte = next = next * 5 + 3;
      }
      for (size_t i = 0; i < x.size(); ++i) {
        parts.push_back({x[i].data(), row_bytes[i]});
      }
      std::vector<uint8_t> want;
      for (int64_t row = 0; row < rows; ++row) {
        for (size_t i = 0; i < x.size(); ++i) {
          const auto begin = x[i].begin() + row * row_bytes[i];
          want.insert(want.end(), begin, begin + row_bytes[i]);
        }
      }
      std::vector<uint8_t> y(want.size() + 1, 77);
      KernelCall call;
      ConcatenateParts(parts, rows, y.data(), call);
      EXPECT_EQ(y.back(), 77);
      y.pop_back();
      EXPECT_TRUE(y == want) << rows << " rows of " << row_bytes.size();
    }
  }
}

// The end of each row of 5, and the beginning of each row of another 3.
TEST(ConcatenateParts, TakesPartsOfRows) {
  const std::vector<uint8_t> a = {0, 1, 2, 3, 4, 10, 11, 12, 13, 14};
  const std::vector<uint8_t> b = {20, 21, 22, 30, 31, 32};
  std::vector<uint8_t> y(10);
  KernelCall call;
  ConcatenateParts({{a.data() + 2, 3, 5}, {b.data(), 2, 3}}, 2, y.data(), call);
  EXPECT_EQ(y, (std::vector<uint8_t>{2, 3, 4, 20, 21, 12, 13, 14, 30, 31}));
}

}  // namespace
}  // namespace cleave::internal_kernel
