#include "testing/check/layers/shape_decides.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/ir/graph_text.h"
#include "ops/dtype.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

// Moves elements to where a pointwise node reads them.
bool IsSpread(Primitive primitive) {
  return primitive == Primitive::kBroadcastInDim ||
         primitive == Primitive::kReshape;
}

bool IsNumber(Primitive primitive) {
  return primitive == Primitive::kConstant || primitive == Primitive::kExtent;
}

// The attributes, but for those that are the shape's.
std::string TextOf(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes.values()) {
    if (name == "shape") continue;
    absl::StrAppend(&text, " ", name, " ", PrintAttribute(value));
  }
  return text;
}

// How an element of the results is computed of those of the inputs, by hashes
// of the expressions: equal whatever the order of the nodes is. Nullopt where
// it is computed of several elements.
std::optional<std::vector<size_t>> WorkOfElement(const Graph& graph) {
  std::vector<size_t> work(graph.size());
  std::vector<bool> done(graph.size());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const uint32_t id = graph.inputs()[i].value.id;
    work[id] = absl::HashOf(i);
    done[id] = true;
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    if (done[id]) continue;
    const OpId op = graph.node(v).op;
    if (!IsPrimitive(op)) return std::nullopt;
    const Primitive primitive = ToPrimitive(op);
    const absl::Span<const Value> operands = graph.operands(v);
    if (IsSpread(primitive)) {
      work[id] = work[operands[0].id];
      continue;
    }
    if (ClassOf(primitive) != PrimitiveClass::kPointwise &&
        !IsNumber(primitive)) {
      return std::nullopt;
    }
    work[id] = absl::HashOf(primitive, TextOf(graph.attributes(v)));
    for (const Value operand : operands) {
      work[id] = absl::HashOf(work[id], work[operand.id]);
    }
  }
  std::vector<size_t> outputs;
  for (const NamedValue& output : graph.outputs()) {
    outputs.push_back(work[output.value.id]);
  }
  return outputs;
}

// The dtypes, attributes and inputs of a call: all but its shapes.
std::string KindOf(const PreparedCall& call) {
  std::string text = TextOf(call.call.attributes);
  absl::StrAppend(&text, TextOf(call.call.statics));
  for (const auto& [name, dtype] : call.call.dtypes) {
    absl::StrAppend(&text, " ", name, " ", DTypeName(dtype));
  }
  for (const std::string& name : call.call.OperandNames()) {
    absl::StrAppend(&text, " ", name);
  }
  for (const TensorType& type : call.call.OperandTypes()) {
    absl::StrAppend(&text, " ", DTypeName(type.dtype));
  }
  return text;
}

}  // namespace

std::vector<PreparedCall> CallsThatShapesDecide(const PreparedCalls& prepared) {
  std::map<std::string, std::vector<size_t>> work_of;
  std::vector<const PreparedCall*> found;
  bool differ = false;
  for (const auto* calls : {&prepared.calls, &prepared.large}) {
    for (const PreparedCall& call : *calls) {
      std::optional<std::vector<size_t>> work = WorkOfElement(call.graphs.body);
      if (!work.has_value()) continue;
      const auto [it, added] = work_of.emplace(KindOf(call), *work);
      differ |= !added && it->second != *work;
      // Points at [n] are met as such.
      if (prepared.elementwise && calls == &prepared.calls) continue;
      found.push_back(&call);
    }
  }
  std::vector<PreparedCall> result;
  if (!differ) return result;
  for (const PreparedCall* call : found) result.push_back(*call);
  return result;
}

}  // namespace cleave
