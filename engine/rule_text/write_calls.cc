// Calls of ops, loops and branches.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/bind/builtins.h"
#include "engine/ir/call_attributes.h"
#include "engine/ir/loop_operands.h"
#include "engine/lang/lexer.h"
#include "engine/rule_text/graph_writer.h"
#include "engine/rules/call_of.h"
#include "engine/rules/rule_set_impl.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// An attribute as it is written in a call.
absl::StatusOr<std::string> AttributeText(const StaticValue& value,
                                          RuleNames& names) {
  switch (value.kind()) {
    case StaticValue::Kind::kBool:
      return std::string(value.AsBool() ? "true" : "false");
    case StaticValue::Kind::kInt:
      return names.DimText(value.AsDim());
    case StaticValue::Kind::kReal:
      return NumberText(value.AsReal());
    case StaticValue::Kind::kString:
      return Quote(value.AsString());
    case StaticValue::Kind::kDType:
      return std::string(DTypeName(value.AsDType()));
    case StaticValue::Kind::kList: {
      std::vector<std::string> elements;
      for (const StaticValue& element : value.AsList()) {
        CLEAVE_ASSIGN_OR_RETURN(std::string text,
                                AttributeText(element, names));
        elements.push_back(std::move(text));
      }
      return absl::StrCat("[", absl::StrJoin(elements, ", "), "]");
    }
    default:
      return NotWritten(absl::StrCat("the attribute ", value.ToString()));
  }
}

}  // namespace

absl::StatusOr<RuleText> GraphWriter::Call(Value v) {
  const Signature signature = RuleSet::SignatureOf(graph_, v);
  const std::string op(rules_.context()->op_name(signature.op));
  if (DerivedFrom(op).has_value()) return TransformCall(v, op);
  const Callable* callable = rules_.impl().CallableOf(signature.op);
  CLEAVE_CHECK(callable != nullptr) << op;
  CLEAVE_ASSIGN_OR_RETURN(const CallLayout layout,
                          CallLayout::Of(*callable, graph_.attributes(v),
                                         graph_.operands(v).size()));
  CLEAVE_ASSIGN_OR_RETURN(const std::string text,
                          CallText(*callable, layout, v));
  if (callable->results.size() == 1) {
    return RuleText{text, true, true, graph_.type(v).shape};
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph call, CallOf(rules_, signature));
  std::vector<std::string> fields;
  for (const NamedValue& output : call.outputs()) {
    fields.push_back(output.name);
  }
  if (fields.size() == 1) {
    return RuleText{absl::StrCat(text, ".", fields[0]), true, true,
                    graph_.type(v).shape};
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::string record, Let(text));
  for (std::string& field : fields) field = absl::StrCat(record, ".", field);
  return Fields(v, std::move(fields));
}

// `jvp f(x, w)(w: dw)`, `vjp f(x, w)(y: dy).x`.
absl::StatusOr<RuleText> GraphWriter::TransformCall(Value v,
                                                    absl::string_view op) {
  if (IsBatchCall(op)) return NotWritten("a batch of calls of an op");
  const bool is_jvp = absl::StartsWith(op, kJvpCallPrefix);
  const std::string name(*DerivedFrom(op));
  const Callable* callable = rules_.impl().library.FindCallable(name);
  CLEAVE_CHECK(callable != nullptr) << name;
  for (const InputDecl& input : callable->inputs) {
    if (!input.variadic_index.empty()) {
      return NotWritten("a transform of an op with a list of inputs");
    }
  }
  const Attributes& attributes = graph_.attributes(v);
  const absl::Span<const Value> operands = graph_.operands(v);
  const StaticValue::List& active = attributes.Get(kActive).AsList();
  CLEAVE_ASSIGN_OR_RETURN(const CallLayout layout,
                          CallLayout::Of(*callable, attributes, active.size()));
  CLEAVE_ASSIGN_OR_RETURN(const std::string call,
                          CallText(*callable, layout, v));
  size_t next = active.size();     // the operands behind those of the op
  std::vector<std::string> names;  // of the operands
  for (const size_t input : layout.InputsOfOperands()) {
    names.push_back(callable->inputs[input].name);
  }
  std::vector<std::string> seconds;
  std::vector<std::string> fields;
  if (is_jvp) {
    for (size_t i = 0; i < active.size(); ++i) {
      if (!active[i].AsBool()) continue;
      seconds.push_back(absl::StrCat(names[i], ": ", Full(operands[next++])));
    }
    if (callable->results.size() > 1) {
      return NotWritten("a tangent of an op with several results");
    }
  } else {
    const StaticValue::List& live = attributes.Get(kLive).AsList();
    for (size_t r = 0; r < live.size(); ++r) {
      if (!live[r].AsBool()) continue;
      seconds.push_back(absl::StrCat(callable->results[r].name, ": ",
                                     Full(operands[next++])));
    }
    for (size_t i = 0; i < active.size(); ++i) {
      if (active[i].AsBool()) fields.push_back(names[i]);
    }
  }
  const std::string text = absl::StrCat(is_jvp ? "jvp " : "vjp ", call, "(",
                                        absl::StrJoin(seconds, ", "), ")");
  if (is_jvp) return RuleText{text, true, true, graph_.type(v).shape};
  for (std::string& field : fields) field = absl::StrCat(text, ".", field);
  return Fields(v, std::move(fields));
}

