#include "testing/mutate/equivalence.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/call_attributes.h"
#include "engine/ir/graph_key.h"
#include "engine/lang/walk_expr.h"
#include "engine/rules/rewrite_rule.h"
#include "ops/check.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"
#include "testing/check/layers/read_example.h"
#include "testing/check/samples/attribute_values.h"
#include "testing/mutate/equal_graphs.h"

namespace cleave {
namespace {

// Combinations that RuleSet::SymbolicCalls makes all of.
constexpr int64_t kMaxCombinations = 64;

// The dtype variable of an input; nullopt where its dtype is computed, "" where
// it is fixed.
std::optional<std::string> VariableOf(const Item& item,
                                      const InputDecl& input) {
  const ExprPtr& dtype = input.type.dtype;
  if (dtype == nullptr || dtype->kind != ExprKind::kName) return std::nullopt;
  for (const WhereClause& where : item.where) {
    if (where.variable == dtype->text) return dtype->text;
  }
  if (ParseDType(dtype->text).ok()) return "";
  return std::nullopt;
}

// The attribute of that name; null where there is none.
const AttributeDecl* AttributeOf(const Item& item, const std::string& name) {
  for (const AttributeDecl& attribute : item.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

// Whether SymbolicCalls takes all values of the attribute.
bool IsCounted(const AttributeDecl& attribute) {
  if (attribute.list) return false;
  return attribute.type == "enum" ||
         (!attribute.optional &&
          (attribute.type == "bool" || attribute.type == "axis" ||
           attribute.type == "dim"));
}

// Whether SymbolicCalls has all calls of the op, but for their dtypes and the
// attributes that are not counted.
bool AreCounted(const Item& item) {
  int64_t count = 1;
  for (const WhereClause& where : item.where) {
    const auto dtype_class = ParseDTypeClass(where.dtype_class);
    if (!dtype_class.ok()) return false;
    // A class has up to three representatives.
    if (AttributeOf(item, where.variable) == nullptr) count *= 3;
  }
  for (const InputDecl& input : item.inputs) {
    if (!input.variadic_index.empty() || input.is_static ||
        !VariableOf(item, input).has_value()) {
      return false;
    }
    if (input.optional) count *= 2;
    for (const AxisExpr& axis : input.type.axes) {
      if (axis.size != nullptr && axis.size->kind == ExprKind::kSpread) {
        count *= 3;
      }
    }
    if (count > kMaxCombinations) return false;
  }
  for (const AttributeDecl& attribute : item.attributes) {
    if (!IsCounted(attribute)) {
      // SymbolicCalls has it absent, and 1.
      if (attribute.optional) count *= 2;
    } else if (attribute.type == "enum") {
      count *= static_cast<int64_t>(attribute.enum_values.size()) + 1;
    } else if (attribute.type == "bool") {
      count *= 2;
    }
    if (count > kMaxCombinations) return false;
  }
  return true;
}

bool MentionsAny(const std::set<std::string>& names, const ExprPtr& e) {
  bool mentions = false;
  ForEachExpr(e, [&](const ExprPtr& part) {
    mentions |= part->kind == ExprKind::kName && names.count(part->text) != 0;
  });
  return mentions;
}

// The attributes that are not counted, and what is computed from them.
std::set<std::string> DependOnNumbers(const Item& item) {
  std::set<std::string> names;
  for (const AttributeDecl& attribute : item.attributes) {
    if (!IsCounted(attribute)) names.insert(attribute.name);
  }
  for (const NamedExpr& let : item.lets) {
    if (MentionsAny(names, let.value)) names.insert(let.name);
  }
  if (item.body == nullptr) return names;
  for (const Statement& statement : item.body->statements) {
    const Equation& equation = statement.equation;
    bool depends = MentionsAny(names, equation.value);
    for (const Binder& index : equation.indices) {
      depends |= MentionsAny(names, index.bound);
    }
    if (statement.kind == StatementKind::kLet && depends) {
      names.insert(equation.name);
    }
  }
  return names;
}

// Attributes beside those of a symbolic call: none, and each value at which the
// checker tries one that is not counted.
std::vector<Attributes> NumberChoices(const Item& item) {
  std::vector<Attributes> choices(1);
  const ComparedValues compared = ComparedConstants(item);
  for (const AttributeDecl& attribute : item.attributes) {
    if (IsCounted(attribute)) continue;
    for (const StaticValue& value :
         AttributeValues(item, attribute, compared)) {
      choices.emplace_back().Set(attribute.name, value);
    }
  }
  return choices;
}

// Every choice of a dtype for each variable.
std::vector<std::map<std::string, DType>> DTypeChoices(const Item& item) {
  std::vector<std::map<std::string, DType>> choices = {{}};
  for (const WhereClause& where : item.where) {
    if (AttributeOf(item, where.variable) != nullptr) continue;
    const DTypeClass dtype_class = *ParseDTypeClass(where.dtype_class);
    std::vector<std::map<std::string, DType>> longer;
    for (const auto& choice : choices) {
      for (const DType dtype : AllDTypes()) {
        if (!InClass(dtype, dtype_class)) continue;
        longer.push_back(choice);
        longer.back()[where.variable] = dtype;
      }
    }
    choices = std::move(longer);
  }
  return choices;
}

// The call of `graph` at other dtypes and with other numbers, by the rules of
// `rules`.
absl::StatusOr<Graph> CallAt(const Graph& graph,
                             const std::map<std::string, DType>& dtypes,
                             const Attributes& numbers, const Item& item,
                             const RuleSet& rules) {
  GraphBuilder builder(rules.context());
  std::vector<Argument> arguments;
  for (const NamedValue& given : graph.inputs()) {
    for (const InputDecl& input : item.inputs) {
      if (input.name != given.name) continue;
      TensorType type = graph.type(given.value);
      const std::string variable = *VariableOf(item, input);
      if (!variable.empty()) type.dtype = dtypes.at(variable);
      arguments.push_back({input.name, builder.Input(input.name, type)});
    }
  }
  Attributes attributes;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (IsPrimitive(graph.node(Value{id}).op)) continue;
    for (const auto& [name, value] : graph.attributes(Value{id}).values()) {
      if (name != kLayout) attributes.Set(name, value);
    }
  }
  for (const auto& [name, value] : numbers.values()) {
    attributes.Set(name, value);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const auto results,
      rules.Call(builder, item.name, arguments, attributes));
  const std::vector<std::string> names = rules.ResultNames(item.name);
  std::vector<NamedValue> outputs;
  for (size_t r = 0; r < results.size(); ++r) {
    if (results[r]) outputs.push_back({names[r], *results[r]});
  }
  return std::move(builder).Build(std::move(outputs));
}

bool AreEqualCalls(const RuleSet& original, const RuleSet& mutant,
                   const Item& item, const std::vector<Attributes>& attributes,
                   const std::vector<OperandNumber>& numbers = {}) {
  const absl::StatusOr<std::vector<Graph>> calls =
      original.SymbolicCalls(item.name);
  if (!calls.ok() || calls->empty()) return false;
  const bool elementwise =
      AreElementwise(original, item) && AreElementwise(mutant, item);
  for (const auto& dtypes : DTypeChoices(item)) {
    for (const Graph& at : *calls) {
      for (const Attributes& given : attributes) {
        const auto call = CallAt(at, dtypes, given, item, original);
        const auto other = CallAt(at, dtypes, given, item, mutant);
        if (call.ok() != other.ok()) return false;
        if (call.ok() && !AreEqualGraphs(*call, original, *other, mutant,
                                         numbers, elementwise)) {
          return false;
        }
      }
    }
  }
  return true;
}

// A primitive whose operands are of one dtype, as all are that have a `jvp`
// item but for the condition of select, at every dtype that it takes.
bool AreEqualPrimitives(const RuleSet& original, const RuleSet& mutant,
                        const Item& item,
                        const std::vector<OperandNumber>& numbers = {}) {
  const auto primitive = FindPrimitive(item.name);
  if (!primitive) return false;
  int typed = 0;
  for (const DType dtype : AllDTypes()) {
    if (!InClass(dtype, DTypeClass::kInexact)) continue;
    GraphBuilder builder(original.context());
    std::vector<Value> operands;
    for (const std::string& parameter : item.parameters) {
      const bool is_condition =
          primitive == Primitive::kSelect && operands.empty();
      operands.push_back(builder.Input(
          parameter, TensorType{is_condition ? DType::kBool : dtype,
                                {Dim::Variable("n")}}));
    }
    const absl::StatusOr<Value> y = builder.Add(*primitive, {}, operands);
    if (!y.ok()) continue;
    const absl::StatusOr<Graph> call = std::move(builder).Build({{"y", *y}});
    if (!call.ok() || !AreEqualGraphs(*call, original, *call, mutant, numbers,
                                      /*elementwise=*/true)) {
      return false;
    }
    ++typed;
  }
  return typed > 0;
}

// The expression that a `let` of the body names; null where there is no such
// `let`, or one of elements.
ExprPtr LetOf(const Item& item, const std::string& name) {
  if (item.body == nullptr) return nullptr;
  for (const Statement& statement : item.body->statements) {
    const Equation& equation = statement.equation;
    if (statement.kind == StatementKind::kLet && equation.name == name &&
        equation.indices.empty()) {
      return equation.value;
    }
  }
  return nullptr;
}

// Whether a loop, say, has another value of that name.
bool IsBoundAgain(const Item& item, const std::string& name) {
  bool is_bound = false;
  const auto is_it = [&](const auto& bound) { return bound.name == name; };
  ForEachExpr(item.body, [&](const ExprPtr& e) {
    is_bound |= std::any_of(e->fields.begin(), e->fields.end(), is_it) ||
                std::any_of(e->binders.begin(), e->binders.end(), is_it);
  });
  return is_bound;
}

bool IsOperand(const Item& item, const std::string& name) {
  if (IsBoundAgain(item, name)) return false;
  return std::count(item.parameters.begin(), item.parameters.end(), name) > 0 ||
         std::any_of(
             item.inputs.begin(), item.inputs.end(),
             [&](const InputDecl& input) { return input.name == name; });
}

// The side of a maximum or minimum with a number that is equal to `number`
// wherever the whole is; null where there is none.
ExprPtr SideThatIs(const ExprPtr& e, double number) {
  const Expr& chosen = e->kind == ExprKind::kTie ? *e->children[0] : *e;
  if (chosen.kind != ExprKind::kCall || chosen.children.size() != 2 ||
      (chosen.text != "max" && chosen.text != "min")) {
    return nullptr;
  }
  for (const size_t side : {0, 1}) {
    const absl::StatusOr<Exact> limit = ReadNumber(*chosen.children[1 - side]);
    if (!limit.ok()) continue;
    const double border = limit->ToDouble();
    const bool inside =
        chosen.text == "max" ? number > border : number < border;
    return inside ? chosen.children[side] : nullptr;
  }
  return nullptr;
}

// The numbers of an operand at which `side`, the operand or |operand|, may be
// equal to `number`; none where it is something else.
std::vector<OperandNumber> NumbersWhere(const Item& item, const ExprPtr& side,
                                        double number) {
  constexpr int kLongestChain = 8;
  ExprPtr e = side;
  bool has_sign = true;
  for (int i = 0; i < kLongestChain; ++i) {
    if (e->kind == ExprKind::kCall && e->text == "abs" &&
        e->children.size() == 1) {
      e = e->children[0];
      has_sign = false;
    }
    const ExprPtr within = has_sign ? SideThatIs(e, number) : nullptr;
    if (within != nullptr) {
      e = within;
      continue;
    }
    if (e->kind != ExprKind::kName) return {};
    if (IsOperand(item, e->text)) {
      return {{e->text, number}, {e->text, -number}};
    }
    const ExprPtr named = LetOf(item, e->text);
    if (named == nullptr) return {};
    e = named;
  }
  return {};
}

// The numbers of an operand, or of a parameter, at which both sides of a
// comparison with a number, or of a maximum or minimum, are equal.
std::vector<OperandNumber> NumbersWhereSidesAre(const Item& item,
                                                const Expr& compared) {
  const std::vector<ExprPtr> sides = SidesOf(compared);
  std::vector<OperandNumber> numbers;
  for (const size_t side : {0, 1}) {
    if (sides.empty()) break;
    const absl::StatusOr<Exact> number = ReadNumber(*sides[1 - side]);
    if (!number.ok()) continue;
    numbers = NumbersWhere(item, sides[side], number->ToDouble());
  }
  return numbers;
}

}  // namespace

std::vector<ExprPtr> SidesOf(const Expr& e) {
  const Expr& chosen = e.kind == ExprKind::kTie ? *e.children[0] : e;
  const bool compares =
      chosen.kind == ExprKind::kBinary || chosen.kind == ExprKind::kCall;
  if (!compares || chosen.children.size() != 2) return {};
  return chosen.children;
}

std::vector<ExprPtr> CallsIn(const Item& item,
                             const std::set<std::string>& callees) {
  std::vector<ExprPtr> calls;
  ForEachExpr(item.body, [&](const ExprPtr& e) {
    if (e->kind == ExprKind::kCall && callees.count(e->text) != 0) {
      calls.push_back(e);
    }
  });
  return calls;
}

bool AreEqualRewrites(const RuleSet& original, const RuleSet& mutant,
                      const Item& item) {
  CLEAVE_CHECK(original.context() == mutant.context()) << item.name;
  const Rewrite* a = original.rewrites().Find(item.name);
  const Rewrite* b = mutant.rewrites().Find(item.name);
  if (a == nullptr || b == nullptr) return false;
  const std::shared_ptr<Context>& context = original.context();
  const std::vector<std::vector<DType>> choices = TypingChoices(*a, *context);
  if (choices != TypingChoices(*b, *context)) return false;
  return std::all_of(
      choices.begin(), choices.end(), [&](const std::vector<DType>& chosen) {
        const auto key = [&](const Rewrite& rewrite, const RewriteSide& side) {
          return GraphKey(GraphOfSide(rewrite, side, chosen,
                                      {Dim::Variable("n")}, context));
        };
        return key(*a, a->left) == key(*b, b->left) &&
               key(*a, a->right) == key(*b, b->right);
      });
}

bool AreElementwise(const RuleSet& rules, const Item& item) {
  const absl::StatusOr<std::vector<Graph>> calls =
      rules.SymbolicCalls(item.name);
  if (!calls.ok() || calls->empty()) return false;
  return std::all_of(calls->begin(), calls->end(), [&](const Graph& call) {
    for (uint32_t id = 0; id < call.size(); ++id) {
      if (IsPrimitive(call.node(Value{id}).op)) continue;
      if (!rules.IsElementwise(call, Value{id}).value_or(false)) return false;
    }
    return true;
  });
}

bool DifferInTiesWithoutSlopes(const RuleSet& original, const RuleSet& mutant,
                               const Item& item) {
  CLEAVE_CHECK(original.context() == mutant.context()) << item.name;
  const absl::StatusOr<std::vector<Graph>> calls =
      item.kind == ItemKind::kOp ? original.SymbolicCalls(item.name)
                                 : std::vector<Graph>();
  if (!calls.ok()) return false;
  bool differ = false;
  for (const auto& dtypes : DTypeChoices(item)) {
    for (const Graph& at : *calls) {
      for (const Attributes& numbers : NumberChoices(item)) {
        const auto call = CallAt(at, dtypes, numbers, item, original);
        const auto other = CallAt(at, dtypes, numbers, item, mutant);
        if (call.ok() != other.ok()) return false;
        if (!call.ok()) continue;
        if (!HaveEqualValues(*call, original, *other, mutant, Ties::kSlopes)) {
          return false;
        }
        differ |= !HaveEqualValues(*call, original, *other, mutant, Ties::kAll);
      }
    }
  }
  return differ;
}

bool AreEqualAtNumber(const RuleSet& original, const RuleSet& mutant,
                      const Item& item, const Expr& comparison) {
  CLEAVE_CHECK(original.context() == mutant.context()) << item.name;
  if (item.kind != ItemKind::kOp || comparison.children.size() != 2 ||
      comparison.children[0]->kind != ExprKind::kName || !AreCounted(item)) {
    return false;
  }
  const AttributeDecl* attribute =
      AttributeOf(item, comparison.children[0]->text);
  const absl::StatusOr<Exact> number = ReadNumber(*comparison.children[1]);
  if (attribute == nullptr || attribute->list || !number.ok()) return false;
  // Another attribute that is not counted has no list of values.
  for (const AttributeDecl& other : item.attributes) {
    if (&other != attribute && !IsCounted(other)) return false;
  }
  Attributes at_number;
  if (attribute->type == "int") {
    const std::optional<int64_t> whole = number->ToInt64();
    // No whole number is on the border.
    if (!whole) return true;
    at_number.Set(attribute->name, *whole);
  } else if (attribute->type == "real" || attribute->type == "scalar") {
    at_number.Set(attribute->name, *number);
  } else {
    return false;
  }
  return AreEqualCalls(original, mutant, item, {at_number});
}

bool AreEqualWhereSidesAre(const RuleSet& original, const RuleSet& mutant,
                           const Item& item, const Expr& compared) {
  CLEAVE_CHECK(original.context() == mutant.context()) << item.name;
  const std::vector<OperandNumber> numbers =
      NumbersWhereSidesAre(item, compared);
  if (numbers.empty()) return false;
  if (item.kind == ItemKind::kJvp) {
    return AreEqualPrimitives(original, mutant, item, numbers);
  }
  return item.kind == ItemKind::kOp && AreCounted(item) &&
         NumberChoices(item).size() == 1 && AreElementwise(original, item) &&
         AreEqualCalls(original, mutant, item, {Attributes()}, numbers);
}

std::vector<double> BordersOf(const RuleSet& original, const RuleSet& mutant,
                              const Item& item, const Item& changed,
                              const Expr& compared) {
  if (item.kind != ItemKind::kOp || item.inputs.size() != 1 ||
      item.inputs[0].optional || !item.inputs[0].variadic_index.empty() ||
      !std::all_of(item.attributes.begin(), item.attributes.end(), IsCounted) ||
      !AreElementwise(original, item) || !AreElementwise(mutant, item)) {
    return {};
  }
  std::vector<OperandNumber> numbers = NumbersWhereSidesAre(changed, compared);
  if (changed.kind == ItemKind::kDef) {
    std::vector<OperandNumber> passed;
    for (const OperandNumber& at : numbers) {
      const size_t parameter = std::find(changed.parameters.begin(),
                                         changed.parameters.end(), at.operand) -
                               changed.parameters.begin();
      for (const ExprPtr& call : CallsIn(item, {changed.name})) {
        if (parameter >= call->children.size()) return {};
        const std::vector<OperandNumber> there =
            NumbersWhere(item, call->children[parameter], at.number);
        if (there.empty()) return {};
        passed.insert(passed.end(), there.begin(), there.end());
      }
    }
    numbers = std::move(passed);
  }
  std::vector<double> borders;
  for (const OperandNumber& at : numbers) borders.push_back(at.number);
  return borders;
}

bool ProveEquivalent(const RuleSet& original, const RuleSet& mutant,
                     const Item& item, const std::vector<ExprPtr>& changed) {
  CLEAVE_CHECK(original.context() == mutant.context()) << item.name;
  if (item.kind == ItemKind::kJvp) {
    return AreEqualPrimitives(original, mutant, item);
  }
  if (item.kind != ItemKind::kOp || !AreCounted(item)) return false;
  const std::set<std::string> numbers = DependOnNumbers(item);
  return std::none_of(
             changed.begin(), changed.end(),
             [&](const ExprPtr& e) { return MentionsAny(numbers, e); }) &&
         AreEqualCalls(original, mutant, item, NumberChoices(item));
}

}  // namespace cleave
