// Signatures: inputs, attributes, results, types; rewrites and examples.

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/lang/parser_internal.h"

namespace cleave::internal {
namespace {

const std::vector<std::string>& AttributeTypes() {
  static const auto* types = new std::vector<std::string>{
      "int", "real", "bool", "str", "dim", "dtype", "scalar", "axis", "axes"};
  return *types;
}

}  // namespace

// `f(x: T[..], *, a: int = 1) -> T[..]`, `exp(x: f32) within 1 ulp`.
void Parser::ParseSignature(Item* item) {
  item->name = ExpectName("a name");
  if (item->kind == ItemKind::kOnnx) {
    Expect("@", "before the opset");
    if (Peek().kind != TokenKind::kNumber ||
        !absl::SimpleAtoi(Peek().text, &item->opset) || item->opset < 1) {
      FailUnexpected("the opset, a number");
    }
    Next();
  }
  Expect("(", "before the inputs");
  bool attributes = false;
  while (!panic_ && !At(")")) {
    if (At("*")) {
      if (attributes) Fail("a second `*`");
      if (item->kind == ItemKind::kFn || item->kind == ItemKind::kNumeric) {
        Fail(item->kind == ItemKind::kFn ? "an fn has no attributes"
                                         : "a numeric has no attributes");
      }
      attributes = true;
      Next();
    } else if (attributes) {
      item->attributes.push_back(ParseAttribute());
    } else {
      item->inputs.push_back(ParseInput());
    }
    if (!Take(",")) break;
  }
  if (attributes && item->attributes.empty()) {
    Fail("no attributes after `*`");
  }
  Expect(")", "after the inputs");
  if (item->kind == ItemKind::kNumeric) {
    Expect("within", "and the bound in ulp");
    item->within = ParseBinary(kPrecedenceSum);
    Expect("ulp", "after the bound");
    return;
  }
  Expect("->", "and the result's type");
  item->results = ParseResults();
}

InputDecl Parser::ParseInput() {
  InputDecl input;
  const uint32_t begin = Begin();
  if (At("static") && AtName(1)) {
    input.is_static = true;
    Next();
  }
  input.name = ExpectName("the name of an input");
  if (Take("[")) {
    input.variadic_index = ExpectName("an index");
    Expect("]", "after the index");
  }
  Expect(":", "after the input's name");
  input.type = ParseType();
  input.optional = Take("?");
  input.range = RangeFrom(begin);
  return input;
}

// `T[A.., n@axis]`, `acc(T)[C]`, `promote.aten(a, b)[]`, `key`.
TypeExpr Parser::ParseType() {
  TypeExpr type;
  const uint32_t begin = Begin();
  Expr expr;
  expr.kind = ExprKind::kName;
  expr.text = ExpectName("a dtype");
  if (At(".") && AtName(1)) {
    Next();
    absl::StrAppend(&expr.text, ".", Peek().text);
    Next();
  }
  if (At("(")) {
    expr.kind = ExprKind::kCall;
    ParseArguments(&expr.children, &expr.named);
  }
  type.dtype = Make(std::move(expr), begin);
  if (Take("[")) {
    type.has_shape = true;
    while (!panic_ && !At("]")) {
      type.axes.push_back(ParseAxis());
      if (!Take(",")) break;
    }
    Expect("]", "after the axes");
  }
  type.range = RangeFrom(begin);
  return type;
}

AxisExpr Parser::ParseAxis() {
  AxisExpr axis;
  const uint32_t begin = Begin();
  if (At("new") && AtName(1)) {
    Next();
    axis.is_new = true;
    Expr name;
    const uint32_t name_begin = Begin();
    name.text = ExpectName("the name of the extent");
    axis.size = Make(std::move(name), name_begin);
    Expect("<=", "and a bound: the extent is known at run time only");
    axis.bound = ParseBinary(kPrecedenceConcat);
    axis.range = RangeFrom(begin);
    return axis;
  }
  const bool saved = std::exchange(matmul_, false);
  axis.size = ParseExpr();
  matmul_ = saved;
  if (Take("..")) {
    Expr spread;
    spread.kind = ExprKind::kSpread;
    spread.children.push_back(std::move(axis.size));
    axis.size = Make(std::move(spread), begin);
  } else if (Take("@")) {
    axis.at = ExpectName("the name of an axis attribute");
  }
  axis.range = RangeFrom(begin);
  return axis;
}

AttributeDecl Parser::ParseAttribute() {
  AttributeDecl attribute;
  const uint32_t begin = Begin();
  attribute.name = ExpectName("the name of an attribute");
  Expect(":", "after the attribute's name");
  ParseAttributeType(&attribute);
  if (Take("[")) {
    attribute.list = true;
    if (!At("]")) attribute.list_length = ParseExpr();
    Expect("]", "after the list's length");
  }
  attribute.optional = Take("?");
  if (Take("=")) attribute.default_value = ParseExpr();
  attribute.range = RangeFrom(begin);
  return attribute;
}

void Parser::ParseAttributeType(AttributeDecl* attribute) {
  if (Take("{")) {
    attribute->type = "enum";
    while (!panic_ && !At("}")) {
      attribute->enum_values.push_back(ExpectName("a value"));
      if (!Take(",")) break;
    }
    Expect("}", "after the values");
    if (attribute->enum_values.empty()) Fail("an enum without values");
    return;
  }
  const Token& token = Peek();
  const std::vector<std::string>& types = AttributeTypes();
  if (token.kind != TokenKind::kName ||
      std::find(types.begin(), types.end(), token.text) == types.end()) {
    std::string help;
    if (token.kind == TokenKind::kName) {
      const std::string close = ClosestName(token.text, types);
      if (!close.empty()) help = absl::StrCat("did you mean `", close, "`?");
    }
    Fail(absl::StrCat("expected the type of an attribute, found ",
                      Describe(token)),
         std::move(help));
    return;
  }
  attribute->type = std::string(token.text);
  Next();
  if (attribute->type == "axis" || attribute->type == "axes") {
    Expect("(", "and the input whose axes are meant");
    attribute->axis_of = ExpectName("the name of an input");
    Expect(")", "after the input's name");
  }
}

// One type, or `(y: .., at: .. if COND)`.
std::vector<ResultDecl> Parser::ParseResults() {
  std::vector<ResultDecl> results;
  if (!At("(")) {
    ResultDecl result;
    const uint32_t begin = Begin();
    result.type = ParseType();
    result.range = RangeFrom(begin);
    results.push_back(std::move(result));
    return results;
  }
  Next();
  while (!panic_ && !At(")")) {
    ResultDecl result;
    const uint32_t begin = Begin();
    result.name = ExpectName("the name of a result");
    Expect(":", "after the result's name");
    result.type = ParseType();
    if (Take("if")) result.condition = ParseExpr();
    result.range = RangeFrom(begin);
    results.push_back(std::move(result));
    if (!Take(",")) break;
  }
  Expect(")", "after the results");
  if (results.empty()) Fail("no results");
  return results;
}

std::vector<std::string> Parser::ParseParameters() {
  std::vector<std::string> parameters;
  Expect("(", "before the parameters");
  while (!panic_ && !At(")")) {
    parameters.push_back(ExpectName("the name of a parameter"));
    if (!Take(",")) break;
  }
  Expect(")", "after the parameters");
  return parameters;
}

// `rewrite name: e => e [real] [where x: class, ..]`.
void Parser::ParseRewrite(Item* item) {
  item->name = ExpectName("the name of the rewrite");
  Expect(":", "after the name");
  item->left = ParseExpr();
  Expect("=>", "between the two sides");
  item->right = ParseExpr();
  item->real = Take("real");
  if (Take("where")) ParseWhere(item, "an operand of the rewrite");
}

// `example f(args) = value`, or `~`.
void Parser::ParseExample(Item* item) {
  item->left = ParseBinary(kPrecedencePostfix);
  if (Take("~")) {
    item->approximate = true;
  } else {
    Expect("=", "or `~` before the value");
  }
  item->right = ParseExpr();
}

}  // namespace cleave::internal
