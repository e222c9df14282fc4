#include "engine/rule_text/graph_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// The longest operand in characters; a longer one becomes a `let`.
constexpr size_t kLongestOperand = 48;

// The operator of a pointwise primitive; empty: it is called by its name.
absl::string_view OperatorOf(Primitive primitive) {
  switch (primitive) {
    case Primitive::kAdd:
      return "+";
    case Primitive::kSub:
      return "-";
    case Primitive::kMul:
      return "*";
    case Primitive::kDiv:
      return "/";
    case Primitive::kFloorDiv:
      return "//";
    case Primitive::kFloorMod:
      return "%";
    case Primitive::kEq:
      return "==";
    case Primitive::kNe:
      return "!=";
    case Primitive::kLt:
      return "<";
    case Primitive::kLe:
      return "<=";
    case Primitive::kGt:
      return ">";
    case Primitive::kGe:
      return ">=";
    case Primitive::kAnd:
      return "and";
    case Primitive::kOr:
      return "or";
    default:
      return "";
  }
}

std::string Parenthesised(const RuleText& text) {
  return text.atom ? text.text : absl::StrCat("(", text.text, ")");
}

// Neither a number nor made of parts: a name, or a field of a record.
bool IsName(const RuleText& text) {
  return text.typed && text.text.find_first_of(" ([-") == std::string::npos;
}

bool IsAtomicNumber(absl::string_view text) {
  return text.find_first_of("-/*+ ") == absl::string_view::npos;
}

// A literal of the language is known before any tensor: `false and x` is
// `false`, without the axes of x.
bool IsBoolLiteral(absl::string_view text) {
  return text == "true" || text == "false";
}

bool Decides(absl::string_view text, Primitive primitive) {
  return (primitive == Primitive::kAnd && text == "false") ||
         (primitive == Primitive::kOr && text == "true");
}

}  // namespace

absl::Status NotWritten(absl::string_view what) {
  return NotSupported(what, " in rule text");
}

void GraphWriter::SetInput(Value input, std::string name) {
  texts_.resize(graph_.size());
  texts_[input.id] = Atom(input, std::move(name));
}

RuleText GraphWriter::Atom(Value v, std::string text) const {
  return {std::move(text), true, true, graph_.type(v).shape};
}

// Reshapes of reshapes are one.
Value GraphWriter::Source(Value user, Value operand) const {
  const bool moves =
      Is(user, Primitive::kReshape) || (Is(user, Primitive::kBroadcastInDim) &&
                                        !graph_.type(operand).shape.empty());
  while (moves && Is(operand, Primitive::kReshape)) {
    operand = graph_.operands(operand)[0];
  }
  return operand;
}

Shape GraphWriter::KeptShape(Value reduction) const {
  Shape shape = graph_.type(graph_.operands(reduction)[0]).shape;
  for (int64_t axis : graph_.attributes(reduction).GetInts("axes")) {
    shape[axis] = 1;
  }
  return shape;
}

std::vector<bool> GraphWriter::Needed() {
  uses_.assign(graph_.size(), 0);
  keeps_axes_.assign(graph_.size(), false);
  std::vector<bool> needed(graph_.size(), false);
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    const OpId op = graph_.node(Value{id}).op;
    keeps_axes_[id] = IsPrimitive(op) &&
                      ClassOf(ToPrimitive(op)) == PrimitiveClass::kReduction;
  }
  for (const NamedValue& output : graph_.outputs()) {
    needed[output.value.id] = true;
    keeps_axes_[output.value.id] = false;
    ++uses_[output.value.id];
  }
  for (int64_t id = graph_.size() - 1; id >= 0; --id) {
    if (!needed[id]) continue;
    const Value v{static_cast<uint32_t>(id)};
    const bool spreads = Is(v, Primitive::kBroadcastInDim);
    // Where nothing is out of range, a fill is not read.
    const bool no_fill = Is(v, Primitive::kGather) &&
                         graph_.attributes(v).Get("mode").AsString() == "error";
    for (Value x : graph_.operands(v).first(graph_.operands(v).size() -
                                            (no_fill ? 1 : 0))) {
      x = Source(v, x);
      needed[x.id] = true;
      // Where a spread value stands, what is spread does.
      uses_[x.id] += spreads ? uses_[id] : 1;
      if (!keeps_axes_[x.id]) continue;
      keeps_axes_[x.id] =
          KeptShape(x) == (spreads                      ? Aligned(v)
                           : Is(v, Primitive::kReshape) ? graph_.type(v).shape
                                                        : Shape());
    }
  }
  return needed;
}

