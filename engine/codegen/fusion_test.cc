// Which nodes share a kernel, and the graphs of the groups, as goldens; and for
// each of those graphs that the plan holds what it promises and that its
// groups, run one by one, give the bits of the whole.

#include "engine/codegen/fusion.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/codegen/collapse_axes.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/ir/substitute.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/golden_file.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

absl::StatusOr<Graph> Parse(absl::string_view text) {
  return ParseGraph(text, std::make_shared<Context>());
}

Tensor Reshaped(const Tensor& tensor, const Shape& shape) {
  std::vector<int64_t> extents;
  for (const Dim& dim : shape) extents.push_back(*dim.Value());
  Tensor result(tensor.dtype(), extents);
  EXPECT_EQ(result.byte_size(), tensor.byte_size());
  std::copy(tensor.data(), tensor.data() + tensor.byte_size(),
            result.mutable_data());
  return result;
}

std::string Failure(const absl::Status& status) {
  return absl::StrCat(status.ToString(), "\n");
}

// The graph for one kernel: what is compiled, or interpreted.
Graph KernelGraph(const FusionGroup& group, const ExtractedGroup& extracted) {
  return !HasCode(group.kind) ? extracted.graph
                              : *CollapseAxes(extracted.graph);
}

// A node is in one group, behind the groups that it reads, but for what tables
// are made of, each for itself, and what is computed again rather than stored;
// an edge between groups has one reason, and no other has.
void ExpectSound(const Graph& graph, const FusionPlan& plan) {
  std::map<Value, size_t> group_of;
  std::set<Value> outputs;
  std::set<Value> repeated;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const bool table = plan.groups[g].kind == GroupKind::kTable;
    for (const Value v :
         table ? plan.groups[g].outputs : plan.groups[g].nodes) {
      if (!group_of.emplace(v, g).second) repeated.insert(v);
    }
    for (const Value v : plan.groups[g].outputs) {
      EXPECT_TRUE(outputs.insert(v).second) << "%" << v.id << " is twice";
    }
  }
  for (const Value v : repeated) {
    const Primitive primitive = ToPrimitive(graph.node(v).op);
    EXPECT_EQ(ClassOf(primitive), PrimitiveClass::kPointwise) << "%" << v.id;
    EXPECT_EQ(outputs.count(v), 0u) << "%" << v.id << " is stored, too";
  }
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    for (const Value source : ExtractGroup(graph, plan.groups[g]).inputs) {
      const auto producer = group_of.find(source);
      if (producer == group_of.end()) continue;  // an input of the graph
      EXPECT_LT(producer->second, g) << "%" << source.id;
      EXPECT_EQ(outputs.count(source), 1u) << "%" << source.id;
    }
  }
  std::set<std::pair<Value, Value>> edges;
  for (const FusionBoundary& boundary : plan.boundaries) {
    EXPECT_TRUE(edges.insert({boundary.producer, boundary.consumer}).second);
    EXPECT_NE(group_of.at(boundary.producer), group_of.at(boundary.consumer));
    EXPECT_FALSE(boundary.why.empty());
  }
}

// The groups of the graph at small extents, interpreted one by one.
void ExpectSameBits(const Graph& symbolic) {
  DimSubstitution extents;
  int64_t next = 3;
  for (const char* name : {"m", "n", "k", "b"}) {
    extents.emplace(name, Dim(next++));
  }
  const Graph graph = *SubstituteDims(symbolic, extents);
  std::vector<Tensor> inputs;
  std::map<Value, Tensor> values;
  for (const NamedValue& input : graph.inputs()) {
    const TensorType& type = graph.type(input.value);
    std::vector<int64_t> shape;
    for (const Dim& dim : type.shape) shape.push_back(*dim.Value());
    Tensor tensor(type.dtype, shape);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (IsFloat(type.dtype)) {
        tensor.SetDouble(i, static_cast<double>(i * 7 % 11) / 4 - 1);
      } else {
        tensor.SetInt(i, i * 7 % 3);
      }
    }
    values[input.value] = tensor;
    inputs.push_back(std::move(tensor));
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                       Interpret(graph, inputs));
  ASSERT_OK_AND_ASSIGN(const FusionPlan plan, PlanFusion(graph));
  ExpectSound(graph, plan);
  for (const FusionGroup& group : plan.groups) {
    const ExtractedGroup extracted = ExtractGroup(graph, group);
    const Graph kernel = KernelGraph(group, extracted);
    ASSERT_OK(Verify(extracted.graph));
    ASSERT_OK(Verify(kernel)) << PrintGraph(kernel);
    std::vector<Tensor> reads;
    for (size_t i = 0; i < extracted.inputs.size(); ++i) {
      reads.push_back(Reshaped(values.at(extracted.inputs[i]),
                               kernel.type(kernel.inputs()[i].value).shape));
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                         Interpret(kernel, reads));
    for (size_t i = 0; i < results.size(); ++i) {
      const Value output = group.outputs[i];
      values[output] = Reshaped(results[i], graph.type(output).shape);
    }
  }
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(SameValue(values.at(graph.outputs()[i].value), want[i]))
        << graph.outputs()[i].name;
  }
}

