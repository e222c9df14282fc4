#include "testing/check/reference/clause_writer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/lang/ast.h"
#include "engine/lang/build_expr.h"
#include "testing/check/reference/conjuncts.h"
#include "testing/check/samples/expr_names.h"

namespace cleave {
namespace {

using build_expr::Binary;
using build_expr::Call;
using build_expr::Name;
using build_expr::Number;
using build_expr::Of;

// `value[i, s..]`.
ExprPtr At(ExprPtr value, const std::vector<Binder>& indices) {
  std::vector<ExprPtr> children = {std::move(value)};
  for (const Binder& index : indices) {
    children.push_back(index.pack
                           ? Of(ExprKind::kSpread, "", {Name(index.name)})
                           : Name(index.name));
  }
  if (children.size() == 1) return children[0];
  return Of(ExprKind::kIndex, "", std::move(children));
}

// Whether `jvp f(..)(..)` or `vjp f(..)(..)` occurs in it.
bool Differentiates(const ExprPtr& expr) {
  if (expr == nullptr) return false;
  if (expr->kind == ExprKind::kTransformCall) return true;
  return std::any_of(expr->children.begin(), expr->children.end(),
                     Differentiates) ||
         std::any_of(expr->named.begin(), expr->named.end(),
                     [](const NamedExpr& named) {
                       return Differentiates(named.value);
                     });
}

// Indices that stand in brackets and are bound by no reduction, in the order
// of their first use: those over which a law ranges.
void CollectFreeIndices(const ExprPtr& expr, bool in_index,
                        const std::set<std::string>& bound,
                        std::vector<Binder>& free) {
  if (expr == nullptr) return;
  const auto add = [&](const std::string& name, bool pack) {
    if (bound.count(name) != 0) return;
    for (const Binder& binder : free) {
      if (binder.name == name) return;
    }
    Binder binder;
    binder.name = name;
    binder.pack = pack;
    free.push_back(std::move(binder));
  };
  switch (expr->kind) {
    case ExprKind::kName:
      if (in_index) add(expr->text, false);
      return;
    case ExprKind::kSpread:
      if (in_index && expr->children[0]->kind == ExprKind::kName) {
        add(expr->children[0]->text, true);
      }
      return;
    case ExprKind::kIndex:
      CollectFreeIndices(expr->children[0], false, bound, free);
      for (size_t i = 1; i < expr->children.size(); ++i) {
        CollectFreeIndices(expr->children[i], true, bound, free);
      }
      return;
    case ExprKind::kReduce: {
      std::set<std::string> inner = bound;
      for (const Binder& binder : expr->binders) inner.insert(binder.name);
      for (const ExprPtr& child : expr->children) {
        CollectFreeIndices(child, false, inner, free);
      }
      return;
    }
    default:
      for (const ExprPtr& child : expr->children) {
        CollectFreeIndices(child, in_index, bound, free);
      }
  }
}

// The op's signature without its clauses.
Item SignatureOnly(const Item& item, std::string name) {
  Item result;
  result.kind = ItemKind::kOp;
  result.name = std::move(name);
  result.inputs = item.inputs;
  result.attributes = item.attributes;
  result.where = item.where;
  result.lets = item.lets;
  result.let_clauses = item.let_clauses;
  return result;
}

void SetBody(Item& item, std::vector<Statement> statements) {
  auto body = std::make_shared<Body>();
  body->statements = std::move(statements);
  body->braces =
      body->statements.size() > 1 || body->statements[0].equation.indexed;
  item.body = std::move(body);
}

// A dtype of its own for what is expected, where an attribute gives that of the
// result: inputs are bound before attributes.
constexpr char kExpectedDType[] = "ExpectedDType";
constexpr char kExpectedShape[] = "ExpectedShape";

// The name that the result's dtype goes by; empty if it is computed.
std::string DTypeNameOf(const ResultDecl& result) {
  const ExprPtr& dtype = result.type.dtype;
  return dtype != nullptr && dtype->kind == ExprKind::kName ? dtype->text : "";
}

bool IsAttribute(const Item& item, const std::string& name) {
  return std::any_of(
      item.attributes.begin(), item.attributes.end(),
      [&](const AttributeDecl& attribute) { return attribute.name == name; });
}

// The names of extents that the inputs of a call may not give: attributes,
// those of `let`, and those of inputs that may be absent alone.
std::set<std::string> UnboundNames(const Item& item) {
  std::set<std::string> required;
  std::set<std::string> unbound;
  for (const InputDecl& input : item.inputs) {
    for (const AxisExpr& axis : input.type.axes) {
      CollectNames(axis.size, input.optional ? unbound : required);
    }
  }
  for (const std::string& name : required) unbound.erase(name);
  for (const AttributeDecl& attribute : item.attributes) {
    unbound.insert(attribute.name);
  }
  for (const NamedExpr& let : item.lets) unbound.insert(let.name);
  return unbound;
}

// An op like `item` with the further input `expected_`, of the type of
// `result`, and one result of that type: `value` at `indices`.
Item ResultOp(const Item& item, const ResultDecl& result, std::string name,
              const std::vector<Binder>& indices, bool indexed, ExprPtr value) {
  Item op = SignatureOnly(item, std::move(name));
  ResultDecl declared = result;
  declared.condition = nullptr;
  // Clauses speak of floats: what an integer cannot be is no mistake.
  if (IsAttribute(item, DTypeNameOf(result))) {
    declared.type.dtype = Name(kExpectedDType);
    WhereClause where;
    where.variable = kExpectedDType;
    where.dtype_class = "inexact";
    op.where.push_back(std::move(where));
  } else {
    for (WhereClause& where : op.where) {
      if (where.variable != DTypeNameOf(result)) continue;
      if (where.dtype_class == "real") where.dtype_class = "float";
      if (where.dtype_class == "number" || where.dtype_class == "any") {
        where.dtype_class = "inexact";
      }
    }
  }
  InputDecl expected;
  expected.name = kExpectedInput;
  expected.type = declared.type;
  // So with a shape that the inputs alone do not give.
  std::set<std::string> in_shape;
  for (const AxisExpr& axis : result.type.axes) {
    CollectNames(axis.size, in_shape);
  }
  const std::set<std::string> unbound = UnboundNames(item);
  const bool computed = std::any_of(
      in_shape.begin(), in_shape.end(),
      [&](const std::string& name) { return unbound.count(name) != 0; });
  if (computed) {
    AxisExpr axes;
    axes.size = Of(ExprKind::kSpread, "", {Name(kExpectedShape)});
    expected.type.axes = {std::move(axes)};
  }
  op.inputs.push_back(std::move(expected));
  op.results = {declared};
  Equation equation;
  equation.name = declared.name.empty() ? "y" : declared.name;
  equation.indices = indices;
  equation.indexed = indexed;
  equation.value = std::move(value);
  Statement statement;
  statement.kind = StatementKind::kResult;
  if (declared.name.empty()) {
    if (!indexed) equation.name.clear();
    statement.equation = std::move(equation);
  } else {
    auto record = std::make_shared<Expr>();
    record->kind = ExprKind::kRecord;
    record->fields = {std::move(equation)};
    statement.equation.value = std::move(record);
  }
  SetBody(op, {std::move(statement)});
  return op;
}

class ClauseWriter {
 public:
  explicit ClauseWriter(const Item& item) : item_(item) {
    for (const InputDecl& input : item.inputs) {
      if (!input.is_static) tensors_.insert(input.name);
    }
  }

