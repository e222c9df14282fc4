// CheckedRules: remembers which rules were checked without a mistake, for the
// processes that load the same ones later.
//
//   CheckedRules checked(DefaultCacheFolder());
//   if (!checked.Contain(key)) {
//     .. check the rules ..
//     if (mistakes.empty()) checked.Add(key);
//   }
//
// A key is all that the checks depend on, whole: the texts of the rules and the
// build of the engine. Nothing is hashed away, so that no other rules can be
// made to pass for checked ones. Entries are files of a CacheFolder: they count
// only in a folder that nobody else may write to, and damaged ones are not
// there.

#ifndef CLEAVE_ENGINE_RULES_CHECKED_RULES_H_
#define CLEAVE_ENGINE_RULES_CHECKED_RULES_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "engine/files/cache_folder.h"

namespace cleave {

class CheckedRules {
 public:
  // Entries are kept in `folder`/checked, 64 MiB of them, those used last.
  // Empty, or a folder that cannot be made or is not safe: nothing is
  // remembered, and each load checks its rules.
  explicit CheckedRules(const std::string& folder);

  bool Contain(absl::string_view key);
  // A full disk and the like make it forget.
  void Add(absl::string_view key);

 private:
  std::unique_ptr<CacheFolder> folder_;  // null: nothing is remembered
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_CHECKED_RULES_H_