absl::StatusOr<std::vector<std::string>> GraphWriter::Write() {
  texts_.resize(graph_.size());
  const std::vector<bool> needed = Needed();
  std::vector<bool> is_output(graph_.size(), false);
  for (const NamedValue& output : graph_.outputs()) {
    is_output[output.value.id] = true;
  }
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    if (!needed[id] || texts_[id].has_value()) continue;
    const Value v{id};
    CLEAVE_ASSIGN_OR_RETURN(RuleText text, WriteNode(v));
    const bool one = graph_.types(v).size() == 1;
    if (may_let_ && one && text.typed && !IsName(text) &&
        !Is(v, Primitive::kBroadcastInDim) &&
        (uses_[id] > 1 ||
         (text.text.size() > kLongestOperand && !is_output[id]))) {
      CLEAVE_ASSIGN_OR_RETURN(text.text, Let(text.text));
      text.atom = true;
    }
    texts_[id] = std::move(text);
  }
  std::vector<std::string> outputs;
  for (const NamedValue& output : graph_.outputs()) {
    outputs.push_back(Full(output.value));
  }
  return outputs;
}

absl::StatusOr<std::string> GraphWriter::Let(absl::string_view text) {
  if (!may_let_) return NotWritten("a condition that is no one expression");
  std::string name = names_.Fresh('v');
  lines_.push_back(absl::StrCat("let ", name, " = ", text));
  return name;
}

std::string GraphWriter::Operand(Value v) {
  return Parenthesised(*texts_[v.id]);
}

std::string GraphWriter::Spread(absl::string_view text, const Shape& shape) {
  return absl::StrCat("broadcast_to(", text,
                      ", shape: ", names_.ShapeText(shape), ")");
}

std::string GraphWriter::Full(Value v) {
  const RuleText& text = *texts_[v.id];
  const TensorType& type = graph_.type(v);
  std::string full = text.text;
  if (!text.typed) {
    full = type.dtype == DType::kBool
               ? full
               : absl::StrCat("convert(", full,
                              ", dtype: ", DTypeName(type.dtype), ")");
  }
  if (text.shape == type.shape) return full;
  if (!text.typed && text.text == "0") {
    return absl::StrCat("zeros(shape: ", names_.ShapeText(type.shape),
                        ", dtype: ", DTypeName(type.dtype), ")");
  }
  return Spread(full, type.shape);
}

absl::StatusOr<std::string> GraphWriter::Name(Value v) {
  RuleText& text = *texts_[v.id];
  if (IsName(text) && text.shape == graph_.type(v).shape) return text.text;
  const std::string full = Full(v);
  CLEAVE_ASSIGN_OR_RETURN(std::string name, Let(full));
  text = Atom(v, name);
  return name;
}

RuleText GraphWriter::Constant(Value v) {
  const StaticValue& value = graph_.attributes(v).Get("value");
  RuleText text{"", true, false, {}};
  switch (value.kind()) {
    case StaticValue::Kind::kBool:
      text.text = value.AsBool() ? "true" : "false";
      text.typed = true;
      break;
    case StaticValue::Kind::kInt:
      text.text = names_.DimText(value.AsDim());
      break;
    default:
      text.text = NumberText(value.AsReal());
      break;
  }
  text.atom = IsAtomicNumber(text.text);
  return text;
}

// The shape of what a broadcast spreads, right-aligned.
Shape GraphWriter::Aligned(Value broadcast) const {
  const Shape& from = graph_.type(graph_.operands(broadcast)[0]).shape;
  if (from.empty()) return {};
  const std::vector<int64_t> axes =
      graph_.attributes(broadcast).GetInts("axes");
  Shape aligned(graph_.type(broadcast).shape.size() - axes[0], Dim(1));
  for (size_t d = 0; d < axes.size(); ++d) aligned[axes[d] - axes[0]] = from[d];
  return aligned;
}

bool GraphWriter::Is(Value v, Primitive primitive) const {
  return graph_.node(v).op == ToOpId(primitive);
}

RuleText GraphWriter::Reshaped(Value v, const Shape& shape) {
  const Value x = Source(v, graph_.operands(v)[0]);
  const RuleText& text = *texts_[x.id];
  // A number is spread by itself, and so is what has no axes.
  const bool spreads = Is(v, Primitive::kBroadcastInDim);
  if (text.shape == shape && (text.typed || spreads)) return text;
  if (text.shape.empty() && spreads) return text;
  return {absl::StrCat("reshape(", Full(x),
                       ", shape: ", names_.ShapeText(shape), ")"),
          true, true, shape};
}