  WrittenClauses Write() {
    for (const SpecialClause& special : item_.specials) {
      Begin("special", special.range);
      WriteSpecial(special);
    }
    for (const DomainClause& domain : item_.domains) {
      Begin("domain", domain.range);
      const std::vector<ExprPtr> conditions = ConditionsOf(domain);
      for (const ResultDecl& result : item_.results) {
        for (const ExprPtr& condition : conditions) {
          WriteDomain(condition, result);
        }
      }
    }
    for (const ApproximationClause& approximation : item_.approximations) {
      Begin("approximates", approximation.range);
      written_.clauses.approximations.push_back(
          {Factor(approximation.bound), Factor(approximation.condition),
           OnFactor(approximation.on)});
    }
    for (const AccuracyClause& accuracy : item_.accuracies) {
      Begin("accuracy", accuracy.range);
      WriteAccuracy(accuracy);
    }
    for (const Law& law : item_.laws) {
      Begin("spec", law.range);
      WriteLaw(law);
    }
    return std::move(written_);
  }

 private:
  // The ops that are added from here on are of this clause.
  void Begin(const char* clause, const SourceRange& range) {
    clause_ = clause;
    begin_ = range.begin;
  }

  void Add(Item op) {
    written_.items.push_back({std::move(op), clause_, begin_});
  }

