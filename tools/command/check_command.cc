// check: does every rule mean what its op means? A verdict per op and layer.

#include "tools/command/check_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/files/file.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "testing/certificate/certificate.h"
#include "testing/certificate/certificate_store.h"
#include "testing/certificate/certified_check.h"
#include "testing/certificate/environment.h"
#include "testing/certificate/rule_hashes.h"
#include "testing/check/check.h"
#include "testing/check/compare/verdict.h"
#include "testing/check/layers/check_sweep.h"
#include "testing/check/rule_coverage.h"
#include "testing/report/html_report.h"
#include "testing/run_shard.h"
#include "tools/command/allow_flag.h"
#include "tools/command/certificate_files.h"
#include "tools/command/command_line.h"
#include "tools/command/interrupt.h"
#include "tools/command/load.h"
#include "tools/command/oracle_flags.h"
#include "tools/command/shard_flag.h"

namespace cleave {
namespace {

constexpr char kQuickTier[] = "quick";
constexpr char kFullTier[] = "full";

struct CheckFlags {
  std::vector<std::string> paths;
  std::vector<std::string> uses;
  std::string op = "*";
  std::string tier = kQuickTier;
  std::vector<std::string> layers;
  std::vector<std::string> dtypes;
  std::vector<std::string> sizes;
  uint64_t seed = 1;
  int jobs = 0;
  double seconds = 0;
  std::vector<std::string> allowed;
  bool kernels = false;
  bool coverage = false;
  std::string report;
  std::string json;
  std::string certificates = DefaultCertificateFolder();
  std::string certify;
  bool all = false;
  uint64_t sample_seed = 0;
  std::string shard;
  OracleFlags oracle;
};

// The ops that are done, for a report of those alone.
struct DoneSoFar {
  std::mutex mutex;
  CheckReport report;
};

// Why the report is empty.
std::string NothingToCheck(const CheckFlags& flags, const LoadedRules& loaded) {
  CheckOptions all;
  all.sources = loaded.sources;
  std::vector<std::string> names;
  const absl::StatusOr<std::vector<CheckedOp>> ops =
      OpsToCheck(*loaded.rules, all);
  CLEAVE_CHECK(ops.ok()) << ops.status().ToString();
  for (const CheckedOp& op : *ops) names.push_back(op.op);
  if (names.empty()) {
    return "nothing to check: these files declare no op, no override, no "
           "example, no derivative and no rewrite (`cleave conformance` "
           "compares the ops of hosts)";
  }
  return absl::StrCat("nothing to check: no op of these files is named like `",
                      flags.op, "`", DidYouMean(flags.op, names));
}

// Whether any shard has an op to check: of many shards some have none.
bool AnyToCheck(const RuleSet& rules, CheckOptions options) {
  options.shard = 1;
  options.shards = 1;
  const absl::StatusOr<std::vector<CheckedOp>> ops = OpsToCheck(rules, options);
  return ops.ok() && !ops->empty();
}

std::vector<std::string> LayerNames() {
  std::vector<std::string> names;
  for (int i = 0; i < kNumLayers; ++i) {
    names.emplace_back(LayerName(static_cast<Layer>(i)));
  }
  return names;
}

bool WantsKernels(const CheckFlags& flags) {
  return flags.kernels || std::count(flags.layers.begin(), flags.layers.end(),
                                     LayerName(Layer::kKernels)) != 0;
}

// `n=4096`; nullopt where it is none.
std::optional<std::pair<std::string, int64_t>> ParseSize(
    const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '=');
  int64_t size = 0;
  if (parts.size() != 2 || parts[0].empty() ||
      !absl::SimpleAtoi(parts[1], &size) || size < 0) {
    return std::nullopt;
  }
  return std::make_pair(parts[0], size);
}

CheckOptions ToOptions(const CheckFlags& flags, const LoadedRules& loaded,
                       KernelCheck kernels, DoneSoFar& done_so_far) {
  CheckOptions options;
  options.ops = flags.op;
  options.tier = flags.tier == kFullTier ? Tier::kFull : Tier::kQuick;
  options.sources = loaded.sources;
  options.seed = flags.seed;
  std::tie(options.shard, options.shards) = ParsedShard(flags.shard);
  options.threads = flags.jobs;
  if (flags.seconds > 0) options.seconds_per_op = flags.seconds;
  for (const std::string& name : flags.layers) {
    options.layers.insert(*FindLayer(name));
  }
  if (WantsKernels(flags)) options.kernels = kernels;
  options.coverage = flags.coverage || !flags.report.empty();
  options.error_profiles = !flags.report.empty();
  for (const std::string& name : flags.dtypes) {
    options.dtypes.insert(*ParseDType(name));
  }
  for (const std::string& text : flags.sizes) {
    const auto [name, size] = *ParseSize(text);
    options.sizes[name] = size;
  }
  options.stop = [] { return Interrupted().load(); };
  // The ops that are being checked, in the order in which they began.
  auto running = std::make_shared<std::vector<std::string>>();
  options.started = [running](const std::string& op) {
    running->push_back(op);
  };
  options.progress = [running, &done_so_far](const OpReport& op, int done,
                                             int total) {
    {
      const std::lock_guard<std::mutex> lock(done_so_far.mutex);
      done_so_far.report.ops.push_back(op);
    }
    running->erase(std::find(running->begin(), running->end(), op.op));
    std::string line = absl::StrCat(
        "[", done, "/", total, "] ", op.op,
        op.Has(VerdictKind::kDisagrees) ? " disagrees" : " checked");
    if (isatty(STDERR_FILENO) == 0) {
      // The table says it all where there is one op.
      if (total > 1) std::cerr << line << "\n";
      return;
    }
    if (!running->empty()) {
      absl::StrAppend(&line, ", checking ", absl::StrJoin(*running, ", "));
    }
    ShowProgress(line);
  };
  return options;
}

// The part of a run that a report is of; nullopt where it is all of it.
std::optional<RunShard> ShardOf(const CheckFlags& flags,
                                const CheckOptions& options,
                                const LoadedRules& loaded) {
  if (flags.shard.empty()) return std::nullopt;
  RunShard shard;
  std::tie(shard.number, shard.shards) = ParsedShard(flags.shard);
  const Conditions conditions = Conditions::Of(options);
  const auto pairs = [](const std::map<std::string, int64_t>& numbers) {
    return absl::StrJoin(numbers, " ", absl::PairFormatter("="));
  };
  shard.run = {
      {"verb", "check"},
      {"engine", ThisEnvironment().engine},
      {"rules", HashOfTexts(loaded.texts)},
      {"checked", absl::StrJoin(loaded.sources, " ")},
      {"op", flags.op},
      {"tier", flags.tier},
      {"seed", absl::StrCat(conditions.seed)},
      {"layers", absl::StrJoin(conditions.layers, " ")},
      {"kernels", conditions.kernels ? "true" : "false"},
      {"dtypes", absl::StrJoin(conditions.dtypes, " ")},
      {"sizes", pairs(conditions.sizes)},
      {"limits", pairs(conditions.limits)},
      {"seconds", absl::StrCat(flags.seconds)},
      {"coverage", options.coverage ? "true" : "false"},
  };
  return shard;
}

// The exit status. `notes` say what was not checked.
int Print(const CheckReport& report, const std::string& notes,
          const CheckFlags& flags) {
  std::cout << report.ToString() << notes;
  if (flags.coverage && !report.coverage.empty()) {
    std::cout << "\n" << CoverageText(report.coverage);
  }
  if (report.shard.has_value()) {
    std::cout << "shard " << flags.shard
              << " of the rules; `cleave merge` makes one report of all\n";
  }
  if (!flags.json.empty()) {
    const absl::Status written =
        WriteFileAtomically(flags.json, report.ToJson());
    if (!written.ok()) return Complain(written);
  }
  if (Interrupted()) Complain("interrupted: not every op was checked");
  return report.ExitStatus(AllowedKinds(flags.allowed)) != 0 ? kExitVerdict
                                                             : kExitOk;
}

// The user's certificates; null, after a line that says why, where the folder
// cannot be used: the check goes on without.
std::unique_ptr<CertificateStore> OpenStore(const CheckFlags& flags) {
  if (flags.certificates.empty()) return nullptr;
  absl::StatusOr<std::unique_ptr<CertificateStore>> store =
      CertificateStore::Open(flags.certificates);
  if (store.ok()) return *std::move(store);
  Complain(
      absl::StrCat("certificates are not kept: ", store.status().message()));
  return nullptr;
}

// Writes the certificates of `--certify`, with those that the file has of rules
// that were not among these, and that are still as they are certified.
int WriteCertificates(const CheckFlags& flags, const CertifiedReport& checked,
                      const RuleHashes& hashes,
                      const std::optional<CertificateFile>& before) {
  if (Interrupted()) {
    return Complain(absl::StrCat(flags.certify, " stays as it is"));
  }
  CertificateFile file = checked.certificates;
  if (before.has_value() && before->conditions == file.conditions) {
    for (const auto& [op, certificate] : before->certificates) {
      if (checked.report.Find(op) == nullptr &&
          hashes.Of(op) == certificate.rule) {
        file.Add(certificate, before->EnvironmentOf(certificate));
      }
    }
  }
  const absl::Status written =
      WriteFileAtomically(flags.certify, file.ToJson());
  if (!written.ok()) return Complain(written);
  std::cout << flags.certify << ": " << file.certificates.size()
            << " certificates\n";
  for (const OpReport& op : checked.report.ops) {
    if (file.certificates.count(op.op) == 0 && WholeSweep(op.op).empty()) {
      std::cout << "not certified: " << op.op << "\n";
    }
  }
  return kExitOk;
}

// Libraries change, so that no certificate covers what they compute.
int CheckOracles(const CheckFlags& flags, const LoadedRules& loaded,
                 CheckOptions options) {
  const absl::Status applied = ApplyOracles(flags.oracle, options);
  if (!applied.ok()) return Complain(applied);
  CheckReport report;
  report.seed = options.seed;
  // An op without an oracle is no part of the report.
  for (const std::string& op : options.host_kernels.Ops()) {
    options.ops = op;
    absl::StatusOr<CheckReport> one = CheckRules(loaded.rules, options);
    if (!one.ok()) {
      InterruptsEnd();
      return Complain(one.status());
    }
    std::move(one->ops.begin(), one->ops.end(), std::back_inserter(report.ops));
  }
  InterruptsEnd();
  ShowProgress("");
  if (report.ops.empty() && !Interrupted()) {
    return Complain(NothingToCheck(flags, loaded));
  }
  return Print(report, "", flags);
}

int Check(const CheckFlags& flags, const KernelLayer& kernels) {
  if (!flags.shard.empty() && !flags.oracle.oracles.empty()) {
    return Complain("--shard divides rules, and an oracle is for one alone");
  }
  const auto loaded = LoadRulePaths(flags.paths, flags.uses);
  if (!loaded) return kExitUsage;
  if (WantsKernels(flags) && kernels.check == nullptr) {
    return Complain("L6 is not supported: this program has no code generator");
  }
  if (!flags.report.empty()) {
    const absl::Status made = MakeFolder(flags.report);
    if (!made.ok()) return Complain(made);
  }
  const absl::StatusOr<RuleHashes> hashes = RuleHashes::Make(loaded->texts);
  if (!hashes.ok()) return Complain(hashes.status());
  std::optional<CertificateFile> before;
  if (!flags.certify.empty()) {
    absl::StatusOr<std::optional<CertificateFile>> file =
        ReadCertificates(flags.certify);
    if (!file.ok()) return Complain(file.status());
    before = *std::move(file);
  }
  const std::unique_ptr<CertificateStore> store = OpenStore(flags);
  CertificateUse use;
  use.store = store.get();
  use.all = flags.all;
  if (!flags.all) use.shipped = ReadShippedCertificates(flags.paths);
  use.sample_seed =
      flags.sample_seed != 0 ? flags.sample_seed : std::random_device()();
  if (WantsKernels(flags)) use.environment.kernels = kernels.environment();
  use.complain = [](const absl::Status& status) { Complain(status); };
  DoneSoFar done_so_far;
  done_so_far.report.seed = flags.seed;
  const CheckOptions options =
      ToOptions(flags, *loaded, kernels.check, done_so_far);
  std::optional<RunShard> shard = ShardOf(flags, options, *loaded);
  SetLateReport([&] {
    const std::lock_guard<std::mutex> lock(done_so_far.mutex);
    done_so_far.report.shard = shard;
    if (shard) done_so_far.report.shard->complete = false;
    Print(done_so_far.report, "", flags);
  });
  if (!flags.oracle.oracles.empty() ||
      options.layers.count(Layer::kHostKernel) != 0) {
    return CheckOracles(flags, *loaded, options);
  }
  absl::StatusOr<CertifiedReport> checked =
      CheckCertified(loaded->rules, *hashes, options, use);
  InterruptsEnd();
  ShowProgress("");
  if (!checked.ok()) return Complain(checked.status());
  CheckReport& report = checked->report;
  if (shard) {
    shard->complete = !Interrupted();
    for (const CertificateMismatch& mismatch : checked->mismatches) {
      shard->failures.push_back(mismatch.ToString());
    }
    report.shard = shard;
  }
  if (report.ops.empty() && !Interrupted() &&
      !AnyToCheck(*loaded->rules, options)) {
    return Complain(NothingToCheck(flags, *loaded));
  }
  const int status = Print(report, checked->ToString(), flags);
  if (!flags.report.empty() && !Interrupted()) {
    const absl::Status written =
        WriteFileAtomically(absl::StrCat(flags.report, "/index.html"),
                            HtmlReport(report, *loaded->rules));
    if (!written.ok()) return Complain(written);
  }
  if (!flags.certify.empty()) {
    const int written = WriteCertificates(flags, *checked, *hashes, before);
    if (written != kExitOk) return written;
  }
  return checked->mismatches.empty() ? status : kExitVerdict;
}

}  // namespace

