// LargeAxesOf: the axes of an op that a call may make large, one at a time.

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_LARGE_AXES_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_LARGE_AXES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/lang/ast.h"

namespace cleave {

// An axis of a signature that gets a large extent: a size, by its name (`n#0`
// for the first of a variadic input's), or a pack, which then has that axis
// alone.
struct LargeAxis {
  std::string name;
  bool is_pack = false;
  int64_t extent = 0;
};

// The sizes and packs of the types of the op's inputs, extents 0: `A`, a pack,
// and `n` of x: T[A.., n].
std::vector<LargeAxis> LargeAxesOf(const Item& item);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_LARGE_AXES_H_
