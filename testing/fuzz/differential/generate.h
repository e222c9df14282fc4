// Generate: a random function in rule text, and points to evaluate it at.
//
//   FuzzCase one = Generate(seed);   // the same in every run of one build
//
// Functions are small, of all of the index notation, the array notation, the
// regions, and ops of the library. Most of them load; those that a rule of the
// language forbids are for the caller to drop.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_GENERATE_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_GENERATE_H_

#include <cstdint>

#include "testing/fuzz/differential/fuzz_case.h"

namespace cleave::fuzz {

FuzzCase Generate(uint64_t seed);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_GENERATE_H_
