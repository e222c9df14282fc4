// DeclarationText: one item as its author wrote it, in canonical form, without
// the comment above it: for references and for hosts.

#ifndef CLEAVE_ENGINE_LANG_DECLARATION_TEXT_H_
#define CLEAVE_ENGINE_LANG_DECLARATION_TEXT_H_

#include <string>

#include "engine/lang/ast.h"

namespace cleave {

// "op relu(x: T[S..]) -> T[S..]\n  where T: real\n  = max(x, 0)\n".
std::string DeclarationText(const Item& item);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_LANG_DECLARATION_TEXT_H_
