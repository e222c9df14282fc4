#include "testing/certificate/certified_check.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "testing/check/layers/check_sweep.h"

namespace cleave {
namespace {

// Ops that are drawn of those that certificates cover, at least.
constexpr int kLeastVerified = 3;

constexpr char kOtherEnvironment[] =
    "made by another engine, compiler, library or CPU than this one: verdicts "
    "are compared, and not counts and errors";

// `part` of the names, and `least` of them at least, in their order.
std::vector<std::string> Draw(const std::vector<std::string>& names,
                              double part, int least, uint64_t seed) {
  const double wanted = std::max<double>(
      std::ceil(part * static_cast<double>(names.size())), least);
  const size_t count =
      std::min(names.size(), static_cast<size_t>(std::max(wanted, 0.0)));
  std::vector<std::string> drawn;
  // Each of the rest is taken with the chance that fills what is missing: the
  // same on all machines, unlike std::sample.
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < names.size(); ++i) {
    if (random() % (names.size() - i) < count - drawn.size()) {
      drawn.push_back(names[i]);
    }
  }
  return drawn;
}

// Gives the store what is checked, while it is checked.
class Keeper {
 public:
  // They outlive the keeper.
  Keeper(const CheckOptions& options, const CertificateUse& use,
         const Conditions& conditions,
         const std::map<std::string, std::string>& hashes)
      : options_(options),
        use_(use),
        conditions_(conditions),
        hashes_(hashes),
        cancelled_(CurrentLimits().cancelled) {}

  // Called by one thread at a time.
  void Keep(const OpReport& report) {
    const auto hash = hashes_.find(report.op);
    if (hash == hashes_.end() || !IsCertifiable(report)) return;
    // Some layers take fewer samples where the time is up.
    if (cancelled_ != nullptr && *cancelled_) return;
    if (options_.seconds_per_op.has_value() &&
        report.seconds >= *options_.seconds_per_op) {
      return;
    }
    Certificate certificate{hash->second, Today(), report};
    kept_[report.op] = certificate;
    if (use_.store == nullptr || full_) return;
    CheckKept(use_.store->Write(std::move(certificate), conditions_,
                                use_.environment));
  }

  // A part of these claims was checked.
  void KeepSampled(const std::string& claims) {
    if (use_.store == nullptr || full_) return;
    CheckKept(use_.store->SetSampled(claims));
  }

  const std::map<std::string, Certificate>& kept() const { return kept_; }

 private:
  void CheckKept(const absl::Status& written) {
    if (written.ok()) return;
    full_ = true;
    if (use_.complain) {
      use_.complain(absl::Status(
          written.code(),
          absl::StrCat("certificates are not kept: ", written.message())));
    }
  }

  const CheckOptions& options_;
  const CertificateUse& use_;
  const Conditions& conditions_;
  const std::map<std::string, std::string>& hashes_;
  const std::atomic<bool>* const cancelled_;
  bool full_ = false;
  std::map<std::string, Certificate> kept_;
};

// A certificate that covers an op, and the shipped file that has it.
struct Covering {
  Certificate certificate;
  const std::pair<std::string, CertificateFile>* file = nullptr;

  // By what; of a shipped one.
  const Environment& Made() const {
    return file->second.EnvironmentOf(certificate);
  }
  OpReport Report() const {
    OpReport report = certificate.report;
    report.certified =
        Certified{file == nullptr ? "own" : "shipped", certificate.date};
    return report;
  }
};

// The certificates of this user's store.
std::map<std::string, Covering> ReadOwn(
    const CertificateUse& use, const Conditions& conditions,
    const std::map<std::string, std::string>& hashes) {
  std::map<std::string, Covering> found;
  if (use.store == nullptr) return found;
  int damaged = 0;
  absl::Status first;
  for (const auto& [op, hash] : hashes) {
    absl::StatusOr<std::optional<Certificate>> read =
        use.store->Read(op, hash, conditions, use.environment);
    if (!read.ok()) {
      if (damaged++ == 0) first = read.status();
    } else if (read->has_value()) {
      found[op].certificate = **std::move(read);
    }
  }
  if (damaged > 0 && use.complain) {
    std::string what(first.message());
    if (damaged > 1) absl::StrAppend(&what, " (and ", damaged - 1, " more)");
    use.complain(absl::Status(
        first.code(), absl::StrCat("a certificate is left out, and its rule "
                                   "checked: ",
                                   what)));
  }
  return found;
}

// The certificates of files that came with the rules.
std::map<std::string, Covering> FindShipped(
    const CertificateUse& use, const Conditions& conditions,
    const std::map<std::string, std::string>& hashes) {
  std::map<std::string, Covering> found;
  for (const auto& shipped : use.shipped) {
    if (!(shipped.second.conditions == conditions)) continue;
    for (const auto& [op, certificate] : shipped.second.certificates) {
      const auto hash = hashes.find(op);
      if (hash == hashes.end() || hash->second != certificate.rule) continue;
      found.emplace(op, Covering{certificate, &shipped});
    }
  }
  return found;
}

// All that shipped certificates claim here, and who would sample them.
std::string ClaimsOf(const std::map<std::string, Covering>& shipped,
                     const Environment& environment) {
  CertificateFile claims;
  for (const auto& [op, covering] : shipped) {
    claims.conditions = covering.file->second.conditions;
    claims.Add(covering.certificate, covering.Made());
  }
  return absl::StrCat(claims.ToJson(), environment.ToString());
}

std::string MismatchLines(const std::vector<CertificateMismatch>& mismatches) {
  std::string text;
  for (const CertificateMismatch& mismatch : mismatches) {
    absl::StrAppend(&text, mismatch.ToString(), "\n");
  }
  return text;
}

}  // namespace