  std::string NewName(absl::string_view kind) {
    return absl::StrCat(item_.name, "__", kind, "_", written_.items.size());
  }

  const ResultDecl& ResultOf(const std::string& name) const {
    for (const ResultDecl& result : item_.results) {
      if (result.name == name) return result;
    }
    return item_.results.front();
  }

  ExprPtr Chosen(const ExprPtr& condition, const ExprPtr& then,
                 const ExprPtr& otherwise) const {
    if (IsStatic(condition)) {
      return Of(ExprKind::kIf, "", {condition, then, otherwise});
    }
    return Call("select", {condition, then, otherwise});
  }

  void WriteSpecial(const SpecialClause& special) {
    const Equation& equation = special.equation;
    const ResultDecl& result = ResultOf(equation.name);
    const ExprPtr otherwise = At(Name(kExpectedInput), equation.indices);
    ExprPtr value;
    if (special.condition == nullptr) {
      value = equation.value;
    } else {
      value = Chosen(special.condition, equation.value, otherwise);
    }
    const std::string name = NewName("special");
    Add(ResultOp(item_, result, name, equation.indices, equation.indexed,
                 std::move(value)));
    written_.clauses.specials.push_back({name, result.name});
  }

  // Whether one holds may be far cheaper to say than whether others do. One
  // that names no operand stays with another: it may be of tensors, too.
  std::vector<ExprPtr> ConditionsOf(const DomainClause& domain) const {
    std::vector<ExprPtr> conditions = IndependentConjuncts(domain.condition);
    const auto fixed = std::stable_partition(
        conditions.begin(), conditions.end(),
        [&](const ExprPtr& condition) { return !IsStatic(condition); });
    if (fixed == conditions.begin()) return {domain.condition};
    for (auto it = fixed; it != conditions.end(); ++it) {
      conditions[0] = Binary(conditions[0], "and", *it);
    }
    conditions.erase(fixed, conditions.end());
    return conditions;
  }

  void WriteDomain(const ExprPtr& condition, const ResultDecl& result) {
    if (DTypeNameOf(result) == "bool") return;
    const ExprPtr zero = Name(kExpectedInput);
    const ExprPtr one = Of(ExprKind::kBinary, "+", {zero, Number("1")});
    const std::string name = NewName("domain");
    // All dtypes have a domain, also one that an attribute gives.
    ResultDecl counted = result;
    if (counted.type.dtype != nullptr) counted.type.dtype = Name(kDomainDType);
    Add(ResultOp(item_, counted, name, {}, false,
                 Chosen(condition, one, zero)));
    written_.clauses.domains.push_back({name, result.name});
  }

  ClauseFactor Factor(const ExprPtr& expr) {
    return FactorAt(expr, item_.results.front(), Equation());
  }

