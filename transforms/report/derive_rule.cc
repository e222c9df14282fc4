#include "transforms/report/derive_rule.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "engine/bind/builtins.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/simplify.h"
#include "engine/rule_text/graph_to_rule.h"
#include "engine/rules/call_of.h"
#include "engine/rules/call_search.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp.h"
#include "transforms/table/emit.h"
#include "transforms/table/names.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

// The ops called in the graph and its regions that rule text cannot call: those
// of hosts, and batches of ops.
void CollectUnwritable(const Graph& graph, const RuleSet& rules,
                       std::set<std::string>& ops) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const OpId op = graph.node(Value{id}).op;
    if (!IsPrimitive(op)) {
      const std::string name(graph.context()->op_name(op));
      const Item* item = rules.Find(name);
      if (IsBatchCall(name) ||
          (item != nullptr &&
           (item->kind == ItemKind::kAten || item->kind == ItemKind::kOnnx))) {
        ops.insert(name);
      }
      continue;
    }
    for (const auto& [name, value] : graph.attributes(Value{id}).values()) {
      if (value.kind() == StaticValue::Kind::kRegion) {
        CollectUnwritable(*value.AsRegion().graph, rules, ops);
      }
    }
  }
}

// The graph with such calls replaced by their bodies.
absl::StatusOr<Graph> WithWritableCalls(Graph graph, const RuleSet& rules) {
  for (;;) {
    ExpandOptions options;
    CollectUnwritable(graph, rules, options.only.emplace());
    if (options.only->empty()) return graph;
    CLEAVE_ASSIGN_OR_RETURN(graph, Expand(graph, rules, options));
  }
}

// The function that the rules are about, and the words of its overrides.
struct Subject {
  std::string name;
  Graph graph;
  WrittenOp written;  // without overrides

  const std::string& input(size_t i) const { return written.input_names[i]; }
};

GraphToOpOptions Documented(std::string doc) {
  GraphToOpOptions options;
  options.docs.push_back(std::move(doc));
  options.is_def = true;
  return options;
}

// A call of a written rule, its graph's inputs being called `arguments` here,
// and its extents `sizes` where they are not called as there.
std::string CallText(absl::string_view op, const WrittenOp& rule,
                     const std::vector<std::string>& arguments,
                     const std::map<std::string, std::string>& sizes = {}) {
  std::vector<std::string> parts;
  for (int i : rule.inputs) parts.push_back(arguments[i]);
  for (const std::string& size : rule.sizes) {
    const auto known = sizes.find(size);
    parts.push_back(known == sizes.end() ? size : known->second);
  }
  return absl::StrCat(op, "(", absl::StrJoin(parts, ", "), ")");
}

// Result number `i` of a call, which has one result or a record of them.
std::string Part(const std::string& call, const WrittenOp& rule, size_t i) {
  return rule.results.size() == 1 ? call
                                  : absl::StrCat(call, ".", rule.results[i]);
}

// Which result or input of `names` an output such as `y.tangent` is of.
size_t PlaceOf(absl::string_view output, absl::string_view suffix,
               const std::vector<NamedValue>& names) {
  absl::ConsumeSuffix(&output, suffix);
  size_t i = 0;
  while (i + 1 < names.size() && names[i].name != output) ++i;
  return i;
}

// Appends the rule, and gives its override.
absl::StatusOr<OverrideLine> AddJvp(const Subject& subject, size_t input,
                                    bool only, const RuleSet& rules,
                                    std::string& text) {
  std::vector<bool> active(subject.graph.inputs().size(), false);
  active[input] = true;
  CLEAVE_ASSIGN_OR_RETURN(
      const JvpResult jvp,
      Jvp(subject.graph, active, rules, {/*instantiate_zeros=*/false, {}}));
  const size_t results = subject.graph.outputs().size();
  const Graph tangents =
      Simplify(WithoutOutputsBefore(jvp.graph, results), rules);
  const std::string& x = subject.input(input);
  OverrideLine line{absl::StrCat("jvp ", x), "0"};
  if (tangents.outputs().empty()) return line;
  const std::string op =
      absl::StrCat(subject.name, "_jvp", only ? "" : absl::StrCat("_", x));
  CLEAVE_ASSIGN_OR_RETURN(
      const WrittenOp rule,
      GraphToOp(tangents, op, rules,
                Documented(absl::StrCat("The tangent of `", subject.name,
                                        "` along `", x, "`."))));
  // A tangent that is 0 is written so.
  if (rule.inputs.empty() ||
      rule.inputs.back() != static_cast<int>(active.size())) {
    return line;
  }
  absl::StrAppend(&text, rule.text, "\n");
  std::vector<std::string> arguments = subject.written.input_names;
  arguments.push_back(absl::StrCat("d", x));
  const std::string call = CallText(op, rule, arguments);
  if (results == 1) {
    line.body = call;
    return line;
  }
  std::vector<std::string> fields;
  for (size_t i = 0; i < tangents.outputs().size(); ++i) {
    const size_t result =
        PlaceOf(tangents.outputs()[i].name, kTangent, subject.graph.outputs());
    fields.push_back(absl::StrCat(subject.written.results[result], " = ",
                                  Part(call, rule, i)));
  }
  line.body = absl::StrCat("(", absl::StrJoin(fields, ", "), ")");
  return line;
}

