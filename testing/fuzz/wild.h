// Arguments that a caller may get wrong without any tensor: numbers beyond 64
// bits, texts, Dims, shapes, attributes, concrete tensors. All follows from a
// seed.

#ifndef CLEAVE_TESTING_FUZZ_WILD_H_
#define CLEAVE_TESTING_FUZZ_WILD_H_

#include <cstdint>
#include <random>
#include <vector>

#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave::functional {

class Wild {
 public:
  explicit Wild(uint64_t seed) : rng_(seed) {}

  int64_t Pick(int64_t count) {
    return static_cast<int64_t>(rng_() % static_cast<uint64_t>(count));
  }
  bool Chance(int one_in) { return Pick(one_in) == 0; }
  template <typename T>
  const T& OneOf(const std::vector<T>& all) {
    return all[static_cast<size_t>(Pick(static_cast<int64_t>(all.size())))];
  }
  // -4 to 4, and rank 0 to 2 with extents 0 to 3.
  int SmallInt() { return static_cast<int>(Pick(9)) - 4; }
  std::vector<int64_t> SmallShape();

  int64_t WildInt();
  DType AnyType();
  Dim WildDim(int depth);
  Shape WildShape();
  StaticValue WildValue();

  // Makes Dims and concrete tensors, and expects what must hold of each.
  void CheckDim();
  void CheckConcrete();

 private:
  std::mt19937_64 rng_;
};

}  // namespace cleave::functional

#endif  // CLEAVE_TESTING_FUZZ_WILD_H_
