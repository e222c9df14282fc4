// Broken primitives: the engine with one mistake in one place, for tests of the
// checker. A program that links this library has its calls of these functions
// led through it by the linker (BROKEN_LINKS in broken.bzl).
//
//   Broken broken(Stage::kJvp, Primitive::kTanh);
//   // As long as it lives, tangents of tanh are a sixteenth too large.

#ifndef CLEAVE_TESTING_BROKEN_BROKEN_H_
#define CLEAVE_TESTING_BROKEN_BROKEN_H_

#include <cstdint>
#include <set>

#include "absl/strings/string_view.h"
#include "ops/primitive.h"

namespace cleave {

enum class Stage : uint8_t {
  kInterpreter,  // EvalReference: every third element of a result is off
  kReals,        // EvalReal and EvalInterval, which evaluate specs: the same
  kJvp,          // JvpPrimitive: tangents are off
  kTranspose,    // TransposePrimitive: cotangents are off
  kBatch,        // BatchPrimitive: the examples are in reverse order
  kKernel,       // Compile: results of the primitive are off
};
inline constexpr Stage kStages[] = {Stage::kInterpreter, Stage::kReals,
                                    Stage::kJvp,         Stage::kTranspose,
                                    Stage::kBatch,       Stage::kKernel};

// "interpreter", ..
absl::string_view StageName(Stage stage);

// Breaks `primitive` in one stage. Floats are off by a sixteenth of themselves,
// integers by 1, bools are negated; keys are left. One at a time; graphs and
// rules that were derived before are as they were.
class Broken {
 public:
  Broken(Stage stage, Primitive primitive);
  Broken(const Broken&) = delete;
  Broken& operator=(const Broken&) = delete;
  ~Broken();
};

// The primitives that went through a stage since the last call.
std::set<Primitive> TakeSeen(Stage stage);

}  // namespace cleave

#endif  // CLEAVE_TESTING_BROKEN_BROKEN_H_