absl::StatusOr<std::string> GraphWriter::CallText(const Callable& callable,
                                                  const CallLayout& layout,
                                                  Value v) {
  if (callable.item->kind == ItemKind::kAten ||
      callable.item->kind == ItemKind::kOnnx) {
    return NotWritten(
        absl::StrCat("a call of the host's op `", callable.name, "`"));
  }
  const Attributes& attributes = graph_.attributes(v);
  std::vector<std::string> arguments;
  bool by_position = true;
  for (size_t i = 0; i < layout.inputs.size(); ++i) {
    const CallLayout::Input& input = layout.inputs[i];
    if (input.is_static() || input.absent()) {
      by_position = false;
      continue;
    }
    std::vector<std::string> elements;
    for (const int place : input.operands) {
      if (place < 0) return NotWritten("an element of a list that is absent");
      elements.push_back(Full(graph_.operands(v)[place]));
    }
    const std::string text =
        input.list ? absl::StrCat("[", absl::StrJoin(elements, ", "), "]")
                   : elements[0];
    arguments.push_back(
        by_position ? text : absl::StrCat(callable.inputs[i].name, ": ", text));
  }
  for (const auto& [name, value] : attributes.values()) {
    const bool declared =
        std::any_of(callable.attributes.begin(), callable.attributes.end(),
                    [&, &name = name](const AttributeDecl& a) {
                      return a.name == name;
                    }) ||
        std::any_of(callable.inputs.begin(), callable.inputs.end(),
                    [&, &name = name](const InputDecl& i) {
                      return i.is_static && i.name == name;
                    });
    if (absl::StartsWith(name, kNewPrefix)) {
      return NotWritten("an extent known at run time only");
    }
    if (!declared || value.is_none()) continue;
    CLEAVE_ASSIGN_OR_RETURN(const std::string text,
                            AttributeText(value, names_));
    arguments.push_back(absl::StrCat(name, ": ", text));
  }
  return absl::StrCat(callable.name, "(", absl::StrJoin(arguments, ", "), ")");
}

// --- regions

absl::StatusOr<std::string> GraphWriter::RegionBody(
    const Graph& region, const std::vector<std::string>& inputs,
    const std::vector<std::string>& names) {
  std::vector<std::string> lines;
  GraphWriter writer(region, rules_, names_, lines);
  for (size_t i = 0; i < inputs.size(); ++i) {
    writer.SetInput(region.inputs()[i].value, inputs[i]);
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::string> outputs,
                          writer.Write());
  lines.push_back(names.empty() ? outputs[0] : RecordText(names, outputs));
  return absl::StrCat("{\n", absl::StrJoin(lines, "\n"), "\n}");
}

absl::StatusOr<GraphWriter::LoopText> GraphWriter::LoopTextOf(
    absl::Span<const Value> operands, const LoopOperands& of) {
  LoopText loop;
  for (int i = 0; i < of.first_slice(); ++i) {
    if (of.IsConst(i)) {
      CLEAVE_ASSIGN_OR_RETURN(std::string name, Name(operands[i]));
      loop.inputs.push_back(std::move(name));
      continue;
    }
    const std::string first = Full(operands[i]);
    loop.inputs.push_back(names_.Fresh('c'));
    loop.carries.push_back(loop.inputs.back());
    loop.starts.push_back(absl::StrCat(loop.inputs.back(), " = ", first));
  }
  return loop;
}

