#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/codegen/element_support.h"
#include "engine/codegen/flatten_scatters.h"
#include "engine/codegen/fusion.h"
#include "engine/codegen/index_check.h"
#include "engine/codegen/stored.h"
#include "engine/ir/filled_with.h"
#include "engine/ir/rewrite_graph.h"

namespace cleave {
namespace {

absl::Status No(Primitive primitive, absl::string_view why) {
  return absl::UnimplementedError(
      absl::StrCat("`", PrimitiveName(primitive), "`: ", why));
}

// Whether v is 0 everywhere, and not -0.
bool IsZero(const Graph& graph, Value v) {
  const std::optional<Exact> value = FilledWith(graph, v);
  return value == Exact(0) && !value->IsNegativeZero();
}

// Whether a scan that begins at 0 multiplies by 1 at every element but the
// first it meets, which multiplies by 1 or 0: as the transpose of a cumulative
// sum does.
bool AddsUp(const Graph& graph, Value scan) {
  Value a = graph.operands(scan)[0];
  if (graph.node(a).op == ToOpId(Primitive::kPad)) {
    const auto operands = graph.operands(a);
    const Attributes& pad = graph.attributes(a);
    if (!IsZero(graph, operands[1])) return false;
    const int64_t axis = graph.attributes(scan).GetInt("axis");
    const bool reverse = graph.attributes(scan).GetBool("reverse");
    for (size_t d = 0; d < pad.GetDims("low").size(); ++d) {
      const Dim first = pad.GetDims(reverse ? "high" : "low")[d];
      const Dim last = pad.GetDims(reverse ? "low" : "high")[d];
      const Dim most = static_cast<int64_t>(d) == axis ? Dim(1) : Dim(0);
      if ((first != Dim(0) && first != most) || last.Value().value_or(1) > 0 ||
          pad.GetDims("interior")[d] != Dim(0)) {
        return false;
      }
    }
    a = operands[0];
  }
  return FilledWith(graph, a) == Exact(1);
}

// Whether the value is stored in any case: an input, or what no kernel computes
// along with others.
bool IsStoredAnyway(const Graph& graph, Value v) {
  if (!IsPrimitive(graph.node(v).op)) return true;
  const Primitive primitive = ToPrimitive(graph.node(v).op);
  if (primitive == Primitive::kInput || IsStored(graph, v)) return true;
  const PrimitiveClass c = ClassOf(primitive);
  return c == PrimitiveClass::kContraction || c == PrimitiveClass::kControl ||
         c == PrimitiveClass::kProjection;
}

// The parts that a concatenation puts one behind the other: what it reads
// whole, or from one number to another along its axis.
std::vector<Value> PartsOf(const Graph& graph, Value node) {
  std::vector<Value> parts;
  for (const Value operand : graph.operands(node)) {
    parts.push_back(JoinedPart(graph, node, operand).base);
  }
  return parts;
}

// Whether the node puts tensors one behind the other that are stored in any
// case, or parts of them.
bool JoinsStored(const Graph& graph, Value node) {
  if (graph.node(node).op != ToOpId(Primitive::kConcatenate)) return false;
  const std::vector<Value> parts = PartsOf(graph, node);
  return std::all_of(parts.begin(), parts.end(),
                     [&](Value part) { return IsStoredAnyway(graph, part); });
}

// The other concatenations that `node`, which the graph returns, reads parts
// of: they are to be stored for it, as where rows and then columns are rolled.
std::vector<Value> JoinedToStore(const Graph& graph, Value node) {
  if (graph.node(node).op != ToOpId(Primitive::kConcatenate)) return {};
  const auto returned = [&](const NamedValue& output) {
    return output.value == node;
  };
  if (std::none_of(graph.outputs().begin(), graph.outputs().end(), returned)) {
    return {};
  }
  std::vector<Value> result;
  for (const Value part : PartsOf(graph, node)) {
    if (IsStoredAnyway(graph, part)) continue;
    if (graph.node(part).op != ToOpId(Primitive::kConcatenate)) return {};
    result.push_back(part);
  }
  return result;
}

}  // namespace

PartOfJoined JoinedPart(const Graph& graph, Value node, Value operand) {
  const PartOfJoined whole = {operand, 0, std::nullopt};
  if (graph.node(operand).op != ToOpId(Primitive::kSlice)) return whole;
  const Attributes& slice = graph.attributes(operand);
  const Value base = graph.operands(operand)[0];
  const int64_t axis = graph.attributes(node).GetInt("axis");
  const Shape& shape = graph.type(operand).shape;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    if (slice.GetDims("stride")[d] != Dim(1)) return whole;
    if (d != axis && shape[d] != graph.type(base).shape[d]) return whole;
  }
  const auto start = slice.GetDims("start")[axis].Value();
  const auto length = shape[axis].Value();
  if (!start.has_value() || !length.has_value()) return whole;
  return {base, *start, length};
}

