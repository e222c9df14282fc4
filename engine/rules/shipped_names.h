// RenameBesideShipped: names that the shipped rules have, too. Internal to
// engine/rules.
//
// A user's file may declare an op or a def by any name. Where a shipped one has
// that name, the files that are loaded together mean their own by it; the
// shipped rules go on to mean theirs. A node of a graph names its op, so that
// the two ops need two names there: `op relu` of mine.rules is `mine_relu`.

#ifndef CLEAVE_ENGINE_RULES_SHIPPED_NAMES_H_
#define CLEAVE_ENGINE_RULES_SHIPPED_NAMES_H_

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

// Gives the ops and defs of files that are not shipped other names where a
// shipped op or def of `library`, or of `files`, has theirs. Returns a line for
// each such op: "mine.rules:3: note: `relu` is `mine_relu` in graphs, ..".
std::vector<std::string> RenameBesideShipped(const Library& library,
                                             std::vector<ParsedFile>* files);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_SHIPPED_NAMES_H_
