#include "engine/eager/call.h"

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "engine/eager/call_key.h"
#include "engine/eager/dim_scope.h"
#include "engine/eager/session_impl.h"
#include "engine/eager/storage.h"
#include "engine/eager/tensor_access.h"
#include "engine/eager/trace_scope.h"
#include "engine/elaborate/error_payload.h"
#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"
#include "ops/status_macros.h"

namespace cleave::functional {
namespace {

std::atomic<uint64_t> next_storage = 0;

absl::StatusOr<Value> NumberNode(GraphBuilder& builder, const Exact& number,
                                 DType dtype) {
  return builder.Add(Primitive::kConstant, ConstantAttributes(number, dtype),
                     {});
}

// A size where a tensor is asked for, as rule files have it: exact, and rounded
// once.
absl::StatusOr<Value> DimNode(GraphBuilder& builder, const Dim& dim,
                              DType dtype) {
  CLEAVE_ASSIGN_OR_RETURN(const Dim resolved, ResolveDim(dim));
  if (const std::optional<int64_t> value = resolved.Value()) {
    return NumberNode(builder, Exact(*value), dtype);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const Value extent,
      builder.Add(Primitive::kExtent, {{"value", resolved}}, {}));
  return builder.Add(Primitive::kConvert, {{"dtype", dtype}}, {extent});
}

// The operand of a primitive that numbers among its operands take their dtype
// from, and those that have one of their own.
struct NumberDTypes {
  size_t first = 0;
  std::vector<std::optional<DType>> fixed;
};
NumberDTypes NumbersOf(Primitive primitive) {
  switch (primitive) {
    case Primitive::kSelect:
      return {1, {DType::kBool}};
    case Primitive::kLdexp:
      return {0, {std::nullopt, DType::kI32}};
    case Primitive::kGather:
    case Primitive::kScatter:
    case Primitive::kRandomFoldIn:
      return {0, {std::nullopt, DType::kI64}};
    default:
      return {};
  }
}

absl::Status NoDType(absl::string_view op, size_t position) {
  return absl::InvalidArgumentError(
      absl::StrCat("`", op, "`: argument ", position,
                   " is a number, and no other argument tells its dtype"));
}

absl::StatusOr<std::vector<Value>> Broadcast(GraphBuilder& builder,
                                             std::vector<Value> nodes) {
  std::vector<Shape> shapes;
  for (const Value node : nodes) shapes.push_back(builder.type(node).shape);
  CLEAVE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(shapes));
  for (Value& node : nodes) {
    const int rank = builder.type(node).rank();
    std::vector<int> axes(rank);
    for (int d = 0; d < rank; ++d) {
      axes[d] = static_cast<int>(shape.size()) - rank + d;
    }
    CLEAVE_ASSIGN_OR_RETURN(node,
                            builder.Add(Primitive::kBroadcastInDim,
                                        {{"shape", StaticValue::Dims(shape)},
                                         {"axes", StaticValue::Ints(axes)}},
                                        {node}));
  }
  return nodes;
}

absl::StatusOr<std::vector<std::optional<Value>>> CallPrimitive(
    Recorder& recorder, Primitive primitive,
    const std::vector<CallArgument>& arguments, const Attributes& attributes) {
  GraphBuilder& builder = recorder.builder();
  std::vector<Tensor> operands;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (const auto* x = std::get_if<Tensor>(&arguments[i].value)) {
      operands.push_back(*x);
    } else if (const auto* xs =
                   std::get_if<CallArgument::List>(&arguments[i].value)) {
      for (const std::optional<Tensor>& x : *xs) {
        if (!x.has_value()) {
          return absl::InvalidArgumentError(
              absl::StrCat("`", PrimitiveName(primitive), "`: argument ", i,
                           " lacks an element"));
        }
        operands.push_back(*x);
      }
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", PrimitiveName(primitive), "`: argument ", i, " is no tensor"));
    }
  }
  const NumberDTypes numbers = NumbersOf(primitive);
  std::optional<DType> dtype;
  for (size_t i = numbers.first; i < operands.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(operands[i].status());
    const bool fixed = i < numbers.fixed.size() && numbers.fixed[i].has_value();
    if (operands[i].is_number() || fixed) continue;
    dtype = operands[i].dtype();
    break;
  }
  std::vector<Value> nodes;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::optional<DType> wanted = dtype;
    if (i < numbers.fixed.size() && numbers.fixed[i].has_value()) {
      wanted = numbers.fixed[i];
    }
    CLEAVE_RETURN_IF_ERROR(operands[i].status());
    if (operands[i].is_number() && !wanted.has_value()) {
      return NoDType(PrimitiveName(primitive), i);
    }
    CLEAVE_ASSIGN_OR_RETURN(const Value node,
                            TensorAccess::Read(recorder, operands[i],
                                               wanted.value_or(DType::kF32)));
    nodes.push_back(node);
  }
  if (ClassOf(primitive) == PrimitiveClass::kPointwise) {
    CLEAVE_ASSIGN_OR_RETURN(nodes, Broadcast(builder, std::move(nodes)));
  }
  Attributes complete = attributes;
  if (primitive == Primitive::kNonzero && !nodes.empty() &&
      attributes.Find("size") == nullptr) {
    // A name for the size that values decide: one for each operand.
    complete.Set("size", Dim::Variable(absl::StrCat("nonzero.", nodes[0].id)));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value node,
                          builder.Add(primitive, complete, nodes));
  const size_t count = builder.graph().types(node).size();
  std::vector<std::optional<Value>> results;
  for (size_t i = 0; i < count; ++i) {
    results.push_back(builder.Result(node, static_cast<int>(i)));
  }
  return results;
}

// The tensor inputs of an op in the order that arguments stand in: host
// declarations have theirs, and no numbers.
struct NumberRule {
  // Per argument: the name of its dtype; empty where it cannot be a number.
  std::vector<std::string> dtype;
};
NumberRule NumberRuleOf(const Item& item) {
  NumberRule rule;
  for (const InputDecl& input : item.inputs) {
    const ExprPtr& dtype = input.type.dtype;
    rule.dtype.push_back(!input.is_static && dtype != nullptr &&
                                 dtype->kind == ExprKind::kName
                             ? dtype->text
                             : "");
  }
  return rule;
}

// Calls fn on each tensor of an argument.
template <typename Fn>
void ForEachTensor(const CallArgument& argument, const Fn& fn) {
  if (const auto* x = std::get_if<Tensor>(&argument.value)) fn(*x);
  if (const auto* xs = std::get_if<CallArgument::List>(&argument.value)) {
    for (const std::optional<Tensor>& x : *xs) {
      if (x.has_value()) fn(*x);
    }
  }
}

// Names the sizes of results that values decide by their place in the graph:
// the rule set's own names differ from call to call, and so would the graph's
// structure, by which its kernel is found again.
void NameSizes(Recorder& recorder, const Item& item, Attributes* attributes) {
  for (const ResultDecl& result : item.results) {
    for (const AxisExpr& axis : result.type.axes) {
      if (!axis.is_new || axis.size == nullptr) continue;
      const std::string name = absl::StrCat("new.", axis.size->text);
      if (attributes->Find(name) != nullptr) continue;
      attributes->Set(
          name, Dim::Variable(absl::StrCat(item.name, ".", axis.size->text, ".",
                                           recorder.builder().graph().size())));
    }
  }
}

absl::StatusOr<std::vector<std::optional<Value>>> CallOp(
    Recorder& recorder, const Item& item,
    const std::vector<CallArgument>& arguments, const Attributes& attributes) {
  const NumberRule rule = NumberRuleOf(item);
  absl::Status status;
  for (const CallArgument& argument : arguments) {
    ForEachTensor(argument, [&](const Tensor& x) {
      if (status.ok()) status = x.status();
    });
  }
  CLEAVE_RETURN_IF_ERROR(status);
  const auto dtype_of = [&](size_t position) -> std::optional<DType> {
    if (position >= rule.dtype.size() || rule.dtype[position].empty()) {
      return std::nullopt;
    }
    const absl::StatusOr<DType> fixed = ParseDType(rule.dtype[position]);
    if (fixed.ok()) return *fixed;
    std::optional<DType> found;
    for (size_t i = 0; i < arguments.size() && i < rule.dtype.size(); ++i) {
      if (rule.dtype[i] != rule.dtype[position]) continue;
      ForEachTensor(arguments[i], [&](const Tensor& x) {
        if (!found.has_value() && x.valid()) found = x.dtype();
      });
    }
    return found;
  };
  std::vector<Argument> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto node = [&](const Tensor& x) -> absl::StatusOr<Value> {
      if (!x.is_number()) return TensorAccess::Read(recorder, x);
      const std::optional<DType> dtype = dtype_of(i);
      if (!dtype.has_value()) return NoDType(item.name, i);
      return TensorAccess::Read(recorder, x, *dtype);
    };
    Argument argument;
    if (const auto* x = std::get_if<Tensor>(&arguments[i].value)) {
      CLEAVE_ASSIGN_OR_RETURN(argument.value, node(*x));
    } else if (const auto* xs =
                   std::get_if<CallArgument::List>(&arguments[i].value)) {
      std::vector<std::optional<Value>> list;
      for (const std::optional<Tensor>& x : *xs) {
        if (!x.has_value()) {
          list.push_back(std::nullopt);
          continue;
        }
        CLEAVE_ASSIGN_OR_RETURN(const Value value, node(*x));
        list.push_back(value);
      }
      argument.value = std::move(list);
    } else if (const auto* value =
                   std::get_if<StaticValue>(&arguments[i].value)) {
      CLEAVE_ASSIGN_OR_RETURN(argument.value, ResolveValue(*value));
    } else {
      argument.value = Argument::Absent{};
    }
    given.push_back(std::move(argument));
  }
  Attributes complete = attributes;
  if (!recorder.is_trace()) NameSizes(recorder, item, &complete);
  return recorder.rules()->Call(recorder.builder(), item.name, given, complete);
}

absl::StatusOr<std::vector<std::optional<Tensor>>> CallIn(
    Recorder& recorder, absl::string_view op,
    const std::vector<CallArgument>& arguments, const Attributes& attributes) {
  CLEAVE_ASSIGN_OR_RETURN(const Attributes resolved,
                          ResolveAttributes(attributes));
  const Item* item =
      recorder.rules() == nullptr ? nullptr : recorder.rules()->Find(op);
  std::vector<std::optional<Value>> nodes;
  if (item != nullptr) {
    CLEAVE_ASSIGN_OR_RETURN(nodes,
                            CallOp(recorder, *item, arguments, resolved));
  } else if (const std::optional<Primitive> primitive = FindPrimitive(op)) {
    CLEAVE_ASSIGN_OR_RETURN(
        nodes, CallPrimitive(recorder, *primitive, arguments, resolved));
  } else {
    return absl::NotFoundError(absl::StrCat("there is no op `", op, "`"));
  }
  std::vector<std::optional<Tensor>> results;
  for (const std::optional<Value>& node : nodes) {
    results.push_back(
        node.has_value()
            ? std::optional<Tensor>(TensorAccess::Make(recorder, *node))
            : std::nullopt);
  }
  CLEAVE_RETURN_IF_ERROR(recorder.Done());
  for (std::optional<Tensor>& result : results) {
    if (!result.has_value()) continue;
    CLEAVE_RETURN_IF_ERROR(TensorAccess::Settle(recorder, &*result));
  }
  return results;
}

// The operands' types, as `f32[4, 5] by f32[6, 7]`; numbers as they are.
std::string OperandTypes(const std::vector<CallArgument>& arguments) {
  std::vector<std::string> types;
  for (const CallArgument& argument : arguments) {
    ForEachTensor(argument, [&](const Tensor& x) {
      types.push_back(x.valid() ? x.type().ToString() : x.ToString());
    });
  }
  return absl::StrJoin(types, types.size() == 2 ? " by " : ", ");
}

// A mistake of this call with its place; that of an argument as it is.
absl::Status InCall(const absl::Status& status, absl::string_view op,
                    const std::vector<CallArgument>& arguments,
                    const Recorder& recorder, int64_t number) {
  bool earlier = false;
  for (const CallArgument& argument : arguments) {
    ForEachTensor(argument,
                  [&](const Tensor& x) { earlier |= !x.status().ok(); });
  }
  if (earlier) return status;
  std::string place(op);
  if (recorder.is_trace()) {
    absl::StrAppend(&place, ", call ", number, " of the trace");
  }
  const std::string types = OperandTypes(arguments);
  if (!types.empty()) absl::StrAppend(&place, ": ", types);
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, absl::StrCat("`", op, "`: "));
  std::string text = absl::StrCat(place, ": ", message);
  const absl::optional<absl::Cord> where =
      status.GetPayload(kErrorPlacePayload);
  const size_t kind = message.find(": ");
  if (where.has_value() && kind != absl::string_view::npos) {
    text =
        absl::StrCat(place, ": ", message.substr(kind + 2), " (",
                     message.substr(0, kind), ", ", std::string(*where), ")");
  }
  absl::Status placed(status.code(), text);
  status.ForEachPayload([&](absl::string_view name, const absl::Cord& payload) {
    placed.SetPayload(name, payload);
  });
  return placed;
}

}  // namespace

Storage::Storage() : id(next_storage++) {}

absl::Status TensorAccess::Settle(const Recorder& recorder, Tensor* result) {
  bool known = true;
  for (const Dim& extent : result->view_.type().shape) {
    known &= extent.IsConstant();
  }
  if (known || recorder.is_trace()) return absl::OkStatus();
  const std::shared_ptr<Storage> storage = result->storage_;
  if (storage->recorder != nullptr) {
    CLEAVE_RETURN_IF_ERROR(Settle(*storage));
  }
  CLEAVE_RETURN_IF_ERROR(storage->status);
  *result = Make(storage);
  return absl::OkStatus();
}

absl::StatusOr<Value> TensorAccess::Read(Recorder& recorder, const Tensor& x,
                                         DType dtype_of_numbers) {
  CLEAVE_RETURN_IF_ERROR(x.status());
  if (x.number_.has_value()) {
    if (const Exact* number = std::get_if<Exact>(&*x.number_)) {
      return NumberNode(recorder.builder(), *number, dtype_of_numbers);
    }
    return DimNode(recorder.builder(), std::get<Dim>(*x.number_),
                   dtype_of_numbers);
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value base, recorder.Read(x.storage_));
  return ReadView(recorder.builder(), base, x.view_);
}

absl::StatusOr<Value> TensorAccess::Read(Recorder& recorder, const Tensor& x) {
  CLEAVE_RETURN_IF_ERROR(x.status());
  if (x.is_number()) {
    return absl::InvalidArgumentError(
        "a number has no dtype here: make it a tensor with Full");
  }
  return Read(recorder, x, x.dtype());
}

absl::StatusOr<std::vector<std::optional<Tensor>>> Call(
    absl::string_view op, const std::vector<CallArgument>& arguments,
    const Attributes& attributes) {
  // In eager code, a call like one before it needs no graph.
  thread_local std::string key;
  CallStorages storages;
  std::shared_ptr<Session::Impl> session;
  if (!InTrace()) session = SessionAccess::Current();
  if (session != nullptr && !session->accumulates() &&
      MakeCallKey(op, arguments, attributes, &key, &storages)) {
    if (auto results = session->RunKnown(key, storages)) {
      return *std::move(results);
    }
  } else {
    session = nullptr;
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<Recorder> recorder,
                          CurrentRecorder());
  const int64_t number = recorder->CountCall();
  absl::StatusOr<std::vector<std::optional<Tensor>>> results =
      CallIn(*recorder, op, arguments, attributes);
  if (results.ok()) {
    if (session != nullptr) session->Remember(key, storages, *results);
    return results;
  }
  const absl::Status mistake =
      InCall(results.status(), op, arguments, *recorder, number);
  recorder->Mistake(mistake);
  return mistake;
}

Tensor CallOne(absl::string_view op, const std::vector<CallArgument>& arguments,
               const Attributes& attributes) {
  return CallMany(op, 1, arguments, attributes)[0];
}

std::vector<Tensor> CallMany(absl::string_view op, size_t count,
                             const std::vector<CallArgument>& arguments,
                             const Attributes& attributes) {
  absl::StatusOr<std::vector<std::optional<Tensor>>> results =
      Call(op, arguments, attributes);
  absl::Status status = results.status();
  if (status.ok() && results->size() != count) {
    status = absl::InvalidArgumentError(absl::StrCat(
        "`", op, "` has ", results->size(), " results, not ", count));
  }
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    if (!status.ok()) {
      tensors.push_back(Tensor::Invalid(status));
    } else if (!(*results)[i].has_value()) {
      tensors.push_back(Tensor::Invalid(absl::FailedPreconditionError(
          absl::StrCat("`", op, "` has no result ", i, " in this call"))));
    } else {
      tensors.push_back(*std::move((*results)[i]));
    }
  }
  return tensors;
}

}  // namespace cleave::functional
