// The JSON form of each construct, stated once. The writer, the reader, the
// schema and the search for a place visit it, so that they agree.
//
// A visitor has, for a member `key` of the object that it is at:
//   Text(key, string, kind)     OptionalText: absent if empty
//   Choice(key, string, values) Flag(key, bool, absent)  Integer(key, int, min)
//   Value(key, expr)            OptionalValue: absent if null
//   Statements(key, body)       OptionalStatements
//   Object(key, struct)
//   List(key, vector, min)      OptionalList: absent if empty
//   Texts(key, strings, kind, min)  OptionalTexts

#ifndef CLEAVE_ENGINE_LANG_JSON_DESCRIBE_H_
#define CLEAVE_ENGINE_LANG_JSON_DESCRIBE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/lang/ast.h"

namespace cleave::internal {

enum class TextKind : uint8_t {
  kName,         // x
  kCallee,       // f, promote.aten
  kWord,         // any word, also a reserved one: of PyTorch's schemas
  kWords,        // add.Tensor
  kNumber,       // 1e-5
  kContents,     // of a string
  kComment,      // a line of a comment
  kAtenType,     // Tensor(a!)?
  kAtenDefault,  // 'none'
};

struct KindName {
  ExprKind kind;
  absl::string_view name;
};
inline constexpr KindName kExprKinds[] = {
    {ExprKind::kNumber, "number"},
    {ExprKind::kString, "string"},
    {ExprKind::kName, "name"},
    {ExprKind::kUnary, "unary"},
    {ExprKind::kBinary, "binary"},
    {ExprKind::kIf, "if"},
    {ExprKind::kCall, "call"},
    {ExprKind::kTransformCall, "transform_call"},
    {ExprKind::kMember, "member"},
    {ExprKind::kIndex, "index"},
    {ExprKind::kSpread, "spread"},
    {ExprKind::kList, "list"},
    {ExprKind::kComprehension, "comprehension"},
    {ExprKind::kRecord, "record"},
    {ExprKind::kReduce, "reduce"},
    {ExprKind::kFold, "fold"},
    {ExprKind::kScan, "scan"},
    {ExprKind::kMap, "map"},
    {ExprKind::kCond, "cond"},
    {ExprKind::kWhile, "while"},
    {ExprKind::kTie, "tie"},
};

struct StatementKindName {
  StatementKind kind;
  absl::string_view name;
};
inline constexpr StatementKindName kStatementKinds[] = {
    {StatementKind::kLet, "let"}, {StatementKind::kResult, "result"},
    {StatementKind::kJvp, "jvp"}, {StatementKind::kVmap, "vmap"},
    {StatementKind::kVjp, "vjp"},
};

struct ItemKindName {
  ItemKind kind;
  absl::string_view name;
};
inline constexpr ItemKindName kItemKinds[] = {
    {ItemKind::kOp, "op"},           {ItemKind::kDef, "def"},
    {ItemKind::kAten, "aten"},       {ItemKind::kOnnx, "onnx"},
    {ItemKind::kJvp, "jvp"},         {ItemKind::kNumeric, "numeric"},
    {ItemKind::kRewrite, "rewrite"}, {ItemKind::kExample, "example"},
    {ItemKind::kFn, "fn"},           {ItemKind::kOverride, "override"},
};

// The names of the structs in the schema.
inline const char* SchemaName(const Binder&) { return "binder"; }
inline const char* SchemaName(const NamedExpr&) { return "named"; }
inline const char* SchemaName(const Equation&) { return "equation"; }
inline const char* SchemaName(const Statement::OverrideInput&) {
  return "override_input";
}
inline const char* SchemaName(const AxisExpr&) { return "axis"; }
inline const char* SchemaName(const TypeExpr&) { return "type"; }
inline const char* SchemaName(const InputDecl&) { return "input"; }
inline const char* SchemaName(const AttributeDecl&) { return "attribute"; }
inline const char* SchemaName(const ResultDecl&) { return "result_type"; }
inline const char* SchemaName(const WhereClause&) { return "where"; }
inline const char* SchemaName(const ErrorClause&) { return "error"; }
inline const char* SchemaName(const Law&) { return "law"; }
inline const char* SchemaName(const DomainClause&) { return "domain"; }
inline const char* SchemaName(const SpecialClause&) { return "special"; }
inline const char* SchemaName(const InputRange&) { return "input_range"; }
inline const char* SchemaName(const ApproximationClause&) {
  return "approximates";
}
inline const char* SchemaName(const AccuracyClause&) { return "accuracy"; }

// `let a = e, b = e`: one clause of an item.
struct LetClause {
  std::vector<NamedExpr> lets;
  SourceRange range;
};
inline const char* SchemaName(const LetClause&) { return "let_clause"; }

struct AtenArgumentNode {
  AtenArgument argument;
  SourceRange range;
};
struct AtenResultNode {
  AtenArgument result;
  SourceRange range;
};
inline const char* SchemaName(const AtenArgumentNode&) {
  return "aten_argument";
}
inline const char* SchemaName(const AtenResultNode&) { return "aten_result"; }

template <typename V>
void Describe(V& v, Binder& binder) {
  v.Text("name", binder.name, TextKind::kName);
  v.Flag("pack", binder.pack, false);
  v.OptionalValue("bound", binder.bound);
}

template <typename V>
void Describe(V& v, NamedExpr& named) {
  v.Text("name", named.name, TextKind::kName);
  v.Value("value", named.value);
}

// The name is absent of an expression that stands alone.
template <typename V>
void Describe(V& v, Equation& equation) {
  v.OptionalText("name", equation.name, TextKind::kName);
  v.ListIf("indices", equation.indexed, equation.indices);
  v.Value("value", equation.value);
}

template <typename V>
void Describe(V& v, Statement::OverrideInput& input) {
  v.Text("name", input.name, TextKind::kName);
  v.Flag("unbatched", input.unbatched, false);
}

// `new n <= bound` is the axis that has a bound.
template <typename V>
void Describe(V& v, AxisExpr& axis) {
  v.Value("size", axis.size);
  v.OptionalText("axis", axis.at, TextKind::kName);
  v.OptionalValue("bound", axis.bound);
  axis.is_new = axis.bound != nullptr;
}

template <typename V>
void Describe(V& v, TypeExpr& type) {
  v.Value("dtype", type.dtype);
  v.ListIf("shape", type.has_shape, type.axes);
}

template <typename V>
void Describe(V& v, InputDecl& input) {
  v.Flag("static", input.is_static, false);
  v.Text("name", input.name, TextKind::kName);
  v.OptionalText("variadic", input.variadic_index, TextKind::kName);
  v.Object("type", input.type);
  v.Flag("optional", input.optional, false);
}

template <typename V>
void Describe(V& v, AttributeDecl& attribute) {
  v.Text("name", attribute.name, TextKind::kName);
  v.Choice("type", attribute.type,
           {"int", "real", "bool", "str", "dim", "dtype", "scalar", "enum",
            "axis", "axes"});
  v.OptionalTexts("values", attribute.enum_values, TextKind::kName);
  v.OptionalText("of", attribute.axis_of, TextKind::kName);
  v.Flag("list", attribute.list, false);
  v.OptionalValue("length", attribute.list_length);
  v.Flag("optional", attribute.optional, false);
  v.OptionalValue("default", attribute.default_value);
}

template <typename V>
void Describe(V& v, ResultDecl& result) {
  v.OptionalText("name", result.name, TextKind::kName);
  v.Object("type", result.type);
  v.OptionalValue("condition", result.condition);
}

template <typename V>
void Describe(V& v, WhereClause& where) {
  v.Text("variable", where.variable, TextKind::kName);
  v.Text("class", where.dtype_class, TextKind::kName);
}

template <typename V>
void Describe(V& v, LetClause& clause) {
  v.List("lets", clause.lets, 1);
}

template <typename V>
void Describe(V& v, ErrorClause& error) {
  v.Choice("kind", error.kind, {"shape", "type", "value"});
  v.Text("message", error.message, TextKind::kContents);
  v.Value("condition", error.condition);
}

template <typename V>
void Describe(V& v, Law& law) {
  v.Value("relation", law.relation);
  v.OptionalValue("condition", law.condition);
}

template <typename V>
void Describe(V& v, DomainClause& domain) {
  v.Value("condition", domain.condition);
}

template <typename V>
void Describe(V& v, SpecialClause& special) {
  v.Object("equation", special.equation);
  v.Value("condition", special.condition);
}

template <typename V>
void Describe(V& v, InputRange& on) {
  v.Text("input", on.input, TextKind::kName);
  v.Value("low", on.low);
  v.Value("high", on.high);
}

template <typename V>
void Describe(V& v, ApproximationClause& approximation) {
  v.Value("bound", approximation.bound);
  v.OptionalValue("cond", approximation.condition);
  v.OptionalList("on", approximation.on);
}

template <typename V>
void Describe(V& v, AccuracyClause& accuracy) {
  v.Text("dtype", accuracy.dtype, TextKind::kName);
  v.Value("bound", accuracy.bound);
  v.Choice("unit", accuracy.unit, {"ulp", "eps"});
  v.OptionalValue("cond", accuracy.condition);
  v.OptionalValue("of", accuracy.eps_of);
  v.OptionalList("on", accuracy.on);
}

template <typename V>
void Describe(V& v, AtenArgumentNode& node) {
  AtenArgument& argument = node.argument;
  v.Text("type", argument.type, TextKind::kAtenType);
  v.Text("name", argument.name, TextKind::kWord);
  std::string text = argument.default_text.value_or("");
  v.OptionalText("default", text, TextKind::kAtenDefault);
  if (!text.empty()) argument.default_text = text;
  v.Flag("keyword_only", argument.keyword_only, false);
}

template <typename V>
void Describe(V& v, AtenResultNode& node) {
  v.Text("type", node.result.type, TextKind::kAtenType);
  v.OptionalText("name", node.result.name, TextKind::kWord);
}

// Members for children [first, first + keys), which all must be there.
template <typename V>
void DescribeChildren(V& v, Expr& expr,
                      std::initializer_list<const char*> keys) {
  if (expr.children.size() < keys.size()) expr.children.resize(keys.size());
  size_t i = 0;
  for (const char* key : keys) v.Value(key, expr.children[i++]);
}

// A child after the others that may be absent.
template <typename V>
void DescribeLastChild(V& v, Expr& expr, size_t index, const char* key) {
  ExprPtr child;
  if (expr.children.size() > index) child = expr.children[index];
  v.OptionalValue(key, child);
  expr.children.resize(index);
  if (child != nullptr) expr.children.push_back(std::move(child));
}

// `over`: what a scan or a map runs over, each slice with its name.
template <typename V>
void DescribeSources(V& v, Expr& expr) {
  std::vector<NamedExpr> sources;
  for (size_t i = 0; i < expr.binders.size(); ++i) {
    sources.push_back(
        {expr.binders[i].name, expr.children[i], expr.children[i]->range});
  }
  v.List("over", sources, 1);
  expr.binders.clear();
  expr.children.clear();
  for (NamedExpr& source : sources) {
    Binder binder;
    binder.name = std::move(source.name);
    expr.binders.push_back(std::move(binder));
    expr.children.push_back(std::move(source.value));
  }
}

// The members of an expression beside `kind`, which is known.
template <typename V>
void Describe(V& v, Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kNumber:
      v.Text("text", expr.text, TextKind::kNumber);
      break;
    case ExprKind::kString:
      v.Text("text", expr.text, TextKind::kContents);
      break;
    case ExprKind::kName:
      v.Text("text", expr.text, TextKind::kName);
      break;
    case ExprKind::kUnary:
      v.Choice("operator", expr.text, {"-", "not"});
      DescribeChildren(v, expr, {"operand"});
      break;
    case ExprKind::kBinary:
      v.Choice("operator", expr.text,
               {"+",  "-", "*",  "/",   "//", "%",  "^",  "@",  "==", "!=", "<",
                "<=", ">", ">=", "and", "or", "??", "++", "..", "in", "is"});
      DescribeChildren(v, expr, {"left", "right"});
      break;
    case ExprKind::kIf:
      DescribeChildren(v, expr, {"condition", "then"});
      DescribeLastChild(v, expr, 2, "else");
      break;
    case ExprKind::kCall:
      v.Text("callee", expr.text, TextKind::kCallee);
      v.Values("arguments", expr.children);
      v.OptionalList("attributes", expr.named);
      break;
    case ExprKind::kTransformCall:
      v.Choice("transform", expr.text, {"jvp", "vjp"});
      v.Text("callee", expr.callee, TextKind::kName);
      v.Values("primals", expr.children);
      v.OptionalList("attributes", expr.named);
      v.Values("tangents", expr.seconds);
      v.OptionalList("named_tangents", expr.named_seconds);
      break;
    case ExprKind::kMember:
      DescribeChildren(v, expr, {"value"});
      v.Text("member", expr.text, TextKind::kWord);
      break;
    case ExprKind::kIndex: {
      DescribeChildren(v, expr, {"value"});
      std::vector<ExprPtr> indices(expr.children.begin() + 1,
                                   expr.children.end());
      v.Values("indices", indices);
      expr.children.resize(1);
      expr.children.insert(expr.children.end(), indices.begin(), indices.end());
      break;
    }
    case ExprKind::kSpread:
      DescribeChildren(v, expr, {"value"});
      break;
    case ExprKind::kList:
      v.Values("elements", expr.children);
      break;
    case ExprKind::kComprehension:
      DescribeChildren(v, expr, {"element"});
      if (expr.binders.empty()) expr.binders.emplace_back();
      v.Text("name", expr.binders[0].name, TextKind::kName);
      if (expr.children.size() < 2) expr.children.resize(2);
      v.Value("list", expr.children[1]);
      DescribeLastChild(v, expr, 2, "condition");
      break;
    case ExprKind::kRecord:
      v.List("fields", expr.fields, 0);
      break;
    case ExprKind::kReduce:
      v.Choice("reduction", expr.text,
               {"sum", "prod", "max", "min", "argmax", "argmin"});
      v.List("indices", expr.binders, 1);
      DescribeChildren(v, expr, {"element"});
      DescribeLastChild(v, expr, 1, "condition");
      break;
    case ExprKind::kFold:
      if (expr.fields.empty()) expr.fields.emplace_back();
      v.Text("carry", expr.fields[0].name, TextKind::kName);
      v.Value("first", expr.fields[0].value);
      if (expr.binders.empty()) expr.binders.emplace_back();
      v.Text("name", expr.binders[0].name, TextKind::kName);
      DescribeChildren(v, expr, {"list"});
      v.Statements("body", expr.body);
      break;
    case ExprKind::kScan:
      v.List("carries", expr.fields, 1);
      DescribeSources(v, expr);
      v.Statements("body", expr.body);
      break;
    case ExprKind::kMap:
      DescribeSources(v, expr);
      v.Statements("body", expr.body);
      break;
    case ExprKind::kCond:
      DescribeChildren(v, expr, {"condition"});
      v.Statements("then", expr.body);
      v.Statements("else", expr.else_body);
      break;
    case ExprKind::kWhile:
      v.List("carries", expr.fields, 1);
      DescribeChildren(v, expr, {"condition"});
      DescribeLastChild(v, expr, 1, "max");
      v.Statements("body", expr.body);
      break;
    case ExprKind::kTie:
      DescribeChildren(v, expr, {"call"});
      v.Choice("choice", expr.text, {"first", "second"});
      break;
  }
}

