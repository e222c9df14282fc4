#include "transforms/names.h"

#include "absl/strings/str_cat.h"

namespace cleave {

std::string NameWith(const std::string& name, absl::string_view suffix,
                     absl::flat_hash_set<std::string>& taken) {
  std::string with = absl::StrCat(name, suffix);
  while (!taken.insert(with).second) absl::StrAppend(&with, suffix);
  return with;
}

absl::flat_hash_set<std::string> NamesOf(const std::vector<NamedValue>& named) {
  absl::flat_hash_set<std::string> names;
  for (const NamedValue& value : named) names.insert(value.name);
  return names;
}

}  // namespace cleave