RuleText GraphWriter::Fields(Value v, std::vector<std::string> fields) {
  if (graph_.types(v).size() == 1) return Atom(v, std::move(fields[0]));
  fields_[v] = std::move(fields);
  return RuleText();
}

absl::StatusOr<RuleText> GraphWriter::WriteNode(Value v) {
  const Node& node = graph_.node(v);
  if (!IsPrimitive(node.op)) return Call(v);
  const Primitive primitive = ToPrimitive(node.op);
  switch (primitive) {
    case Primitive::kConstant:
      return Constant(v);
    case Primitive::kExtent: {
      const std::string text =
          names_.DimText(graph_.attributes(v).Get("value").AsDim());
      return RuleText{text, IsAtomicNumber(text), false, {}};
    }
    case Primitive::kResult:
      return Atom(v, fields_.at(graph_.operands(
                         v)[0])[graph_.attributes(v).GetInt("index")]);
    case Primitive::kBroadcastInDim:
      return Reshaped(v, Aligned(v));
    case Primitive::kReshape:
      return Reshaped(v, graph_.type(v).shape);
    case Primitive::kScan:
      return Scan(v);
    case Primitive::kCond:
      return Cond(v);
    case Primitive::kWhile:
      return While(v);
    default:
      break;
  }
  return ClassOf(primitive) == PrimitiveClass::kPointwise
             ? Pointwise(primitive, v)
             : Structured(primitive, v);
}

absl::StatusOr<RuleText> GraphWriter::Pointwise(Primitive primitive, Value v) {
  const absl::Span<const Value> operands = graph_.operands(v);
  const TensorType& type = graph_.type(v);
  // The size of something in another dtype is a number still.
  if (primitive == Primitive::kConvert && !texts_[operands[0].id]->typed &&
      IsFloat(type.dtype) && !IsFloat(graph_.type(operands[0]).dtype)) {
    return *texts_[operands[0].id];
  }
  std::vector<std::string> texts;
  std::vector<bool> typed;
  bool full = false;
  for (Value operand : operands) {
    const RuleText& text = *texts_[operand.id];
    texts.push_back(Parenthesised(text));
    typed.push_back(text.typed);
    full = full || text.shape == type.shape;
  }
  // One operand at least has the shape, if not all have a smaller one, and one
  // of those of each dtype has it from itself.
  const bool is_select = primitive == Primitive::kSelect;
  const size_t first = is_select ? 1 : 0;
  if (std::none_of(typed.begin() + first, typed.end(),
                   [](bool t) { return t; })) {
    texts[first] = Full(operands[first]);
  } else if (!full) {
    size_t k = first;
    while (!typed[k]) ++k;
    texts[k] = Full(operands[k]);
  }
  // A tensor stands where a literal would make the whole one.
  const bool literal =
      type.dtype == DType::kBool &&
      std::all_of(texts.begin() + first, texts.end(), IsBoolLiteral);
  for (size_t i = first; i < texts.size(); ++i) {
    if (literal || Decides(texts[i], primitive)) {
      texts[i] = Spread(texts[i], type.shape);
    }
  }
  const absl::string_view op = OperatorOf(primitive);
  RuleText result{"", false, true, type.shape};
  if (!op.empty()) {
    result.text = absl::StrCat(texts[0], " ", op, " ", texts[1]);
    return result;
  }
  if (primitive == Primitive::kNeg || primitive == Primitive::kNot) {
    result.text = absl::StrCat(primitive == Primitive::kNeg ? "-" : "not ", "(",
                               texts[0], ")");
    return result;
  }
  result.text =
      absl::StrCat(PrimitiveName(primitive), "(", absl::StrJoin(texts, ", "));
  if (primitive == Primitive::kConvert ||
      primitive == Primitive::kBitcastConvert) {
    absl::StrAppend(&result.text, ", dtype: ", DTypeName(type.dtype));
  }
  result.text += ")";
  if (const StaticValue* tie = graph_.attributes(v).Find("tie");
      tie != nullptr && tie->AsString() != "even") {
    absl::StrAppend(&result.text, " @tie(", tie->AsString(), ")");
    result.atom = false;
  }
  return result;
}

}  // namespace cleave
