// Names chosen by a pattern, as `--ops` and `--op` take one.

#ifndef CLEAVE_TESTING_GLOB_H_
#define CLEAVE_TESTING_GLOB_H_

#include "absl/strings/string_view.h"

namespace cleave {

// `*` and `?` match as in a shell. O(glob * text), whatever the glob.
bool MatchesGlob(absl::string_view glob, absl::string_view text);

}  // namespace cleave

#endif  // CLEAVE_TESTING_GLOB_H_