// The members of a statement beside `kind`.
template <typename V>
void Describe(V& v, Statement& statement) {
  v.OptionalTexts("comments", statement.comments, TextKind::kComment);
  if (statement.kind == StatementKind::kVmap ||
      statement.kind == StatementKind::kVjp) {
    v.List("inputs", statement.inputs, 1);
    v.Value("value", statement.equation.value);
    return;
  }
  if (statement.kind == StatementKind::kJvp) {
    std::string tangent =
        statement.inputs.empty() ? "" : statement.inputs[0].name;
    v.OptionalText("tangent", tangent, TextKind::kName);
    const SourceRange range =
        statement.inputs.empty() ? SourceRange() : statement.inputs[0].range;
    statement.inputs.clear();
    if (!tangent.empty()) {
      statement.inputs.push_back({std::move(tangent), false, range});
    }
  }
  Describe(v, statement.equation);
}

template <typename V>
void DescribeClauses(V& v, Item& item) {
  v.OptionalList("where", item.where);
  std::vector<LetClause> clauses;
  size_t next = 0;
  for (int count : item.let_clauses) {
    LetClause clause;
    for (; count > 0 && next < item.lets.size(); --count, ++next) {
      clause.lets.push_back(item.lets[next]);
    }
    clauses.push_back(std::move(clause));
  }
  v.OptionalList("let", clauses);
  item.lets.clear();
  item.let_clauses.clear();
  for (LetClause& clause : clauses) {
    item.let_clauses.push_back(static_cast<int>(clause.lets.size()));
    for (NamedExpr& let : clause.lets) item.lets.push_back(std::move(let));
  }
  if (item.kind != ItemKind::kOp) v.OptionalList("mutates", item.mutates);
  v.Flag("compute_acc", item.compute_acc, false);
  v.OptionalList("errors", item.errors);
  v.OptionalList("domain", item.domains);
  v.OptionalStatements("spec", item.spec);
  v.OptionalList("laws", item.laws);
  v.OptionalList("special", item.specials);
  v.OptionalList("approximates", item.approximations);
  v.OptionalList("accuracy", item.accuracies);
}

