#include "engine/rules/symbolic_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/elaborate/elaborator.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// The dtypes that stand for a class.
std::vector<StaticValue> Representatives(absl::string_view dtype_class) {
  if (dtype_class == "int") return {DType::kI64};
  if (dtype_class == "bool") return {DType::kBool};
  if (dtype_class == "complex") return {DType::kC64};
  if (dtype_class == "real" || dtype_class == "number") {
    return {DType::kF32, DType::kI64};
  }
  if (dtype_class == "any") return {DType::kF32, DType::kI64, DType::kBool};
  return {DType::kF32};
}

// The name of `S..` or `S[i]..`; empty for other axes.
std::string PackName(const AxisExpr& axis) {
  if (axis.size->kind != ExprKind::kSpread) return "";
  const Expr& e = *axis.size->children[0];
  if (e.kind == ExprKind::kName) return e.text;
  if (e.kind == ExprKind::kIndex && e.children[0]->kind == ExprKind::kName) {
    return e.children[0]->text;
  }
  return "";
}

}  // namespace

SymbolicCalls::SymbolicCalls(const Callable& callable) : callable_(callable) {
  using Kind = Choice::Kind;
  const Item& item = *callable.item;
  const auto has_choice = [&](absl::string_view name) {
    return std::any_of(choices_.begin(), choices_.end(),
                       [&](const Choice& c) { return c.name == name; });
  };
  const auto is_attribute = [&](absl::string_view name) {
    return std::any_of(callable.attributes.begin(), callable.attributes.end(),
                       [&](const AttributeDecl& a) { return a.name == name; });
  };
  for (const WhereClause& where : item.where) {
    if (is_attribute(where.variable)) continue;
    choices_.push_back(
        {Kind::kDType, where.variable, Representatives(where.dtype_class)});
  }
  for (const InputDecl& input : callable.inputs) {
    if (input.optional) {
      choices_.push_back({Kind::kPresent, input.name, {true, false}});
      optional_.insert(input.name);
    }
    if (!input.variadic_index.empty()) {
      choices_.push_back({Kind::kLength, input.name, {2, 1}});
    }
    for (const AxisExpr& axis : input.type.axes) {
      const std::string pack = PackName(axis);
      if (pack.empty() || has_choice(pack)) continue;
      choices_.push_back({Kind::kRank, pack, {1, 0, 2}});
    }
  }
  for (const AttributeDecl& attribute : callable.attributes) {
    if (attribute.list) continue;
    if (attribute.type == "enum") {
      std::vector<StaticValue> values(attribute.enum_values.begin(),
                                      attribute.enum_values.end());
      if (attribute.optional) values.push_back(StaticValue());
      choices_.push_back({Kind::kAttribute, attribute.name, values});
      if (attribute.optional) optional_.insert(attribute.name);
      enumerated_.insert(attribute.name);
    } else if (attribute.type == "bool") {
      choices_.push_back({Kind::kAttribute, attribute.name, {false, true}});
      enumerated_.insert(attribute.name);
    } else if (attribute.optional &&
               (attribute.type == "real" || attribute.type == "int" ||
                attribute.type == "scalar")) {
      choices_.push_back(
          {Kind::kAttribute, attribute.name, {StaticValue(), 1}});
      optional_.insert(attribute.name);
    }
  }
  int64_t product = 1;
  for (const Choice& choice : choices_) {
    product =
        std::min<int64_t>(product * choice.values.size(), int64_t{1} << 40);
  }
  exhaustive_ = product <= kMaxCombinations;
  const int count =
      static_cast<int>(std::min<int64_t>(product, kMaxCombinations));
  for (int i = 0; i < count; ++i) {
    // Mixed radix where all fit. Otherwise choice c takes its values in turn,
    // each at its own pace, so that pairs mix.
    std::vector<int> combination;
    int64_t rest = i;
    for (size_t c = 0; c < choices_.size(); ++c) {
      const int64_t n = static_cast<int64_t>(choices_[c].values.size());
      if (exhaustive_) {
        combination.push_back(static_cast<int>(rest % n));
        rest /= n;
      } else {
        const uint64_t mixed =
            (static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u) ^
            (static_cast<uint64_t>(c + 1) * 0xC2B2AE3D27D4EB4Fu * i);
        combination.push_back(static_cast<int>((mixed >> 33) % n));
      }
    }
    combinations_.push_back(std::move(combination));
  }
}

