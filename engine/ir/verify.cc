#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/infer_node.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  absl::Status Run() {
    if (graph_.context() == nullptr) {
      return absl::InternalError("a graph without a context");
    }
    CLEAVE_RETURN_IF_ERROR(CheckInputs());
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      CLEAVE_RETURN_IF_ERROR(CheckNode(Value{id}));
    }
    absl::flat_hash_set<std::string> names;
    for (const NamedValue& output : graph_.outputs()) {
      if (output.value.id >= graph_.size()) {
        return Fail(output.value, absl::StrCat("the output ", output.name,
                                               " is no node of the graph"));
      }
      if (graph_.types(output.value).size() != 1) {
        return Fail(output.value,
                    absl::StrCat("the output ", output.name, " is a tuple"));
      }
      if (!names.insert(output.name).second) {
        return Fail(output.value,
                    absl::StrCat("two outputs are named ", output.name));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Fail(Value v, absl::string_view message) const {
    std::string place = absl::StrCat("node ", v.id);
    if (v.id < graph_.size()) {
      absl::StrAppend(&place, " (",
                      graph_.context()->op_name(graph_.node(v).op), ")");
    }
    return absl::InternalError(absl::StrCat(place, ": ", message));
  }

  absl::Status CheckInputs() {
    absl::flat_hash_set<std::string> names;
    for (const NamedValue& input : graph_.inputs()) {
      const Value v = input.value;
      if (v.id >= graph_.size() ||
          graph_.node(v).op != ToOpId(Primitive::kInput)) {
        return Fail(v, absl::StrCat("the input ", input.name,
                                    " is no input node of the graph"));
      }
      if (!names.insert(input.name).second) {
        return Fail(v, absl::StrCat("two inputs are named ", input.name));
      }
      if (!inputs_.insert(v).second) {
        return Fail(v,
                    absl::StrCat("the input ", input.name, " is listed twice"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckNode(Value v) {
    const Node& node = graph_.node(v);
    for (Value operand : graph_.operands(v)) {
      if (operand.id >= v.id) {
        return Fail(v, absl::StrCat("the operand ", operand.id,
                                    " does not precede it"));
      }
    }
    if (!IsPrimitive(node.op)) return absl::OkStatus();
    if (node.op == ToOpId(Primitive::kInput)) {
      if (inputs_.contains(v)) return absl::OkStatus();
      return Fail(v, "it is not among the inputs: the graph is not closed");
    }
    std::vector<uint32_t> key = {node.op, node.attributes};
    for (Value operand : graph_.operands(v)) {
      key.push_back(graph_.node(operand).type);
    }
    auto [it, inserted] = types_.try_emplace(std::move(key), 0);
    if (inserted) {
      CLEAVE_RETURN_IF_ERROR(CheckRegions(v));
      CLEAVE_ASSIGN_OR_RETURN(it->second, Infer(v, it->first));
    }
    if (it->second != node.type) {
      return Fail(v,
                  absl::StrCat("it has the type ", TypesOf(node.type),
                               ", but inference gives ", TypesOf(it->second)));
    }
    return absl::OkStatus();
  }

  std::string TypesOf(TypeId id) const {
    std::string text;
    for (const TensorType& type : graph_.context()->types(id)) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", type.ToString());
    }
    return text;
  }

  absl::StatusOr<TypeId> Infer(Value v, const std::vector<uint32_t>& key) {
    const Node& node = graph_.node(v);
    absl::StatusOr<InferredType> inferred =
        InferNode(*graph_.context(), ToPrimitive(node.op), graph_.attributes(v),
                  absl::MakeConstSpan(key).subspan(2));
    if (!inferred.ok()) return Fail(v, inferred.status().message());
    for (const ShapeGuard& guard : inferred->guards) {
      const bool found = std::any_of(
          graph_.guards().begin(), graph_.guards().end(),
          [&](const ShapeGuard& g) {
            return g.op == guard.op && g.lhs == guard.lhs && g.rhs == guard.rhs;
          });
      if (!found) {
        return Fail(
            v, absl::StrCat("its guard on ", guard.lhs.ToString(), " and ",
                            guard.rhs.ToString(), " is missing: ", guard.why));
      }
    }
    return graph_.context()->Intern(inferred->results);
  }

  absl::Status CheckRegions(Value v) {
    for (const auto& [name, value] : graph_.attributes(v).values()) {
      if (value.kind() != StaticValue::Kind::kRegion) continue;
      const Region& region = value.AsRegion();
      if (region.graph == nullptr) {
        return Fail(v, absl::StrCat("the region `", name, "` is empty"));
      }
      if (region.graph->owns_context()) {
        return Fail(v, absl::StrCat("the region `", name,
                                    "` owns its context: MakeRegion makes one "
                                    "that does not"));
      }
      if (region.graph->context() != graph_.context()) {
        return Fail(
            v, absl::StrCat("the region `", name, "` is of another context"));
      }
      absl::Status status = Verify(*region.graph);
      if (!status.ok()) {
        return Fail(
            v, absl::StrCat("in the region `", name, "`: ", status.message()));
      }
      if (region.text != PrintGraph(*region.graph)) {
        return Fail(v, absl::StrCat("the text of the region `", name,
                                    "` is not that of its graph"));
      }
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  absl::flat_hash_set<Value> inputs_;
  // (primitive, attributes, operand types) -> result types, each inferred once.
  absl::flat_hash_map<std::vector<uint32_t>, TypeId> types_;
};

}  // namespace

absl::Status Verify(const Graph& graph) { return Verifier(graph).Run(); }

}  // namespace cleave
