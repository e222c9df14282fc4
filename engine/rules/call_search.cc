#include "engine/rules/call_search.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/rules/rule_set_impl.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// Strings in expressions: `given` by attribute where they are named arguments,
// `all` of them.
struct Strings {
  std::map<std::string, std::set<std::string>> given;
  std::set<std::string> all;

  void Collect(const ExprPtr& expr) {
    if (expr == nullptr) return;
    if (expr->kind == ExprKind::kString) all.insert(expr->text);
    for (const ExprPtr& child : expr->children) Collect(child);
    for (const ExprPtr& second : expr->seconds) Collect(second);
    for (const auto* group : {&expr->named, &expr->named_seconds}) {
      for (const NamedExpr& named : *group) {
        if (named.value->kind == ExprKind::kString) {
          given[named.name].insert(named.value->text);
        }
        Collect(named.value);
      }
    }
    for (const Equation& field : expr->fields) Collect(field.value);
    Collect(expr->body);
    Collect(expr->else_body);
  }
  void Collect(const BodyPtr& body) {
    if (body == nullptr) return;
    for (const Statement& statement : body->statements) {
      Collect(statement.equation.value);
    }
  }
  void Collect(const Item& item) {
    for (const NamedExpr& let : item.lets) Collect(let.value);
    for (const ErrorClause& error : item.errors) Collect(error.condition);
    Collect(item.body);
    Collect(item.left);
  }
};

// `extent` with `common` for n: 3 n of a gate's weights.
Dim AtCommon(const Dim& extent, const Dim& common) {
  return extent.IsConstant() ? extent : extent.Substitute({{"n", common}});
}

// `value` with `common` where CommonExtent() stands.
StaticValue WithCommon(const StaticValue& value, const Dim& common) {
  if (value.kind() == StaticValue::Kind::kInt) {
    return AtCommon(value.AsDim(), common);
  }
  if (value.kind() != StaticValue::Kind::kList) return value;
  StaticValue::List list;
  for (const StaticValue& element : value.AsList()) {
    list.push_back(WithCommon(element, common));
  }
  return list;
}

// Attempts are made with extents of 4, of 1, and with other proposals of 4.
constexpr int kLastAttempt = 3;

}  // namespace

absl::StatusOr<CallSearch> CallSearch::Create(const RuleSet& rules,
                                              absl::string_view op) {
  const Callable* callable = rules.impl().library.FindCallable(op);
  if (callable == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no op `", op, "`"));
  }
  return CallSearch(rules, *callable);
}

CallSearch::CallSearch(const RuleSet& rules, const Callable& callable)
    : rules_(&rules), callable_(&callable) {
  const Library& library = rules.impl().library;
  const bool has_strings = std::any_of(
      callable.attributes.begin(), callable.attributes.end(),
      [](const AttributeDecl& attribute) { return attribute.type == "str"; });
  if (!has_strings) return;
  Strings anywhere;
  for (const auto& [name, other] : library.callables()) {
    anywhere.Collect(*other.item);
  }
  for (const Item* example : library.examples()) anywhere.Collect(*example);
  given_strings_ = std::move(anywhere.given);
  Strings own;
  own.Collect(*callable.item);
  for (const BodyPart& part : callable.overrides) own.Collect(*part.item);
  own_strings_ = std::move(own.all);
}

// SplitMix64: the same numbers everywhere.
uint64_t CallSearch::Draw(uint64_t count) {
  state_ += 0x9E3779B97F4A7C15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (z ^ (z >> 31)) % count;
}

DType CallSearch::DrawDType(absl::string_view dtype_class) {
  const auto wanted = ParseDTypeClass(dtype_class);
  std::vector<DType> dtypes;
  for (DType dtype :
       {DType::kF32, DType::kI64, DType::kBool, DType::kF32, DType::kC64}) {
    if (!wanted.ok() || InClass(dtype, *wanted)) dtypes.push_back(dtype);
  }
  if (attempt_ >= 2 && (!wanted.ok() || InClass(DType::kU8, *wanted))) {
    dtypes.push_back(DType::kU8);
  }
  // Mostly the first: an index or a mask is the exception.
  if (dtypes.empty() || Draw(2) == 0) {
    return dtypes.empty() ? DType::kF32 : dtypes[0];
  }
  return dtypes[Draw(dtypes.size())];
}

int64_t CallSearch::DrawRank(int rank, int pattern, int input) {
  switch (pattern) {
    case 0:
      return rank;
    case 1:
      return input == 0 ? rank : std::max(rank - 1, 0);
    case 2:
      return input == 0 ? rank : 1;
    case 3:
      return input < 2 ? rank : 1;
    default:
      // Or some scalars beside tensors of one rank.
      if (attempt_ >= 2) return Draw(2) == 0 ? 0 : rank;
      return static_cast<int64_t>(Draw(rank + 2));
  }
}

