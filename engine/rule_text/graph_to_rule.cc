#include "engine/rule_text/graph_to_rule.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "engine/lang/lexer.h"
#include "engine/lang/parser.h"
#include "engine/lang/precedence.h"
#include "engine/rule_text/graph_writer.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// The variables that inputs of these shapes, in order, have before they are
// read in an extent such as `2 * n`: what binds them.
class BoundVariables {
 public:
  void Add(const Shape& shape) {
    for (const Dim& extent : shape) {
      const std::set<std::string> variables = extent.Variables();
      const bool alone =
          variables.size() == 1 && extent == Dim::Variable(*variables.begin());
      for (const std::string& variable : variables) {
        if (read_.insert(variable).second && alone) bound_.insert(variable);
      }
    }
  }
  bool Has(const std::string& variable) const {
    return bound_.count(variable) > 0;
  }

 private:
  std::set<std::string> read_;
  std::set<std::string> bound_;
};

// The comparison that holds if `op` does not: `<` for kGe.
absl::string_view NegatedText(CompareOp op) {
  switch (op) {
    case CompareOp::kEq:
      return "!=";
    case CompareOp::kNe:
      return "==";
    case CompareOp::kLt:
      return ">=";
    case CompareOp::kLe:
      return ">";
    case CompareOp::kGt:
      return "<=";
    case CompareOp::kGe:
      break;
  }
  return "<";
}

// The item as `cleave fmt` writes it. A graph from elsewhere may have what rule
// files may not, such as a number of a thousand digits.
absl::StatusOr<std::string> Canonical(const std::string& text) {
  const Source source("derived", absl::StrCat("language 1\n\n", text));
  const ParseResult parsed = ParseRules(source);
  if (!parsed.ok()) {
    return NotWritten(absl::StrCat(parsed.diagnostics[0].message, ":"));
  }
  const std::string printed = PrintRuleFile(parsed.file);
  return printed.substr(printed.find("\n\n") + 2);
}

}  // namespace

std::string RuleName(absl::string_view name) {
  std::string prefix;
  while (absl::ConsumeSuffix(&name, ".tangent") ||
         absl::ConsumeSuffix(&name, ".cotangent")) {
    prefix += "d";
  }
  std::string own = absl::StrCat(prefix, name);
  for (char& c : own) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  // Rules' names begin with a letter; `_` alone stands for nothing there.
  if (own.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(own[0]))) {
    own.insert(0, "v");
  }
  return own;
}

absl::StatusOr<WrittenOp> GraphToOp(const Graph& graph, absl::string_view name,
                                    const RuleSet& rules,
                                    const GraphToOpOptions& options) {
  if (name != RuleName(name) || internal::IsReservedWord(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", name, "` is no name for an op"));
  }
  if (graph.outputs().empty()) {
    return absl::InvalidArgumentError("the graph has no outputs");
  }
  WrittenOp written;
  RuleNames names(rules);
  std::vector<std::string> lines;
  GraphWriter writer(graph, rules, names, lines);
  const std::vector<bool> read = writer.Needed();
  BoundVariables bound;
  std::vector<std::string> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    if (!read[input.value.id] && !options.keep_inputs) continue;
    if (!read[input.value.id]) {
      return NotWritten(absl::StrCat("the input `", input.name,
                                     "`, of which the shape alone is read,"));
    }
    bound.Add(graph.type(input.value).shape);
    written.inputs.push_back(static_cast<int>(i));
  }
  const bool is_def = options.is_def;
  // Names of inputs first: they are what the caller reads.
  for (int i : written.inputs) {
    const NamedValue& input = graph.inputs()[i];
    written.input_names.push_back(names.Own(RuleName(input.name)));
    writer.SetInput(input.value, written.input_names.back());
  }
  const auto type_text = [&](Value v) {
    const TensorType& type = graph.type(v);
    return type.dtype == DType::kKey && type.shape.empty()
               ? std::string("key")
               : absl::StrCat(DTypeName(type.dtype),
                              names.ShapeText(type.shape));
  };
  for (size_t k = 0; k < written.inputs.size(); ++k) {
    inputs.push_back(written.input_names[k]);
    if (is_def) continue;
    absl::StrAppend(&inputs.back(), ": ",
                    type_text(graph.inputs()[written.inputs[k]].value));
  }
  std::vector<std::string> results;
  for (const NamedValue& output : graph.outputs()) {
    written.results.push_back(names.Own(RuleName(output.name)));
    results.push_back(is_def ? ""
                             : absl::StrCat(written.results.back(), ": ",
                                            type_text(output.value)));
  }
  // The one result without a name is called `y` in overrides.
  const bool is_one = results.size() == 1 &&
                      (is_def || std::find(written.input_names.begin(),
                                           written.input_names.end(),
                                           "y") == written.input_names.end());
  std::string errors;
  for (const ShapeGuard& guard : graph.guards()) {
    if (is_def) break;  // its caller's
    // A guard of an op's declared error names the op and the kind of that:
    // "`softplus`: value: beta must not be 0".
    absl::string_view why = guard.why;
    absl::string_view kind = "shape";
    const size_t quote = why.find("`: ");
    absl::string_view declared_why =
        absl::StartsWith(why, "`") && quote != why.npos ? why.substr(quote + 3)
                                                        : why;
    for (absl::string_view declared : {"shape", "type", "value"}) {
      if (absl::ConsumePrefix(&declared_why, absl::StrCat(declared, ": "))) {
        kind = declared;
        why = declared_why;
        break;
      }
    }
    absl::StrAppend(&errors, "  error ", kind, " ", Quote(why), " if ",
                    names.DimText(guard.lhs), " ", NegatedText(guard.op), " ",
                    names.DimText(guard.rhs), "\n");
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::string> outputs,
                          writer.Write());
  lines.push_back(is_one ? outputs[0] : RecordText(written.results, outputs));
  for (const OverrideLine& line : options.overrides) {
    lines.push_back(absl::StrCat(line.head, " = ", line.body));
  }
  for (const auto& [variable, rule_name] : names.variables()) {
    if (is_def || !bound.Has(variable)) written.sizes.push_back(rule_name);
  }
  if (is_def) {
    inputs.insert(inputs.end(), written.sizes.begin(), written.sizes.end());
  } else {
    for (const std::string& size : written.sizes) {
      if (size == written.sizes[0]) inputs.push_back("*");
      inputs.push_back(absl::StrCat(size, ": dim"));
    }
  }
  const std::string signature = absl::StrJoin(inputs, ", ");
  std::string text;
  for (const std::string& doc : options.docs) {
    absl::StrAppend(&text, "/// ", doc, "\n");
  }
  if (is_def) {
    absl::StrAppend(&text, "def ", name, "(", signature, ")\n{\n");
  } else {
    absl::StrAppend(&text, "op ", name, "(", signature, ") -> ",
                    is_one
                        ? type_text(graph.outputs()[0].value)
                        : absl::StrCat("(", absl::StrJoin(results, ", "), ")"),
                    "\n", errors, "{\n");
  }
  // A statement goes on over deeper lines.
  for (const std::string& line : lines) {
    absl::StrAppend(&text, "  ", absl::StrReplaceAll(line, {{"\n", "\n    "}}),
                    "\n");
  }
  text += "}\n";
  CLEAVE_ASSIGN_OR_RETURN(written.text, Canonical(text));
  return written;
}

}  // namespace cleave
