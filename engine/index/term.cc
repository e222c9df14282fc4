#include "engine/index/term.h"

#include <utility>

namespace cleave {

DTypePtr DTypeVariable::Open() { return std::make_shared<DTypeVariable>(); }

DTypePtr DTypeVariable::Known(DType dtype) {
  auto variable = std::make_shared<DTypeVariable>();
  variable->dtype_ = dtype;
  return variable;
}

DTypeVariable::~DTypeVariable() {
  while (parent_ != nullptr && parent_.use_count() == 1) {
    std::shared_ptr<DTypeVariable> next = std::move(parent_->parent_);
    parent_ = std::move(next);
  }
}

// Halves the path, so that long chains are walked once.
const DTypeVariable* DTypeVariable::Root() const {
  const DTypeVariable* v = this;
  while (v->parent_ != nullptr) {
    if (v->parent_->parent_ != nullptr) {
      const std::shared_ptr<DTypeVariable> above = v->parent_->parent_;
      v->parent_ = above;
    }
    v = v->parent_.get();
  }
  return v;
}

bool DTypeVariable::Unify(const DTypePtr& a, const DTypePtr& b) {
  DTypePtr x = a;
  while (x->parent_ != nullptr) x = x->parent_;
  DTypePtr y = b;
  while (y->parent_ != nullptr) y = y->parent_;
  if (x == y) return true;
  if (x->dtype_.has_value() && y->dtype_.has_value()) {
    return *x->dtype_ == *y->dtype_;
  }
  // The known one becomes the root.
  if (x->dtype_.has_value()) std::swap(x, y);
  x->parent_ = y;
  return true;
}

bool DTypeVariable::Same(const DTypePtr& a, const DTypePtr& b) {
  const DTypeVariable* x = a->Root();
  const DTypeVariable* y = b->Root();
  return x == y || (x->dtype_.has_value() && x->dtype_ == y->dtype_);
}

std::optional<DType> DTypeVariable::dtype() const { return Root()->dtype_; }

Term::~Term() {
  std::vector<TermPtr> pending;
  // A child that no other term holds is taken apart here, in a loop: a long
  // chain would need a deep stack.
  const auto take = [&pending](Term& term) {
    for (TermPtr& child : term.children) pending.push_back(std::move(child));
    term.children.clear();
    if (term.fill != nullptr) pending.push_back(std::move(term.fill));
  };
  take(*this);
  while (!pending.empty()) {
    const TermPtr last = std::move(pending.back());
    pending.pop_back();
    if (last != nullptr && last.use_count() == 1) {
      take(const_cast<Term&>(*last));
    }
  }
}

DType ResolvedDType(const Term& term) {
  return term.dtype->dtype().value_or(DType::kI64);
}

}  // namespace cleave
