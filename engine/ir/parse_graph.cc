// The parser of graph text: recursive descent over the characters.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/ir/attribute_text.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/infer_node.h"
#include "engine/ir/parse_typed_graph.h"
#include "engine/ir/text_syntax.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using internal_text::IsName;
using internal_text::IsNameCharacter;

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

// Whether a value's text is a real number rather than a dim: `0.5`, `1e-05`,
// `1/3`, `#..`, `inf`; `n//2` and `12` are dims.
bool LooksReal(absl::string_view text) {
  absl::ConsumePrefix(&text, "-");
  if (text == "inf" || text == "nan" || absl::StartsWith(text, "#")) {
    return true;
  }
  size_t i = 0;
  while (i < text.size() && IsDigit(text[i])) ++i;
  if (i == 0 || i == text.size()) return false;
  if (text[i] == '/') return i + 1 < text.size() && IsDigit(text[i + 1]);
  return text[i] == '.' || text[i] == 'e';
}

class Parser {
 public:
  // With `trusted`, types are taken as they are written.
  Parser(absl::string_view text, std::shared_ptr<Context> context, bool trusted)
      : text_(text), context_(std::move(context)), trusted_(trusted) {}

  absl::StatusOr<Graph> Parse() {
    SkipLines();
    CLEAVE_ASSIGN_OR_RETURN(Graph graph, ParseOne());
    SkipLines();
    if (position_ < text_.size()) return Fail("text behind the graph");
    return graph;
  }

  absl::StatusOr<Attributes> ParseAttributesAlone() {
    Attributes attributes;
    SkipSpaces();
    if (position_ == text_.size()) return attributes;
    do {
      CLEAVE_RETURN_IF_ERROR(ParseAttribute(&attributes));
    } while (Consume(","));
    SkipSpaces();
    if (position_ < text_.size()) return Fail("text behind the attributes");
    return attributes;
  }

 private:
  // The names that the lines of one graph define.
  struct Scope {
    explicit Scope(std::shared_ptr<Context> context)
        : builder(std::move(context)) {}
    GraphBuilder builder;
    absl::flat_hash_map<std::string, Value> values;
  };

  absl::Status FailAt(size_t position, absl::string_view message) const {
    int line = 1;
    int column = 1;
    for (size_t i = 0; i < position && i < text_.size(); ++i) {
      ++column;
      if (text_[i] == '\n') {
        ++line;
        column = 1;
      }
    }
    return absl::InvalidArgumentError(
        absl::StrCat(line, ":", column, ": ", message));
  }
  absl::Status Fail(absl::string_view message) const {
    return FailAt(position_, message);
  }

  bool At(char c) const {
    return position_ < text_.size() && text_[position_] == c;
  }
  bool AtText(absl::string_view s) const {
    return absl::StartsWith(text_.substr(position_), s);
  }
  void SkipSpaces() {
    while (At(' ') || At('\t') || At('\r')) ++position_;
  }
  // To the next line of the graph: over spaces, comments and ends of lines.
  void SkipLines() {
    for (;;) {
      SkipSpaces();
      if (AtText("//")) {
        while (position_ < text_.size() && !At('\n')) ++position_;
      }
      if (!At('\n')) return;
      ++position_;
    }
  }
  bool Consume(absl::string_view s) {
    SkipSpaces();
    if (!AtText(s)) return false;
    position_ += s.size();
    return true;
  }
  absl::Status Expect(absl::string_view s) {
    if (Consume(s)) return absl::OkStatus();
    return Fail(absl::StrCat("expected `", s, "`"));
  }
  // A keyword: not the beginning of a longer name.
  bool AtWord(absl::string_view word) const {
    const size_t end = position_ + word.size();
    return AtText(word) &&
           (end >= text_.size() || !IsNameCharacter(text_[end]));
  }

  absl::StatusOr<std::string> ParseString() {
    const size_t begin = position_;
    if (!Consume("\"")) return Fail("expected a string");
    const size_t first = position_;
    while (position_ < text_.size() && !At('"') && !At('\n')) {
      position_ += At('\\') ? 2 : 1;
    }
    if (!At('"')) return FailAt(begin, "a string without its end");
    std::string value;
    std::string error;
    if (!absl::CUnescape(text_.substr(first, position_ - first), &value,
                         &error)) {
      return FailAt(begin, error);
    }
    ++position_;
    return value;
  }

