// Golden files: inputs of a stage with what it makes of each.
//
//   // Comments are lines that begin with `//`, before an input.
//   softplus(x)
//   --
//   log1p(exp(x))
//   ==
//   relu(x)
//   --
//   max(x, 0)
//   ==
//
//   TEST(Lower, Golden) {
//     TestGoldenFile("engine/testdata/lower.golden", [](absl::string_view in) {
//       return PrintGraph(Lower(in));
//     });
//   }
//
// `bazel run //engine:lower_test -- --update` writes what the stage makes now
// into the file: read the difference.

#ifndef CLEAVE_TESTING_GOLDEN_FILE_H_
#define CLEAVE_TESTING_GOLDEN_FILE_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace cleave {

// Expects `stage(input)` to be the output of each case of the file, whose path
// is relative to the repository's root; or rewrites the file, if the program
// was given --update. Inputs and outputs end with a line end where they are not
// empty. A file without cases fails.
void TestGoldenFile(
    const std::string& path,
    const std::function<std::string(absl::string_view input)>& stage);

// Expects the file, likewise relative to the root, to be `text`, or rewrites
// it.
void TestGeneratedFile(const std::string& path, const std::string& text);

}  // namespace cleave

#endif  // CLEAVE_TESTING_GOLDEN_FILE_H_
