// Reductions: which lowering applies, and the one that always does, a masked
// broadcast over all indices and a reduction.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/index/element_lowering.h"
#include "engine/index/split_indices.h"
#include "engine/index/term_builder.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

Primitive PrimitiveOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return Primitive::kReduceSum;
    case Reduction::kProd:
      return Primitive::kReduceProd;
    case Reduction::kMax:
      return Primitive::kReduceMax;
    case Reduction::kMin:
      return Primitive::kReduceMin;
    case Reduction::kArgmax:
      return Primitive::kArgmax;
    case Reduction::kArgmin:
      return Primitive::kArgmin;
    case Reduction::kAny:
      return Primitive::kReduceAny;
    case Reduction::kAll:
      return Primitive::kReduceAll;
  }
  CLEAVE_CHECK(false) << "reduction " << static_cast<int>(reduction);
  return Primitive::kReduceSum;
}

bool IsArgReduction(Reduction reduction) {
  return reduction == Reduction::kArgmax || reduction == Reduction::kArgmin;
}

// The least or the greatest integer of `bits` bits.
Exact IntegerBound(bool is_signed, int bits, bool greatest) {
  const Exact half = Exact::Pow(Exact(2), Exact(bits - 1));
  if (!is_signed) return greatest ? half + half - Exact(1) : Exact(0);
  return greatest ? half - Exact(1) : -half;
}

}  // namespace

Exact IdentityOf(Reduction reduction, DType dtype) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kAny:
      return Exact(0);
    case Reduction::kProd:
    case Reduction::kAll:
      return Exact(1);
    case Reduction::kMax:
    case Reduction::kMin:
    case Reduction::kArgmax:
    case Reduction::kArgmin: {
      const bool greatest =
          reduction == Reduction::kMin || reduction == Reduction::kArgmin;
      if (IsInt(dtype)) {
        return IntegerBound(IsSigned(dtype), 8 * ByteSize(dtype), greatest);
      }
      return greatest ? Exact::Infinity() : -Exact::Infinity();
    }
  }
  CLEAVE_CHECK(false) << "reduction " << static_cast<int>(reduction);
  return Exact(0);
}

absl::StatusOr<Element> ElementLowering::LowerReduce(const Term& unsplit) {
  SplitTerms split = SplitIndices(unsplit.indices, unsplit.children);
  Term reduce = unsplit;
  reduce.indices = std::move(split.indices);
  reduce.children = std::move(split.elements);
  ScopedIndices scoped(*this, reduce.indices);
  std::vector<TermPtr> conditions;
  if (reduce.children.size() > 1) {
    conditions = Conjuncts(reduce.children[1]);
  }
  if (IsArgReduction(reduce.reduction)) {
    return LowerArgReduce(reduce, conditions);
  }
  const DType dtype = ResolvedDType(*reduce.children[0]);
  const Exact identity = IdentityOf(reduce.reduction, dtype);
  const bool never =
      std::any_of(conditions.begin(), conditions.end(),
                  [](const TermPtr& c) { return Decide(*c) == Truth::kFalse; });
  if (never) return Number(identity, dtype);

  if (conditions.empty()) {
    CLEAVE_ASSIGN_OR_RETURN(std::optional<Element> contraction,
                            TryContraction(reduce));
    if (contraction.has_value()) return *contraction;
  } else {
    CLEAVE_ASSIGN_OR_RETURN(std::optional<Element> scan,
                            TryScan(reduce, conditions));
    if (scan.has_value()) return *scan;
    CLEAVE_ASSIGN_OR_RETURN(std::optional<Element> scatter,
                            TryScatter(reduce, conditions));
    if (scatter.has_value()) return *scatter;
  }

  CLEAVE_ASSIGN_OR_RETURN(const Element element,
                          MaskedElement(reduce, conditions, identity));
  Attributes attributes;
  if (reduce.tie_first) attributes.Set("tie", "first");
  return ReduceAxes(PrimitiveOf(reduce.reduction), element, reduce.indices,
                    attributes);
}

absl::StatusOr<Element> ElementLowering::MaskedElement(
    const Term& reduce, const std::vector<TermPtr>& conditions,
    const Exact& otherwise) {
  if (conditions.empty()) return Lower(reduce.children[0]);
  CLEAVE_ASSIGN_OR_RETURN(const Element condition, Lower(AndTerm(conditions)));
  CLEAVE_ASSIGN_OR_RETURN(const Element element,
                          LowerUnder(reduce.children[0], conditions));
  return Where(condition, element, otherwise);
}

absl::StatusOr<Element> ElementLowering::LowerUnder(
    const TermPtr& term, const std::vector<TermPtr>& conditions) {
  ScopedConditions scoped(*this);
  CLEAVE_RETURN_IF_ERROR(scoped.Add(conditions));
  return Lower(term);
}

