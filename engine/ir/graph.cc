#include "engine/ir/graph.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/infer_node.h"
#include "engine/ir/substitute.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

constexpr uint64_t kEmptySlot = UINT64_MAX;
constexpr uint64_t kInitialSlots = 64;
// Slots from which on a table doubles; smaller ones grow fourfold.
constexpr uint64_t kLargeTable = uint64_t{1} << 18;

// The product's halves, folded: every bit of the result depends on all of both.
inline uint64_t Mix(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
}

inline uint32_t HashNode(OpId op, AttributesId attributes,
                         absl::Span<const Value> operands) {
  uint64_t hash = ((uint64_t{op} << 32) | attributes) ^ 0x9e3779b97f4a7c15;
  for (Value v : operands) hash = Mix(hash ^ v.id, 0xa0761d6478bd642f);
  return static_cast<uint32_t>(Mix(hash, 0xe7037ed1a0b428db));
}

bool IsExtentOfInput(const Graph& graph, const std::string& variable) {
  for (const NamedValue& input : graph.inputs()) {
    for (const Dim& dim : graph.type(input.value).shape) {
      if (dim.Variables().count(variable) > 0) return true;
    }
  }
  return false;
}

}  // namespace

GraphBuilder::GraphBuilder(std::shared_ptr<Context> context) {
  if (context == nullptr) {
    status_ = absl::InvalidArgumentError("a builder needs a context");
    context = std::make_shared<Context>();
  }
  graph_.context_ = ContextReference(std::move(context));
  slots_.assign(kInitialSlots, kEmptySlot);
  slot_mask_ = kInitialSlots - 1;
}

Value GraphBuilder::Input(absl::string_view name, const TensorType& type) {
  if (!input_names_.emplace(name).second) {
    return Mistake(
        absl::InvalidArgumentError(absl::StrCat("two inputs are named ", name)),
        type);
  }
  const absl::Status sizes = CheckDims(type.shape);
  if (!sizes.ok()) return Mistake(sizes, type);
  Context& context = *graph_.context_;
  Node node;
  node.op = ToOpId(Primitive::kInput);
  node.attributes = context.Intern(
      Attributes{{"name", std::string(name)},
                 {"index", static_cast<int64_t>(graph_.inputs_.size())}});
  node.type = context.Intern(type);
  node.provenance = provenance_;
  const Value value = Append(node, {});
  graph_.inputs_.push_back({std::string(name), value});
  for (const Dim& dim : type.shape) {
    if (dim.IsConstant()) continue;
    for (const std::string& variable : dim.Variables()) {
      input_variables_.insert(variable);
    }
  }
  return value;
}

Value GraphBuilder::Append(const Node& node, absl::Span<const Value> operands) {
  CLEAVE_CHECK(graph_.nodes_.size() < UINT32_MAX) << "2^32 nodes";
  // Beyond the limit the budget has ended, which whoever adds them asks.
  constexpr size_t kEvery = 1024;
  if (ABSL_PREDICT_FALSE(graph_.nodes_.size() % kEvery == kEvery - 1)) {
    ChargeBudget(BudgetKind::kNodes, kEvery).IgnoreError();
  }
  std::vector<Value>& all = graph_.operands_;
  graph_.nodes_.push_back(node);
  graph_.nodes_.back().operands_begin = static_cast<uint32_t>(all.size());
  graph_.nodes_.back().operand_count = static_cast<uint32_t>(operands.size());
  if (ABSL_PREDICT_FALSE(all.capacity() - all.size() < operands.size())) {
    // `operands` may lie in `all`, which moves.
    const absl::InlinedVector<Value, 8> copy(operands.begin(), operands.end());
    all.insert(all.end(), copy.begin(), copy.end());
  } else {
    for (size_t i = 0; i < operands.size(); ++i) all.push_back(operands[i]);
  }
  return Value{static_cast<uint32_t>(graph_.nodes_.size() - 1)};
}

Value GraphBuilder::Mistake(absl::Status status, const TensorType& type) {
  if (status_.ok()) status_ = std::move(status);
  Node node;  // An input that Build never sees.
  node.op = ToOpId(Primitive::kInput);
  node.type = graph_.context_->Intern(type);
  node.provenance = provenance_;
  return Append(node, {});
}

