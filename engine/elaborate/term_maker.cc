#include "engine/elaborate/term_maker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/check.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

std::string DTypeText(const DTypePtr& dtype) {
  const std::optional<DType> known = dtype->dtype();
  return known.has_value() ? std::string(DTypeName(*known)) : "not known";
}

absl::Status Unify(const DTypePtr& a, const DTypePtr& b) {
  if (DTypeVariable::Unify(a, b)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("dtypes ", DTypeText(a), " and ", DTypeText(b),
                   " do not mix; convert one of them"));
}

// The dtype of real and imaginary parts, and back.
DTypePtr PartOf(const DTypePtr& dtype) {
  return DTypeVariable::Known(dtype->dtype() == DType::kC128 ? DType::kF64
                                                             : DType::kF32);
}

DTypePtr ComplexOf(const DTypePtr& dtype) {
  return DTypeVariable::Known(dtype->dtype() == DType::kF64 ? DType::kC128
                                                            : DType::kC64);
}

// Unifies the operands of a pointwise primitive and gives the result's dtype.
absl::StatusOr<DTypePtr> PointwiseDType(Primitive p,
                                        const std::vector<TermPtr>& x) {
  if (IsComparison(p)) {
    CLEAVE_RETURN_IF_ERROR(Unify(x[0]->dtype, x[1]->dtype));
    return DTypeVariable::Known(DType::kBool);
  }
  switch (p) {
    case Primitive::kIsnan:
    case Primitive::kIsinf:
      return DTypeVariable::Known(DType::kBool);
    case Primitive::kSelect:
      CLEAVE_RETURN_IF_ERROR(
          Unify(x[0]->dtype, DTypeVariable::Known(DType::kBool)));
      CLEAVE_RETURN_IF_ERROR(Unify(x[1]->dtype, x[2]->dtype));
      return x[1]->dtype;
    case Primitive::kLdexp:
      CLEAVE_RETURN_IF_ERROR(
          Unify(x[1]->dtype, DTypeVariable::Known(DType::kI32)));
      return x[0]->dtype;
    case Primitive::kAbs: {
      const std::optional<DType> dtype = x[0]->dtype->dtype();
      const bool is_complex = dtype.has_value() && IsComplex(*dtype);
      return is_complex ? PartOf(x[0]->dtype) : x[0]->dtype;
    }
    case Primitive::kReal:
    case Primitive::kImag:
      return PartOf(x[0]->dtype);
    case Primitive::kComplex:
      CLEAVE_RETURN_IF_ERROR(Unify(x[0]->dtype, x[1]->dtype));
      return ComplexOf(x[0]->dtype);
    default:
      CLEAVE_RETURN_IF_ERROR(UnifyDTypes(x));
      return x[0]->dtype;
  }
}

std::vector<const IndexVariable*> Union(
    const std::vector<const IndexVariable*>& a,
    const std::vector<const IndexVariable*>& b) {
  std::vector<const IndexVariable*> result;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(),
                 std::back_inserter(result));
  return result;
}

std::vector<const IndexVariable*> Without(
    const std::vector<const IndexVariable*>& free,
    const std::vector<IndexPtr>& bound) {
  std::vector<const IndexVariable*> result;
  for (const IndexVariable* index : free) {
    const bool is_bound =
        std::any_of(bound.begin(), bound.end(),
                    [&](const IndexPtr& b) { return b.get() == index; });
    if (!is_bound) result.push_back(index);
  }
  return result;
}

// Groups of the operand that has the result's shape.
std::vector<AxisGroup> GroupsOf(const std::vector<TermPtr>& operands,
                                const Shape& shape) {
  for (const TermPtr& x : operands) {
    if (!x->groups.empty() && x->shape.size() == shape.size()) return x->groups;
  }
  return {};
}