  // `x >= low and x <= high` of all ranges, as 1 and 0.
  std::optional<ClauseFactor> OnFactor(const std::vector<InputRange>& ranges) {
    if (ranges.empty()) return std::nullopt;
    ExprPtr holds;
    for (const InputRange& on : ranges) {
      for (const auto& [comparison, bound] :
           {std::pair(">=", on.low), std::pair("<=", on.high)}) {
        const ExprPtr side =
            Of(ExprKind::kBinary, comparison, {Name(on.input), bound});
        holds = holds == nullptr ? side : Binary(holds, "and", side);
      }
    }
    return Factor(Call("select", {holds, Number("1"), Number("0")}));
  }

  // `expr` in the indices of `equation`, of which `result` is the result.
  ClauseFactor FactorAt(const ExprPtr& expr, const ResultDecl& result,
                        const Equation& equation) {
    ClauseFactor factor;
    if (expr == nullptr) return factor;
    if (expr->kind == ExprKind::kNumber &&
        absl::SimpleAtod(expr->text, &factor.literal)) {
      return factor;
    }
    factor.op = NewName("factor");
    // 0 expected_ gives it a dtype and a shape.
    Item op = ResultOp(
        item_, result, factor.op, equation.indices, equation.indexed,
        Typed(expr, result, At(Name(kExpectedInput), equation.indices)));
    std::vector<Statement> body = LetsOfBounds(equation.indices);
    body.push_back(op.body->statements.back());
    SetBody(op, std::move(body));
    Add(std::move(op));
    return factor;
  }

  // `expr` in the dtype and the shape of `expected`, of the type of `result`.
  ExprPtr Typed(const ExprPtr& expr, const ResultDecl& result,
                ExprPtr expected) const {
    ExprPtr value = expr;
    if (!IsStatic(expr) && result.type.dtype != nullptr) {
      const ExprPtr dtype = IsAttribute(item_, DTypeNameOf(result))
                                ? Name(kExpectedDType)
                                : result.type.dtype;
      value = Call("convert", {expr}, {{"dtype", dtype, {}}});
    }
    return Of(ExprKind::kBinary, "+",
              {std::move(value),
               Of(ExprKind::kBinary, "*", {Number("0"), std::move(expected)})});
  }

  void WriteAccuracy(const AccuracyClause& accuracy) {
    AccuracyOp op;
    op.dtype = accuracy.dtype;
    op.on = OnFactor(accuracy.on);
    op.is_eps = accuracy.unit == "eps";
    if (!op.is_eps) {
      op.ulp = Factor(accuracy.bound);
      op.condition = Factor(accuracy.condition);
    } else {
      for (const Equation& equation : SpecResults()) {
        const ResultDecl& result = ResultOf(equation.name);
        EpsBound& bound = op.eps[result.name];
        bound.factor = FactorAt(accuracy.bound, result, equation);
        bound.size =
            FactorAt(accuracy.eps_of == nullptr ? Number("1") : accuracy.eps_of,
                     result, equation);
      }
    }
    written_.clauses.accuracies.push_back(std::move(op));
  }

  // The `let`s of the spec on which the bounds of its indices rest, in order.
  std::vector<Statement> LetsOfBounds(
      const std::vector<Binder>& indices) const {
    std::set<std::string> names;
    for (const Binder& index : indices) CollectNames(index.bound, names);
    std::vector<Statement> lets;
    if (item_.spec == nullptr) return lets;
    const std::vector<Statement>& all = item_.spec->statements;
    for (auto it = all.rbegin(); it != all.rend(); ++it) {
      if (it->kind != StatementKind::kLet ||
          names.count(it->equation.name) == 0) {
        continue;
      }
      CollectNames(it->equation.value, names);
      for (const Binder& index : it->equation.indices) {
        CollectNames(index.bound, names);
      }
      lets.insert(lets.begin(), *it);
    }
    return lets;
  }

  // The equations of the spec's results; whole arrays if it has none.
  std::vector<Equation> SpecResults() const {
    std::vector<Equation> equations;
    if (item_.spec != nullptr && !item_.spec->statements.empty()) {
      const Equation& last = item_.spec->statements.back().equation;
      if (last.value != nullptr && last.value->kind == ExprKind::kRecord) {
        equations = last.value->fields;
      } else {
        equations = {last};
      }
    }
    if (equations.empty()) equations.emplace_back();
    return equations;
  }

