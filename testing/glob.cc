#include "testing/glob.h"

namespace cleave {

bool MatchesGlob(absl::string_view glob, absl::string_view text) {
  size_t g = 0, t = 0;
  // Where the last star stands, and where what it matches ends.
  size_t star = absl::string_view::npos, matched = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      matched = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g, ++t;
    } else if (star != absl::string_view::npos) {
      g = star + 1;
      t = ++matched;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

}  // namespace cleave
