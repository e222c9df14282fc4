#include "testing/certificate/certificate_store.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "testing/certificate/sha256.h"

namespace cleave {
namespace {

// A certificate has 2 to 4 KiB, and the shipped rules 200.
constexpr int64_t kMaxFolderBytes = int64_t{64} << 20;

constexpr char kKind[] = ".certificate";

constexpr char kSampledKind[] = ".sampled";

// The claims are those of all shipped rules: a quarter of a MiB.
std::string SampledKey(absl::string_view claims) {
  return absl::StrCat("cleave sampled ", Sha256(claims));
}

std::string Key(const std::string& op, const std::string& rule,
                const Conditions& conditions, const Environment& environment) {
  return absl::StrCat("cleave certificate\nop ", op, "\nrule ", rule,
                      "\nconditions ", conditions.ToString(), "\n",
                      environment.ToString());
}

}  // namespace

absl::StatusOr<std::unique_ptr<CertificateStore>> CertificateStore::Open(
    const std::string& folder) {
  CLEAVE_ASSIGN_OR_RETURN(std::unique_ptr<CacheFolder> opened,
                          CacheFolder::Open(folder, kMaxFolderBytes));
  return std::unique_ptr<CertificateStore>(
      new CertificateStore(std::move(opened)));
}

absl::StatusOr<std::optional<Certificate>> CertificateStore::Read(
    const std::string& op, const std::string& rule,
    const Conditions& conditions, const Environment& environment) {
  const std::string key = Key(op, rule, conditions, environment);
  const std::string path = folder_->FileName(key, kKind);
  CLEAVE_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                          folder_->Read(key, kKind));
  if (!text.has_value()) return std::optional<Certificate>();
  const auto damaged = [&path](absl::string_view why) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: ", why));
  };
  // Its checksum fits: a program of another version may have written it.
  absl::StatusOr<CertificateFile> file = ParseCertificates(*text, path);
  if (!file.ok()) return damaged(file.status().message());
  const auto it = file->certificates.find(op);
  if (it == file->certificates.end() || it->second.rule != rule ||
      !(file->conditions == conditions) ||
      !(file->EnvironmentOf(it->second) == environment)) {
    return damaged("it is the certificate of something else");
  }
  return std::optional<Certificate>(std::move(it->second));
}

absl::Status CertificateStore::Write(Certificate certificate,
                                     const Conditions& conditions,
                                     const Environment& environment) {
  const std::string key =
      Key(certificate.report.op, certificate.rule, conditions, environment);
  CertificateFile file;
  file.conditions = conditions;
  file.Add(std::move(certificate), environment);
  return folder_->Write(key, kKind, file.ToJson());
}

absl::Status CertificateStore::SetSampled(absl::string_view claims) {
  return folder_->Write(SampledKey(claims), kSampledKind, "sampled\n");
}

bool CertificateStore::WereSampled(absl::string_view claims) {
  const absl::StatusOr<std::optional<std::string>> read =
      folder_->Read(SampledKey(claims), kSampledKind);
  return read.ok() && read->has_value();
}

std::string DefaultCertificateFolder() {
  const std::string folder = DefaultCacheFolder();
  return folder.empty() ? "" : absl::StrCat(folder, "/certificates");
}

}  // namespace cleave
