// CertificateStore: the certificates of one user, for the checks of later
// processes.
//
//   ASSERT_OK_AND_ASSIGN(auto store, CertificateStore::Open(folder));
//   EXPECT_OK(store->Write(certificate, conditions, environment));
//   ASSERT_OK_AND_ASSIGN(
//       const std::optional<Certificate> found,
//       store->Read("softplus", rule, conditions, environment));
//
// A file for each certificate, of a CacheFolder: files appear whole, so that a
// process may be killed at any moment and others may write beside it, and
// damaged ones are found by their checksums. A certificate is found only by all
// that it holds for: no other rule's, and none of another engine, is taken.

#ifndef CLEAVE_TESTING_CERTIFICATE_CERTIFICATE_STORE_H_
#define CLEAVE_TESTING_CERTIFICATE_CERTIFICATE_STORE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/files/cache_folder.h"
#include "testing/certificate/certificate.h"

namespace cleave {

// Thread-safe.
class CertificateStore {
 public:
  // Makes the folder, as CacheFolder::Open does, and with its errors.
  static absl::StatusOr<std::unique_ptr<CertificateStore>> Open(
      const std::string& folder);

  // The certificate of `op` for that rule, under these conditions, by that
  // environment; none if there is none. DataLoss, with the file's name, for a
  // damaged one; else by errno.
  absl::StatusOr<std::optional<Certificate>> Read(
      const std::string& op, const std::string& rule,
      const Conditions& conditions, const Environment& environment);

  // In place of the one that is there. By errno, as for a full disk; nothing
  // changes then.
  absl::Status Write(Certificate certificate, const Conditions& conditions,
                     const Environment& environment);

  // Notes that a part of these certificates, which came from elsewhere, was
  // checked, and whether it was. By errno.
  absl::Status SetSampled(absl::string_view claims);
  bool WereSampled(absl::string_view claims);

 private:
  explicit CertificateStore(std::unique_ptr<CacheFolder> folder)
      : folder_(std::move(folder)) {}

  std::unique_ptr<CacheFolder> folder_;
};

// The folder in DefaultCacheFolder() where `cleave check` keeps them; empty
// where that is.
std::string DefaultCertificateFolder();

}  // namespace cleave

#endif  // CLEAVE_TESTING_CERTIFICATE_CERTIFICATE_STORE_H_