std::string CertificateMismatch::ToString() const {
  return absl::StrCat("NOT AS CERTIFIED by ", file, ": ", op, " ", what);
}

std::string CertifiedReport::ToString() const {
  std::string text = MismatchLines(mismatches);
  if (!mismatches.empty()) {
    absl::StrAppend(&text,
                    "no certificate that came with the rules was taken: what "
                    "they cover was checked\n");
  }
  const size_t all = report.ops.size();
  if (own > 0) {
    absl::StrAppend(&text, "not checked now: ", own, " of ", all,
                    " rules, unchanged since they were checked here; --all "
                    "checks them\n");
  }
  if (shipped > 0) {
    absl::StrAppend(&text, "not checked now: ", shipped, " of ", all,
                    " rules, as certified by ", absl::StrJoin(files, " and "));
    if (drawn == 0) {
      absl::StrAppend(&text, ", of which a part was checked here before");
    } else {
      absl::StrAppend(&text, "; ", sampled.size(),
                      " that it certifies, drawn by seed ", sample_seed,
                      ", were checked and are as certified");
      if (sampled.size() < drawn) {
        absl::StrAppend(&text, " (of ", drawn, ": the run was stopped)");
      }
    }
    absl::StrAppend(&text, "; --all checks the rest\n");
    if (other_environment) {
      absl::StrAppend(&text, "  ", kOtherEnvironment, "\n");
    }
  }
  return text;
}

std::string Verification::ToString() const {
  std::string text = MismatchLines(mismatches);
  for (const std::string& op : changed) {
    absl::StrAppend(&text, "NOT COVERED: ", op,
                    " is another rule now, or uses another, or is gone\n");
  }
  absl::StrAppend(&text, "verified ", verified.size(), " of ", certificates,
                  " certificates, drawn by seed ", seed, ": ",
                  verified.size() - mismatches.size(), " as certified, ",
                  mismatches.size(), " not; ", changed.size(),
                  " of other rules, ", unchanged.size() - verified.size(),
                  " not checked again\n");
  if (other_environment > 0) {
    absl::StrAppend(&text, other_environment, " of the verified were ",
                    kOtherEnvironment, "\n");
  }
  return text;
}

