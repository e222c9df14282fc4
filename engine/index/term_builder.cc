#include "engine/index/term_builder.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

namespace cleave {
namespace {

// The free variables of a term with these parts: theirs, less what it binds.
std::vector<const IndexVariable*> FreeOf(const Term& term) {
  std::set<const IndexVariable*> free;
  for (const TermPtr& child : term.children) {
    free.insert(child->free.begin(), child->free.end());
  }
  if (term.fill != nullptr) {
    free.insert(term.fill->free.begin(), term.fill->free.end());
  }
  for (const IndexPtr& index : term.indices) {
    if (term.kind == TermKind::kIndex) {
      free.insert(index.get());
    } else {
      free.erase(index.get());
    }
  }
  return {free.begin(), free.end()};
}

TermPtr Finished(Term term) {
  term.free = FreeOf(term);
  return std::make_shared<const Term>(std::move(term));
}

Term NewTerm(TermKind kind, DType dtype) {
  Term term;
  term.kind = kind;
  term.dtype = DTypeVariable::Known(dtype);
  return term;
}

class Substituter {
 public:
  explicit Substituter(const IndexSubstitution& by) : by_(by) {}

  TermPtr operator()(const TermPtr& term) {
    const bool occurs = std::any_of(
        term->free.begin(), term->free.end(),
        [this](const IndexVariable* v) { return by_.count(v) != 0; });
    if (!occurs) return term;
    auto [it, inserted] = done_.try_emplace(term.get());
    if (!inserted) return it->second;
    TermPtr result;
    if (term->kind == TermKind::kIndex) {
      result =
          ConvertTerm(by_.at(term->indices[0].get()), ResolvedDType(*term));
    } else {
      Term copy = *term;
      for (TermPtr& child : copy.children) child = (*this)(child);
      if (copy.fill != nullptr) copy.fill = (*this)(copy.fill);
      result = Finished(std::move(copy));
    }
    done_[term.get()] = result;
    return result;
  }

 private:
  const IndexSubstitution& by_;
  std::map<const Term*, TermPtr> done_;
};

// Visits each term once: they share subterms.
bool FindReduction(const Term& element, std::set<const Term*>& seen) {
  if (element.kind == TermKind::kReduce) return true;
  if (!seen.insert(&element).second) return false;
  if (element.fill != nullptr && FindReduction(*element.fill, seen)) {
    return true;
  }
  const size_t first = element.kind == TermKind::kRead ? 1 : 0;
  return std::any_of(
      element.children.begin() + first, element.children.end(),
      [&seen](const TermPtr& child) { return FindReduction(*child, seen); });
}

}  // namespace

TermPtr IndexTerm(const IndexPtr& index, DType dtype) {
  Term term = NewTerm(TermKind::kIndex, dtype);
  term.indices = {index};
  return Finished(std::move(term));
}

TermPtr NumberTerm(const Exact& number, DType dtype) {
  Term term = NewTerm(TermKind::kNumber, dtype);
  term.number = number;
  return Finished(std::move(term));
}

TermPtr DimTerm(const Dim& dim, DType dtype) {
  Term term = NewTerm(TermKind::kDim, dtype);
  term.dim = dim;
  return Finished(std::move(term));
}

TermPtr PointwiseTerm(Primitive primitive, DType dtype,
                      std::vector<TermPtr> children) {
  Term term = NewTerm(TermKind::kPointwise, dtype);
  term.primitive = primitive;
  term.children = std::move(children);
  return Finished(std::move(term));
}

TermPtr ConvertTerm(const TermPtr& term, DType dtype) {
  if (ResolvedDType(*term) == dtype) return term;
  Term convert = NewTerm(TermKind::kPointwise, dtype);
  convert.primitive = Primitive::kConvert;
  convert.attributes = {{"dtype", dtype}};
  convert.children = {term};
  return Finished(std::move(convert));
}

TermPtr AndTerm(const std::vector<TermPtr>& conjuncts) {
  if (conjuncts.empty()) return NumberTerm(Exact(1), DType::kBool);
  TermPtr all = conjuncts[0];
  for (size_t i = 1; i < conjuncts.size(); ++i) {
    all = PointwiseTerm(Primitive::kAnd, DType::kBool, {all, conjuncts[i]});
  }
  return all;
}

bool OccursFree(const Term& term, const IndexVariable* index) {
  return std::find(term.free.begin(), term.free.end(), index) !=
         term.free.end();
}

bool OccursFree(const Term& term, const std::vector<IndexPtr>& indices) {
  return std::any_of(
      indices.begin(), indices.end(),
      [&term](const IndexPtr& v) { return OccursFree(term, v.get()); });
}

bool HasReduction(const Term& element) {
  std::set<const Term*> seen;
  return FindReduction(element, seen);
}

TermPtr Substitute(const TermPtr& element, const IndexSubstitution& by) {
  return Substituter(by)(element);
}

TermPtr InlinedRead(const Term& read) {
  const Term& array = *read.children[0];
  if (array.kind != TermKind::kComprehension) return nullptr;
  if (HasReduction(*array.children[0])) return nullptr;
  IndexSubstitution by;
  for (size_t d = 0; d < array.indices.size(); ++d) {
    by[array.indices[d].get()] = read.children[d + 1];
  }
  return Substitute(array.children[0], by);
}

}  // namespace cleave
