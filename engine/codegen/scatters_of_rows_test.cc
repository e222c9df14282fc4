#include "engine/codegen/scatters_of_rows.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Indices in range and out of it, updates with axes of their own.
TEST(ScattersOfRows, HaveTheValuesOfScatters) {
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      ParseGraph(
          R"(graph (%i: i64[6, 1], %u: f64[6, 2]) -> (y: f64[6, 3, 2]) {
  %1: f64[] = constant(dtype: f64, value: 0.0)
  %2: f64[6, 3, 2] = broadcast_in_dim(%1, axes: [], shape: [6, 3, 2])
  %3: f64[6, 3, 2] = scatter(%2, %i, %u, axes: [1], batch: 1, mode: "add")
  return y = %3
})",
          std::make_shared<Context>()));
  const Graph choices = ScattersOfRows(graph);
  EXPECT_THAT(PrintGraph(choices), Not(HasSubstr("scatter(")));
  Tensor indices(DType::kI64, {6, 1});
  // The last one is 2 in 32 bits.
  const int64_t places[] = {0, 2, -1, 3, 1, -(int64_t{1} << 32) + 2};
  for (int i = 0; i < 6; ++i) indices.SetInt(i, places[i]);
  Tensor updates(DType::kF64, {6, 2});
  for (int i = 0; i < 12; ++i) updates.SetDouble(i, i - 0.5);
  updates.SetDouble(0, -0.0);
  updates.SetDouble(3, std::numeric_limits<double>::infinity());
  updates.SetDouble(6, std::numeric_limits<double>::quiet_NaN());
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                       Interpret(graph, {indices, updates}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                       Interpret(choices, {indices, updates}));
  EXPECT_EQ(got[0].ToString(), want[0].ToString());
}

// Several updates of a row, and what is added to other numbers than zeros.
TEST(ScattersOfRows, LeaveOthers) {
  for (const char* text :
       {R"(graph (%i: i64[6, 2, 1], %u: f64[6, 2]) -> (y: f64[6, 3]) {
  %1: f64[] = constant(dtype: f64, value: 0.0)
  %2: f64[6, 3] = broadcast_in_dim(%1, axes: [], shape: [6, 3])
  %3: f64[6, 3] = scatter(%2, %i, %u, axes: [1], batch: 1, mode: "add")
  return y = %3
}
)",
        R"(graph (%x: f64[6, 3], %i: i64[6, 1], %u: f64[6]) -> (y: f64[6, 3]) {
  %1: f64[6, 3] = scatter(%x, %i, %u, axes: [1], batch: 1, mode: "add")
  return y = %1
}
)"}) {
    ASSERT_OK_AND_ASSIGN(const Graph graph,
                         ParseGraph(text, std::make_shared<Context>()));
    EXPECT_EQ(PrintGraph(ScattersOfRows(graph)), text);
  }
}

}  // namespace
}  // namespace cleave