absl::StatusOr<Element> ElementLowering::ReduceAxes(
    Primitive primitive, const Element& element,
    const std::vector<IndexPtr>& over, const Attributes& attributes) {
  std::vector<IndexPtr> all = element.axes;
  for (const IndexPtr& index : over) {
    if (std::find(all.begin(), all.end(), index) == all.end()) {
      all.push_back(index);
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value value, Aligned(element, all));
  if (over.empty()) return Element{value, all};
  Element result;
  std::vector<int> axes;
  for (size_t d = 0; d < all.size(); ++d) {
    if (std::find(over.begin(), over.end(), all[d]) != over.end()) {
      axes.push_back(static_cast<int>(d));
    } else {
      result.axes.push_back(all[d]);
    }
  }
  Attributes with_axes = attributes;
  with_axes.Set("axes", StaticValue::Ints(axes));
  CLEAVE_ASSIGN_OR_RETURN(result.value,
                          builder_.Add(primitive, with_axes, {value}));
  return result;
}

// The number of a place row by row: the reduced axes come last, in the order of
// the indices.
absl::StatusOr<Element> ElementLowering::LowerArgReduce(
    const Term& reduce, const std::vector<TermPtr>& conditions) {
  const bool greatest = reduce.reduction == Reduction::kArgmax;
  const auto rows = [&](const Element& element) -> absl::StatusOr<Element> {
    std::vector<IndexPtr> axes;
    for (const IndexPtr& index : element.axes) {
      if (std::find(reduce.indices.begin(), reduce.indices.end(), index) ==
          reduce.indices.end()) {
        axes.push_back(index);
      }
    }
    axes.insert(axes.end(), reduce.indices.begin(), reduce.indices.end());
    CLEAVE_ASSIGN_OR_RETURN(const Value value, Aligned(element, axes));
    return Element{value, axes};
  };

  Element place;
  std::optional<Element> found;  // whether there is anything, if not proved
  if (reduce.indices.empty()) {
    // One element, number 0, if there is no condition against it.
    CLEAVE_ASSIGN_OR_RETURN(place, Number(Exact(0), DType::kI64));
    if (!conditions.empty()) {
      CLEAVE_ASSIGN_OR_RETURN(found, Lower(AndTerm(conditions)));
    }
  } else if (conditions.empty()) {
    CLEAVE_ASSIGN_OR_RETURN(const Element element, Lower(reduce.children[0]));
    CLEAVE_ASSIGN_OR_RETURN(const Element row, rows(element));
    CLEAVE_ASSIGN_OR_RETURN(
        place, ReduceAxes(PrimitiveOf(reduce.reduction), row, reduce.indices));
    CLEAVE_RETURN_IF_ERROR(CheckArgReduceOfSomething(reduce));
  } else {
    // Masked elements must not win against the lowest value: the first place
    // that counts and holds the extreme (or a NaN) is wanted.
    const Reduction extreme = greatest ? Reduction::kMax : Reduction::kMin;
    const DType dtype = ResolvedDType(*reduce.children[0]);
    CLEAVE_ASSIGN_OR_RETURN(
        const Element masked,
        MaskedElement(reduce, conditions, IdentityOf(extreme, dtype)));
    CLEAVE_ASSIGN_OR_RETURN(
        const Element best,
        ReduceAxes(PrimitiveOf(extreme), masked, reduce.indices));
    CLEAVE_ASSIGN_OR_RETURN(Element hit,
                            Pointwise(Primitive::kEq, {masked, best}));
    if (IsFloat(dtype)) {
      CLEAVE_ASSIGN_OR_RETURN(const Element nan,
                              Pointwise(Primitive::kIsnan, {masked}));
      CLEAVE_ASSIGN_OR_RETURN(hit, Pointwise(Primitive::kOr, {hit, nan}));
    }
    CLEAVE_ASSIGN_OR_RETURN(const Element condition,
                            Lower(AndTerm(conditions)));
    CLEAVE_ASSIGN_OR_RETURN(hit, Pointwise(Primitive::kAnd, {condition, hit}));
    CLEAVE_ASSIGN_OR_RETURN(const Element row, rows(hit));
    CLEAVE_ASSIGN_OR_RETURN(const Element number, Converted(row, DType::kI32));
    CLEAVE_ASSIGN_OR_RETURN(
        place, ReduceAxes(Primitive::kArgmax, number, reduce.indices));
    CLEAVE_ASSIGN_OR_RETURN(
        found, ReduceAxes(Primitive::kReduceAny, row, reduce.indices));
  }
  CLEAVE_ASSIGN_OR_RETURN(place, Converted(place, ResolvedDType(reduce)));
  if (!found.has_value()) return place;
  CLEAVE_ASSIGN_OR_RETURN(Element bad, Pointwise(Primitive::kNot, {*found}));
  if (mask_.has_value()) {
    CLEAVE_ASSIGN_OR_RETURN(bad, Pointwise(Primitive::kAnd, {*mask_, bad}));
  }
  return Checked(place, bad);
}

absl::Status ElementLowering::CheckArgReduceOfSomething(const Term& reduce) {
  CLEAVE_ASSIGN_OR_RETURN(const Dim some, HaveElements(reduce.indices));
  if (some == Dim(1)) return absl::OkStatus();
  std::vector<IndexPtr> around;
  for (const IndexPtr& index : scope_) {
    if (std::find(reduce.indices.begin(), reduce.indices.end(), index) ==
        reduce.indices.end()) {
      around.push_back(index);
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const Dim asked, HaveElements(around));
  const absl::string_view name =
      reduce.reduction == Reduction::kArgmax ? "argmax" : "argmin";
  if (some == Dim(0) && asked == Dim(1)) {
    return absl::OutOfRangeError(absl::StrCat(name, " of nothing"));
  }
  // Where nothing asks for it, it may be of nothing.
  builder_.AddGuard(
      {asked, CompareOp::kLe, some, absl::StrCat("an element for ", name)});
  return absl::OkStatus();
}

}  // namespace cleave
