// DimTerms: the terms of a Dim, looked at where they are. Internal to
// //ops:dim.
//
//   for (const DimTerm& term : DimTerms(dim)) ..

#ifndef CLEAVE_OPS_DIM_TERMS_H_
#define CLEAVE_OPS_DIM_TERMS_H_

#include <cstddef>

#include "ops/dim.h"
#include "ops/dim_internal.h"

namespace cleave {

// Valid while the Dim lives. A constant other than 0 has one term, as
// DimBuilder::Terms says.
class DimTerms {
 public:
  explicit DimTerms(const Dim& dim) {
    if (const auto* const rep = DimBuilder::Get(dim)) {
      begin_ = rep->terms.data();
      size_ = rep->terms.size();
      return;
    }
    constant_.coefficient = *dim.Value();
    begin_ = &constant_;
    size_ = constant_.coefficient == 0 ? 0 : 1;
  }
  DimTerms(const DimTerms&) = delete;
  DimTerms& operator=(const DimTerms&) = delete;

  const DimTerm* begin() const { return begin_; }
  const DimTerm* end() const { return begin_ + size_; }
  size_t size() const { return size_; }

 private:
  DimTerm constant_;
  const DimTerm* begin_;
  size_t size_;
};

}  // namespace cleave

#endif  // CLEAVE_OPS_DIM_TERMS_H_
