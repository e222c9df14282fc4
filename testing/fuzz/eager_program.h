// RunEagerProgram: a program of eager tensors that makes mistakes.
//
//   RunEagerProgram(17);
//   if (testing::Test::HasFailure()) ..  // seed 17 found something
//
// It calls the eager API with what a caller may get wrong: shapes, dtypes,
// ranks, texts, numbers beyond 64 bits, scopes that end in any order. Nothing
// may crash, a mistake has a status, and no data changes but by a write that
// succeeds, as the model of eager_model.h says.

#ifndef CLEAVE_TESTING_FUZZ_EAGER_PROGRAM_H_
#define CLEAVE_TESTING_FUZZ_EAGER_PROGRAM_H_

#include <cstdint>

namespace cleave::functional {

// The program follows from its seed. A finding is a failure of the test that
// runs.
void RunEagerProgram(uint64_t seed);

}  // namespace cleave::functional

#endif  // CLEAVE_TESTING_FUZZ_EAGER_PROGRAM_H_
