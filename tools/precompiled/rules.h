// The headers that the files of transforms, of checks and of the command start
// with: common.h, graphs and the rules that are loaded.

#ifndef CLEAVE_TOOLS_PRECOMPILED_RULES_H_
#define CLEAVE_TOOLS_PRECOMPILED_RULES_H_

#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "tools/precompiled/common.h"

#endif  // CLEAVE_TOOLS_PRECOMPILED_RULES_H_