void CallSearch::DrawInputs(int rank, bool plain, Proposal& proposal) {
  const int ranks = plain ? 0 : static_cast<int>(Draw(6));
  const bool all_floats = plain || Draw(3) == 0;
  const bool all_common = plain || Draw(2) == 0;
  // 0: all optional inputs are given, 1: none, 2: some.
  const uint64_t presence = plain ? proposals_ / 6 : Draw(3);
  std::map<std::string, DType> variables;
  for (const WhereClause& where : callable_->item->where) {
    variables[where.variable] = DrawDType(where.dtype_class);
  }
  for (size_t i = 0; i < callable_->inputs.size(); ++i) {
    const InputDecl& input = callable_->inputs[i];
    std::vector<std::optional<TensorType>> tensors;
    if (input.is_static) {
      proposal.inputs.emplace_back();
      if (input.optional && Draw(3) != 0) continue;
      const bool list =
          input.type.has_shape ? !input.type.axes.empty() : Draw(4) != 0;
      proposal.attributes.Set(
          input.name, list ? DrawIntegers(1 + Draw(rank + 2)) : DrawInteger());
      continue;
    }
    DType dtype = all_floats ? DType::kF32 : DrawDType("any");
    if (input.type.dtype != nullptr &&
        input.type.dtype->kind == ExprKind::kName) {
      const std::string& name = input.type.dtype->text;
      const auto fixed = ParseDType(name);
      dtype =
          fixed.ok() ? *fixed : variables.emplace(name, dtype).first->second;
    }
    const bool variadic = !input.variadic_index.empty();
    const uint64_t count = variadic ? 1 + Draw(2) : 1;
    for (uint64_t k = 0; k < count; ++k) {
      if (input.optional &&
          (presence == 1 || (presence == 2 && Draw(2) == 0))) {
        tensors.push_back(std::nullopt);
        continue;
      }
      TensorType type;
      type.dtype = dtype;
      for (int64_t d = DrawRank(rank, ranks, static_cast<int>(i)); d > 0; --d) {
        const uint64_t other = all_common ? 3 : Draw(8);
        type.shape.push_back(other < 2    ? Dim(1)
                             : other == 2 ? Dim(2)
                                          : CommonExtent());
      }
      tensors.push_back(std::move(type));
    }
    proposal.inputs.push_back(std::move(tensors));
  }
}

StaticValue CallSearch::DrawInteger() {
  switch (Draw(8)) {
    case 0:
    case 1:
      return 0;
    case 2:
      return 2;
    case 3:
      return CommonExtent();
    case 4:
      return -1;
    default:
      return 1;
  }
}

StaticValue CallSearch::DrawIntegers(int64_t length) {
  StaticValue::List list;
  const uint64_t pattern = Draw(4);
  const StaticValue same = DrawInteger();
  for (int64_t i = 0; i < length; ++i) {
    list.push_back(pattern == 0   ? StaticValue(i)
                   : pattern == 1 ? DrawInteger()
                                  : same);
  }
  return list;
}

StaticValue CallSearch::DrawScalar(const AttributeDecl& attribute, int rank) {
  const std::string& type = attribute.type;
  if (type == "bool") return Draw(3) == 0;
  // A scalar that is an integer is one of integers, too: of bits, say.
  if (guided_ && type == "scalar" && Draw(2) == 0) return DrawInteger();
  if (type == "real" || type == "scalar") {
    if (attempt_ >= 2 && Draw(3) == 0) return Exact(0);
    return Draw(2) == 0 ? Exact(1) : Exact(1) / Exact(2);
  }
  if (type == "dtype") return DType::kF32;
  if (type == "dim") return CommonExtent();
  if (type == "axis") return static_cast<int64_t>(Draw(std::max(rank, 1)));
  if (type == "enum") {
    return attribute.enum_values[Draw(attribute.enum_values.size())];
  }
  if (type == "str") {
    const auto given = given_strings_.find(attribute.name);
    const std::set<std::string>& strings =
        given == given_strings_.end() ? own_strings_ : given->second;
    if (strings.empty()) return "";
    return *std::next(strings.begin(), Draw(strings.size()));
  }
  return DrawInteger();
}

void CallSearch::DrawAttributes(int rank, bool plain, Proposal& proposal) {
  // Lists of one call have one length, or twice that: padding of both ends.
  const int64_t common_length =
      Draw(2) == 0 ? std::max(rank, 1) : 1 + static_cast<int64_t>(Draw(3));
  for (const AttributeDecl& attribute : callable_->attributes) {
    const bool may_omit =
        attribute.optional || attribute.default_value != nullptr;
    if (may_omit && (plain || Draw(8) != 0)) continue;
    proposal.attributes.Set(attribute.name,
                            DrawAttribute(attribute, common_length, rank));
  }
}

StaticValue CallSearch::DrawAttribute(const AttributeDecl& attribute,
                                      int64_t common_length, int rank) {
  if (!attribute.list && attribute.type != "axes") {
    return DrawScalar(attribute, rank);
  }
  const int64_t length = Draw(4) == 0 ? 2 * common_length : common_length;
  if (attribute.type == "int" || attribute.type == "axes") {
    return DrawIntegers(length);
  }
  StaticValue::List list;
  for (int64_t i = 0; i < length; ++i) {
    list.push_back(DrawScalar(attribute, rank));
  }
  return list;
}

