// The headers that the files that read and write JSON start with: common.h and
// nlohmann's library.

#ifndef CLEAVE_TOOLS_PRECOMPILED_JSON_H_
#define CLEAVE_TOOLS_PRECOMPILED_JSON_H_

#include "nlohmann/json.hpp"
#include "tools/precompiled/common.h"

#endif  // CLEAVE_TOOLS_PRECOMPILED_JSON_H_
