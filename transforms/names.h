// Names of the inputs and outputs that transforms add. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_NAMES_H_
#define CLEAVE_TRANSFORMS_NAMES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"

namespace cleave {

inline constexpr absl::string_view kTangent = ".tangent";
inline constexpr absl::string_view kCotangent = ".cotangent";

// `name` with `suffix` behind it, as often as it takes to be none of `taken`,
// which it joins.
std::string NameWith(const std::string& name, absl::string_view suffix,
                     absl::flat_hash_set<std::string>& taken);

absl::flat_hash_set<std::string> NamesOf(const std::vector<NamedValue>& named);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_NAMES_H_