CallSearch::Proposal CallSearch::Propose() {
  // The ranks in turn. First all inputs of one rank, in f32, with defaults and
  // all optional inputs; then without these.
  static constexpr int kRanks[] = {2, 1, 3, 4, 0, 5};
  const int rank = kRanks[proposals_ % 6];
  const bool plain = proposals_ < 12;
  Proposal proposal;
  DrawInputs(rank, plain, proposal);
  DrawAttributes(rank, plain, proposal);
  ++proposals_;
  return proposal;
}

absl::StatusOr<Graph> CallSearch::Make(const Proposal& proposal,
                                       const Dim& common) const {
  GraphBuilder builder(rules_->context());
  std::vector<Argument> arguments;
  for (size_t i = 0; i < callable_->inputs.size(); ++i) {
    const InputDecl& input = callable_->inputs[i];
    if (input.is_static) continue;
    const bool variadic = !input.variadic_index.empty();
    std::vector<std::optional<Value>> values;
    for (const std::optional<TensorType>& tensor : proposal.inputs[i]) {
      if (!tensor) {
        values.push_back(std::nullopt);
        continue;
      }
      TensorType type = *tensor;
      for (Dim& extent : type.shape) extent = AtCommon(extent, common);
      values.push_back(builder.Input(
          variadic ? absl::StrCat(input.name, ".", values.size()) : input.name,
          type));
    }
    if (variadic) {
      arguments.push_back({input.name, std::move(values)});
    } else if (values[0]) {
      arguments.push_back({input.name, *values[0]});
    }
  }
  Attributes attributes;
  for (const auto& [name, value] : proposal.attributes.values()) {
    attributes.Set(name, WithCommon(value, common));
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<std::optional<Value>> results,
      rules_->Call(builder, callable_->name, arguments, attributes));
  std::vector<NamedValue> outputs;
  for (const std::optional<Value>& result : results) {
    if (!result) continue;
    outputs.push_back({absl::StrCat("y", outputs.size()), *result});
  }
  if (outputs.empty()) return absl::InvalidArgumentError("it has no results");
  CLEAVE_ASSIGN_OR_RETURN(Graph graph,
                          std::move(builder).Build(std::move(outputs)));
  // Types may be declared: then only the body tells whether it can be built.
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (IsPrimitive(graph.node(Value{id}).op)) continue;
    CLEAVE_RETURN_IF_ERROR(
        rules_->Body(RuleSet::SignatureOf(graph, Value{id})).status());
  }
  return graph;
}

std::optional<Graph> CallSearch::Next() {
  if (concrete_) return std::exchange(concrete_, std::nullopt);
  while (found_ < kMaxFoundCalls) {
    if (proposals_ == last_proposal_) {
      if (found_ > 0 || attempt_ == kLastAttempt) break;
      ++attempt_;
      // Where nothing fits together, what has one element may: a result of a
      // window of the whole input, beside the input.
      extent_ = attempt_ == 1 ? 1 : kCommonExtent;
      proposals_ = 0;
      guided_ = false;
      kept_.clear();
    }
    if (proposals_ == kUnguidedProposals && found_ == 0) guided_ = true;
    const Proposal proposal = !variants_.empty()        ? NextVariant()
                              : guided_ && Draw(3) != 0 ? ProposeFromKept()
                                                        : Propose();
    absl::StatusOr<Graph> concrete = Make(proposal, Dim(extent_));
    if (!concrete.ok()) {
      if (absl::IsUnimplemented(concrete.status())) {
        if (!unsupported_) unsupported_ = concrete.status();
      } else {
        ++rejections_[std::string(concrete.status().message())];
      }
      Keep(std::string(concrete.status().message()), proposal);
      continue;
    }
    if (!seen_.insert(PrintGraph(*concrete)).second) continue;
    Keep("", proposal);
    if (found_++ == 0) {
      // Numbers that may be floats have derivatives.
      variants_ = InFloats(proposal);
      last_proposal_ =
          std::min(kMaxProposals, proposals_ + kMaxFurtherProposals);
    }
    if (extent_ == 1) return *std::move(concrete);
    absl::StatusOr<Graph> symbolic = Make(proposal, CommonExtent());
    if (!symbolic.ok()) return *std::move(concrete);
    concrete_ = *std::move(concrete);
    return *std::move(symbolic);
  }
  return std::nullopt;
}

absl::Status CallSearch::Obstacle() const {
  if (unsupported_) return *unsupported_;
  const auto commonest = std::max_element(
      rejections_.begin(), rejections_.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  return absl::InvalidArgumentError(commonest == rejections_.end()
                                        ? "no call was proposed"
                                        : commonest->first);
}

}  // namespace cleave