absl::StatusOr<OverrideLine> AddVjp(const Subject& subject,
                                    const std::vector<bool>& active,
                                    const RuleSet& rules, std::string& text) {
  CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp,
                          Vjp(subject.graph, active, rules));
  const Graph& graph = subject.graph;
  // One name for the cotangent of each result; those of discrete ones are not
  // read.
  std::vector<std::string> arguments = subject.written.input_names;
  std::vector<std::string> cotangents;
  for (size_t r = 0; r < graph.outputs().size(); ++r) {
    std::string name = absl::StrCat("d", subject.written.results[r]);
    while (std::find(arguments.begin(), arguments.end(), name) !=
           arguments.end()) {
      name += "_";
    }
    cotangents.push_back(name);
    if (emit::IsInexact(graph.type(graph.outputs()[r].value).dtype)) {
      arguments.push_back(name);
    }
  }
  std::vector<size_t> asked;
  std::vector<std::string> fields;
  std::vector<std::string> kept;
  size_t place = graph.outputs().size();
  size_t number = 0;
  for (size_t i = 0; i < active.size(); ++i) {
    if (!active[i]) continue;
    if (vjp.depends[number++]) {
      asked.push_back(place);
      kept.push_back(subject.input(i));
    } else {
      fields.push_back(absl::StrCat(subject.input(i), " = 0"));
    }
    ++place;
  }
  if (!asked.empty()) {
    const Graph asked_graph = Simplify(WithOutputsAt(vjp.graph, asked), rules);
    const std::string op = absl::StrCat(subject.name, "_vjp");
    CLEAVE_ASSIGN_OR_RETURN(
        const WrittenOp rule,
        GraphToOp(asked_graph, op, rules,
                  Documented(absl::StrCat("The cotangents of `", subject.name,
                                          "`."))));
    absl::StrAppend(&text, rule.text, "\n");
    const std::string call = CallText(op, rule, arguments);
    for (size_t i = 0; i < kept.size(); ++i) {
      fields.push_back(absl::StrCat(kept[i], " = ", Part(call, rule, i)));
    }
  }
  return OverrideLine{
      absl::StrCat("vjp (", absl::StrJoin(cotangents, ", "), ")"),
      absl::StrCat("(", absl::StrJoin(fields, ", "), ")")};
}

absl::StatusOr<OverrideLine> AddVmap(const Subject& subject,
                                     const std::vector<bool>& batched,
                                     const RuleSet& rules, std::string& text) {
  const Graph& graph = subject.graph;
  std::vector<int> in_axes;
  std::vector<std::string> inputs;
  std::string batch_text;
  for (size_t i = 0; i < batched.size(); ++i) {
    in_axes.push_back(batched[i] ? 0 : kNotMapped);
    inputs.push_back(absl::StrCat(subject.input(i), batched[i] ? "" : "@_"));
    if (batched[i] && batch_text.empty()) {
      batch_text = absl::StrCat("shape(", subject.input(i), ")[0]");
    }
  }
  const std::string batch = FreshBatch(graph);
  CLEAVE_ASSIGN_OR_RETURN(
      Graph whole, Vmap(graph, in_axes, Dim::Variable(batch),
                        std::vector<int>(graph.outputs().size(), 0), rules));
  CLEAVE_ASSIGN_OR_RETURN(whole, WithWritableCalls(std::move(whole), rules));
  const std::string op = absl::StrCat(subject.name, "_vmap");
  CLEAVE_ASSIGN_OR_RETURN(
      const WrittenOp rule,
      GraphToOp(Simplify(whole, rules), op, rules,
                Documented(absl::StrCat("`", subject.name,
                                        "` over a batch, the first axis."))));
  absl::StrAppend(&text, rule.text, "\n");
  const std::string call =
      CallText(op, rule, subject.written.input_names, {{batch, batch_text}});
  std::string body = call;
  if (rule.results.size() > 1) {
    std::vector<std::string> fields;
    for (size_t i = 0; i < rule.results.size(); ++i) {
      fields.push_back(
          absl::StrCat(subject.written.results[i], " = ", Part(call, rule, i)));
    }
    body = absl::StrCat("(", absl::StrJoin(fields, ", "), ")");
  }
  return OverrideLine{absl::StrCat("vmap (", absl::StrJoin(inputs, ", "), ")"),
                      body};
}

}  // namespace