TEST(PlanFusion, Golden) {
  TestGoldenFile("engine/codegen/testdata/fusion/plan.golden",
                 [](absl::string_view text) -> std::string {
                   const auto graph = Parse(text);
                   if (!graph.ok()) return Failure(graph.status());
                   const auto plan = PlanFusion(*graph);
                   if (!plan.ok()) return Failure(plan.status());
                   ExpectSound(*graph, *plan);
                   ExpectSameBits(*graph);
                   return PrintFusionPlan(*graph, *plan);
                 });
}

// The graph of each group, its axes collapsed.
std::string ExtractAll(absl::string_view text, const ExtractOptions& options) {
  const auto graph = Parse(text);
  if (!graph.ok()) return Failure(graph.status());
  const auto plan = PlanFusion(*graph);
  if (!plan.ok()) return Failure(plan.status());
  ExpectSameBits(*graph);
  std::string result;
  for (const FusionGroup& group : plan->groups) {
    const ExtractedGroup extracted = ExtractGroup(*graph, group, options);
    for (size_t i = 0; i < extracted.inputs.size(); ++i) {
      absl::StrAppend(&result, "x", i, " = %", extracted.inputs[i].id, "\n");
    }
    for (size_t i = 0; i < extracted.dims.size(); ++i) {
      absl::StrAppend(&result, "d", i, " = ", extracted.dims[i].ToString(),
                      "\n");
    }
    absl::StrAppend(&result, PrintGraph(KernelGraph(group, extracted)));
  }
  return result;
}

TEST(ExtractGroup, Golden) {
  TestGoldenFile("engine/codegen/testdata/fusion/extract.golden",
                 [](absl::string_view text) { return ExtractAll(text, {}); });
}

TEST(ExtractGroup, AllSizesGolden) {
  ExtractOptions options;
  options.generalize_extents = true;
  TestGoldenFile(
      "engine/codegen/testdata/fusion/all_sizes.golden",
      [&](absl::string_view text) { return ExtractAll(text, options); });
}

TEST(PlanFusion, CompositeNodesAreNotPlanned) {
  auto context = std::make_shared<Context>();
  GraphBuilder builder(context);
  const Value x = builder.Input("x", {DType::kF32, {Dim::Variable("n")}});
  const Value y = builder.AddTyped(
      context->InternOp("softmax"), context->Intern(Attributes()),
      context->Intern(builder.type(x)), {x}, ProvenanceId{});
  const Graph graph = *std::move(builder).Build({{"y", y}});
  EXPECT_EQ(PlanFusion(graph).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// A plan of many nodes takes no time to speak of, and its kernels stay small
// enough to be compiled.
TEST(PlanFusion, LongChains) {
  std::string text = "graph (%x: f32[n]) -> (y: f32[n]) {\n";
  constexpr int kLength = 5000;
  for (int i = 1; i <= kLength; ++i) {
    absl::StrAppend(&text, "  %", i, ": f32[n] = exp(",
                    i == 1 ? "%x" : absl::StrCat("%", i - 1), ")\n");
  }
  absl::StrAppend(&text, "  return y = %", kLength, "\n}\n");
  ASSERT_OK_AND_ASSIGN(const Graph graph, Parse(text));
  ASSERT_OK_AND_ASSIGN(const FusionPlan plan, PlanFusion(graph));
  ExpectSound(graph, plan);
  EXPECT_GT(plan.groups.size(), 1u);
  size_t nodes = 0;
  for (const FusionGroup& group : plan.groups) {
    EXPECT_LE(group.nodes.size(), 1000u);
    nodes += group.nodes.size();
  }
  EXPECT_EQ(nodes, static_cast<size_t>(kLength));
}

}  // namespace
}  // namespace cleave