bool GraphBuilder::Same(Value node, OpId op, AttributesId attributes,
                        absl::Span<const Value> operands) const {
  const Node& n = graph_.nodes_[node.id];
  if (n.op != op || n.attributes != attributes ||
      n.operand_count != operands.size()) {
    return false;
  }
  const Value* own = graph_.operands_.data() + n.operands_begin;
  return std::equal(operands.begin(), operands.end(), own);
}

void GraphBuilder::Rehash(uint64_t slot_count) {
  std::vector<uint64_t> old = std::move(slots_);
  slots_.assign(slot_count, kEmptySlot);
  slot_mask_ = slot_count - 1;
  for (uint64_t entry : old) {
    if (entry == kEmptySlot) continue;
    uint64_t i = (entry >> 32) & slot_mask_;
    while (slots_[i] != kEmptySlot) i = (i + 1) & slot_mask_;
    slots_[i] = entry;
  }
  // The nodes grow in the same steps.
  graph_.nodes_.reserve(slot_count / 2 + 1);
  graph_.operands_.reserve(slot_count);
}

void GraphBuilder::Reserve(int64_t nodes) {
  uint64_t slot_count = slots_.size();
  while (slot_count < static_cast<uint64_t>(nodes) * 2) slot_count *= 2;
  if (slot_count > slots_.size()) Rehash(slot_count);
}

Value GraphBuilder::AddTyped(OpId op, AttributesId attributes, TypeId type,
                             absl::Span<const Value> operands,
                             ProvenanceId provenance) {
  const uint32_t hash = HashNode(op, attributes, operands);
  uint64_t i = hash & slot_mask_;
  while (slots_[i] != kEmptySlot) {
    const uint64_t entry = slots_[i];
    const Value node{static_cast<uint32_t>(entry)};
    if (static_cast<uint32_t>(entry >> 32) == hash &&
        Same(node, op, attributes, operands)) {
      return node;
    }
    i = (i + 1) & slot_mask_;
  }
  Node node;
  node.op = op;
  node.attributes = attributes;
  node.type = type;
  node.provenance = provenance;
  const Value value = Append(node, operands);
  if (ABSL_PREDICT_FALSE(op == ToOpId(Primitive::kNonzero))) {
    sizes_.emplace(SizeVariable(graph_.attributes(value)), value);
  }
  slots_[i] = (uint64_t{hash} << 32) | value.id;
  // At most half full: probes stay short.
  if (ABSL_PREDICT_FALSE(static_cast<uint64_t>(++used_slots_) * 2 >
                         slot_mask_)) {
    // Memory that is touched for the first time costs more than the probes.
    Rehash(slots_.size() * (slots_.size() < kLargeTable ? 4 : 2));
  }
  return value;
}

absl::StatusOr<TypeId> GraphBuilder::Infer(Primitive primitive,
                                           AttributesId attributes,
                                           absl::Span<const Value> operands) {
  std::vector<uint32_t>& key = inference_key_;
  key.assign({ToOpId(primitive), attributes});
  for (Value v : operands) {
    if (ABSL_PREDICT_FALSE(v.id >= graph_.nodes_.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", PrimitiveName(primitive),
                       "`: an operand is no node of this builder"));
    }
    key.push_back(graph_.nodes_[v.id].type);
  }
  auto it = inferred_.find(key);
  if (it != inferred_.end()) return it->second;
  Context& context = *graph_.context_;
  CLEAVE_ASSIGN_OR_RETURN(
      InferredType inferred,
      InferNode(context, primitive, context.attributes(attributes),
                absl::MakeConstSpan(key).subspan(2)));
  for (ShapeGuard& guard : inferred.guards) AddGuard(std::move(guard));
  const TypeId type = context.Intern(inferred.results);
  inferred_.emplace(key, type);
  return type;
}

absl::StatusOr<Value> GraphBuilder::Add(Primitive primitive,
                                        const Attributes& attributes,
                                        absl::Span<const Value> operands) {
  return AddInterned(
      primitive,
      attributes.empty() ? kNoAttributes : graph_.context_->Intern(attributes),
      operands);
}

