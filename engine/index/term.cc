#include "engine/index/term.h"

#include <utility>

namespace cleave {

DTypePtr DTypeVariable::Open() { return std::make_shared<DTypeVariable>(); }

DTypePtr DTypeVariable::Known(DType dtype) {
  auto variable = std::make_shared<DTypeVariable>();
  variable->dtype_ = dtype;
  return variable;
}

const DTypeVariable* DTypeVariable::Root() const {
  const DTypeVariable* root = this;
  while (root->parent_ != nullptr) root = root->parent_.get();
  return root;
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

DType ResolvedDType(const Term& term) {
  return term.dtype->dtype().value_or(DType::kI64);
}

}  // namespace cleave