  absl::StatusOr<std::string> ParseName() {
    SkipSpaces();
    if (At('"')) return ParseString();
    const size_t begin = position_;
    while (position_ < text_.size() && IsNameCharacter(text_[position_])) {
      ++position_;
    }
    const absl::string_view name = text_.substr(begin, position_ - begin);
    if (!IsName(name)) return FailAt(begin, "expected a name");
    return std::string(name);
  }

  // `%x`, `%"x y"` or `%12`: the key that the scope knows the node by.
  absl::StatusOr<std::string> ParseValueName() {
    CLEAVE_RETURN_IF_ERROR(Expect("%"));
    if (position_ < text_.size() && IsDigit(text_[position_])) {
      const size_t begin = position_;
      while (position_ < text_.size() && IsDigit(text_[position_])) {
        ++position_;
      }
      return absl::StrCat("%", text_.substr(begin, position_ - begin));
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::string name, ParseName());
    return KeyOf(name);
  }
  // A name that is quoted may look like a number.
  static std::string KeyOf(absl::string_view name) {
    return absl::StrCat("$", name);
  }

  absl::StatusOr<Value> ParseUse(const Scope& scope) {
    SkipSpaces();
    const size_t begin = position_;
    CLEAVE_ASSIGN_OR_RETURN(const std::string name, ParseValueName());
    auto it = scope.values.find(name);
    if (it == scope.values.end()) {
      return FailAt(begin,
                    absl::StrCat("`", text_.substr(begin, position_ - begin),
                                 "` is not defined here"));
    }
    return it->second;
  }

  // The text from here to one of `ends`, or the end of the line, outside of
  // brackets.
  absl::string_view TakeUntil(absl::string_view ends) {
    SkipSpaces();
    const size_t begin = position_;
    int depth = 0;
    while (position_ < text_.size() && !At('\n')) {
      const char c = text_[position_];
      if (depth == 0 && absl::StrContains(ends, c)) break;
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
      ++position_;
    }
    return absl::StripTrailingAsciiWhitespace(
        text_.substr(begin, position_ - begin));
  }

  absl::StatusOr<Dim> ParseDim(absl::string_view ends) {
    SkipSpaces();
    const size_t begin = position_;
    absl::StatusOr<Dim> dim = Dim::Parse(TakeUntil(ends));
    if (!dim.ok()) return FailAt(begin, dim.status().message());
    return dim;
  }

  absl::StatusOr<TensorType> ParseType() {
    SkipSpaces();
    const size_t begin = position_;
    while (position_ < text_.size() && IsNameCharacter(text_[position_])) {
      ++position_;
    }
    if (At('[')) {
      ++position_;
      TakeUntil("]");
      if (!At(']')) return FailAt(begin, "a shape without its end");
      ++position_;
    }
    absl::StatusOr<TensorType> type =
        ParseTensorType(text_.substr(begin, position_ - begin));
    if (!type.ok()) return FailAt(begin, type.status().message());
    return type;
  }

  absl::StatusOr<std::vector<TensorType>> ParseTypes() {
    std::vector<TensorType> types;
    do {
      CLEAVE_ASSIGN_OR_RETURN(TensorType type, ParseType());
      types.push_back(std::move(type));
    } while (Consume(","));
    return types;
  }

  // A record, rather than a dim that begins with a bracket.
  bool AtRecord() {
    const size_t begin = position_;
    bool record = false;
    if (Consume("(")) {
      SkipSpaces();
      if (At(')') || At('"')) {
        record = true;
      } else if (ParseName().ok()) {
        SkipSpaces();
        record = At('=') && !AtText("==");
      }
    }
    position_ = begin;
    return record;
  }

  absl::StatusOr<StaticValue> ParseValue() {
    SkipSpaces();
    if (depth_ >= kMaxTextNesting) {
      return Fail(
          absl::StrCat("nested deeper than ", kMaxTextNesting, " levels"));
    }
    ++depth_;
    absl::StatusOr<StaticValue> value = ParseValueInside();
    --depth_;
    return value;
  }

