// MarkedLine: the line of a source that a range is in, with a caret.

#ifndef CLEAVE_ENGINE_LANG_MARKED_LINE_H_
#define CLEAVE_ENGINE_LANG_MARKED_LINE_H_

#include <string>

#include "engine/lang/source.h"

namespace cleave {

//     let z = bta * x
//             ^~~
//
// Both lines are indented by two. A range of several lines is marked to the end
// of its first. Empty where the line is too long to be shown.
std::string MarkedLine(SourceRange range, const Source& source);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_LANG_MARKED_LINE_H_