// The term that a pointwise primitive gives for symbolic zeros among its
// operands: nullptr where it gives nothing simpler.
TermPtr OfZeros(Primitive p, const std::vector<TermPtr>& x,
                const TermPtr& zero) {
  const auto is_zero = [&](size_t i) { return IsZero(x[i]); };
  switch (p) {
    case Primitive::kMul:
      return is_zero(0) || is_zero(1) ? zero : nullptr;
    case Primitive::kDiv:
      return is_zero(0) ? zero : nullptr;
    case Primitive::kAdd:
      if (is_zero(0) && is_zero(1)) return zero;
      if (is_zero(0)) return x[1];
      return is_zero(1) ? x[0] : nullptr;
    case Primitive::kSub:
      if (is_zero(0) && is_zero(1)) return zero;
      return is_zero(1) ? x[0] : nullptr;
    case Primitive::kSelect:
      return is_zero(1) && is_zero(2) ? zero : nullptr;
    case Primitive::kNeg:
    case Primitive::kReal:
    case Primitive::kImag:
    case Primitive::kConvert:
    case Primitive::kNograd:
      return is_zero(0) ? zero : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

absl::Status UnifyDTypes(const std::vector<TermPtr>& terms) {
  for (size_t i = 1; i < terms.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(Unify(terms[0]->dtype, terms[i]->dtype));
  }
  return absl::OkStatus();
}

TermPtr TermMaker::Finish(Term term) const {
  term.provenance = provenance_;
  term.order = order_++;
  // The array that is read, and what a comprehension or a call of arrays
  // holds, are lowered by themselves.
  if (term.kind != TermKind::kComprehension && term.kind != TermKind::kCall &&
      term.kind != TermKind::kResult) {
    const bool is_read = term.kind == TermKind::kRead;
    bool is_element = is_read || term.kind == TermKind::kIndex ||
                      term.kind == TermKind::kReduce ||
                      term.kind == TermKind::kCallElement;
    int height = 0;
    for (size_t i = is_read ? 1 : 0; i < term.children.size(); ++i) {
      height = std::max(height, term.children[i]->height);
    }
    if (term.fill != nullptr) height = std::max(height, term.fill->height);
    is_element = is_element || height > 0;
    term.height = is_element ? height + 1 : 0;
  }
  return std::make_shared<const Term>(std::move(term));
}

TermPtr TermMaker::Number(const Exact& value) const {
  Term term;
  term.kind = TermKind::kNumber;
  term.dtype = DTypeVariable::Open();
  term.number = value;
  return Finish(std::move(term));
}

TermPtr TermMaker::Bool(bool value) const {
  Term term;
  term.kind = TermKind::kNumber;
  term.dtype = DTypeVariable::Known(DType::kBool);
  term.number = Exact(value ? 1 : 0);
  return Finish(std::move(term));
}

TermPtr TermMaker::DimNumber(const Dim& dim) const {
  if (const std::optional<int64_t> value = dim.Value()) return Number(*value);
  Term term;
  term.kind = TermKind::kDim;
  term.dtype = DTypeVariable::Open();
  term.dim = dim;
  return Finish(std::move(term));
}

TermPtr TermMaker::Index(const IndexPtr& index) const {
  Term term;
  term.kind = TermKind::kIndex;
  term.dtype = DTypeVariable::Open();
  term.indices = {index};
  term.free = {index.get()};
  return Finish(std::move(term));
}

TermPtr TermMaker::InGraph(Value value, const TensorType& type,
                           std::vector<AxisGroup> groups) const {
  Term term;
  term.kind = TermKind::kValue;
  term.dtype = DTypeVariable::Known(type.dtype);
  term.shape = type.shape;
  term.value = value;
  term.groups = std::move(groups);
  return Finish(std::move(term));
}

TermPtr TermMaker::Zero(DTypePtr dtype, Shape shape) const {
  Term term;
  term.kind = TermKind::kZero;
  term.dtype = std::move(dtype);
  term.shape = std::move(shape);
  return Finish(std::move(term));
}

TermPtr TermMaker::Parameter(DTypePtr dtype, Shape shape) const {
  Term term;
  term.kind = TermKind::kParameter;
  term.dtype = std::move(dtype);
  term.shape = std::move(shape);
  return Finish(std::move(term));
}

TermPtr TermMaker::AsElement(const TermPtr& x) const {
  if (IsElement(*x) || x->kind == TermKind::kNumber ||
      x->kind == TermKind::kDim || IsZero(x) ||
      // Elements without free indices are on their way into a comprehension.
      x->kind == TermKind::kRead || x->kind == TermKind::kReduce) {
    return x;
  }
  Term term;
  term.kind = TermKind::kRead;
  term.dtype = x->dtype;
  term.children = {x};
  return Finish(std::move(term));
}

bool TermMaker::RequireEqual(const Dim& a, const Dim& b,
                             absl::string_view why) {
  if (a == b) return true;
  switch (Compare(a, CompareOp::kEq, b)) {
    case Truth::kTrue:
      return true;
    case Truth::kFalse:
      return false;
    case Truth::kUnknown:
      guards_.push_back({a, CompareOp::kEq, b, std::string(why)});
      return true;
  }
  return true;
}

absl::StatusOr<Shape> TermMaker::Broadcast(const std::vector<Shape>& shapes) {
  size_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  Shape result(rank, Dim(1));
  for (const Shape& shape : shapes) {
    const size_t offset = rank - shape.size();
    for (size_t d = 0; d < shape.size(); ++d) {
      Dim& extent = result[offset + d];
      if (shape[d] == Dim(1) || shape[d] == extent) continue;
      if (extent == Dim(1)) {
        extent = shape[d];
        continue;
      }
      if (!RequireEqual(extent, shape[d], "broadcast extents must agree")) {
        std::vector<std::string> texts;
        std::string all;
        for (const Shape& s : shapes) {
          absl::StrAppend(&all, all.empty() ? "" : " and ", ShapeToString(s));
        }
        return absl::InvalidArgumentError(absl::StrCat(
            "shapes ", all, " do not broadcast: ", extent.ToString(),
            " against ", shape[d].ToString()));
      }
    }
  }
  return result;
}

absl::StatusOr<TermPtr> TermMaker::Pointwise(Primitive primitive,
                                             std::vector<TermPtr> operands,
                                             const Attributes& attributes) {
  Term term;
  term.kind = TermKind::kPointwise;
  term.primitive = primitive;
  term.attributes = attributes;
  CLEAVE_ASSIGN_OR_RETURN(term.dtype, PointwiseDType(primitive, operands));
  bool element = false;
  for (const TermPtr& x : operands) {
    term.free = Union(term.free, x->free);
    element = element || IsElement(*x);
  }
  if (element) {
    for (TermPtr& x : operands) {
      if (!x->shape.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("an array of shape ", ShapeToString(x->shape),
                         " stands beside an element; give its indices"));
      }
      x = AsElement(x);
    }
  } else {
    std::vector<Shape> shapes;
    for (const TermPtr& x : operands) shapes.push_back(x->shape);
    CLEAVE_ASSIGN_OR_RETURN(term.shape, Broadcast(shapes));
    term.groups = GroupsOf(operands, term.shape);
  }
  if (std::any_of(operands.begin(), operands.end(), IsZero)) {
    const TermPtr simpler =
        OfZeros(primitive, operands, Zero(term.dtype, term.shape));
    if (simpler != nullptr && IsZero(simpler)) return simpler;
    if (simpler != nullptr) {
      if (simpler->shape == term.shape) return simpler;
      return BroadcastTo(simpler, term.shape);
    }
    if (primitive == Primitive::kSub) {
      return Pointwise(Primitive::kNeg, {operands[1]});
    }
  }
  term.children = std::move(operands);
  return Finish(std::move(term));
}

absl::StatusOr<TermPtr> TermMaker::Convert(const TermPtr& x,
                                           const DTypePtr& dtype) {
  if (x->dtype->dtype().has_value() && x->dtype->dtype() == dtype->dtype()) {
    return x;
  }
  Term term;
  term.kind = IsZero(x) ? TermKind::kZero : TermKind::kPointwise;
  term.primitive = Primitive::kConvert;
  term.dtype = dtype;
  term.shape = x->shape;
  term.free = x->free;
  term.groups = x->groups;
  if (!IsZero(x)) term.children = {x};
  return Finish(std::move(term));
}

absl::StatusOr<TermPtr> TermMaker::Read(const TermPtr& array,
                                        std::vector<TermPtr> indices) {
  if (indices.size() != array->shape.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an array with ", array->shape.size(), " axes is read at ",
                     indices.size(), " indices"));
  }
  Term term;
  term.kind = TermKind::kRead;
  term.dtype = array->dtype;
  term.children = {array};
  for (TermPtr& index : indices) {
    if (!index->shape.empty()) {
      return absl::InvalidArgumentError("an index must be a scalar");
    }
    // An index whose dtype nothing else asks for is an i64; others are
    // converted, so that gathers see one dtype.
    if (index->dtype->dtype().has_value() &&
        index->dtype->dtype() != DType::kI64) {
      if (!IsInt(*index->dtype->dtype())) {
        return absl::InvalidArgumentError(
            absl::StrCat("an index must be an integer, not ",
                         DTypeName(*index->dtype->dtype())));
      }
      CLEAVE_ASSIGN_OR_RETURN(
          index, Convert(index, DTypeVariable::Known(DType::kI64)));
    }
    CLEAVE_RETURN_IF_ERROR(
        Unify(index->dtype, DTypeVariable::Known(DType::kI64)));
    term.free = Union(term.free, index->free);
    term.children.push_back(AsElement(index));
  }
  const bool element = !term.free.empty();
  TermPtr read = Finish(std::move(term));
  if (element) return read;
  return Comprehension({}, read, {});
}