absl::StatusOr<std::string> DeriveRule(const Graph& graph,
                                       absl::string_view name,
                                       Transform transform,
                                       const std::vector<bool>& inputs,
                                       const RuleSet& rules) {
  if (inputs.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("derive: ", inputs.size(), " inputs are described, and `",
                     name, "` has ", graph.inputs().size()));
  }
  if (std::none_of(inputs.begin(), inputs.end(), [](bool i) { return i; })) {
    return absl::InvalidArgumentError(
        absl::StrCat("derive: no input of `", name, "` is chosen"));
  }
  const bool has_derivative =
      std::any_of(graph.outputs().begin(), graph.outputs().end(),
                  [&](const NamedValue& output) {
                    return emit::IsInexact(graph.type(output.value).dtype);
                  });
  if (transform != Transform::kVmap && !has_derivative) {
    return Impossible("discrete");
  }
  Subject subject;
  subject.name = absl::StrReplaceAll(name, {{".", "_"}});
  CLEAVE_ASSIGN_OR_RETURN(subject.graph, WithWritableCalls(graph, rules));
  const std::string with =
      absl::StrCat(subject.name, "_with_", TransformName(transform));
  GraphToOpOptions options;
  options.keep_inputs = true;
  options.docs = {absl::StrCat("`", name,
                               "` with what stands above for an override, "
                               "which its check compares.")};
  CLEAVE_ASSIGN_OR_RETURN(subject.written,
                          GraphToOp(subject.graph, with, rules, options));
  std::string text = "language 1\n\n";
  if (transform == Transform::kVmap) {
    CLEAVE_ASSIGN_OR_RETURN(OverrideLine line,
                            AddVmap(subject, inputs, rules, text));
    options.overrides.push_back(std::move(line));
  } else if (transform == Transform::kVjp) {
    CLEAVE_ASSIGN_OR_RETURN(OverrideLine line,
                            AddVjp(subject, inputs, rules, text));
    options.overrides.push_back(std::move(line));
  } else {
    const bool only = std::count(inputs.begin(), inputs.end(), true) == 1;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) continue;
      CLEAVE_ASSIGN_OR_RETURN(OverrideLine line,
                              AddJvp(subject, i, only, rules, text));
      options.overrides.push_back(std::move(line));
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const WrittenOp written,
                          GraphToOp(subject.graph, with, rules, options));
  return absl::StrCat(text, written.text);
}

namespace {

// The call made again with f64 for f32, where the op takes it: what is derived
// is compared with differences, which want digits. Inputs keep their names,
// outputs have those that the op declares.
absl::StatusOr<Graph> InF64(const Graph& call, const RuleSet& rules) {
  Value node = call.outputs()[0].value;
  if (call.node(node).op == ToOpId(Primitive::kResult)) {
    node = call.operands(node)[0];
  }
  Signature signature = RuleSet::SignatureOf(call, node);
  Context& context = *call.context();
  Signature wide = signature;
  for (TypeId& operand : wide.operands) {
    TensorType type = context.types(operand).front();
    if (type.dtype != DType::kF32) continue;
    type.dtype = DType::kF64;
    operand = context.Intern(type);
  }
  absl::StatusOr<Graph> made = CallOf(rules, wide);
  if (!made.ok()) {
    CLEAVE_ASSIGN_OR_RETURN(made, CallOf(rules, signature));
  }
  GraphBuilder builder(call.context());
  std::vector<Value> operands;
  for (size_t i = 0; i < made->inputs().size(); ++i) {
    // Operands of a call are its inputs, in order.
    operands.push_back(builder.Input(call.inputs()[i].name,
                                     made->type(made->inputs()[i].value)));
  }
  const std::vector<Value> values = builder.Inline(*made, operands);
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < values.size(); ++i) {
    outputs.push_back({made->outputs()[i].name, values[i]});
  }
  for (const ShapeGuard& guard : made->guards()) builder.AddGuard(guard);
  return std::move(builder).Build(std::move(outputs));
}

}  // namespace

absl::StatusOr<std::string> DeriveOpRule(absl::string_view op,
                                         Transform transform,
                                         const ChooseInputs& choose,
                                         const RuleSet& rules) {
  absl::Status refused;
  const auto try_call = [&](const Graph& call) -> absl::StatusOr<std::string> {
    CLEAVE_ASSIGN_OR_RETURN(const Graph wide, InF64(call, rules));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<bool> inputs, choose(wide));
    return DeriveRule(wide, op, transform, inputs, rules);
  };
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Graph> calls,
                          rules.SymbolicCalls(op));
  for (const Graph& call : calls) {
    absl::StatusOr<std::string> text = try_call(call);
    if (text.ok()) return text;
    refused.Update(text.status());
  }
  CLEAVE_ASSIGN_OR_RETURN(CallSearch search, CallSearch::Create(rules, op));
  while (const std::optional<Graph> call = search.Next()) {
    absl::StatusOr<std::string> text = try_call(*call);
    if (text.ok()) return text;
    refused.Update(text.status());
  }
  return refused.ok() ? search.Obstacle() : refused;
}

}  // namespace cleave
