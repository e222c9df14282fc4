#include "tools/command/allow_flag.h"

#include <algorithm>

#include "absl/strings/str_replace.h"

namespace cleave {
namespace {

constexpr VerdictKind kKindsToAllow[] = {VerdictKind::kInconclusive,
                                         VerdictKind::kNotIndependent};

// "not-independent".
std::string AllowName(VerdictKind kind) {
  return absl::StrReplaceAll(VerdictKindName(kind), {{" ", "-"}});
}

}  // namespace

void AddAllowFlag(Verb& verb, std::vector<std::string>& allowed) {
  std::vector<std::string> names;
  for (const VerdictKind kind : kKindsToAllow) names.push_back(AllowName(kind));
  verb.Add("--allow", allowed,
           "Exit with 0 in spite of these verdicts; else only what agrees, or "
           "is not checked, gives 0")
      .CommaSeparated()
      .OneOf(names);
}

std::set<VerdictKind> AllowedKinds(const std::vector<std::string>& allowed) {
  std::set<VerdictKind> kinds;
  for (const VerdictKind kind : kKindsToAllow) {
    if (std::count(allowed.begin(), allowed.end(), AllowName(kind)) != 0) {
      kinds.insert(kind);
    }
  }
  return kinds;
}

}  // namespace cleave
