// verify-certificate: checks a part of what a file certifies again.

#include "tools/command/verify_command.h"

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "testing/certificate/certificate.h"
#include "testing/certificate/certified_check.h"
#include "testing/certificate/rule_hashes.h"
#include "tools/command/interrupt.h"
#include "tools/command/load.h"

namespace cleave {
namespace {

struct VerifyFlags {
  std::string file;
  std::vector<std::string> paths;
  double part = 0.1;
  uint64_t seed = 0;
};

int VerifyFile(const VerifyFlags& flags, const KernelLayer& kernels) {
  const absl::StatusOr<std::string> text = ReadFile(flags.file);
  if (!text.ok()) return Complain(text.status());
  const absl::StatusOr<CertificateFile> file =
      ParseCertificates(*text, flags.file);
  if (!file.ok()) return Complain(file.status());
  std::vector<std::string> paths = flags.paths;
  if (paths.empty()) {
    const std::string folder =
        std::filesystem::path(flags.file).parent_path().string();
    paths.push_back(folder.empty() ? "." : folder);
  }
  const auto loaded = LoadRulePaths(paths);
  if (!loaded) return kExitUsage;
  const absl::StatusOr<RuleHashes> hashes = RuleHashes::Make(loaded->texts);
  if (!hashes.ok()) return Complain(hashes.status());
  VerifyOptions options;
  options.part = flags.part;
  options.seed = flags.seed != 0 ? flags.seed : std::random_device()();
  if (file->conditions.kernels && kernels.check != nullptr) {
    options.check.kernels = kernels.check;
    options.environment.kernels = kernels.environment();
  }
  options.check.stop = [] { return Interrupted().load(); };
  options.check.progress = [](const OpReport& op, int done, int total) {
    ShowProgress(absl::StrCat("[", done, "/", total, "] ", op.op));
  };
  const absl::StatusOr<Verification> verified =
      VerifyCertificates(loaded->rules, *hashes, flags.file, *file, options);
  InterruptsEnd();
  ShowProgress("");
  if (!verified.ok()) return Complain(verified.status());
  std::cout << verified->ToString();
  if (Interrupted()) Complain("interrupted: not every one was checked");
  return verified->Holds() ? kExitOk : kExitVerdict;
}

}  // namespace

void AddVerifyCertificate(CommandLine& line, const KernelLayer& kernels) {
  Verb verb =
      line.AddVerb("verify-certificate",
                   "Check a random part of what a file of certificates says.");
  auto flags = std::make_shared<VerifyFlags>();
  verb.Add("FILE", flags->file, "Certificates, of `check --certify`")
      .Required();
  verb.Add("PATH", flags->paths,
           "Rule files, or folders of them: what is certified (the folder of "
           "FILE)");
  verb.Add("--part", flags->part, "This part of them, and 3 at least")
      .Between(0, 1)
      .ShowDefault();
  verb.Add("--seed", flags->seed, "Draws them (another one each time)")
      .Positive();
  verb.Runs([flags, kernels] { return VerifyFile(*flags, kernels); });
}

}  // namespace cleave