absl::StatusOr<Value> GraphBuilder::AddInterned(
    Primitive primitive, AttributesId attributes,
    absl::Span<const Value> operands) {
  CLEAVE_RETURN_IF_ERROR(status_);
  CLEAVE_ASSIGN_OR_RETURN(const TypeId type,
                          Infer(primitive, attributes, operands));
  const Value same = MoveNothing(primitive, attributes, type, operands);
  if (same.valid()) return same;
  return AddTyped(ToOpId(primitive), attributes, type, operands, provenance_);
}

Value GraphBuilder::MoveNothing(Primitive primitive, AttributesId attributes,
                                TypeId type, absl::Span<const Value> operands) {
  if (operands.empty()) return Value();
  const Value x = operands[0];
  const Node source = graph_.node(x);
  const bool same_type = source.type == type;
  switch (primitive) {
    case Primitive::kConvert:
    case Primitive::kBitcastConvert:
    case Primitive::kReshape:
    case Primitive::kSlice:   // as long as x, hence from 0 and in steps of 1
    case Primitive::kResult:  // of a node with one result
      if (same_type) return x;
      break;
    case Primitive::kConcatenate:
      if (operands.size() == 1) return x;
      break;
    case Primitive::kBroadcastInDim:
      // axes ascend, so that with no new axis they are 0, 1, ..
      if (same_type) return x;
      break;
    case Primitive::kReverse:
      if (graph_.context_->attributes(attributes).GetInts("axes").empty()) {
        return x;
      }
      break;
    case Primitive::kTranspose: {
      const std::vector<int64_t> axes =
          graph_.context_->attributes(attributes).GetInts("axes");
      if (std::is_sorted(axes.begin(), axes.end())) return x;
      break;
    }
    case Primitive::kPad: {
      const Attributes& a = graph_.context_->attributes(attributes);
      for (absl::string_view name : {"low", "high", "interior"}) {
        for (const Dim& d : a.GetDims(name)) {
          if (d != Dim(0)) return Value();
        }
      }
      return x;
    }
    default:
      break;
  }
  // A movement of a movement of the same kind is one.
  if (primitive == Primitive::kReshape &&
      source.op == ToOpId(Primitive::kReshape)) {
    const Value inner = graph_.operands(x)[0];
    if (graph_.node(inner).type == type) return inner;
    return AddTyped(ToOpId(primitive), attributes, type, {inner}, provenance_);
  }
  if (primitive == Primitive::kTranspose &&
      source.op == ToOpId(Primitive::kTranspose)) {
    const Value inner = graph_.operands(x)[0];
    // result axis d is axis outer[d] of x, which is axis first[outer[d]].
    const std::vector<int64_t> first = graph_.attributes(x).GetInts("axes");
    std::vector<int64_t> axes =
        graph_.context_->attributes(attributes).GetInts("axes");
    for (int64_t& axis : axes) axis = first[axis];
    if (std::is_sorted(axes.begin(), axes.end())) return inner;
    const AttributesId composed =
        graph_.context_->Intern(Attributes{{"axes", StaticValue::Ints(axes)}});
    return AddTyped(ToOpId(primitive), composed, type, {inner}, provenance_);
  }
  return Value();
}

void GraphBuilder::AddGuard(ShapeGuard guard) {
  for (const ShapeGuard& g : graph_.guards_) {
    if (g.op == guard.op && g.lhs == guard.lhs && g.rhs == guard.rhs) return;
  }
  graph_.guards_.push_back(std::move(guard));
}

std::string GraphBuilder::SizeVariable(const Attributes& attributes) {
  const Dim& size = attributes.Get("size").AsDim();
  const std::set<std::string> variables = size.Variables();
  if (variables.size() != 1 || size != Dim::Variable(*variables.begin())) {
    return "";
  }
  return *variables.begin();
}

std::string GraphBuilder::FreeSize(const std::string& variable, Value operand,
                                   absl::Span<const TensorType> results) const {
  const auto is_extent = [&](const std::string& name) {
    const Dim extent = Dim::Variable(name);
    for (const TensorType& type : results) {
      if (std::find(type.shape.begin(), type.shape.end(), extent) !=
          type.shape.end()) {
        return true;
      }
    }
    return false;
  };
  std::string candidate = variable;
  for (int number = 2;; ++number) {
    auto it = sizes_.find(candidate);
    if (it != sizes_.end()) {
      if (graph_.operands(it->second)[0] == operand) return candidate;
    } else if (!input_variables_.contains(candidate) || is_extent(candidate)) {
      return candidate;
    }
    candidate = absl::StrCat(variable, "_", number);
  }
}