bool IsMovement(const Graph& graph, Value node) {
  if (!IsPrimitive(graph.node(node).op)) return false;
  const Primitive primitive = ToPrimitive(graph.node(node).op);
  switch (primitive) {
    case Primitive::kConstant:
    case Primitive::kExtent:
    case Primitive::kIota:
    case Primitive::kWindows:
      return CanLower(graph, node).ok();
    case Primitive::kGather:
      return CanLower(graph, node).ok();
    default:
      return ClassOf(primitive) == PrimitiveClass::kMovement &&
             CanLower(graph, node).ok();
  }
}

absl::Status CanLower(const Graph& graph, Value node) {
  const OpId op = graph.node(node).op;
  if (!IsPrimitive(op)) {
    return absl::UnimplementedError(
        absl::StrCat("`", graph.context()->op_name(op), "` is no primitive"));
  }
  const Primitive primitive = ToPrimitive(op);
  std::vector<DType> operands;
  for (const Value operand : graph.operands(node)) {
    if (graph.types(operand).size() != 1) {
      return No(primitive, "it reads a tuple");
    }
    operands.push_back(graph.type(operand).dtype);
  }
  if (graph.types(node).size() != 1) {
    return No(primitive, "several results have no vector code");
  }
  const DType result = graph.type(node).dtype;
  for (const DType dtype : operands) {
    if (!HasElements(dtype)) {
      return No(primitive,
                absl::StrCat("no vector code for ", DTypeName(dtype)));
    }
  }
  if (!HasElements(result)) {
    return No(primitive,
              absl::StrCat("no vector code for ", DTypeName(result)));
  }
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kPointwise:
      if (DividesIntegers(graph, node)) {
        const absl::Status checked = IndexChecks(graph, node).status();
        if (!checked.ok()) return No(primitive, checked.message());
      }
      if (IsOfLowOrder(graph, node)) return absl::OkStatus();
      return CanLowerElement(primitive, result, operands);
    case PrimitiveClass::kLeaf:
    case PrimitiveClass::kMovement:
    case PrimitiveClass::kWindow:
    case PrimitiveClass::kReduction:
    case PrimitiveClass::kContraction:
    case PrimitiveClass::kScan:
      return absl::OkStatus();
    case PrimitiveClass::kGather:
      if (graph.attributes(node).Get("mode").AsString() != "fill") {
        const absl::Status checked = IndexChecks(graph, node).status();
        if (!checked.ok()) return No(primitive, checked.message());
      }
      return absl::OkStatus();
    case PrimitiveClass::kScatter:
      return absl::OkStatus();
    case PrimitiveClass::kRandom:
      if (IsDraw(primitive)) return absl::OkStatus();
      return No(primitive, "no vector code");
    default:
      return No(primitive, "no vector code");
  }
}

std::vector<Value> RuntimeOperands(const Graph& graph, Value node,
                                   const FusionOptions& options) {
  if (!IsPrimitive(graph.node(node).op)) return {};
  const Primitive primitive = ToPrimitive(graph.node(node).op);
  const auto operands = graph.operands(node);
  if (primitive == Primitive::kSort) return {operands[0]};
  if (!options.runtime_code) {
    if (ClassOf(primitive) != PrimitiveClass::kControl) return {};
    return {operands.begin(), operands.end()};
  }
  const DType dtype = graph.type(node).dtype;
  const bool sets = primitive == Primitive::kScatter &&
                    graph.attributes(node).Get("mode").AsString() == "set";
  const bool real = InClass(dtype, DTypeClass::kReal);
  if (sets ? !real && !IsBool(dtype) : !real || ByteSize(dtype) < 4) return {};
  if (primitive == Primitive::kLinearScan) {
    // y = 1 y + x, from 0 on. No sum of it is -0, so that -0 will not do.
    if (!AddsUp(graph, node) || !IsZero(graph, operands[2])) return {};
    return {operands[1]};
  }
  if (!ScattersRows(graph, node) ||
      graph.type(operands[1]).rank() !=
          graph.attributes(node).GetInt("batch") + 2) {
    return {};
  }
  const auto fill = FilledWith(graph, operands[0]);
  const bool needs_none = IsInt(dtype)
                              ? fill.has_value() && fill->ToInt64().has_value()
                              : IsZero(graph, operands[0]);
  if (needs_none) return {operands[1], operands[2]};
  return {operands[0], operands[1], operands[2]};
}

