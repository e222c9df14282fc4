// A place that stands in a message, as the place of its diagnostic.

#ifndef CLEAVE_ENGINE_RULES_PLACE_BY_LINE_H_
#define CLEAVE_ENGINE_RULES_PLACE_BY_LINE_H_

#include "engine/lang/diagnostic.h"

namespace cleave {

// A message `file:12: text` or `file:12:5: text` of the file `source` becomes
// `text` at line 12. Other messages stay.
void PlaceByLine(const Source& source, Diagnostic* d);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_PLACE_BY_LINE_H_
