#include "engine/codegen/batch_of_rounds.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "engine/codegen/products_of_windows.h"
#include "engine/ir/filled_with.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave::internal_rounds {

const RoundBytes& BytesOf(Part part, bool beside_small) {
  if (part == Part::kBatch) return kRoundsOfMatrices;
  return beside_small ? kRoundsBesideSmall : kRoundsOfRows;
}

std::optional<int64_t> BytesOf(const TensorType& type) {
  int64_t bytes = ByteSize(type.dtype);
  for (const Dim& dim : type.shape) {
    const auto extent = dim.Value();
    if (!extent || __builtin_mul_overflow(bytes, *extent, &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

namespace {

bool IsProduct(const Graph& graph, Value v) {
  return graph.node(v).op == ToOpId(Primitive::kDotGeneral);
}

// The number of a contraction's first axes that number its products; nullopt
// where not both operands have them in front, or must be asked for what is not
// finite.
std::optional<size_t> BatchRank(const Graph& graph, Value v) {
  if (!IsProduct(graph, v)) return std::nullopt;
  const Attributes& attributes = graph.attributes(v);
  const auto batch = attributes.GetInts("batch_a");
  std::vector<int64_t> first(batch.size());
  std::iota(first.begin(), first.end(), 0);
  if (batch != first || attributes.GetInts("batch_b") != first ||
      !FiniteOperands(graph, v).empty()) {
    return std::nullopt;
  }
  return first.size();
}

}  // namespace

std::optional<Extents> ExtentsOf(const Graph& graph, Value v, Part part) {
  const std::optional<size_t> rank = BatchRank(graph, v);
  if (!rank.has_value()) return std::nullopt;
  Extents extents;
  for (const Dim& dim : graph.type(v).shape) {
    const auto extent = dim.Value();
    if (!extent) return std::nullopt;
    extents.push_back(*extent);
  }
  if (part == Part::kBatch) {
    if (*rank == 0) return std::nullopt;
    extents.resize(*rank);
    return extents;
  }
  const auto contracted = graph.attributes(v).GetInts("contract_a");
  const size_t left = graph.type(graph.operands(v)[0]).shape.size();
  const bool is_one = std::all_of(extents.begin(), extents.begin() + *rank,
                                  [](int64_t extent) { return extent == 1; });
  if (!is_one || *rank == left ||
      std::count(contracted.begin(), contracted.end(), *rank) > 0) {
    return std::nullopt;
  }
  extents.resize(*rank + 1);
  return extents;
}

Batch::Batch(const Graph& graph, Extents extents, Part part)
    : graph_(graph), extents_(std::move(extents)), part_(part) {}

int64_t Batch::count() const {
  return std::accumulate(extents_.begin(), extents_.end(), int64_t{1},
                         std::multiplies<>());
}

// Whether a value has the batch in front.
bool Batch::Leads(Value v) const {
  if (graph_.types(v).size() != 1) return false;
  const Shape& shape = graph_.type(v).shape;
  if (shape.size() < extents_.size()) return false;
  for (size_t d = 0; d < extents_.size(); ++d) {
    if (shape[d] != Dim(extents_[d])) return false;
  }
  return BytesOf(graph_.type(v)).has_value();
}

// How many axes of a value that is read in parts number them: all in front, or
// the rows alone, which a broadcast puts behind axes of 1.
int Batch::Leading(Value v) const { return Leads(v) ? rank() : 1; }

bool Batch::IsTotal(Value v) const {
  if (part_ != Part::kRows || BatchRank(graph_, v) != rank() - 1) return false;
  const Attributes& attributes = graph_.attributes(v);
  const std::vector<int64_t> rows = {rank() - 1};
  const DType dtype = graph_.type(v).dtype;
  // Parts of the sum that were rounded to a half would lose its last bits.
  return (dtype == DType::kF32 || dtype == DType::kF64) &&
         attributes.GetInts("contract_a") == rows &&
         attributes.GetInts("contract_b") == rows &&
         Leads(graph_.operands(v)[0]) && Leads(graph_.operands(v)[1]);
}

bool Batch::ReadsWhole(Value v, size_t operand) const {
  if (IsProduct(graph_, v)) {
    return part_ == Part::kRows && operand == 1 && !IsTotal(v);
  }
  return IsUniform(v);
}

// Whether a broadcast repeats its operand along the whole batch.
bool Batch::IsUniform(Value v) const {
  if (graph_.node(v).op != ToOpId(Primitive::kBroadcastInDim)) return false;
  const auto axes = graph_.attributes(v).GetInts("axes");
  return std::all_of(axes.begin(), axes.end(), [&](int64_t axis) {
    return axis >= rank() || (part_ == Part::kRows && axis != rank() - 1);
  });
}

bool Batch::Has(Value v) const {
  const OpId op = graph_.node(v).op;
  if (!IsPrimitive(op)) return false;
  if (IsTotal(v)) return true;
  if (!Leads(v)) return false;
  const DType dtype = graph_.type(v).dtype;
  const bool is_index = part_ == Part::kRows && IsInt(dtype);
  if (!IsFloat(dtype) && dtype != DType::kBool && !is_index) return false;
  const Primitive primitive = ToPrimitive(op);
  if (primitive == Primitive::kBroadcastInDim) {
    if (FilledWith(graph_, v)) return false;
    return IsUniform(v) || KeepsBatch(v) || MovesRows(v);
  }
  if (primitive == Primitive::kReshape) return Leads(graph_.operands(v)[0]);
  if (primitive == Primitive::kTranspose) return KeepsBatch(v);
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kContraction:
      return ExtentsOf(graph_, v, part_) == extents_;
    case PrimitiveClass::kPointwise:
      return true;
    case PrimitiveClass::kReduction: {
      const auto axes = graph_.attributes(v).GetInts("axes");
      return Leads(graph_.operands(v)[0]) &&
             std::all_of(axes.begin(), axes.end(),
                         [&](int64_t axis) { return axis >= rank(); });
    }
    default:
      return false;
  }
}

// Whether a broadcast or a transpose leaves the batch in front.
bool Batch::KeepsBatch(Value v) const {
  const auto axes = graph_.attributes(v).GetInts("axes");
  if (!Leads(graph_.operands(v)[0])) return false;
  for (int d = 0; d < rank(); ++d) {
    if (axes[d] != d) return false;
  }
  return true;
}

// Whether a broadcast puts rows that its operand begins with where those of the
// product are.
bool Batch::MovesRows(Value v) const {
  if (part_ != Part::kRows) return false;
  const auto axes = graph_.attributes(v).GetInts("axes");
  const Shape& shape = graph_.type(graph_.operands(v)[0]).shape;
  return !axes.empty() && axes[0] == rank() - 1 &&
         shape[0] == Dim(extents_.back());
}

TensorType Batch::Round(Value v, int64_t count) const {
  TensorType type = graph_.type(v);
  const bool is_total = IsTotal(v);
  const int leading = is_total ? rank() - 1 : Leading(v);
  type.shape.erase(type.shape.begin(), type.shape.begin() + leading);
  if (!is_total) type.shape.insert(type.shape.begin(), Dim(count));
  return type;
}

TensorType Batch::Whole(Value reader, Value operand) const {
  TensorType type = graph_.type(operand);
  if (part_ == Part::kBatch) return type;
  int64_t ones = rank() - 1;
  if (graph_.node(reader).op == ToOpId(Primitive::kBroadcastInDim)) {
    const auto axes = graph_.attributes(reader).GetInts("axes");
    ones = std::count_if(axes.begin(), axes.end(),
                         [&](int64_t axis) { return axis < rank() - 1; });
  }
  type.shape.erase(type.shape.begin(), type.shape.begin() + ones);
  return type;
}

// The axes of an attribute where one axis is in place of the batch.
std::vector<int64_t> Batch::Shifted(Value v, const char* name) const {
  const int first = part_ == Part::kRows ? rank() - 1 : 0;
  std::vector<int64_t> axes;
  for (const int64_t axis : graph_.attributes(v).GetInts(name)) {
    if (axis >= rank()) {
      axes.push_back(axis - rank() + 1);
    } else if (axis == first) {
      axes.push_back(0);
    }
  }
  return axes;
}

Attributes Batch::ProductAttributes(Value v) const {
  Attributes attributes = graph_.attributes(v);
  if (part_ == Part::kBatch) {
    for (const char* name :
         {"batch_a", "batch_b", "contract_a", "contract_b"}) {
      attributes.Set(name, StaticValue::Ints(Shifted(v, name)));
    }
    return attributes;
  }
  std::vector<int64_t> right;
  for (const int64_t axis : attributes.GetInts("contract_b")) {
    right.push_back(axis - (rank() - 1));
  }
  const std::vector<int64_t> none;
  attributes.Set("batch_a", StaticValue::Ints(none));
  attributes.Set("batch_b", StaticValue::Ints(none));
  attributes.Set("contract_a", StaticValue::Ints(Shifted(v, "contract_a")));
  attributes.Set("contract_b", StaticValue::Ints(right));
  return attributes;
}

Attributes Batch::RoundAttributes(Value v, const TensorType& type) const {
  if (IsProduct(graph_, v)) return ProductAttributes(v);
  Attributes attributes = graph_.attributes(v);
  const OpId op = graph_.node(v).op;
  if (op == ToOpId(Primitive::kReshape) ||
      op == ToOpId(Primitive::kBroadcastInDim)) {
    attributes.Set("shape", StaticValue::Dims(type.shape));
  }
  if (attributes.Find("axes") != nullptr) {
    attributes.Set("axes", StaticValue::Ints(Shifted(v, "axes")));
  }
  return attributes;
}

}  // namespace cleave::internal_rounds
