// CheckCertified: CheckRules for what no certificate covers.
//
//   CertificateUse use;
//   use.store = store.get();
//   use.shipped = {{"rules/certificates.json", *file}};
//   use.sample_seed = std::random_device{}();
//   absl::StatusOr<CertifiedReport> checked =
//       CheckCertified(rules, hashes, options, use);
//   std::cout << checked->report.ToString() << checked->ToString();
//       not checked now: 189 of 199 rules, which rules/certificates.json ..
//
// A certificate covers an op where the rule, and all that it uses, the seed,
// the layers and the other conditions are the same. The certificates of the
// user's own store hold for one engine on one machine, and are trusted. The
// others, which come with rules were made elsewhere: a part of them is checked
// again, and where one of these does not come out as it is certified, all are.

#ifndef CLEAVE_TESTING_CERTIFICATE_CERTIFIED_CHECK_H_
#define CLEAVE_TESTING_CERTIFICATE_CERTIFIED_CHECK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "testing/certificate/certificate.h"
#include "testing/certificate/certificate_store.h"
#include "testing/certificate/environment.h"
#include "testing/certificate/rule_hashes.h"
#include "testing/check/check.h"

namespace cleave {

struct CertificateUse {
  // The user's own: it is read, and gets what is checked. Null: none.
  CertificateStore* store = nullptr;
  // By the names of their files.
  std::vector<std::pair<std::string, CertificateFile>> shipped;
  // No certificate counts: all is checked, and the store gets it.
  bool all = false;
  Environment environment = ThisEnvironment();
  // Draws the ops, of those that shipped certificates cover, that are checked
  // all the same, once for a store: this part of them, and so many at least;
  // more of those that another engine or checker made, which says less of this
  // one.
  uint64_t sample_seed = 1;
  double sample_part = 0.05;
  double sample_part_of_other_engine = 0.2;
  int sample_least = 3;
  // Told of what is wrong with the store, once of files that cannot be read and
  // once of one that cannot be written: the check goes on without. May be
  // called by any thread, one call at a time.
  std::function<void(const absl::Status&)> complain;
};

struct CertificateMismatch {
  std::string op;
  std::string file;  // that has the certificate
  std::string what;  // "L3: samples 173000 certified, 173001 now"
  // "NOT AS CERTIFIED by rules/certificates.json: softplus L3: .."
  std::string ToString() const;
};

struct CertifiedReport {
  // Complete: what was not checked is in it as it is certified.
  CheckReport report;
  // All on which it rests, for `check --certify`; what is not certifiable is
  // not there.
  CertificateFile certificates;
  std::set<std::string> files;  // shipped ones that cover anything
  uint64_t sample_seed = 1;
  size_t drawn = 0;                  // of shipped ones, to be checked again
  std::vector<std::string> sampled;  // of these, and checked
  std::vector<CertificateMismatch> mismatches;
  // Shipped certificates were made by another engine, compiler, library or CPU:
  // their kinds alone were compared.
  bool other_environment = false;
  int own = 0;      // that were taken from the store
  int shipped = 0;  // from files that came with rules
  // The checks not done, and why, and the mismatches; empty where all was
  // checked.
  std::string ToString() const;
};

// The ops of `options`, whose `known` is null, as for CheckRules and with its
// errors. All are checked where coverage or error profiles are asked for, which
// no certificate has. `hashes` are those of all sources of `rules`.
absl::StatusOr<CertifiedReport> CheckCertified(
    std::shared_ptr<const RuleSet> rules, const RuleHashes& hashes,
    const CheckOptions& options, const CertificateUse& use);

struct VerifyOptions {
  double part = 0.1;  // and 3 at least
  uint64_t seed = 1;  // draws them
  Environment environment = ThisEnvironment();
  // `kernels`, `stop`, `started` and `progress` count; the conditions of the
  // file are set by it.
  CheckOptions check;
};

struct Verification {
  uint64_t seed = 1;
  size_t certificates = 0;             // in the file
  std::vector<std::string> unchanged;  // the rule is that of the certificate
  std::vector<std::string> changed;    // it is another one, or gone
  std::vector<std::string> verified;   // checked again
  std::vector<CertificateMismatch> mismatches;
  // Among the ops that were checked again.
  int other_environment = 0;

  bool Holds() const { return mismatches.empty() && changed.empty(); }
  std::string ToString() const;
};

// Checks a part of the ops that the file certifies again, and compares.
// InvalidArgument where its conditions cannot be met: other limits than those
// of this thread, or L6 without `kernels`; and as for CheckRules.
absl::StatusOr<Verification> VerifyCertificates(
    std::shared_ptr<const RuleSet> rules, const RuleHashes& hashes,
    const std::string& name, const CertificateFile& file,
    const VerifyOptions& options);

// Certificates of the shipped rules, by test and release: those whose rule is
// no more that of the certificate, and the ops that have none.
std::vector<std::string> NotCertified(const RuleHashes& hashes,
                                      const std::vector<CheckedOp>& ops,
                                      const CertificateFile& file);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CERTIFICATE_CERTIFIED_CHECK_H_
