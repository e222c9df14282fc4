#include "ops/refusal.h"

#include "absl/strings/cord.h"

namespace cleave {
namespace {

constexpr char kKind[] = "cleave.refusal";
constexpr char kReason[] = "cleave.refusal_reason";
constexpr char kPlace[] = "cleave.refusal_place";

std::string PayloadOf(const absl::Status& status, const char* key) {
  const absl::optional<absl::Cord> payload = status.GetPayload(key);
  return payload.has_value() ? std::string(*payload) : std::string();
}

absl::string_view NameOf(RefusalKind kind) {
  return kind == RefusalKind::kImpossible ? "impossible" : "not supported";
}

}  // namespace

absl::Status MakeRefusal(RefusalKind kind, absl::string_view reason) {
  absl::Status status =
      absl::UnimplementedError(absl::StrCat(NameOf(kind), ": ", reason));
  status.SetPayload(kKind, absl::Cord(NameOf(kind)));
  status.SetPayload(kReason, absl::Cord(reason));
  return status;
}

std::optional<Refusal> RefusalOf(const absl::Status& status) {
  const std::string name = PayloadOf(status, kKind);
  for (const RefusalKind kind :
       {RefusalKind::kImpossible, RefusalKind::kNotSupported}) {
    if (name == NameOf(kind)) {
      return Refusal{kind, PayloadOf(status, kReason),
                     PayloadOf(status, kPlace)};
    }
  }
  return std::nullopt;
}

bool IsImpossible(const absl::Status& status) {
  const std::optional<Refusal> refusal = RefusalOf(status);
  return refusal.has_value() && refusal->kind == RefusalKind::kImpossible;
}

absl::Status WithMessage(const absl::Status& status,
                         absl::string_view message) {
  absl::Status result(status.code(), message);
  status.ForEachPayload([&](absl::string_view key, const absl::Cord& payload) {
    result.SetPayload(key, payload);
  });
  return result;
}

absl::Status AtPlace(const absl::Status& status, absl::string_view place) {
  absl::Status result =
      WithMessage(status, absl::StrCat(place, ": ", status.message()));
  if (RefusalOf(status).has_value() && PayloadOf(status, kPlace).empty()) {
    result.SetPayload(kPlace, absl::Cord(place));
  }
  return result;
}

}  // namespace cleave