void AddCheck(CommandLine& line, const KernelLayer& kernels) {
  Verb verb = line.AddVerb(
      "check", "Check ops against their specs, a verdict per op and layer.");
  auto flags = std::make_shared<CheckFlags>();
  verb.Add("PATH", flags->paths,
           "Rule files, or folders of them, whose ops to check")
      .Required();
  verb.Add("--uses", flags->uses,
           "Rule files, or folders of them, that those use: loaded, and not "
           "checked; may be repeated")
      .OneEach();
  verb.Add("--op", flags->op,
           "Only ops that this glob matches; `jvp exp` for the "
           "derivative of a primitive, `rewrite neg_neg` for that");
  verb.Add("--tier", flags->tier,
           "`full`: also every f32 of pointwise ops of one operand, and every "
           "pair of f16 and of bf16 of those of two, which takes minutes to "
           "hours for each op")
      .OneOf({kQuickTier, kFullTier})
      .ShowDefault();
  verb.Add("--layers", flags->layers, "Only these layers")
      .CommaSeparated()
      .OneOf(LayerNames());
  verb.AddFlag("--kernels", flags->kernels,
               "L6 too: compile each op, and compare its kernels with the "
               "interpreter");
  AddAllowFlag(verb, flags->allowed);
  verb.Add("--dtype", flags->dtypes, "Only these dtypes")
      .CommaSeparated()
      .Check([](const std::string& name) {
        return ParseDType(name).ok() ? std::string()
                                     : "no dtype is named " + name;
      });
  verb.Add("--size", flags->sizes,
           "n=4096: the size `n` of the signatures is that in all samples; may "
           "be repeated")
      .Check([](const std::string& text) {
        return ParseSize(text) ? std::string()
                               : text + " is no size as in n=4096";
      });
  verb.AddFlag("--coverage", flags->coverage,
               "Which lines and branches of the rules the checked calls reach, "
               "per file, and each one that none of them reaches");
  verb.Add("--report", flags->report,
           "Write a page to read to this folder (index.html): verdicts, errors "
           "along the line of inputs, coverage, counterexamples, rules and "
           "what is derived from them");
  verb.Add("--seed", flags->seed, "Draws other samples (1)");
  verb.Add("--jobs", flags->jobs,
           "Ops that are checked at once (one per core; with kernels one)")
      .Positive();
  AddShardFlag(verb, flags->shard, "rules");
  verb.Add("--seconds", flags->seconds,
           "What takes longer for one op is inconclusive (no limit: the "
           "samples are counted)")
      .Check([](const std::string& text) {
        double seconds = 0;
        return absl::SimpleAtod(text, &seconds) && seconds > 0
                   ? std::string()
                   : text + " is no number of seconds above 0";
      });
  verb.Add(
      "--json", flags->json,
      "Write the report to this file: {\"seed\", \"ops\": {OP: {\"place\", "
      "\"seconds\", \"loose_claim\", \"certified\": {\"by\", \"date\"}, "
      "\"layers\": {LAYER: {\"verdict\", "
      "\"samples\", \"strength\", \"worst_ulp\", \"worst_part_of_bound\", "
      "\"worst_at\", \"why\", \"notes\", \"counterexample\"}}}}, "
      "\"totals\", \"coverage\": [{\"item\", \"place\", \"lines\", "
      "\"covered_lines\", \"branches\", \"covered_branches\", "
      "\"uncovered\": [{\"place\", \"what\", \"text\", \"marked\", "
      "\"kind\", \"index\"}]}], \"shard\"}; what does not apply is absent");
  verb.AddFlag("--all", flags->all,
               "Check what certificates cover, too, and certify it anew; so do "
               "--coverage and --report, for which each call is made")
      .Group("Certificates");
  AddOracleFlags(verb, flags->oracle);
  verb.Add("--certificates", flags->certificates,
           "The folder with certificates of checks of before: what they cover "
           "is not checked again; empty for none")
      .ShowDefault()
      .Group("Certificates");
  verb.Add("--certify", flags->certify,
           "Write the certificates on which the report rests to this file")
      .Group("Certificates");
  verb.Add("--sample-seed", flags->sample_seed,
           "Draws the rules that are checked of those that the folder's own "
           "certificates.json covers (another one each time)")
      .Positive()
      .Group("Certificates");
  verb.Runs([flags, kernels] { return Check(*flags, kernels); });
}

}  // namespace cleave
