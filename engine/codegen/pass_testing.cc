#include "engine/codegen/pass_testing.h"

#include <memory>
#include <vector>

#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gtest/gtest.h"

namespace cleave {

Tensor SmallIntegers(const TensorType& type, int64_t /*input*/) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(*dim.Value());
  Tensor x(type.dtype, shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    x.SetDouble(i, static_cast<double>(i * 7 % 5) - 2);
  }
  return x;
}

std::string CheckPass(
    const std::string& text, const std::function<Graph(const Graph&)>& pass,
    const std::function<Tensor(const TensorType&, int64_t)>& fill) {
  const auto graph = ParseGraph(text, std::make_shared<Context>());
  if (!graph.ok()) {
    ADD_FAILURE() << graph.status();
    return "";
  }
  const Graph rewritten = pass(*graph);
  EXPECT_TRUE(Verify(rewritten).ok()) << Verify(rewritten);
  std::vector<Tensor> inputs;
  for (const NamedValue& input : graph->inputs()) {
    inputs.push_back(
        fill(graph->type(input.value), static_cast<int64_t>(inputs.size())));
  }
  const auto want = Interpret(*graph, inputs);
  const auto got = Interpret(rewritten, inputs);
  if (!want.ok() || !got.ok()) {
    ADD_FAILURE() << want.status() << got.status();
    return "";
  }
  for (size_t i = 0; i < want->size(); ++i) {
    EXPECT_EQ((*got)[i].ToString(), (*want)[i].ToString()) << i;
    // The text of a large tensor leaves elements out.
    EXPECT_TRUE(SameValue((*got)[i], (*want)[i])) << i;
  }
  return PrintGraph(rewritten);
}

}  // namespace cleave
