// The syntax tree of a rule file: ParseRules makes it, the printer and the JSON
// twin write it, the checker and the compiler read it. Parentheses are not
// kept: the printer puts them where precedence needs them. Comments are.

#ifndef CLEAVE_ENGINE_LANG_AST_H_
#define CLEAVE_ENGINE_LANG_AST_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/lang/source.h"

namespace cleave {

struct Expr;
struct Body;
using ExprPtr = std::shared_ptr<const Expr>;
using BodyPtr = std::shared_ptr<const Body>;

enum class ExprKind : uint8_t {
  kNumber,  // text: the literal as written ("1e-5", "12")
  kString,  // text: contents, unescaped
  kName,    // text; also inf, nan, true, false, dtypes, enum values, `_`
  kUnary,   // text: - not;  children: operand
  kBinary,  // text: + - * / // % ^ @ == != < <= > >= and or ?? ++ .. in is
  kIf,      // children: condition, then[, else]
  kCall,    // text: callee; children: positional; named: attributes
  kTransformCall,  // text: jvp vjp; callee; children: primals; named; seconds:
                   // tangents or cotangents (a named one in named_seconds)
  kMember,         // children: record; text: member
  kIndex,   // children: value, then indices (kSpread, kBinary `..` slice)
  kSpread,  // children: list; `e..`
  kList,    // children
  kComprehension,  // children: element, list[, condition]; binders: one name
  kRecord,         // fields; `(a, b)` has fields without names
  kReduce,         // text: sum prod max min argmax argmin; binders;
                   // children: element[, condition]
  kFold,           // binders[0].name = init: fields[0]; binders[0] is x;
                   // children: list; body
  kScan,           // fields: carries; binders + children: `t in xs` pairs; body
  kMap,            // binders + children: `t in xs` pairs; body
  kCond,           // children: predicate; body, else_body
  kWhile,          // fields: carries; children: predicate[, bound]; body
  kTie,            // children: call; text: first second
};

// An index where it is bound: `i`, `i < n`, `s..`, `s.. < P`.
struct Binder {
  std::string name;
  bool pack = false;
  ExprPtr bound;  // null: the range comes from where the index stands
  SourceRange range;
};

struct NamedExpr {
  std::string name;
  ExprPtr value;
  SourceRange range;
};

// `name = e` or `name[i, s..] = e`, of records, bodies and results. A pattern
// index may be a computed one only in specs given as laws (kept in Law).
struct Equation {
  std::string name;
  std::vector<Binder> indices;
  bool indexed = false;  // `y[] = e` has none but is indexed
  ExprPtr value;
  SourceRange range;
};

struct Expr {
  ExprKind kind = ExprKind::kName;
  std::string text;
  std::string callee;
  std::vector<ExprPtr> children;
  std::vector<NamedExpr> named;
  std::vector<ExprPtr> seconds;
  std::vector<NamedExpr> named_seconds;
  std::vector<Equation> fields;
  std::vector<Binder> binders;
  BodyPtr body;
  BodyPtr else_body;
  SourceRange range;
};

enum class StatementKind : uint8_t { kLet, kResult, kJvp, kVmap, kVjp };

// One line of a body. kLet: `let equation`. kResult: the last one: an
// expression (equation.name empty), `y[i] = e`, or a record expression.
// Overrides: `jvp x = e` and `jvp x (t) = e`; `vmap (x, w@_) = e`;
// `vjp (dy) = (x = e, ..)`.
struct Statement {
  StatementKind kind = StatementKind::kResult;
  std::vector<std::string> comments;
  Equation equation;  // of an override, the value; of kJvp, name is the input
  struct OverrideInput {
    std::string name;
    bool unbatched = false;
    SourceRange range;
  };
  // The inputs that kVmap and kVjp name: `vmap (x, w@_)` has x and w. For kJvp
  // the tangent, if the line names it: t in `jvp x (t) = ..`.
  std::vector<OverrideInput> inputs;
  SourceRange range;
};

struct Body {
  bool braces = false;  // `{ .. }`, or `= e`
  std::vector<Statement> statements;
  SourceRange range;
};

// One axis of a tensor type: an expression (`n`, `4 * H`), `S..` (kSpread),
// `n@axis`, or `new n <= bound`.
struct AxisExpr {
  ExprPtr size;
  std::string at;  // the axis attribute of `n@axis`
  bool is_new = false;
  ExprPtr bound;  // of `new n <= bound`
  SourceRange range;
};

// `T[A.., n@axis]`, `key`, and for hosts a bare `Tensor`.
struct TypeExpr {
  ExprPtr dtype;
  bool has_shape = false;
  std::vector<AxisExpr> axes;
  SourceRange range;
};

struct InputDecl {
  std::string name;
  std::string variadic_index;  // of `xs[i]: ..`
  bool is_static = false;
  bool optional = false;
  TypeExpr type;
  SourceRange range;
};

struct AttributeDecl {
  std::string name;
  // "int real bool str dim dtype scalar enum axis axes".
  std::string type;
  std::vector<std::string> enum_values;
  std::string axis_of;  // of axis(x), axes(x)
  bool list = false;    // `int[]`, `int[2]`, `int[len(S)]`
  ExprPtr list_length;
  bool optional = false;
  ExprPtr default_value;
  SourceRange range;
};

struct ResultDecl {
  std::string name;  // empty for the one unnamed result
  TypeExpr type;
  ExprPtr condition;
  SourceRange range;
};

struct WhereClause {
  std::string variable;
  std::string dtype_class;
  SourceRange range;
};

struct ErrorClause {
  std::string kind;  // shape type value
  std::string message;
  ExprPtr condition;
  SourceRange range;
};

// `e == e if COND`: indices that are free range over all their values.
struct Law {
  ExprPtr relation;
  ExprPtr condition;
  SourceRange range;
};

// `domain x >= 0`: nothing is claimed of results where it does not hold.
struct DomainClause {
  ExprPtr condition;
  SourceRange range;
};

struct SpecialClause {
  Equation equation;
  ExprPtr condition;
  SourceRange range;
};

// `x in [0, 8]`: the elements at which a claim holds, both ends included.
struct InputRange {
  std::string input;
  ExprPtr low;
  ExprPtr high;
  SourceRange range;
};

// `approximates within 2^-70 + 2^-70 cond on x in [8, inf]`: how far the body
// may be from the spec over the reals, as a part of the spec.
struct ApproximationClause {
  ExprPtr bound;
  ExprPtr condition;           // the factor of cond, or null
  std::vector<InputRange> on;  // all elements where there is none
  SourceRange range;
};

// `accuracy T within 2 ulp + 2 cond on x in [0, 8]`, `within n eps * e`.
struct AccuracyClause {
  std::string dtype;
  ExprPtr bound;               // the factor of ulp or eps
  std::string unit;            // ulp, eps
  ExprPtr condition;           // the factor of cond, or null
  ExprPtr eps_of;              // e of `eps * e`, or null
  std::vector<InputRange> on;  // all elements where there is none
  SourceRange range;
};

// PyTorch's schema, verbatim: `Tensor(a!)? x=None`.
struct AtenArgument {
  std::string type;  // "Tensor", "Tensor?", "Tensor(a!)", "SymInt[2]", ...
  std::string name;  // empty for unnamed results
  std::optional<std::string> default_text;
  bool keyword_only = false;
  SourceRange range;
};

enum class ItemKind : uint8_t {
  kOp,
  kDef,
  kAten,
  kOnnx,
  kJvp,
  kNumeric,
  kRewrite,
  kExample,
  kFn,
  kOverride,
};

// One item; the fields that its kind has.
struct Item {
  ItemKind kind = ItemKind::kOp;
  std::vector<std::string> docs;  // `///` lines above it, without the marks
  std::string name;               // aten: "add.Tensor"
  std::vector<InputDecl> inputs;  // op, fn, numeric, onnx
  std::vector<AttributeDecl> attributes;  // op, onnx
  std::vector<ResultDecl> results;        // op, fn, onnx
  std::vector<std::string> parameters;    // def, jvp
  std::vector<AtenArgument> aten_arguments;
  std::vector<AtenArgument> aten_results;
  int opset = 0;                   // onnx
  std::vector<WhereClause> where;  // rewrite: of operands
  std::vector<NamedExpr> lets;
  std::vector<int> let_clauses;   // how many of `lets` each `let` declares
  std::vector<Equation> mutates;  // `mutates arg = e`
  bool compute_acc = false;
  std::vector<ErrorClause> errors;
  std::vector<DomainClause> domains;
  BodyPtr spec;           // an equation or a body
  std::vector<Law> laws;  // or laws
  std::vector<SpecialClause> specials;
  std::vector<ApproximationClause> approximations;
  std::vector<AccuracyClause> accuracies;
  // Overrides are its last statements. The body of an op without a
  // decomposition has no result, or is null. The body of an `override` has the
  // lines that replace those of the op.
  BodyPtr body;
  ExprPtr left;              // rewrite: pattern; example: the call
  ExprPtr right;             // rewrite; example: the value
  bool real = false;         // rewrite: over the reals only
  bool approximate = false;  // example: `~`
  ExprPtr within;            // numeric: ulp
  SourceRange range;
};

// Whether the body has a statement of this kind: an override, say. One that is
// null has none.
bool Declares(const BodyPtr& body, StatementKind kind);

// A file: items with the comments and blank lines between them, in order.
struct RuleFile {
  int language = 1;
  // A `//` comment block (its lines without the marks) or an item.
  struct Entry {
    std::vector<std::string> comments;  // a free comment block, if no item
    std::optional<Item> item;
    bool blank_before = true;
  };
  std::vector<Entry> entries;
};

// Canonical text (`cleave fmt`); Parse(Print(file)) == file, and printing is
// idempotent.
std::string PrintRuleFile(const RuleFile& file);
std::string PrintExpr(const Expr& expr);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_LANG_AST_H_
