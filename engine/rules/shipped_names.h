// RenameBesideShipped: names that the shipped rules have, too. Internal to
// engine/rules.
//
// A user's file may declare an op, a def or a fn by any name. Where a shipped
// op or fn has that name, the files that are loaded together mean their own by
// it; the shipped rules go on to mean theirs. A node of a graph names its op,
// so that the two ops need two names there: `op relu` of mine.rules is
// `mine_relu`. A fn has a second name within the rule set alone: whoever asks
// for `fn gamma` gets it by `gamma`. Shipped defs are no reason: a Library
// keeps them apart.

#ifndef CLEAVE_ENGINE_RULES_SHIPPED_NAMES_H_
#define CLEAVE_ENGINE_RULES_SHIPPED_NAMES_H_

#include <map>
#include <string>
#include <vector>

#include "engine/bind/library.h"
#include "engine/lang/ast.h"
#include "engine/lang/source.h"

namespace cleave {

// A file on its way into a library.
struct ParsedFile {
  Source source;
  RuleFile file;
  bool shipped = false;
  bool generated = false;
};

struct RenamedItems {
  // A line for each op: "mine.rules:3: note: `relu` is `mine_relu` outside ..".
  std::vector<std::string> notes;
  // The names of the fns by those that their files give them.
  std::map<std::string, std::string> functions;
};

// Gives the ops, defs and fns of files that are not shipped other names where a
// shipped op or fn of `library`, or of `files`, has theirs.
RenamedItems RenameBesideShipped(const Library& library,
                                 std::vector<ParsedFile>* files);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_SHIPPED_NAMES_H_
