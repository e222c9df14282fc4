// SizedSum: a sum of products, and how large its terms were. Internal to the
// layers.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_SIZED_SUM_H_
#define CLEAVE_TESTING_CHECK_LAYERS_SIZED_SUM_H_

#include <cmath>

namespace cleave {

struct SizedSum {
  double value = 0;
  double size = 0;
  void Add(double term) {
    value += term;
    size += std::abs(term);
  }
  bool finite() const { return std::isfinite(value) && std::isfinite(size); }
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_SIZED_SUM_H_