namespace {

// Below this many elements of an operand a kernel takes longer to start than
// the interpreter to be done.
constexpr int64_t kSmallOperand = 1024;

// The operands of a loop or choice that are worth a kernel. The step of the
// loop would have the interpreter compute them.
std::vector<Value> LargeOperandsOfLoop(const Graph& graph, Value node) {
  const OpId op = graph.node(node).op;
  if (!IsPrimitive(op) ||
      ClassOf(ToPrimitive(op)) != PrimitiveClass::kControl) {
    return {};
  }
  std::vector<Value> large;
  for (const Value operand : graph.operands(node)) {
    if (graph.types(operand).size() != 1) continue;
    // Memory has no shape.
    if (!IsMovement(graph, BelowReshapes(graph, operand))) continue;
    int64_t size = 1;
    bool open = false;
    for (const Dim& dim : graph.type(operand).shape) {
      open |= !dim.Value().has_value();
      size *= dim.Value().value_or(1);
    }
    if (open || size > kSmallOperand) large.push_back(operand);
  }
  return large;
}

}  // namespace

Value BelowReshapes(const Graph& graph, Value v) {
  while (graph.node(v).op == ToOpId(Primitive::kReshape)) {
    v = graph.operands(v)[0];
  }
  return v;
}

Value StoredBelow(const Graph& graph, Value node, Value operand) {
  return graph.node(node).op == ToOpId(Primitive::kScatter)
             ? BelowReshapes(graph, operand)
             : operand;
}

bool HasRuntimeCode(const Graph& graph, Value node,
                    const FusionOptions& options) {
  if (!options.no_code.empty()) return false;
  if (options.runtime_code && options.runtime_copies &&
      JoinsStored(graph, node)) {
    return true;
  }
  const std::vector<Value> own = RuntimeOperands(graph, node, options);
  return !own.empty() &&
         std::none_of(own.begin(), own.end(), [&](Value operand) {
           return IsMovement(graph, StoredBelow(graph, node, operand));
         });
}

std::optional<Value> AddedScatter(const Graph& graph, Value node,
                                  const FusionOptions& options) {
  if (graph.node(node).op != ToOpId(Primitive::kAdd)) return std::nullopt;
  const auto operands = graph.operands(node);
  for (const int k : {0, 1}) {
    const Value scatter = BelowReshapes(graph, operands[k]);
    const Value stored = BelowReshapes(graph, operands[1 - k]);
    if (graph.node(scatter).op == ToOpId(Primitive::kScatter) &&
        stored != scatter && !IsMovement(graph, stored) &&
        IsZero(graph, graph.operands(scatter)[0]) &&
        HasRuntimeCode(graph, scatter, options)) {
      return scatter;
    }
  }
  return std::nullopt;
}

namespace {

// The concatenation of what it reads parts of, where `parts` of these become
// values of their own.
Value JoinStored(GraphCopy& copy, Value node, const std::vector<Value>& parts) {
  const Graph& graph = copy.graph();
  std::vector<Value> operands;
  for (const Value operand : graph.operands(node)) {
    const Value base = JoinedPart(graph, node, operand).base;
    Value value = copy.of(operand);
    if (std::count(parts.begin(), parts.end(), base) > 0) {
      value = Stored(copy.builder(), copy.of(base));
      if (operand != base) {
        value = copy.builder().Apply(Primitive::kSlice, {value},
                                     graph.attributes(operand));
      }
    }
    operands.push_back(value);
  }
  return copy.builder().Apply(Primitive::kConcatenate, operands,
                              graph.attributes(node));
}

}  // namespace

Graph StoreRuntimeOperands(const Graph& graph, const FusionOptions& options) {
  const auto moved = [&](Value v) {
    std::vector<Value> result = RuntimeOperands(graph, v, options);
    for (const Value operand : LargeOperandsOfLoop(graph, v)) {
      result.push_back(operand);
    }
    result.erase(std::remove_if(result.begin(), result.end(),
                                [&](Value operand) {
                                  return !IsMovement(
                                      graph, StoredBelow(graph, v, operand));
                                }),
                 result.end());
    return result;
  };
  const auto joined = [&](Value v) {
    return options.runtime_code && options.runtime_copies
               ? JoinedToStore(graph, v)
               : std::vector<Value>();
  };
  const auto applies = [&](Value v) {
    return !moved(v).empty() || !joined(v).empty();
  };
  return RewriteNodes(graph, applies, [&](GraphCopy& copy, Value v) {
    GraphBuilder& builder = copy.builder();
    const std::vector<Value> parts = joined(v);
    if (!parts.empty()) return JoinStored(copy, v, parts);
    const std::vector<Value> stored = moved(v);
    const auto copied = copy.Operands(v);
    std::vector<Value> operands(copied.begin(), copied.end());
    const auto given = graph.operands(v);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (std::count(stored.begin(), stored.end(), given[i]) > 0) {
        operands[i] = builder.Apply(Primitive::kNograd, {operands[i]});
      }
    }
    return builder.Apply(ToPrimitive(graph.node(v).op), operands,
                         graph.attributes(v));
  });
}

}  // namespace cleave
