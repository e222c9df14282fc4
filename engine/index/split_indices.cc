#include "engine/index/split_indices.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/index/affine.h"
#include "engine/index/term_builder.h"

namespace cleave {
namespace {

// Digits that one index may become.
constexpr int kMaxDigits = 8;

bool IsIndex(const Term& term, const IndexVariable* index) {
  return term.kind == TermKind::kIndex && term.indices[0].get() == index;
}

// Looks for `index // c` and `index % c` where arrays are read.
class DivisorFinder {
 public:
  explicit DivisorFinder(const Dim& extent) : extent_(extent) {}

  void Visit(const Term& term, const IndexVariable* index, bool in_index) {
    if (!OccursFree(term, index)) return;
    if (!visited_.emplace(&term, index, in_index).second) return;
    if (term.kind == TermKind::kPointwise) {
      VisitPointwise(term, index, in_index);
    }
    if (term.kind == TermKind::kRead) {
      VisitRead(term, index, in_index);
      return;
    }
    for (const TermPtr& child : term.children) {
      Visit(*child, index, in_index);
    }
  }

  std::optional<Dim> divisor() const {
    return compared_ ? std::nullopt : divisor_;
  }

 private:
  void VisitPointwise(const Term& term, const IndexVariable* index,
                      bool in_index) {
    if (IsComparison(term.primitive)) {
      for (const TermPtr& child : term.children) {
        compared_ = compared_ || IsIndex(*child, index);
      }
    }
    const bool divides = term.primitive == Primitive::kFloorDiv ||
                         term.primitive == Primitive::kFloorMod;
    if (!divides || !in_index || divisor_.has_value()) return;
    const std::optional<Affine> dividend = ToAffine(*term.children[0]);
    const std::optional<Affine> by = ToAffine(*term.children[1]);
    if (!dividend.has_value() || !by.has_value() || !by->IsConstant()) return;
    const Dim& c = by->constant;
    if (Compare(c, CompareOp::kGt, 1) != Truth::kTrue) return;
    if (c == extent_ || Dim::FloorDiv(extent_, c) * c != extent_) return;
    // index + multiples of c: its digits are those of the whole.
    if (dividend->CoefficientOf(index) != Dim(1)) return;
    if (Dim::FloorDiv(dividend->constant, c) * c != dividend->constant) return;
    for (const auto& [other, coefficient] : dividend->terms) {
      if (other.get() != index &&
          Dim::FloorDiv(coefficient, c) * c != coefficient) {
        return;
      }
    }
    divisor_ = c;
  }

  void VisitRead(const Term& read, const IndexVariable* index, bool in_index) {
    const Term& array = *read.children[0];
    for (size_t d = 1; d < read.children.size(); ++d) {
      Visit(*read.children[d], index, true);
      if (array.kind == TermKind::kComprehension &&
          IsIndex(*read.children[d], index)) {
        Visit(*array.children[0], array.indices[d - 1].get(), in_index);
      }
    }
    if (read.fill != nullptr) Visit(*read.fill, index, in_index);
  }

  Dim extent_;
  bool compared_ = false;
  std::optional<Dim> divisor_;
  std::set<std::tuple<const Term*, const IndexVariable*, bool>> visited_;
};

}  // namespace

SplitTerms SplitIndices(std::vector<IndexPtr> indices,
                        std::vector<TermPtr> elements) {
  SplitTerms result{std::move(indices), std::move(elements)};
  const size_t limit = result.indices.size() + kMaxDigits;
  for (size_t i = 0; i < result.indices.size();) {
    const IndexPtr index = result.indices[i];
    DivisorFinder finder(index->extent);
    for (const TermPtr& element : result.elements) {
      finder.Visit(*element, index.get(), false);
    }
    const std::optional<Dim> divisor = finder.divisor();
    if (!divisor.has_value() || result.indices.size() >= limit) {
      ++i;
      continue;
    }
    const auto slow = std::make_shared<const IndexVariable>(
        IndexVariable{absl::StrCat(index->name, ".slow"),
                      Dim::FloorDiv(index->extent, *divisor)});
    const auto fast = std::make_shared<const IndexVariable>(
        IndexVariable{absl::StrCat(index->name, ".fast"), *divisor});
    const TermPtr whole =
        PointwiseTerm(Primitive::kAdd, DType::kI64,
                      {PointwiseTerm(Primitive::kMul, DType::kI64,
                                     {IndexTerm(slow), DimTerm(*divisor)}),
                       IndexTerm(fast)});
    for (TermPtr& element : result.elements) {
      element = Substitute(element, {{index.get(), whole}});
    }
    result.indices[i] = slow;
    result.indices.insert(result.indices.begin() + i + 1, fast);
  }
  return result;
}

}  // namespace cleave
