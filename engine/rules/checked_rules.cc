#include "engine/rules/checked_rules.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace cleave {
namespace {

// The shipped rules are a fifth of a MiB.
constexpr int64_t kMaxFolderBytes = int64_t{64} << 20;

constexpr char kKind[] = ".checked";
constexpr char kVerdict[] = "no mistakes\n";

}  // namespace

CheckedRules::CheckedRules(const std::string& folder) {
  if (folder.empty()) return;
  absl::StatusOr<std::unique_ptr<CacheFolder>> opened =
      CacheFolder::Open(absl::StrCat(folder, "/checked"), kMaxFolderBytes);
  if (opened.ok()) folder_ = *std::move(opened);
}

bool CheckedRules::Contain(absl::string_view key) {
  if (folder_ == nullptr) return false;
  const absl::StatusOr<std::optional<std::string>> verdict =
      folder_->Read(key, kKind);
  return verdict.ok() && *verdict == kVerdict;
}

void CheckedRules::Add(absl::string_view key) {
  if (folder_ != nullptr) folder_->Write(key, kKind, kVerdict).IgnoreError();
}

}  // namespace cleave
