// Random: numbers that a seed alone decides.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_RANDOM_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_RANDOM_H_

#include <cstdint>
#include <vector>

namespace cleave::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) { Next(); }

  // SplitMix64. Source: Steele, Lea, Flood, 2014.
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // In [low, high], high - low < 2^63.
  int64_t Between(int64_t low, int64_t high) {
    const uint64_t count = static_cast<uint64_t>(high - low) + 1;
    return low + static_cast<int64_t>(Next() % count);
  }

  bool OneIn(int n) { return Between(1, n) == 1; }

  template <typename T>
  const T& Pick(const std::vector<T>& values) {
    return values[Next() % values.size()];
  }

 private:
  uint64_t state_;
};

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_RANDOM_H_
