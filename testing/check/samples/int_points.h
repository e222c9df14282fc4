// The integers of a dtype at which a wrong rule is most likely to fail: powers
// of two, the ends of the range, and all magnitudes alike.
//
// An int64_t stands for a u64 of the same bits, as in Tensor.
//
//   SpecialInts(DType::kI8);        // 0, 1, -1, 2, -2, 3, .. 127, -128
//   IntsNear({1000}, DType::kI32);  // 999, 1000, 1001 and their negatives

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_INT_POINTS_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_INT_POINTS_H_

#include <cstdint>
#include <random>
#include <vector>

#include "ops/dtype.h"

namespace cleave {

// The integer of those low bits.
int64_t IntFromBits(uint64_t bits, DType dtype);

// 0, all powers of two and the numbers beside them, of both signs where the
// dtype has both, and the ends of its range. None twice.
std::vector<int64_t> SpecialInts(DType dtype);

// `constants`, the numbers beside them, and the negatives of all, those that
// the dtype has.
std::vector<int64_t> IntsNear(const std::vector<int64_t>& constants,
                              DType dtype);

// Any of its integers: most are about as large as the largest.
int64_t AnyInt(DType dtype, std::mt19937_64& random);

// All numbers of bits are as likely, and so are both signs.
int64_t LogUniformInt(DType dtype, std::mt19937_64& random);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_INT_POINTS_H_