absl::StatusOr<RuleText> GraphWriter::Scan(Value v) {
  const Attributes& attributes = graph_.attributes(v);
  const absl::Span<const Value> operands = graph_.operands(v);
  const Graph& body = *attributes.Get("body").AsRegion().graph;
  const LoopOperands of = LoopOperands::Of(graph_, v);
  const size_t carries = of.carries;
  const bool reverse = attributes.GetBool("reverse");
  CLEAVE_ASSIGN_OR_RETURN(LoopText loop, LoopTextOf(operands, of));
  std::vector<std::string> sources;
  for (int i = of.first_slice(); i < of.count(); ++i) {
    std::string text = Full(operands[i]);
    loop.inputs.push_back(names_.Fresh('t'));
    if (reverse) text = absl::StrCat("reverse(", text, ", axes: [0])");
    sources.push_back(absl::StrCat(loop.inputs.back(), " in ", text));
  }
  if (sources.empty()) {
    sources.push_back(
        absl::StrCat(names_.Fresh('t'), " in iota(",
                     names_.DimText(attributes.Get("length").AsDim()), ")"));
  }
  std::vector<std::string> names = loop.carries;
  for (size_t i = carries; i < body.outputs().size(); ++i) {
    names.push_back(names_.Fresh('s'));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::string region,
                          RegionBody(body, loop.inputs, names));
  const std::string over = absl::StrJoin(sources, ", ");
  CLEAVE_ASSIGN_OR_RETURN(
      const std::string result,
      Let(carries == 0 ? absl::StrCat("map(", over, ") ", region)
                       : absl::StrCat("scan(", absl::StrJoin(loop.starts, ", "),
                                      ") over ", over, " ", region)));
  std::vector<std::string> fields;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string field = absl::StrCat(result, ".", names[i]);
    if (reverse && i >= carries) {
      field = absl::StrCat("reverse(", field, ", axes: [0])");
      CLEAVE_ASSIGN_OR_RETURN(field, Let(field));
    }
    fields.push_back(std::move(field));
  }
  return Fields(v, std::move(fields));
}

absl::StatusOr<RuleText> GraphWriter::Cond(Value v) {
  const Attributes& attributes = graph_.attributes(v);
  const absl::Span<const Value> operands = graph_.operands(v);
  const std::string predicate = Full(operands[0]);
  std::vector<std::string> inputs;
  for (Value operand : operands.subspan(1)) {
    CLEAVE_ASSIGN_OR_RETURN(std::string name, Name(operand));
    inputs.push_back(std::move(name));
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < graph_.types(v).size(); ++i) {
    names.push_back(names_.Fresh('r'));
  }
  if (names.size() == 1) names.clear();
  std::vector<std::string> regions;
  for (const char* branch : {"then", "else"}) {
    CLEAVE_ASSIGN_OR_RETURN(
        std::string region,
        RegionBody(*attributes.Get(branch).AsRegion().graph, inputs, names));
    regions.push_back(std::move(region));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::string branched,
                          Let(absl::StrCat("cond(", predicate, ") ", regions[0],
                                           " else ", regions[1])));
  std::vector<std::string> fields;
  for (const std::string& name : names) {
    fields.push_back(absl::StrCat(branched, ".", name));
  }
  if (fields.empty()) fields.push_back(branched);
  return Fields(v, std::move(fields));
}

absl::StatusOr<RuleText> GraphWriter::While(Value v) {
  const Attributes& attributes = graph_.attributes(v);
  const absl::Span<const Value> operands = graph_.operands(v);
  CLEAVE_ASSIGN_OR_RETURN(const LoopText loop,
                          LoopTextOf(operands, LoopOperands::Of(graph_, v)));
  const Graph& condition = *attributes.Get("cond").AsRegion().graph;
  std::vector<std::string> none;
  GraphWriter writer(condition, rules_, names_, none);
  writer.WriteAsExpression();
  for (size_t i = 0; i < loop.inputs.size(); ++i) {
    writer.SetInput(condition.inputs()[i].value, loop.inputs[i]);
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::string> goes_on,
                          writer.Write());
  std::string head = absl::StrCat("while(", absl::StrJoin(loop.starts, ", "),
                                  ") ", goes_on[0]);
  if (const StaticValue* max = attributes.Find("max")) {
    absl::StrAppend(&head, " max ", names_.DimText(max->AsDim()));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::string region,
                          RegionBody(*attributes.Get("body").AsRegion().graph,
                                     loop.inputs, loop.carries));
  CLEAVE_ASSIGN_OR_RETURN(const std::string result,
                          Let(absl::StrCat(head, " ", region)));
  std::vector<std::string> fields;
  for (const std::string& carry : loop.carries) {
    fields.push_back(absl::StrCat(result, ".", carry));
  }
  return Fields(v, std::move(fields));
}

}  // namespace cleave
