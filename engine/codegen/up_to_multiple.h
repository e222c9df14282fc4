// UpToMultiple: an extent with what is left over made whole.

#ifndef CLEAVE_ENGINE_CODEGEN_UP_TO_MULTIPLE_H_
#define CLEAVE_ENGINE_CODEGEN_UP_TO_MULTIPLE_H_

#include <cstdint>

namespace cleave {

// `count`, or the next multiple behind it. `count` is at least 0, `multiple` at
// least 1.
constexpr int64_t UpToMultiple(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_UP_TO_MULTIPLE_H_
