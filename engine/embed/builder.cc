// Builders: graphs made call by call.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/embed/describe.h"
#include "engine/embed/handles.h"
#include "engine/ir/attribute_text.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"
#include "ops/tensor_type.h"

namespace cleave::embed {
namespace {

// The builder, for one call; errors that it keeps end it.
absl::StatusOr<GraphBuilder*> Opened(cleave_builder* builder) {
  if (!builder->builder.has_value()) {
    builder->builder.emplace(builder->rules->context());
  }
  CLEAVE_RETURN_IF_ERROR(builder->builder->status());
  return &*builder->builder;
}

absl::StatusOr<Value> ReadValue(const GraphBuilder& builder,
                                cleave_value value) {
  if (static_cast<int64_t>(value) >= builder.graph().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no value ", value, " in this builder"));
  }
  if (builder.graph().types(Value{value}).size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the value ", value, " is not one tensor: take its results"));
  }
  return Value{value};
}

absl::StatusOr<Argument> ReadArgument(const GraphBuilder& builder,
                                      const cleave_argument& given) {
  Argument argument;
  if (given.name != nullptr) argument.name = given.name;
  if (given.values == nullptr && given.count > 0) {
    return absl::InvalidArgumentError("the `values` of an argument are null");
  }
  switch (given.kind) {
    case CLEAVE_ARGUMENT_ABSENT:
      argument.value = Argument::Absent();
      return argument;
    case CLEAVE_ARGUMENT_TENSOR: {
      if (given.count != 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "an argument that is a tensor has ", given.count, " values"));
      }
      CLEAVE_ASSIGN_OR_RETURN(argument.value,
                              ReadValue(builder, given.values[0]));
      return argument;
    }
    case CLEAVE_ARGUMENT_LIST: {
      std::vector<std::optional<Value>> values;
      for (size_t i = 0; i < given.count; ++i) {
        if (given.values[i] == CLEAVE_ABSENT) {
          values.push_back(std::nullopt);
          continue;
        }
        CLEAVE_ASSIGN_OR_RETURN(const Value value,
                                ReadValue(builder, given.values[i]));
        values.push_back(value);
      }
      argument.value = std::move(values);
      return argument;
    }
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("there is no kind of arguments ", given.kind));
  }
}

absl::StatusOr<std::vector<std::optional<Value>>> AddPrimitive(
    GraphBuilder& builder, Primitive primitive,
    const std::vector<Argument>& arguments, const Attributes& attributes) {
  if (ClassOf(primitive) == PrimitiveClass::kProjection ||
      primitive == Primitive::kInput) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", PrimitiveName(primitive), "` is not called: it is made"));
  }
  std::vector<Value> operands;
  for (const Argument& argument : arguments) {
    if (!argument.name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("operands of the primitive `", PrimitiveName(primitive),
                       "` have no names"));
    }
    if (const Value* value = std::get_if<Value>(&argument.value)) {
      operands.push_back(*value);
      continue;
    }
    const auto* list =
        std::get_if<std::vector<std::optional<Value>>>(&argument.value);
    bool all = list != nullptr;
    for (size_t i = 0; all && i < list->size(); ++i) {
      all = (*list)[i].has_value();
      if (all) operands.push_back(*(*list)[i]);
    }
    if (!all) {
      return absl::InvalidArgumentError(
          absl::StrCat("operands of the primitive `", PrimitiveName(primitive),
                       "` are not optional"));
    }
  }
  if (ClassOf(primitive) == PrimitiveClass::kPointwise) {
    std::vector<Shape> shapes;
    for (const Value v : operands) shapes.push_back(builder.type(v).shape);
    CLEAVE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(shapes));
    for (Value& v : operands) v = builder.BroadcastTo(v, shape);
    CLEAVE_RETURN_IF_ERROR(builder.status());
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value node,
                          builder.Add(primitive, attributes, operands));
  std::vector<std::optional<Value>> results;
  const size_t count = builder.graph().types(node).size();
  for (size_t i = 0; i < count; ++i) {
    results.push_back(count == 1 ? node
                                 : builder.Result(node, static_cast<int>(i)));
  }
  return results;
}

}  // namespace
}  // namespace cleave::embed