template <typename V>
void DescribeAten(V& v, Item& item) {
  std::vector<AtenArgumentNode> arguments;
  for (AtenArgument& argument : item.aten_arguments) {
    const SourceRange range = argument.range;
    arguments.push_back({std::move(argument), range});
  }
  std::vector<AtenResultNode> results;
  for (AtenArgument& result : item.aten_results) {
    const SourceRange range = result.range;
    results.push_back({std::move(result), range});
  }
  v.Text("name", item.name, TextKind::kWords);
  v.List("arguments", arguments, 0);
  v.List("results", results, 0);
  item.aten_arguments.clear();
  item.aten_results.clear();
  for (AtenArgumentNode& node : arguments) {
    item.aten_arguments.push_back(std::move(node.argument));
  }
  for (AtenResultNode& node : results) {
    item.aten_results.push_back(std::move(node.result));
  }
}

// The members of an item beside `kind` and `blank_before`.
template <typename V>
void Describe(V& v, Item& item) {
  v.OptionalTexts("docs", item.docs, TextKind::kComment);
  switch (item.kind) {
    case ItemKind::kOp:
    case ItemKind::kOnnx:
      v.Text("name", item.name, TextKind::kName);
      if (item.kind == ItemKind::kOnnx) v.Integer("opset", item.opset, 1);
      v.List("inputs", item.inputs, 0);
      v.OptionalList("attributes", item.attributes);
      v.List("results", item.results, 1);
      DescribeClauses(v, item);
      if (item.kind == ItemKind::kOp) {
        v.OptionalStatements("body", item.body);
      } else {
        v.Statements("body", item.body);
      }
      break;
    case ItemKind::kAten:
      DescribeAten(v, item);
      DescribeClauses(v, item);
      v.Statements("body", item.body);
      break;
    case ItemKind::kFn:
      v.Text("name", item.name, TextKind::kName);
      v.List("inputs", item.inputs, 0);
      v.List("results", item.results, 1);
      v.Statements("body", item.body);
      break;
    case ItemKind::kNumeric:
      v.Text("name", item.name, TextKind::kName);
      v.List("inputs", item.inputs, 0);
      v.Value("within", item.within);
      v.Statements("body", item.body);
      break;
    case ItemKind::kOverride:
      v.Text("name", item.name, TextKind::kName);
      v.Statements("body", item.body);
      break;
    case ItemKind::kDef:
    case ItemKind::kJvp:
      v.Text("name", item.name, TextKind::kName);
      v.Texts("parameters", item.parameters, TextKind::kName, 0);
      v.Statements("body", item.body);
      break;
    case ItemKind::kRewrite:
      v.Text("name", item.name, TextKind::kName);
      v.Value("left", item.left);
      v.Value("right", item.right);
      v.Flag("real", item.real, false);
      v.OptionalList("where", item.where);
      break;
    case ItemKind::kExample:
      v.Value("call", item.left);
      v.Value("value", item.right);
      v.Flag("approximate", item.approximate, false);
      break;
  }
}

}  // namespace cleave::internal

#endif  // CLEAVE_ENGINE_LANG_JSON_DESCRIBE_H_
