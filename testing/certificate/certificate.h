// CertificateFile: verdicts of the checker that are kept, with all that they
// hold for: the rules by their hashes, the samples, the engine, the machine.
//
//   CertificateFile file;
//   file.conditions = Conditions::Of(options);
//   if (IsCertifiable(report)) {
//     file.Add(Certificate{hashes.Of(report.op), "2026-11-23", report},
//              ThisEnvironment());
//   }
//   std::string text = file.ToJson();
//   absl::StatusOr<CertificateFile> read = ParseCertificates(text, "a.json");
//
// The text has one line for each verdict, so that versions of it can be
// compared and merged:
//
//   {"format": "cleave-certificates/1",
//   "conditions": {"seed": 1, "layers": [], "kernels": false, ..},
//   "environments": {
//   "5f0c1d2e8a47": {"engine": "93ab..", "compiler": "gcc 12.2.0", ..}
//   },
//   "certificates": {
//   "softplus": {"rule": "9f2c..", "environment": "5f0c1d2e8a47",
//   "date": "2026-11-23", "place": "rules/core/activation.rules:97",
//   "seconds": 0.4, "loose_claim": false, "layers": {
//   "L3": {"verdict": "agrees", "strength": "SAMPLED", "samples": 173000,
//   "worst_ulp": 1.6, "worst_part_of_bound": 0.4, "worst_at": "x = -88.1",
//   "why": "", "notes": []}}}
//   }}

#ifndef CLEAVE_TESTING_CERTIFICATE_CERTIFICATE_H_
#define CLEAVE_TESTING_CERTIFICATE_CERTIFICATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "testing/certificate/environment.h"
#include "testing/check/check.h"

namespace cleave {

// Which samples were compared, and in which layers: what a run is asked for.
struct Conditions {
  uint64_t seed = 1;
  std::vector<std::string> layers;  // "L3"; empty: all but L6
  bool kernels = false;             // L6, too
  std::vector<std::string> dtypes;  // "f32"; empty: all
  std::map<std::string, int64_t> sizes;
  // The limits of ops/budget.h that are not the defaults, by their names.
  std::map<std::string, int64_t> limits;

  // With the limits of this thread. The options have no host kernels, and do
  // not end at a refutation.
  static Conditions Of(const CheckOptions& options);
  // All that has its own variable in `options`, but the limits and `kernels`.
  void Set(CheckOptions& options) const;
  // All of it, on one line.
  std::string ToString() const;
  friend bool operator==(const Conditions& a, const Conditions& b) {
    return a.ToString() == b.ToString();
  }
};

struct Certificate {
  std::string rule;  // RuleHashes::Of
  std::string date;  // "2026-11-23", in UTC
  OpReport report;
  std::string environment = {};  // Environment::Id, of those of the file
};

// Today, in UTC.
std::string Today();

// Whether all of it is decided, and nothing was refuted: else the op is to be
// checked again. One that is not independent, or has layers that are not
// checked, stays so.
bool IsCertifiable(const OpReport& report);

struct CertificateFile {
  Conditions conditions;
  std::map<std::string, Environment> environments;  // by Environment::Id
  std::map<std::string, Certificate> certificates;  // by op

  // In place of that op's, if there is one. `report` is certifiable.
  void Add(Certificate certificate, const Environment& environment);
  const Environment& EnvironmentOf(const Certificate& certificate) const;
  std::string ToJson() const;
};

// Strict: InvalidArgument, with the place, for text that is no JSON, another
// format, a member that is missing, unknown or of another type, and a verdict
// that is no certificate's. `name` is that of the file, for messages.
absl::StatusOr<CertificateFile> ParseCertificates(absl::string_view text,
                                                  const std::string& name);

// The difference; nullopt where there is none. `exactly`: counts, the largest
// errors and where they are, too; else the kinds of the verdicts alone. Notes
// may name lines of files, and do not count.
std::optional<std::string> Difference(const OpReport& certified,
                                      const OpReport& now, bool exactly);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CERTIFICATE_CERTIFICATE_H_
