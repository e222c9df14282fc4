#include "testing/debug/debug.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/graph_text.h"
#include "ops/budget.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"
#include "testing/debug/element_error.h"
#include "testing/debug/loop_step.h"

namespace cleave {
namespace {

// As PrintGraph names them: inputs by their names, other nodes by their place.
std::vector<std::string> NamesOf(const Graph& graph) {
  std::vector<std::string> names(graph.size());
  for (const NamedValue& input : graph.inputs()) {
    names[input.value.id] = absl::StrCat("%", input.name);
  }
  int64_t number = 0;
  for (std::string& name : names) {
    if (name.empty()) name = absl::StrCat("%", ++number);
  }
  return names;
}

bool IsInput(const Graph& graph, Value v) {
  return graph.node(v).op == ToOpId(Primitive::kInput);
}

std::string OperationOf(const Graph& graph, Value v,
                        const std::vector<std::string>& names) {
  if (IsInput(graph, v)) return "";
  std::vector<std::string> arguments;
  for (const Value operand : graph.operands(v)) {
    arguments.push_back(names[operand.id]);
  }
  for (const auto& [name, value] : graph.attributes(v).values()) {
    arguments.push_back(absl::StrCat(name, ": ",
                                     value.kind() == StaticValue::Kind::kRegion
                                         ? "graph (..)"
                                         : PrintAttribute(value)));
  }
  return absl::StrCat(graph.context()->op_name(graph.node(v).op), "(",
                      absl::StrJoin(arguments, ", "), ")");
}

int64_t ElementAt(const std::vector<int64_t>& shape,
                  const std::vector<int64_t>& index) {
  int64_t element = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    element = element * shape[d] + index[d];
  }
  return element;
}

// One graph at one point.
class Debugger {
 public:
  Debugger(const Graph& graph, const NodeValues& values,
           const DebugOptions& options)
      : graph_(graph),
        values_(values),
        options_(options),
        names_(NamesOf(graph)) {}

  absl::StatusOr<DebugReport> Run() {
    DebugReport report;
    report.ulp = options_.ulp;
    report.absolute = options_.absolute;
    report.bits = values_.bits;
    CLEAVE_RETURN_IF_ERROR(CheckAsked());
    for (const NamedValue& output : graph_.outputs()) {
      if (!options_.output.empty() && output.name != options_.output) continue;
      CLEAVE_ASSIGN_OR_RETURN(DebugOutput found, Judge(output));
      report.outputs.push_back(std::move(found));
    }
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      CLEAVE_RETURN_IF_ERROR(PollBudget());
      if (options_.progress) {
        options_.progress(
            absl::StrCat("errors of node ", id, " of ", graph_.size()));
      }
      CLEAVE_ASSIGN_OR_RETURN(DebugRow row, RowOf(Value{id}));
      report.rows.push_back(std::move(row));
    }
    return report;
  }

 private:
  const NodeValue& At(Value v) const { return values_.nodes[v.id]; }
  const std::vector<int64_t>& ShapeOf(Value v) const {
    return At(v).computed[0].shape();
  }

