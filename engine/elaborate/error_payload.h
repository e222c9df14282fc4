// Where a mistake that a rule file declares (`error shape "the contracted
// extents differ" if ..`) stands, as a payload of its status, beside that of
// its kind (signature.h):
//
//   absl::Status status = Call("matmul", {x, y}).status();
//   status.GetPayload(kErrorPlacePayload);  // rules/core/linear_algebra..:53

#ifndef CLEAVE_ENGINE_ELABORATE_ERROR_PAYLOAD_H_
#define CLEAVE_ENGINE_ELABORATE_ERROR_PAYLOAD_H_

namespace cleave {

// File and line of the clause. The message of its status begins with the kind:
// "shape: the contracted extents differ".
inline constexpr char kErrorPlacePayload[] = "cleave.error_place";

}  // namespace cleave

#endif  // CLEAVE_ENGINE_ELABORATE_ERROR_PAYLOAD_H_