  absl::StatusOr<StaticValue> ParseValueInside() {
    const size_t begin = position_;
    if (At('"')) {
      CLEAVE_ASSIGN_OR_RETURN(std::string text, ParseString());
      return StaticValue(std::move(text));
    }
    if (At('[')) return ParseList();
    if (AtRecord()) return ParseRecord();
    if (AtWord("graph") && IsRegion()) {
      CLEAVE_ASSIGN_OR_RETURN(Graph graph, ParseOne());
      return StaticValue(MakeRegion(std::move(graph)));
    }
    if (AtText("dim(")) {
      position_ += 4;
      CLEAVE_ASSIGN_OR_RETURN(Dim dim, ParseDim(")"));
      CLEAVE_RETURN_IF_ERROR(Expect(")"));
      return StaticValue(std::move(dim));
    }
    const absl::string_view text = TakeUntil(",)]");
    if (text == "none") return StaticValue();
    if (text == "true" || text == "false") return StaticValue(text == "true");
    if (absl::StatusOr<DType> dtype = ParseDType(text); dtype.ok()) {
      return StaticValue(*dtype);
    }
    if (LooksReal(text)) {
      absl::StatusOr<Exact> real = Exact::Parse(text);
      if (!real.ok()) return FailAt(begin, real.status().message());
      return StaticValue(*std::move(real));
    }
    absl::StatusOr<Dim> dim = Dim::Parse(text);
    if (!dim.ok()) return FailAt(begin, dim.status().message());
    return StaticValue(*std::move(dim));
  }

  bool IsRegion() {
    const size_t begin = position_;
    const bool region = Consume("graph") && Consume("(");
    position_ = begin;
    return region;
  }

  absl::StatusOr<StaticValue> ParseList() {
    CLEAVE_RETURN_IF_ERROR(Expect("["));
    StaticValue::List list;
    if (Consume("]")) return StaticValue(std::move(list));
    do {
      CLEAVE_ASSIGN_OR_RETURN(StaticValue element, ParseValue());
      list.push_back(std::move(element));
    } while (Consume(","));
    CLEAVE_RETURN_IF_ERROR(Expect("]"));
    return StaticValue(std::move(list));
  }

  absl::StatusOr<StaticValue> ParseRecord() {
    CLEAVE_RETURN_IF_ERROR(Expect("("));
    StaticValue::Record record;
    if (Consume(")")) return StaticValue(std::move(record));
    do {
      CLEAVE_ASSIGN_OR_RETURN(std::string name, ParseName());
      CLEAVE_RETURN_IF_ERROR(Expect("="));
      CLEAVE_ASSIGN_OR_RETURN(StaticValue field, ParseValue());
      record.emplace_back(std::move(name), std::move(field));
    } while (Consume(","));
    CLEAVE_RETURN_IF_ERROR(Expect(")"));
    return StaticValue(std::move(record));
  }

  absl::Status ParseInputs(Scope* scope) {
    CLEAVE_RETURN_IF_ERROR(Expect("("));
    if (Consume(")")) return absl::OkStatus();
    do {
      SkipSpaces();
      const size_t begin = position_;
      CLEAVE_RETURN_IF_ERROR(Expect("%"));
      CLEAVE_ASSIGN_OR_RETURN(const std::string name, ParseName());
      if (scope->values.contains(KeyOf(name))) {
        return FailAt(begin, absl::StrCat("two inputs are named ", name));
      }
      CLEAVE_RETURN_IF_ERROR(Expect(":"));
      CLEAVE_ASSIGN_OR_RETURN(const TensorType type, ParseType());
      scope->values.emplace(KeyOf(name), scope->builder.Input(name, type));
    } while (Consume(","));
    return Expect(")");
  }

