// Refusals: what the engine does not do, as statuses that say so in a form that
// callers read without a look at the message.
//
//   return Impossible("ragged: `", name, "` has data-dependent sizes");
//   ..
//   if (const std::optional<Refusal> refusal = RefusalOf(status)) {
//     refusal->kind == RefusalKind::kImpossible;
//     refusal->reason == "ragged: `nonzero` has data-dependent sizes";
//   }

#ifndef CLEAVE_OPS_REFUSAL_H_
#define CLEAVE_OPS_REFUSAL_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace cleave {

enum class RefusalKind {
  kImpossible,    // nobody could: there is no such derivative, batch, ..
  kNotSupported,  // this engine does not yet
};

struct Refusal {
  RefusalKind kind = RefusalKind::kImpossible;
  std::string reason;
  std::string place;  // "activation.rules:97" where AtPlace said it, else empty
};

// Unimplemented("impossible: <reason>") or ("not supported: <reason>").
absl::Status MakeRefusal(RefusalKind kind, absl::string_view reason);

template <typename... Parts>
absl::Status Impossible(const Parts&... parts) {
  return MakeRefusal(RefusalKind::kImpossible, absl::StrCat(parts...));
}

template <typename... Parts>
absl::Status NotSupported(const Parts&... parts) {
  return MakeRefusal(RefusalKind::kNotSupported, absl::StrCat(parts...));
}

// The refusal that a status is; nullopt for any other error.
std::optional<Refusal> RefusalOf(const absl::Status& status);

// Whether it refuses what nobody could do.
bool IsImpossible(const absl::Status& status);

// The status with another message: the code and all payloads stay.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

// The status with "<place>: " before its message, which a refusal remembers.
absl::Status AtPlace(const absl::Status& status, absl::string_view place);

}  // namespace cleave

#endif  // CLEAVE_OPS_REFUSAL_H_
