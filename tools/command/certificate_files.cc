#include "tools/command/certificate_files.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/files/file.h"
#include "ops/status_macros.h"
#include "tools/command/load.h"

namespace cleave {
namespace {

constexpr char kShippedCertificates[] = "certificates.json";

}  // namespace

absl::StatusOr<std::optional<CertificateFile>> ReadCertificates(
    const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_other(path, error)) {
    return std::optional<CertificateFile>();
  }
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return std::optional<CertificateFile>();
  if (!text.ok()) return text.status();
  CLEAVE_ASSIGN_OR_RETURN(CertificateFile file, ParseCertificates(*text, path));
  return std::optional<CertificateFile>(std::move(file));
}

std::vector<std::pair<std::string, CertificateFile>> ReadShippedCertificates(
    const std::vector<std::string>& folders) {
  std::vector<std::pair<std::string, CertificateFile>> shipped;
  for (const std::string& path : folders) {
    const std::string name =
        absl::StrCat(absl::StripSuffix(path, "/"), "/", kShippedCertificates);
    absl::StatusOr<std::optional<CertificateFile>> file =
        ReadCertificates(name);
    if (!file.ok()) {
      // The path of a rule file is no folder.
      if (std::filesystem::is_directory(path)) {
        Complain(absl::StrCat("certificates are left out: ",
                              file.status().message()));
      }
    } else if (file->has_value()) {
      shipped.emplace_back(name, **std::move(file));
    }
  }
  return shipped;
}

}  // namespace cleave
