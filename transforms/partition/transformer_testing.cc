#include "transforms/partition/transformer_testing.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/ir/substitute.h"
#include "ops/status_macros.h"
#include "transforms/testing/test_rules.h"

namespace cleave::aot {
namespace {

constexpr char kBlock[] = "tools/examples/transformer_block.rules";

}  // namespace

std::shared_ptr<const RuleSet> LoadTransformer(
    const std::shared_ptr<Context>& context, DType dtype) {
  const std::string text = absl::StrReplaceAll(
      ReadText(kBlock), {{"f32", std::string(DTypeName(dtype))}});
  return LoadTestRules(context, text, {"core"});
}

absl::StatusOr<Graph> Transformer(const RuleSet& rules,
                                  const TransformerSizes& sizes) {
  CLEAVE_ASSIGN_OR_RETURN(const Graph symbolic,
                          rules.Function("transformer_block"));
  const Graph block =
      *SubstituteDims(symbolic, {{"B", Dim(sizes.batch)},
                                 {"T", Dim(sizes.time)},
                                 {"D", Dim(sizes.width)},
                                 {"H", Dim(sizes.heads)},
                                 {"E", Dim(sizes.width / sizes.heads)},
                                 {"M", Dim(sizes.mlp)}});
  const std::vector<NamedValue>& inputs = block.inputs();
  GraphBuilder builder(rules.context());
  std::vector<std::vector<Value>> arguments(sizes.layers);
  for (int layer = 0; layer < sizes.layers; ++layer) {
    for (size_t i = 0; i + 1 < inputs.size(); ++i) {
      arguments[layer].push_back(
          builder.Input(absl::StrCat(inputs[i].name, ".", layer),
                        block.type(inputs[i].value)));
    }
  }
  Value x = builder.Input("x", block.type(inputs.back().value));
  for (std::vector<Value>& weights : arguments) {
    weights.push_back(x);
    x = builder.Inline(block, weights)[0];
  }
  return *std::move(builder).Build({{"y", x}});
}

}  // namespace cleave::aot