using cleave::Value;
using cleave::embed::CheckGiven;
using cleave::embed::Guarded;
using cleave::embed::Opened;

cleave_status* cleave_builder_new(const cleave_rules* rules,
                                  cleave_builder** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"rules", rules}, {"out", out}}));
    *out = new cleave_builder{rules->rules, std::nullopt};
    return absl::OkStatus();
  });
}

void cleave_builder_free(cleave_builder* builder) { delete builder; }

cleave_status* cleave_builder_input(cleave_builder* builder, const char* name,
                                    const char* type, cleave_value* out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven(
        {{"builder", builder}, {"name", name}, {"type", type}, {"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(cleave::GraphBuilder * open, Opened(builder));
    CLEAVE_ASSIGN_OR_RETURN(const cleave::TensorType parsed,
                            cleave::ParseTensorType(type));
    for (const cleave::NamedValue& input : open->graph().inputs()) {
      if (input.name == name) {
        return absl::InvalidArgumentError(
            absl::StrCat("two inputs are named `", name, "`"));
      }
    }
    *out = open->Input(name, parsed).id;
    return open->status();
  });
}

cleave_status* cleave_builder_constant(cleave_builder* builder,
                                       const char* number, const char* type,
                                       cleave_value* out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"builder", builder},
                                       {"number", number},
                                       {"type", type},
                                       {"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(cleave::GraphBuilder * open, Opened(builder));
    CLEAVE_ASSIGN_OR_RETURN(const cleave::TensorType parsed,
                            cleave::ParseTensorType(type));
    CLEAVE_ASSIGN_OR_RETURN(const cleave::Exact exact,
                            cleave::Exact::Parse(number));
    // Add, not Constant: a number that the dtype does not hold leaves no
    // mistake in the builder.
    CLEAVE_ASSIGN_OR_RETURN(
        const Value scalar,
        open->Add(cleave::Primitive::kConstant,
                  cleave::ConstantAttributes(exact, parsed.dtype), {}));
    const Value constant = open->BroadcastTo(scalar, parsed.shape);
    CLEAVE_RETURN_IF_ERROR(open->status());
    *out = constant.id;
    return absl::OkStatus();
  });
}

cleave_status* cleave_builder_call(cleave_builder* builder, const char* op,
                                   const cleave_argument* arguments,
                                   size_t argument_count,
                                   const char* attributes,
                                   cleave_value* results, size_t capacity,
                                   size_t* count) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(
        CheckGiven({{"builder", builder}, {"op", op}, {"count", count}}));
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<cleave_argument> given,
        cleave::embed::ReadStructs(arguments, argument_count, "arguments"));
    CLEAVE_ASSIGN_OR_RETURN(cleave::GraphBuilder * open, Opened(builder));
    const cleave::BudgetScope scope;
    std::vector<cleave::Argument> read;
    for (const cleave_argument& one : given) {
      CLEAVE_ASSIGN_OR_RETURN(cleave::Argument argument,
                              cleave::embed::ReadArgument(*open, one));
      read.push_back(std::move(argument));
    }
    CLEAVE_ASSIGN_OR_RETURN(
        const cleave::Attributes parsed,
        cleave::ParseAttributes(attributes == nullptr ? "" : attributes,
                                builder->rules->context()));
    std::vector<std::optional<Value>> made;
    const cleave::Item* item = builder->rules->Find(op);
    const std::optional<cleave::Primitive> primitive =
        cleave::FindPrimitive(op);
    if (item == nullptr && primitive.has_value()) {
      CLEAVE_ASSIGN_OR_RETURN(
          made, cleave::embed::AddPrimitive(*open, *primitive, read, parsed));
    } else {
      absl::StatusOr<std::vector<std::optional<Value>>> called =
          builder->rules->Call(*open, op, read, parsed);
      if (absl::IsNotFound(called.status()) && item == nullptr) {
        return cleave::embed::NoSuchName(
            "op", op, builder->rules->Names(cleave::ItemKind::kOp));
      }
      CLEAVE_RETURN_IF_ERROR(called.status());
      made = *std::move(called);
    }
    *count = made.size();
    if (made.size() > capacity) {
      return absl::OutOfRangeError(
          absl::StrCat("the call has ", made.size(),
                       " results, and there is room for ", capacity));
    }
    if (results == nullptr && !made.empty()) {
      return absl::InvalidArgumentError("`results` is null");
    }
    for (size_t i = 0; i < made.size(); ++i) {
      results[i] = made[i].has_value() ? made[i]->id : CLEAVE_ABSENT;
    }
    return open->status();
  });
}