  // Tensors, sizes, attributes: `n` in `y[n - 1 - i]` is no index.
  std::set<std::string> NamesOfSignature() const {
    std::set<std::string> names(tensors_.begin(), tensors_.end());
    for (const InputDecl& input : item_.inputs) {
      for (const AxisExpr& axis : input.type.axes) {
        CollectNames(axis.size, names);
      }
    }
    for (const AttributeDecl& attribute : item_.attributes) {
      names.insert(attribute.name);
    }
    for (const NamedExpr& let : item_.lets) names.insert(let.name);
    return names;
  }

  void WriteLaw(const Law& law) {
    Item op = SignatureOnly(item_, NewName("law"));
    std::set<std::string> names;
    for (const ResultDecl& result : item_.results) {
      InputDecl input;
      input.name = result.name.empty() ? "y" : result.name;
      input.type = result.type;
      for (AxisExpr& axis : input.type.axes) axis.is_new = false;
      // A size or pack that `let` gives: an input binds one of its own.
      for (AxisExpr& axis : input.type.axes) axis.size = BoundHere(axis.size);
      op.inputs.push_back(std::move(input));
    }
    std::vector<Binder> free;
    const std::set<std::string> bound = NamesOfSignature();
    CollectFreeIndices(law.relation, false, bound, free);
    CollectFreeIndices(law.condition, false, bound, free);
    ExprPtr holds = law.relation;
    if (law.condition != nullptr) {
      // Neither a static `if` nor a static first operand: without the relation
      // the indices have no ranges.
      holds = Of(ExprKind::kBinary, "or",
                 {law.relation, Of(ExprKind::kUnary, "not", {law.condition})});
    }
    ResultDecl result;
    result.type.dtype = Name("bool");
    result.type.has_shape = true;
    op.results = {result};
    Statement all;
    all.kind = StatementKind::kLet;
    all.equation.name = "holds_";
    all.equation.indices = free;
    all.equation.indexed = !free.empty();
    all.equation.value = std::move(holds);
    Statement last;
    const ExprPtr rank = Call("len", {Call("shape", {Name("holds_")})});
    last.equation.value =
        Call("reduce_all", {Name("holds_")},
             {{"axes", Of(ExprKind::kBinary, "..", {Number("0"), rank}), {}},
              {"keepdims", Name("false"), {}}});
    SetBody(op, {std::move(all), std::move(last)});
    std::string text = PrintExpr(*law.relation);
    if (law.condition != nullptr) {
      absl::StrAppend(&text, " if ", PrintExpr(*law.condition));
    }
    written_.clauses.laws.push_back(
        {op.name, std::move(text), law.range.begin,
         Differentiates(law.relation) || Differentiates(law.condition)});
    Add(std::move(op));
  }

  // The name, or the spread of one, under a name that no `let` has.
  ExprPtr BoundHere(const ExprPtr& size) const {
    if (size->kind == ExprKind::kSpread) {
      return Of(ExprKind::kSpread, "", {BoundHere(size->children[0])});
    }
    for (const NamedExpr& let : item_.lets) {
      if (size->kind == ExprKind::kName && let.name == size->text) {
        return Name(absl::StrCat("Expected", let.name));
      }
    }
    return size;
  }

  // No tensor occurs in it.
  bool IsStatic(const ExprPtr& expr) const {
    std::set<std::string> names;
    CollectNames(expr, names);
    for (const std::string& name : names) {
      if (tensors_.count(name) != 0) return false;
    }
    return true;
  }

  const Item& item_;
  std::set<std::string> tensors_;
  WrittenClauses written_;
  std::string clause_;  // that which is written
  uint32_t begin_ = 0;
};

}  // namespace

WrittenClauses WriteClauses(const Item& item) {
  return ClauseWriter(item).Write();
}

}  // namespace cleave