  absl::Status CheckAsked() {
    const std::vector<NamedValue>& outputs = graph_.outputs();
    auto asked = outputs.begin();
    if (!options_.output.empty()) {
      asked = std::find_if(outputs.begin(), outputs.end(),
                           [&](const NamedValue& output) {
                             return output.name == options_.output;
                           });
      if (asked == outputs.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "there is no output `", options_.output, "`: ",
            absl::StrJoin(outputs, ", ",
                          [](std::string* out, const NamedValue& output) {
                            absl::StrAppend(out, output.name);
                          })));
      }
    }
    if (!options_.element) return absl::OkStatus();
    if (options_.output.empty() && outputs.size() > 1) {
      return absl::InvalidArgumentError(
          "an element of which output? there are several");
    }
    const std::vector<int64_t>& shape = ShapeOf(asked->value);
    bool inside = options_.element->size() == shape.size();
    for (size_t d = 0; inside && d < shape.size(); ++d) {
      inside = (*options_.element)[d] >= 0 && (*options_.element)[d] < shape[d];
    }
    if (!inside) {
      return absl::InvalidArgumentError(absl::StrCat(
          "there is no element [", absl::StrJoin(*options_.element, ", "),
          "] of `", asked->name, "`, ",
          At(asked->value).computed[0].type().ToString()));
    }
    asked_shape_ = shape;
    return absl::OkStatus();
  }

  std::optional<int64_t> ShownElement(Value v) const {
    const auto it = on_the_way_.find(v.id);
    return it != on_the_way_.end() ? it->second : AskedElement(v);
  }

  // The one that is asked about, or the worst.
  std::optional<int64_t> AskedElement(Value v) const {
    const Tensor& tensor = At(v).computed[0];
    if (asked_shape_ && tensor.shape() == *asked_shape_) {
      return ElementAt(*asked_shape_, *options_.element);
    }
    const std::optional<int64_t> worst = WorstElement(At(v), 0);
    if (worst || tensor.size() == 0) return worst;
    return 0;
  }

  DebugStep StepOf(const CauseStep& step) const {
    return {step.place.node.id,
            IndexOf(ShapeOf(step.place.node), step.place.element), step.error};
  }

  absl::StatusOr<DebugOutput> Judge(const NamedValue& output) {
    DebugOutput found;
    found.name = output.name;
    found.row = output.value.id;
    const NodeValue& node = At(output.value);
    const bool other_shape = node.exact[0].shape != node.computed[0].shape();
    std::optional<int64_t> element;
    ElementError error;
    if (other_shape) {
      element = 0;
      error = ElementError::Infinite();
    } else {
      element = AskedElement(output.value);
      if (!element) return found;
      const auto known = ErrorOf(node, 0, *element);
      if (!known) return found;
      error = *known;
    }
    found.worst = DebugStep{output.value.id,
                            IndexOf(ShapeOf(output.value), *element), error};
    found.off =
        !(error.ulp <= options_.ulp) && !(error.absolute <= options_.absolute);
    if (!found.off) return found;
    CLEAVE_ASSIGN_OR_RETURN(
        const Cause cause,
        FindCause(graph_, values_, {output.value, *element}, options_.ulp));
    for (const CauseStep& step : cause.path) {
      on_the_way_.emplace(step.place.node.id, step.place.element);
    }
    CLEAVE_ASSIGN_OR_RETURN(found.cause, Explain(cause));
    return found;
  }

  std::string Shown(DebugPlace place) const {
    const std::vector<int64_t>& shape = ShapeOf(place.node);
    if (shape.empty()) return names_[place.node.id];
    return absl::StrCat(names_[place.node.id], "[",
                        absl::StrJoin(IndexOf(shape, place.element), ","), "]");
  }

  // "1, exactly 0.99999999500".
  std::string BothValues(DebugPlace place) const {
    const NodeValue& node = At(place.node);
    if (node.exact[0].shape != node.computed[0].shape()) {
      return "of another shape than its exact value";
    }
    return absl::StrCat(ElementText(node.computed[0], place.element),
                        ", exactly ",
                        ElementText(node.exact[0], place.element));
  }

  std::string Message(const Cause& cause) const {
    const CauseStep& step = cause.first_off();
    const NodeValue& node = At(step.place.node);
    const DType dtype = node.computed[0].dtype();
    const std::string operand = step.operand
                                    ? absl::StrCat(Shown(*step.operand), " is ",
                                                   BothValues(*step.operand))
                                    : "";
    switch (cause.finding) {
      case Finding::kCancellation:
      case Finding::kIllConditioned:
        if (IsFloat(dtype) &&
            mpfr_zero_p(node.exact[0].reals[step.place.element].get())) {
          return absl::StrCat(
              "its exact value is 0, and what is left is an "
              "error of ",
              ErrorText(step.operand_error.ulp), " ulp in ",
              Shown(*step.operand));
        }
        return absl::StrCat("an error of ", ErrorText(step.operand_error.ulp),
                            " ulp in ", Shown(*step.operand), " is one of ",
                            ErrorText(step.error.ulp), " ulp here");
      case Finding::kOverflow:
        return absl::StrCat(
            "its exact value, ", ElementText(node.exact[0], step.place.element),
            ", is beyond the largest ", DTypeName(dtype), ", ",
            ElementText(Tensor::Scalar(dtype, LargestFinite(dtype)), 0));
      case Finding::kUnderflow:
        return absl::StrCat(
            "its exact value, ", ElementText(node.exact[0], step.place.element),
            ", is below the normal numbers of ", DTypeName(dtype), ", ",
            ElementText(Tensor::Scalar(dtype, SmallestNormal(dtype)), 0),
            " and above");
      case Finding::kNotFinite:
      case Finding::kDecision:
        return absl::StrCat("it is ", BothValues(step.place), "; ", operand);
      case Finding::kOwnError:
        return absl::StrCat(ErrorText(step.own.ulp),
                            " ulp on the very operands that it was given");
      case Finding::kAccumulated:
        return absl::StrCat(
            "errors add up from node to node, none four times that of its "
            "operand, here ",
            ErrorText(step.operand_error.ulp), " ulp in ",
            Shown(*step.operand));
      case Finding::kBroughtIn:
        return absl::StrCat("it is ", BothValues(step.place));
    }
    return "";
  }

  absl::StatusOr<DebugCause> Explain(const Cause& cause) {
    DebugCause explained;
    explained.finding = cause.finding;
    explained.first = cause.first;
    explained.jumps = cause.jumps;
    explained.condition = cause.condition;
    explained.message = Message(cause);
    for (const CauseStep& step : cause.path) {
      explained.path.push_back(StepOf(step));
    }
    CLEAVE_RETURN_IF_ERROR(LookInside(cause.first_off().place, explained));
    return explained;
  }

  // Adds the step in which a loop or a branch goes wrong.
  absl::Status LookInside(DebugPlace place, DebugCause& explained) {
    Value node = place.node;
    int result = 0;
    if (graph_.node(node).op == ToOpId(Primitive::kResult)) {
      result = static_cast<int>(graph_.attributes(node).GetInt("index"));
      node = graph_.operands(node)[0];
    }
    if (ClassOf(ToPrimitive(graph_.node(node).op)) !=
            PrimitiveClass::kControl ||
        !At(node).no_exact_value.empty()) {
      return absl::OkStatus();
    }
    const auto found = FindLoopStep(graph_, values_, node, result,
                                    place.element, options_.ulp);
    if (EndsCall(found.status())) return found.status();
    if (!found.ok() || !found->has_value()) return absl::OkStatus();
    const LoopStep* const step = &**found;
    const Graph& body = *step->region.graph;
    CLEAVE_ASSIGN_OR_RETURN(
        const NodeValues values,
        ComputeNodes(body, step->computed, step->exact, values_.computed_dims,
                     values_.bits, options_.progress));
    DebugOptions options = options_;
    options.output = body.outputs()[step->output].name;
    options.element.reset();
    CLEAVE_ASSIGN_OR_RETURN(DebugReport inside, Deeper([&] {
                              return Debugger(body, values, options).Run();
                            }));
    explained.inside_name = absl::StrCat(step->name, " of ", names_[node.id]);
    explained.inside = std::make_shared<DebugReport>(std::move(inside));
    return absl::OkStatus();
  }

  absl::StatusOr<DebugRow> RowOf(Value v) {
    DebugRow row;
    row.name = names_[v.id];
    row.operation = OperationOf(graph_, v, names_);
    const Provenance& p =
        graph_.context()->provenance(graph_.node(v).provenance);
    row.rule = p.rule;
    row.file = p.file;
    row.line = p.line;
    row.type = absl::StrJoin(graph_.types(v), ", ",
                             [](std::string* out, const TensorType& type) {
                               absl::StrAppend(out, type.ToString());
                             });
    const NodeValue& node = At(v);
    row.no_exact_value = node.no_exact_value;
    if (node.computed.size() != 1) return row;
    row.type = node.computed[0].type().ToString();
    if (node.exact[0].shape != node.computed[0].shape()) {
      row.no_exact_value = absl::StrCat(
          "its exact value is [", absl::StrJoin(node.exact[0].shape, ", "),
          "], of another shape");
      return row;
    }
    const std::optional<int64_t> element = ShownElement(v);
    if (!element) return row;
    row.index = IndexOf(ShapeOf(v), *element);
    row.computed = ElementText(node.computed[0], *element);
    row.exact = ElementText(node.exact[0], *element);
    row.error = ErrorOf(node, 0, *element);
    if (!row.error) {
      row.no_exact_value =
          absl::StrCat("it does not settle within ", values_.bits, " bits");
      return row;
    }
    const DebugPlace place{v, *element};
    CLEAVE_ASSIGN_OR_RETURN(const std::optional<RealTensor> local,
                            ExactOnComputed(graph_, values_, place));
    if (local) {
      row.own = ErrorOf(*local, ElementOf(node.computed[0], *element), 0);
      if (IsFloat(local->dtype)) {
        row.inherited_ulp = UlpsBetween(
            local->reals[0], node.exact[0].reals[*element], local->dtype);
      }
    }
    CLEAVE_ASSIGN_OR_RETURN(row.condition, ConditionOf(graph_, values_, place));
    return row;
  }

  const Graph& graph_;
  const NodeValues& values_;
  const DebugOptions& options_;
  const std::vector<std::string> names_;
  std::optional<std::vector<int64_t>> asked_shape_;
  // The elements on the way from an output to the first node that is off.
  std::map<uint32_t, int64_t> on_the_way_;
};

}  // namespace

absl::StatusOr<DebugReport> DebugGraph(const Graph& graph,
                                       absl::Span<const Tensor> inputs,
                                       const DebugOptions& options) {
  const BudgetScope scope;
  CLEAVE_ASSIGN_OR_RETURN(const NodeValues values,
                          ComputeNodes(graph, inputs, options.progress));
  return Debugger(graph, values, options).Run();
}

bool DebugReport::off() const {
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const DebugOutput& output) { return output.off; });
}

}  // namespace cleave