absl::StatusOr<TermPtr> TermMaker::ReadOr(const TermPtr& read,
                                          const TermPtr& fill) {
  // A closed read was wrapped as an array of no axes.
  const bool is_wrapped = read->kind == TermKind::kComprehension &&
                          read->indices.empty() &&
                          read->children[0]->kind == TermKind::kRead;
  const TermPtr& inner = is_wrapped ? read->children[0] : read;
  if (inner->kind != TermKind::kRead) return TermPtr();
  if (inner->fill != nullptr) return read;  // never absent
  if (!fill->shape.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the right side of `??` must be an element, not an array "
                     "of shape ",
                     ShapeToString(fill->shape)));
  }
  CLEAVE_RETURN_IF_ERROR(Unify(inner->dtype, fill->dtype));
  Term term = *inner;
  term.fill = AsElement(fill);
  term.free = Union(term.free, fill->free);
  const bool element = !term.free.empty();
  TermPtr filled = Finish(std::move(term));
  if (element) return filled;
  return Comprehension({}, filled, {});
}

absl::StatusOr<TermPtr> TermMaker::Reduce(Reduction reduction,
                                          std::vector<IndexPtr> indices,
                                          TermPtr element, TermPtr condition,
                                          bool tie_first) {
  if (!element->shape.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a reduction over indices takes an element, not an array of shape ",
        ShapeToString(element->shape), "; give its indices"));
  }
  Term term;
  term.kind = TermKind::kReduce;
  term.reduction = reduction;
  term.tie_first = tie_first;
  term.free = Without(element->free, indices);
  switch (reduction) {
    case Reduction::kArgmax:
    case Reduction::kArgmin:
      term.dtype = DTypeVariable::Known(DType::kI64);
      break;
    case Reduction::kAny:
    case Reduction::kAll:
      term.dtype = DTypeVariable::Known(DType::kBool);
      CLEAVE_RETURN_IF_ERROR(Unify(element->dtype, term.dtype));
      break;
    default:
      term.dtype = element->dtype;
  }
  term.children = {AsElement(element)};
  if (condition != nullptr) {
    if (!condition->shape.empty()) {
      return absl::InvalidArgumentError("a condition must be a scalar");
    }
    CLEAVE_RETURN_IF_ERROR(
        Unify(condition->dtype, DTypeVariable::Known(DType::kBool)));
    term.free = Union(term.free, Without(condition->free, indices));
    term.children.push_back(AsElement(condition));
  }
  term.indices = std::move(indices);
  const bool is_element = !term.free.empty();
  if (IsZero(element)) return Zero(term.dtype, {});
  TermPtr reduced = Finish(std::move(term));
  if (is_element) return reduced;
  return Comprehension({}, reduced, {});
}