cleave_status* cleave_builder_inline(cleave_builder* builder,
                                     const cleave_graph* graph,
                                     const cleave_value* arguments,
                                     size_t argument_count,
                                     cleave_value* results, size_t capacity) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(
        CheckGiven({{"builder", builder}, {"graph", graph}}));
    CLEAVE_ASSIGN_OR_RETURN(cleave::GraphBuilder * open, Opened(builder));
    const cleave::BudgetScope scope;
    if (graph->rules->context() != builder->rules->context()) {
      return absl::InvalidArgumentError(
          "the graph belongs to other rules: cleave_graph_with_rules copies "
          "it");
    }
    const cleave::Graph& inlined = graph->graph;
    const size_t outputs = inlined.outputs().size();
    if (argument_count != inlined.inputs().size() || capacity < outputs ||
        (arguments == nullptr && argument_count > 0) ||
        (results == nullptr && outputs > 0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the graph has ", inlined.inputs().size(), " inputs and ", outputs,
          " outputs, but ", argument_count, " and ", capacity, " are given"));
    }
    std::vector<Value> values;
    for (size_t i = 0; i < argument_count; ++i) {
      CLEAVE_ASSIGN_OR_RETURN(const Value value,
                              cleave::embed::ReadValue(*open, arguments[i]));
      const cleave::NamedValue& input = inlined.inputs()[i];
      if (open->type(value) != inlined.type(input.value)) {
        return absl::InvalidArgumentError(
            absl::StrCat("the input `", input.name, "` is ",
                         inlined.type(input.value).ToString(), ", but ",
                         open->type(value).ToString(), " is given"));
      }
      values.push_back(value);
    }
    const std::vector<Value> made = open->Inline(inlined, values);
    CLEAVE_RETURN_IF_ERROR(open->status());
    for (size_t i = 0; i < made.size(); ++i) results[i] = made[i].id;
    return absl::OkStatus();
  });
}

cleave_status* cleave_builder_type(cleave_builder* builder, cleave_value value,
                                   cleave_text** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"builder", builder}, {"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(cleave::GraphBuilder * open, Opened(builder));
    CLEAVE_ASSIGN_OR_RETURN(const Value read,
                            cleave::embed::ReadValue(*open, value));
    *out = cleave::embed::NewText(open->type(read).ToString());
    return absl::OkStatus();
  });
}

cleave_status* cleave_builder_finish(cleave_builder* builder,
                                     const char* const* names,
                                     const cleave_value* outputs, size_t count,
                                     cleave_graph** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"builder", builder}, {"out", out}}));
    if (outputs == nullptr && count > 0) {
      return absl::InvalidArgumentError("`outputs` is null");
    }
    CLEAVE_ASSIGN_OR_RETURN(cleave::GraphBuilder * open, Opened(builder));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::string> read,
                            cleave::embed::ReadTexts(names, count, "names"));
    std::vector<cleave::NamedValue> results;
    for (size_t i = 0; i < count; ++i) {
      CLEAVE_ASSIGN_OR_RETURN(const Value value,
                              cleave::embed::ReadValue(*open, outputs[i]));
      for (size_t j = 0; j < i; ++j) {
        if (read[j] == read[i]) {
          return absl::InvalidArgumentError(
              absl::StrCat("two outputs are named `", read[i], "`"));
        }
      }
      results.push_back({read[i], value});
    }
    absl::StatusOr<cleave::Graph> graph =
        std::move(*open).Build(std::move(results));
    builder->builder.reset();
    CLEAVE_RETURN_IF_ERROR(graph.status());
    *out = cleave::embed::NewGraph(*std::move(graph), builder->rules);
    return absl::OkStatus();
  });
}