  // `axis: 0`.
  absl::Status ParseAttribute(Attributes* attributes) {
    SkipSpaces();
    const size_t begin = position_;
    CLEAVE_ASSIGN_OR_RETURN(const std::string name, ParseName());
    if (attributes->Find(name) != nullptr) {
      return FailAt(begin, absl::StrCat("`", name, "` is given twice"));
    }
    CLEAVE_RETURN_IF_ERROR(Expect(":"));
    CLEAVE_ASSIGN_OR_RETURN(StaticValue value, ParseValue());
    attributes->Set(name, std::move(value));
    return absl::OkStatus();
  }

  // `%1: f32[n] = op(%x, axis: 0)`.
  absl::Status ParseNode(Scope* scope) {
    const size_t begin = position_;
    CLEAVE_ASSIGN_OR_RETURN(const std::string name, ParseValueName());
    if (scope->values.contains(name)) {
      return FailAt(begin,
                    absl::StrCat("`", text_.substr(begin, position_ - begin),
                                 "` is defined twice"));
    }
    CLEAVE_RETURN_IF_ERROR(Expect(":"));
    SkipSpaces();
    const size_t type_begin = position_;
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<TensorType> types, ParseTypes());
    CLEAVE_RETURN_IF_ERROR(Expect("="));
    SkipSpaces();
    const size_t op_begin = position_;
    CLEAVE_ASSIGN_OR_RETURN(const std::string op_name, ParseName());
    CLEAVE_RETURN_IF_ERROR(Expect("("));
    std::vector<Value> operands;
    Attributes attributes;
    if (!Consume(")")) {
      do {
        SkipSpaces();
        if (At('%') && attributes.empty()) {
          CLEAVE_ASSIGN_OR_RETURN(const Value operand, ParseUse(*scope));
          operands.push_back(operand);
          continue;
        }
        CLEAVE_RETURN_IF_ERROR(ParseAttribute(&attributes));
      } while (Consume(","));
      CLEAVE_RETURN_IF_ERROR(Expect(")"));
    }
    const OpId op = context_->InternOp(op_name);
    if (IsPrimitive(op) && !trusted_) {
      CLEAVE_RETURN_IF_ERROR(CheckPrimitive(ToPrimitive(op), attributes,
                                            operands, types, op_begin,
                                            type_begin, scope));
    }
    const Value value = scope->builder.AddTyped(
        op, context_->Intern(attributes), context_->Intern(types), operands, 0);
    scope->values.emplace(name, value);
    return EndLine();
  }

  absl::Status CheckPrimitive(Primitive primitive, const Attributes& attributes,
                              const std::vector<Value>& operands,
                              const std::vector<TensorType>& types,
                              size_t op_begin, size_t type_begin,
                              Scope* scope) {
    std::vector<TypeId> operand_types;
    operand_types.reserve(operands.size());
    for (Value v : operands) {
      operand_types.push_back(scope->builder.graph().node(v).type);
    }
    absl::StatusOr<InferredType> inferred =
        InferNode(*context_, primitive, attributes, operand_types);
    if (!inferred.ok()) {
      return FailAt(op_begin, inferred.status().message());
    }
    if (inferred->results != types) {
      std::string text;
      for (const TensorType& type : inferred->results) {
        absl::StrAppend(&text, text.empty() ? "" : ", ", type.ToString());
      }
      return FailAt(type_begin, absl::StrCat("`", PrimitiveName(primitive),
                                             "` gives ", text, " here"));
    }
    for (ShapeGuard& guard : inferred->guards) {
      scope->builder.AddGuard(std::move(guard));
    }
    return absl::OkStatus();
  }

  // `guard n >= 2: "why"`.
  absl::Status ParseGuard(Scope* scope) {
    CLEAVE_RETURN_IF_ERROR(Expect("guard"));
    ShapeGuard guard;
    CLEAVE_ASSIGN_OR_RETURN(guard.lhs, ParseDim("=!<>"));
    // The two-character symbols come before those that begin them.
    if (Consume("==")) {
      guard.op = CompareOp::kEq;
    } else if (Consume("!=")) {
      guard.op = CompareOp::kNe;
    } else if (Consume("<=")) {
      guard.op = CompareOp::kLe;
    } else if (Consume(">=")) {
      guard.op = CompareOp::kGe;
    } else if (Consume("<")) {
      guard.op = CompareOp::kLt;
    } else if (Consume(">")) {
      guard.op = CompareOp::kGt;
    } else {
      return Fail("expected a comparison");
    }
    CLEAVE_ASSIGN_OR_RETURN(guard.rhs, ParseDim(":"));
    CLEAVE_RETURN_IF_ERROR(Expect(":"));
    SkipSpaces();
    CLEAVE_ASSIGN_OR_RETURN(guard.why, ParseString());
    scope->builder.AddGuard(std::move(guard));
    return EndLine();
  }

  absl::Status EndLine() {
    SkipSpaces();
    if (position_ < text_.size() && !At('\n') && !AtText("//")) {
      return Fail("expected the end of the line");
    }
    SkipLines();
    return absl::OkStatus();
  }

  // `graph (..) -> (..) {` to `}`.
  absl::StatusOr<Graph> ParseOne() {
    Scope scope(context_);
    CLEAVE_RETURN_IF_ERROR(Expect("graph"));
    CLEAVE_RETURN_IF_ERROR(ParseInputs(&scope));
    CLEAVE_RETURN_IF_ERROR(Expect("->"));
    CLEAVE_RETURN_IF_ERROR(Expect("("));
    std::vector<NamedValue> outputs;
    std::vector<TensorType> types;
    absl::flat_hash_set<std::string> names;
    if (!Consume(")")) {
      do {
        SkipSpaces();
        const size_t begin = position_;
        CLEAVE_ASSIGN_OR_RETURN(const std::string name, ParseName());
        if (!names.insert(name).second) {
          return FailAt(begin, absl::StrCat("two outputs are named ", name));
        }
        CLEAVE_RETURN_IF_ERROR(Expect(":"));
        CLEAVE_ASSIGN_OR_RETURN(TensorType type, ParseType());
        outputs.push_back({name, Value()});
        types.push_back(std::move(type));
      } while (Consume(","));
      CLEAVE_RETURN_IF_ERROR(Expect(")"));
    }
    CLEAVE_RETURN_IF_ERROR(Expect("{"));
    CLEAVE_RETURN_IF_ERROR(EndLine());
    while (At('%')) CLEAVE_RETURN_IF_ERROR(ParseNode(&scope));
    while (AtWord("guard")) CLEAVE_RETURN_IF_ERROR(ParseGuard(&scope));
    if (!AtWord("return")) return Fail("expected a node or `return`");
    CLEAVE_RETURN_IF_ERROR(Expect("return"));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (i > 0) CLEAVE_RETURN_IF_ERROR(Expect(","));
      SkipSpaces();
      const size_t begin = position_;
      CLEAVE_ASSIGN_OR_RETURN(const std::string name, ParseName());
      if (name != outputs[i].name) {
        return FailAt(begin,
                      absl::StrCat("expected the output ", outputs[i].name));
      }
      CLEAVE_RETURN_IF_ERROR(Expect("="));
      CLEAVE_ASSIGN_OR_RETURN(outputs[i].value, ParseUse(scope));
      const std::vector<TensorType>& given =
          scope.builder.graph().types(outputs[i].value);
      if (given.size() != 1 || given[0] != types[i]) {
        return FailAt(begin, absl::StrCat("the output ", name, " is not ",
                                          types[i].ToString()));
      }
    }
    CLEAVE_RETURN_IF_ERROR(EndLine());
    CLEAVE_RETURN_IF_ERROR(Expect("}"));
    return std::move(scope.builder).Build(std::move(outputs));
  }

  absl::string_view text_;
  std::shared_ptr<Context> context_;
  bool trusted_;
  size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<Graph> ParseGraph(absl::string_view text,
                                 std::shared_ptr<Context> context) {
  return Parser(text, std::move(context), /*trusted=*/false).Parse();
}

absl::StatusOr<Attributes> ParseAttributes(absl::string_view text,
                                           std::shared_ptr<Context> context) {
  return Parser(text, std::move(context), /*trusted=*/false)
      .ParseAttributesAlone();
}

absl::StatusOr<Graph> ParseTypedGraph(absl::string_view text,
                                      std::shared_ptr<Context> context) {
  return Parser(text, std::move(context), /*trusted=*/true).Parse();
}

}  // namespace cleave