absl::StatusOr<CertifiedReport> CheckCertified(
    std::shared_ptr<const RuleSet> rules, const RuleHashes& hashes,
    const CheckOptions& options, const CertificateUse& use) {
  CLEAVE_CHECK(options.known == nullptr) << "known twice";
  if (rules == nullptr) return CheckRules(rules, options).status();
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<CheckedOp> ops,
                          OpsToCheck(*rules, options));
  std::map<std::string, std::string> hash_of;
  for (const CheckedOp& op : ops) {
    // Only a part of the layers is checked of an op with examples alone.
    const std::string hash = op.examples_alone ? "" : hashes.Of(op.op);
    if (!hash.empty()) hash_of[op.op] = hash;
  }
  CertifiedReport result;
  const Conditions conditions = Conditions::Of(options);
  result.certificates.conditions = conditions;
  std::map<std::string, Covering> own;
  std::map<std::string, Covering> shipped;
  // Coverage and profiles are of calls that are made.
  if (!use.all && !options.coverage && !options.error_profiles) {
    own = ReadOwn(use, conditions, hash_of);
    shipped = FindShipped(use, conditions, hash_of);
  }
  result.sample_seed = use.sample_seed;
  const std::string claims = ClaimsOf(shipped, use.environment);
  const bool sampled_before =
      use.store != nullptr && use.store->WereSampled(claims);
  for (const auto& [op, covering] : own) shipped.erase(op);
  std::vector<std::string> drawn;
  for (const bool same_engine : {true, false}) {
    std::vector<std::string> names;
    for (const auto& [op, covering] : shipped) {
      if (same_engine == (covering.Made().engine == use.environment.engine)) {
        names.push_back(op);
      }
    }
    if (sampled_before) names.clear();
    for (std::string& op :
         Draw(names,
              same_engine ? use.sample_part : use.sample_part_of_other_engine,
              use.sample_least, use.sample_seed)) {
      drawn.push_back(std::move(op));
    }
  }
  for (const auto& [op, covering] : shipped) {
    result.files.insert(covering.file->first);
    result.other_environment =
        result.other_environment || !(covering.Made() == use.environment);
  }
  result.drawn = drawn.size();
  std::map<std::string, Covering> sample;
  for (const std::string& op : drawn) sample.insert(shipped.extract(op));
  Keeper keeper(options, use, conditions, hash_of);
  CheckOptions first = options;
  first.progress = [&](const OpReport& op, int done, int total) {
    keeper.Keep(op);
    if (options.progress) options.progress(op, done, total);
  };
  CheckOptions second = first;
  first.known = [&](const std::string& op) -> std::optional<OpReport> {
    for (const auto* covered : {&own, &shipped}) {
      const auto it = covered->find(op);
      if (it != covered->end()) return it->second.Report();
    }
    return std::nullopt;
  };
  CLEAVE_ASSIGN_OR_RETURN(result.report, CheckRules(rules, first));
  for (const auto& [op, covering] : sample) {
    const OpReport* const now = result.report.Find(op);
    if (now == nullptr) continue;  // the run was stopped
    result.sampled.push_back(op);
    const bool exactly = covering.file->second.EnvironmentOf(
                             covering.certificate) == use.environment;
    const std::optional<std::string> what =
        Difference(covering.certificate.report, *now, exactly);
    if (what) result.mismatches.push_back({op, covering.file->first, *what});
  }
  if (result.mismatches.empty() && result.drawn > 0 &&
      result.sampled.size() == result.drawn) {
    keeper.KeepSampled(claims);
  }
  if (!result.mismatches.empty()) {
    const CheckReport done = std::move(result.report);
    second.known = [&](const std::string& op) -> std::optional<OpReport> {
      const OpReport* const report = done.Find(op);
      if (report == nullptr || shipped.count(op) != 0) return std::nullopt;
      return *report;
    };
    CLEAVE_ASSIGN_OR_RETURN(result.report, CheckRules(rules, second));
    shipped.clear();
  }
  // A file has those of ops: the parts of sweeps are the user's own.
  for (const auto& [op, certificate] : keeper.kept()) {
    if (!WholeSweep(op).empty()) continue;
    result.certificates.Add(certificate, use.environment);
  }
  for (const auto& [op, covering] : own) {
    if (!WholeSweep(op).empty()) continue;
    result.certificates.Add(covering.certificate, use.environment);
  }
  for (const auto& [op, covering] : shipped) {
    result.certificates.Add(covering.certificate, covering.Made());
  }
  result.own = static_cast<int>(own.size());
  result.shipped = static_cast<int>(shipped.size());
  return result;
}

absl::StatusOr<Verification> VerifyCertificates(
    std::shared_ptr<const RuleSet> rules, const RuleHashes& hashes,
    const std::string& name, const CertificateFile& file,
    const VerifyOptions& options) {
  CheckOptions check = options.check;
  file.conditions.Set(check);
  if (!file.conditions.kernels) check.kernels = nullptr;
  if (file.conditions.kernels && check.kernels == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " certifies L6: this program has no code generator"));
  }
  const Conditions here = Conditions::Of(check);
  if (!(here == file.conditions)) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " holds for ", file.conditions.ToString(), ", and not for ",
        here.ToString(), ": give the same limits"));
  }
  Verification result;
  result.seed = options.seed;
  result.certificates = file.certificates.size();
  for (const auto& [op, certificate] : file.certificates) {
    (hashes.Of(op) == certificate.rule ? result.unchanged : result.changed)
        .push_back(op);
  }
  const std::vector<std::string> drawn =
      Draw(result.unchanged, options.part, kLeastVerified, options.seed);
  const std::set<std::string> wanted(drawn.begin(), drawn.end());
  check.known = [&](const std::string& op) {
    return wanted.count(op) != 0 ? std::nullopt
                                 : std::make_optional<OpReport>();
  };
  CLEAVE_ASSIGN_OR_RETURN(const CheckReport report, CheckRules(rules, check));
  for (const std::string& op : drawn) {
    const OpReport* const now = report.Find(op);
    if (now == nullptr) continue;  // the run was stopped
    result.verified.push_back(op);
    const Certificate& certificate = file.certificates.at(op);
    const bool exactly = file.EnvironmentOf(certificate) == options.environment;
    if (!exactly) ++result.other_environment;
    const std::optional<std::string> what =
        Difference(certificate.report, *now, exactly);
    if (what) result.mismatches.push_back({op, name, *what});
  }
  return result;
}

std::vector<std::string> NotCertified(const RuleHashes& hashes,
                                      const std::vector<CheckedOp>& ops,
                                      const CertificateFile& file) {
  std::vector<std::string> names;
  for (const CheckedOp& op : ops) {
    const auto it = file.certificates.find(op.op);
    if (it == file.certificates.end() || it->second.rule != hashes.Of(op.op)) {
      names.push_back(op.op);
    }
  }
  return names;
}

}  // namespace cleave
