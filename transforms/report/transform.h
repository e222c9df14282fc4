// Transform: the transforms that reports name, vmap, jvp and vjp.

#ifndef CLEAVE_TRANSFORMS_REPORT_TRANSFORM_H_
#define CLEAVE_TRANSFORMS_REPORT_TRANSFORM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace cleave {

enum class Transform : uint8_t { kVmap, kJvp, kVjp };
inline constexpr Transform kTransforms[] = {Transform::kVmap, Transform::kJvp,
                                            Transform::kVjp};
// "vmap", "jvp", "vjp".
absl::string_view TransformName(Transform transform);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_REPORT_TRANSFORM_H_