absl::Status GraphBuilder::FitsInline(const Graph& graph,
                                      absl::Span<const Value> arguments) const {
  CLEAVE_RETURN_IF_ERROR(status_);
  if (graph.context_.get() != graph_.context_.get()) {
    return absl::InvalidArgumentError("the graph is of another context");
  }
  if (arguments.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        arguments.size(), " arguments for ", graph.inputs().size(), " inputs"));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    if (arguments[i].id >= graph_.nodes_.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the argument for ", input.name, " is no node of this builder"));
    }
    if (graph.node(input.value).type != graph_.node(arguments[i]).type) {
      return absl::InvalidArgumentError(
          absl::StrCat("the argument for ", input.name, " is ",
                       graph_.type(arguments[i]).ToString(), ", not ",
                       graph.type(input.value).ToString()));
    }
  }
  return absl::OkStatus();
}

std::vector<Value> GraphBuilder::Inline(const Graph& graph,
                                        absl::Span<const Value> arguments,
                                        absl::Span<const TensorType> results) {
  const absl::Status fits = FitsInline(graph, arguments);
  if (!fits.ok()) {
    std::vector<Value> outputs;
    for (const NamedValue& output : graph.outputs()) {
      outputs.push_back(Mistake(fits, graph.type(output.value)));
    }
    return outputs;
  }
  // Only where this more than doubles the builder, so that growth stays
  // amortised over many small graphs.
  if (graph.size() > graph_.size()) Reserve(graph_.size() + graph.size());
  std::vector<Value> copies(graph.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value input = graph.inputs()[i].value;
    copies[input.id] = arguments[i];
  }
  Context& context = *graph_.context_;
  DimSubstitution renamed;  // rarely any
  absl::InlinedVector<Value, 8> operands;
  for (uint32_t id = 0; id < copies.size(); ++id) {
    const Node& node = graph.nodes_[id];
    if (node.op == ToOpId(Primitive::kInput)) continue;
    operands.clear();
    for (Value v : graph.operands(Value{id})) {
      operands.push_back(copies[v.id]);
    }
    if (ABSL_PREDICT_FALSE(node.op == ToOpId(Primitive::kNonzero))) {
      const std::string size = SizeVariable(graph.attributes(Value{id}));
      // An extent of an input is what the argument's type says.
      if (!size.empty() && !IsExtentOfInput(graph, size)) {
        const std::string free = FreeSize(size, operands[0], results);
        if (free != size) renamed.emplace(size, Dim::Variable(free));
      }
    }
    AttributesId attributes = node.attributes;
    TypeId type = node.type;
    if (ABSL_PREDICT_FALSE(!renamed.empty())) {
      attributes = context.Intern(
          *SubstituteDims(context.attributes(attributes), renamed));
      type = context.Intern(*SubstituteDims(context.types(type), renamed));
    }
    copies[id] = AddTyped(node.op, attributes, type, operands, node.provenance);
  }
  for (const ShapeGuard& guard : graph.guards()) {
    AddGuard(renamed.empty() ? guard : SubstituteDims(guard, renamed));
  }
  std::vector<Value> outputs;
  outputs.reserve(graph.outputs().size());
  for (const NamedValue& output : graph.outputs()) {
    outputs.push_back(copies[output.value.id]);
  }
  return outputs;
}

Value GraphBuilder::Apply(Primitive primitive, absl::Span<const Value> operands,
                          const Attributes& attributes) {
  absl::StatusOr<Value> value = Add(primitive, attributes, operands);
  if (value.ok()) return *value;
  // The type that is asked for, as far as it is known: code that goes on may
  // count its axes.
  TensorType type;
  if (!operands.empty() && operands[0].id < graph_.nodes_.size()) {
    type = graph_.type(operands[0]);
  }
  const StaticValue* shape = attributes.Find("shape");
  if (shape != nullptr) {
    absl::StatusOr<std::vector<Dim>> dims = shape->ToDims();
    if (dims.ok()) type.shape = *std::move(dims);
  }
  return Mistake(value.status(), type);
}