absl::StatusOr<TermPtr> TermMaker::Comprehension(
    std::vector<IndexPtr> indices, TermPtr element,
    std::vector<AxisGroup> groups) {
  if (!element->shape.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an element is wanted, not an array of shape ",
                     ShapeToString(element->shape), "; give its indices"));
  }
  if (!Without(element->free, indices).empty()) {
    return NotSupported("an array inside an element");
  }
  Term term;
  term.kind = IsZero(element) ? TermKind::kZero : TermKind::kComprehension;
  term.dtype = element->dtype;
  for (const IndexPtr& index : indices) term.shape.push_back(index->extent);
  term.groups = std::move(groups);
  if (!IsZero(element)) {
    term.children = {AsElement(element)};
    term.indices = std::move(indices);
  }
  return Finish(std::move(term));
}

absl::StatusOr<TermPtr> TermMaker::Structured(
    Primitive primitive, const Attributes& attributes,
    std::vector<TermPtr> operands, std::vector<DTypePtr> result_dtypes) {
  // Shapes do not depend on dtypes: one that is still open counts as f32.
  std::vector<TensorType> types;
  for (const TermPtr& x : operands) {
    if (IsElement(*x)) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", PrimitiveName(primitive),
                       "` takes arrays and cannot stand beside indices"));
    }
    types.push_back({x->dtype->dtype().value_or(DType::kF32), x->shape});
  }
  CLEAVE_ASSIGN_OR_RETURN(InferredType inferred,
                          InferType(primitive, attributes, types));
  for (ShapeGuard& guard : inferred.guards) guards_.push_back(std::move(guard));
  if (result_dtypes.empty()) result_dtypes.push_back(operands[0]->dtype);
  auto call = std::make_shared<CallTerm>();
  call->primitive = primitive;
  call->attributes = attributes;
  for (size_t i = 0; i < inferred.results.size(); ++i) {
    call->results.push_back(
        {result_dtypes[std::min(i, result_dtypes.size() - 1)],
         inferred.results[i].shape,
         {}});
  }
  if (!operands.empty() && call->results.size() == 1 &&
      operands[0]->shape == call->results[0].shape) {
    call->results[0].groups = operands[0]->groups;
  }
  return Call(std::move(call), std::move(operands));
}

