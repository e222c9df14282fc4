#include "transforms/report/transform.h"

namespace cleave {

absl::string_view TransformName(Transform transform) {
  switch (transform) {
    case Transform::kVmap:
      return "vmap";
    case Transform::kJvp:
      return "jvp";
    case Transform::kVjp:
      break;
  }
  return "vjp";
}

}  // namespace cleave
