// RenameItems: a file whose items have other names.
//
//   RenameItems({{"relu", "mine_relu"}}, &file);
//
// makes `op relu(..)` the op `mine_relu`, and of `relu(x)` and `jvp relu(x)(t)`
// calls of it.

#ifndef CLEAVE_ENGINE_LANG_RENAME_H_
#define CLEAVE_ENGINE_LANG_RENAME_H_

#include <map>
#include <string>

#include "engine/lang/ast.h"

namespace cleave {

// `names` maps a name to the new one. Renamed are ops, defs, fns and overrides,
// and whatever the file calls by that name, in examples, too. Names of values
// stay, and so do ranges. Linear in the size of the file.
void RenameItems(const std::map<std::string, std::string>& names,
                 RuleFile* file);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_LANG_RENAME_H_