TermPtr TermMaker::Call(std::shared_ptr<const CallTerm> call,
                        std::vector<TermPtr> children) const {
  Term term;
  for (const TermPtr& child : children) {
    term.free = Union(term.free, child->free);
  }
  term.kind = term.free.empty() ? TermKind::kCall : TermKind::kCallElement;
  if (!call->results.empty()) {
    term.dtype = call->results[0].dtype;
    if (term.free.empty()) {
      term.shape = call->results[0].shape;
      term.groups = call->results[0].groups;
    }
  }
  if (term.kind == TermKind::kCallElement) {
    for (TermPtr& child : children) child = AsElement(child);
  }
  term.call = std::move(call);
  term.children = std::move(children);
  return Finish(std::move(term));
}

TermPtr TermMaker::Result(const TermPtr& call, int index) const {
  Term term;
  term.kind = TermKind::kResult;
  const TermType& type = call->call->results[index];
  term.dtype = type.dtype;
  term.shape = type.shape;
  term.groups = type.groups;
  term.free = call->free;
  term.children = {call};
  term.index = index;
  return Finish(std::move(term));
}

absl::StatusOr<TermPtr> TermMaker::BroadcastTo(const TermPtr& x,
                                               const Shape& shape) {
  if (x->shape == shape && !IsElement(*x)) return x;
  if (IsZero(x)) return Zero(x->dtype, shape);
  if (x->shape.size() > shape.size()) {
    return absl::InvalidArgumentError(absl::StrCat(ShapeToString(x->shape),
                                                   " does not broadcast to ",
                                                   ShapeToString(shape)));
  }
  const int offset = static_cast<int>(shape.size() - x->shape.size());
  std::vector<int> axes;
  for (size_t d = 0; d < x->shape.size(); ++d) {
    axes.push_back(offset + static_cast<int>(d));
  }
  return Structured(
      Primitive::kBroadcastInDim,
      {{"shape", StaticValue::Dims(shape)}, {"axes", StaticValue::Ints(axes)}},
      {x});
}

absl::StatusOr<TermPtr> TermMaker::Reshape(const TermPtr& x, const Shape& shape,
                                           std::vector<AxisGroup> groups) {
  if (x->shape == shape && !IsElement(*x)) return x;
  if (IsZero(x)) return Zero(x->dtype, shape);
  return WithGroups(Structured(Primitive::kReshape,
                               {{"shape", StaticValue::Dims(shape)}}, {x}),
                    std::move(groups));
}

absl::StatusOr<TermPtr> TermMaker::BitcastConvert(const TermPtr& x,
                                                  DType dtype) {
  Term term;
  term.kind = TermKind::kPointwise;
  term.primitive = Primitive::kBitcastConvert;
  term.attributes.Set("dtype", dtype);
  term.dtype = DTypeVariable::Known(dtype);
  term.shape = x->shape;
  term.free = x->free;
  term.groups = x->groups;
  term.children = {x};
  return Finish(std::move(term));
}

TermPtr TermMaker::WithGroups(const TermPtr& x,
                              std::vector<AxisGroup> groups) const {
  if (groups.empty()) return x;
  Term term = *x;
  term.groups = std::move(groups);
  return std::make_shared<const Term>(std::move(term));
}

absl::StatusOr<TermPtr> TermMaker::WithGroups(
    absl::StatusOr<TermPtr> x, std::vector<AxisGroup> groups) const {
  if (!x.ok()) return x;
  return WithGroups(*x, std::move(groups));
}

}  // namespace cleave