absl::StatusOr<SymbolicCall> SymbolicCalls::Make(int i, const Library& library,
                                                 GraphBuilder& builder) const {
  using Kind = Choice::Kind;
  SymbolicCall call;
  std::map<std::string, StaticValue> chosen;
  for (size_t c = 0; c < choices_.size(); ++c) {
    const StaticValue& value = choices_[c].values[combinations_[i][c]];
    chosen[choices_[c].name] = value;
    absl::StrAppend(&call.description, c == 0 ? "" : ", ", choices_[c].name,
                    choices_[c].kind == Kind::kRank ? ".. of rank " : " = ",
                    value.ToString());
    if (choices_[c].kind == Kind::kAttribute && !value.is_none()) {
      call.attributes.Set(choices_[c].name, value);
    }
  }
  Elaborator elaborator(library, *builder.context(), callable_.name, nullptr);
  elaborator.EnterSource(*callable_.source);
  Scope scope;
  for (const auto& [name, value] : chosen) {
    if (value.kind() == StaticValue::Kind::kDType) {
      scope.Set(name, FromStatic(value));
    }
  }
  // Sizes and packs are variables of their names.
  std::map<std::string, int> axes;  // axis attributes, from where they stand
  const auto bind = [&](const std::string& name, bool pack,
                        int place) -> RuleValue {
    const std::string base =
        place < 0 ? name : absl::StrCat(name, "_", place, "_");
    if (!pack) return Dim::Variable(base);
    RuleList list;
    const int64_t rank = chosen.count(name) > 0 ? *chosen[name].ToInt() : 1;
    for (int64_t d = 0; d < rank; ++d) {
      list.push_back(Dim::Variable(absl::StrCat(base, d)));
    }
    return list;
  };
  for (const AttributeDecl& attribute : callable_.attributes) {
    if (attribute.type != "dim") continue;
    const RuleValue value = bind(attribute.name, attribute.list, -1);
    CLEAVE_ASSIGN_OR_RETURN(const StaticValue given, ToStatic(value));
    call.attributes.Set(attribute.name, given);
    scope.Set(attribute.name, value);
  }
  // All names first: `w: T[3 * n], h: T[n]`.
  for (const InputDecl& input : callable_.inputs) {
    if (input.is_static) continue;
    for (const AxisExpr& axis : input.type.axes) {
      const bool pack = axis.size->kind == ExprKind::kSpread;
      const Expr& e = pack ? *axis.size->children[0] : *axis.size;
      if (e.kind == ExprKind::kName && scope.Find(e.text) == nullptr) {
        scope.Set(e.text, bind(e.text, pack, -1));
      }
    }
  }
  for (const InputDecl& input : callable_.inputs) {
    if (input.is_static) {
      call.attributes.Set(input.name, StaticValue::Ints(std::vector<int>{1}));
      continue;
    }
    if (input.type.dtype == nullptr) {
      return NotSupported("a symbolic call of `", callable_.name, "`, whose `",
                          input.name, "` is declared without a dtype");
    }
    const auto it = chosen.find(input.name);
    const bool variadic = !input.variadic_index.empty();
    const bool absent = !variadic && it != chosen.end() &&
                        it->second.kind() == StaticValue::Kind::kBool &&
                        !it->second.AsBool();
    const int64_t length = variadic && it != chosen.end() &&
                                   it->second.kind() == StaticValue::Kind::kInt
                               ? *it->second.ToInt()
                               : 1;
    std::vector<std::optional<Value>> list;
    for (int64_t k = 0; k < length; ++k) {
      TensorType type;
      CLEAVE_ASSIGN_OR_RETURN(const DTypePtr dtype,
                              elaborator.EvalDType(*input.type.dtype, scope));
      type.dtype = dtype->dtype().value_or(DType::kF32);
      for (const AxisExpr& axis : input.type.axes) {
        if (!axis.at.empty()) {
          axes.emplace(axis.at, static_cast<int>(type.shape.size()));
        }
        const bool pack = axis.size->kind == ExprKind::kSpread;
        const Expr& e = pack ? *axis.size->children[0] : *axis.size;
        RuleValue value;
        if (e.kind == ExprKind::kIndex && variadic &&
            e.children[0]->kind == ExprKind::kName) {
          value = bind(e.children[0]->text, pack, static_cast<int>(k));
        } else {
          CLEAVE_ASSIGN_OR_RETURN(value, elaborator.Eval(e, scope));
        }
        RuleList dims =
            value.Is(RuleValue::Kind::kList) ? value.AsList() : RuleList{value};
        for (const RuleValue& dim : dims) {
          if (!dim.Is(RuleValue::Kind::kInt)) {
            return elaborator.Fail(DiagnosticKind::kType, axis.range,
                                   "an axis must be a size");
          }
          type.shape.push_back(dim.AsDim());
        }
      }
      if (absent) continue;
      list.push_back(builder.Input(
          variadic ? absl::StrCat(input.name, ".", k) : input.name, type));
    }
    if (variadic) {
      call.arguments.push_back({input.name, std::move(list)});
    } else if (!absent) {
      call.arguments.push_back({input.name, *list[0]});
    }
  }
  // Attributes that must be given.
  for (const AttributeDecl& attribute : callable_.attributes) {
    if (call.attributes.Find(attribute.name) != nullptr) continue;
    if (attribute.type == "axis" && axes.count(attribute.name) > 0) {
      call.attributes.Set(attribute.name, axes[attribute.name]);
      continue;
    }
    if (attribute.optional || attribute.default_value != nullptr) continue;
    StaticValue value;
    if (attribute.type == "real" || attribute.type == "scalar") {
      value = 1;
    } else if (attribute.type == "int") {
      value = 1;
    } else if (attribute.type == "axis") {
      value = 0;
    } else if (attribute.type == "axes") {
      value = StaticValue::List{};
    } else if (attribute.type == "dtype") {
      value = DType::kF32;
    } else {
      return absl::UnimplementedError(
          absl::StrCat("not checked: `", attribute.name, "` has no default"));
    }
    call.attributes.Set(attribute.name, std::move(value));
  }
  return call;
}

}  // namespace cleave