Attributes ConstantAttributes(const Exact& value, DType dtype) {
  Attributes attributes;
  attributes.Set("dtype", dtype);
  if (IsBool(dtype)) {
    attributes.Set("value", value != Exact(0));
  } else if (IsInt(dtype) && value.IsNegativeZero()) {
    attributes.Set("value", Exact(0));
  } else {
    attributes.Set("value", value);
  }
  return attributes;
}

Value GraphBuilder::Constant(const Exact& value, DType dtype) {
  return Apply(Primitive::kConstant, {}, ConstantAttributes(value, dtype));
}

Value GraphBuilder::Constant(const Exact& value, const TensorType& type) {
  return BroadcastInDim(Constant(value, type.dtype), type.shape, {});
}

Value GraphBuilder::Zeros(const TensorType& type) {
  return Constant(Exact(0), type);
}

Value GraphBuilder::Result(Value tuple, int index) {
  return Apply(Primitive::kResult, {tuple}, {{"index", index}});
}

Value GraphBuilder::BroadcastTo(Value x, const Shape& shape) {
  const int rank = type(x).rank();
  const int new_axes = static_cast<int>(shape.size()) - rank;
  if (new_axes < 0) {
    return Mistake(
        absl::InvalidArgumentError(absl::StrCat(
            type(x).ToString(), " has more axes than ", ShapeToString(shape))),
        {type(x).dtype, shape});
  }
  std::vector<int> axes(rank);
  for (int d = 0; d < rank; ++d) axes[d] = new_axes + d;
  return BroadcastInDim(x, shape, axes);
}

Value GraphBuilder::BroadcastInDim(Value x, const Shape& shape,
                                   const std::vector<int>& axes) {
  return Apply(
      Primitive::kBroadcastInDim, {x},
      {{"shape", StaticValue::Dims(shape)}, {"axes", StaticValue::Ints(axes)}});
}

Value GraphBuilder::Reshape(Value x, const Shape& shape) {
  return Apply(Primitive::kReshape, {x}, {{"shape", StaticValue::Dims(shape)}});
}

Value GraphBuilder::Transpose(Value x, const std::vector<int>& axes) {
  return Apply(Primitive::kTranspose, {x}, {{"axes", StaticValue::Ints(axes)}});
}

absl::StatusOr<Graph> GraphBuilder::Build(std::vector<NamedValue> outputs) && {
  CLEAVE_RETURN_IF_ERROR(status_);
  std::vector<Node>& nodes = graph_.nodes_;
  std::vector<bool> needed(nodes.size(), false);
  for (const NamedValue& input : graph_.inputs_) needed[input.value.id] = true;
  for (const NamedValue& output : outputs) {
    if (output.value.id >= nodes.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the output ", output.name, " is no node of this builder"));
    }
    needed[output.value.id] = true;
  }
  for (size_t id = nodes.size(); id-- > 0;) {
    if (!needed[id]) continue;
    for (Value v : graph_.operands(Value{static_cast<uint32_t>(id)})) {
      needed[v.id] = true;
    }
  }
  // In place: a node's new place is never behind its old one.
  std::vector<Value> moved(nodes.size());
  uint32_t next_node = 0;
  uint32_t next_operand = 0;
  for (size_t id = 0; id < nodes.size(); ++id) {
    if (!needed[id]) continue;
    Node node = nodes[id];
    const uint32_t begin = next_operand;
    for (uint32_t k = 0; k < node.operand_count; ++k) {
      const Value operand = graph_.operands_[node.operands_begin + k];
      graph_.operands_[next_operand++] = moved[operand.id];
    }
    node.operands_begin = begin;
    moved[id] = Value{next_node};
    nodes[next_node++] = node;
  }
  nodes.resize(next_node);
  graph_.operands_.resize(next_operand);
  for (NamedValue& input : graph_.inputs_) {
    input.value = moved[input.value.id];
  }
  for (NamedValue& output : outputs) output.value = moved[output.value.id];
  graph_.outputs_ = std::move(outputs);
  return std::move(graph_);
}

}  // namespace cleave
