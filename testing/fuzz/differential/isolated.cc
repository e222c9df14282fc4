#include "testing/fuzz/differential/isolated.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/rules/rule_files.h"
#include "engine/runtime/kernel.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "testing/fuzz/differential/interrupt.h"
#include "transforms/derived_rules.h"

namespace cleave::fuzz {
namespace {

// A process that waits for something has this many times the processor time:
// machines are shared.
constexpr int kWaiting = 20;

// One line of numbers and `what`, then the text.
std::string Write(const Outcome& outcome) {
  return absl::StrCat(static_cast<int>(outcome.kind), "\t", outcome.comparisons,
                      "\t", outcome.undecided, "\t", outcome.what, "\n",
                      outcome.text);
}

bool Read(const std::string& bytes, Outcome& outcome) {
  const size_t end = bytes.find('\n');
  if (end == std::string::npos) return false;
  const std::vector<std::string> fields =
      absl::StrSplit(bytes.substr(0, end), '\t');
  int kind = 0;
  if (fields.size() != 4 || !absl::SimpleAtoi(fields[0], &kind) ||
      !absl::SimpleAtoi(fields[1], &outcome.comparisons) ||
      !absl::SimpleAtoi(fields[2], &outcome.undecided)) {
    return false;
  }
  outcome.kind = static_cast<OutcomeKind>(kind);
  outcome.what = fields[3];
  outcome.text = bytes.substr(end + 1);
  return true;
}

void WriteAll(int file, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
    if (n <= 0) return;
    done += n;
  }
}

// All that comes before the end or the time; false where time was up, or the
// process was interrupted.
bool ReadUntil(int file, std::chrono::steady_clock::time_point end,
               std::string& bytes) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0 || Interrupted()) return false;
    pollfd ready = {file, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    char buffer[4096];
    const ssize_t n = read(file, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    bytes.append(buffer, n);
  }
}

bool RanOutOfTime(int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;
}

}  // namespace

Workbench::Workbench(std::shared_ptr<const RuleSet> rules,
                     std::unique_ptr<KernelCache> cache)
    : rules_(std::move(rules)), cache_(std::move(cache)) {}

absl::StatusOr<Workbench> Workbench::Create(const std::string& rules) {
  std::vector<std::string> folders;
  for (const char* folder : {"core", "derivative", "numerics", "simplify"}) {
    folders.push_back(absl::StrCat(rules, "/", folder));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<NamedSource> sources,
                          ReadRuleFiles(folders));
  const LoadResult loaded =
      LoadRules(sources, std::make_shared<Context>(), WithTransforms());
  if (loaded.rules == nullptr) {
    return absl::InvalidArgumentError(absl::StrJoin(loaded.diagnostics, "\n"));
  }
  auto cache = std::make_unique<KernelCache>(KernelCacheOptions());
  GraphBuilder builder(loaded.rules->context());
  const Value x = builder.Input("x", {DType::kF32, {Dim::Variable("n")}});
  const Value y = builder.Apply(Primitive::kNeg, {x});
  const Graph graph = *std::move(builder).Build({{"y", y}});
  for (const TargetLevel level : HostLevels()) {
    CompileOptions options;
    options.cache = cache.get();
    options.level = level;
    CLEAVE_RETURN_IF_ERROR(Compile(graph, *loaded.rules, options).status());
  }
  return Workbench(loaded.rules, std::move(cache));
}

Outcome Workbench::CheckIsolated(const FuzzCase& one,
                                 const IsolatedLimits& limits) {
  int ends[2];
  CLEAVE_CHECK(pipe(ends) == 0) << std::strerror(errno);
  const pid_t child = fork();
  CLEAVE_CHECK(child >= 0) << std::strerror(errno);
  if (child == 0) {
    close(ends[0]);
    // It ends with its parent, which a terminal interrupts in its place.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    // The sanitizers map more addresses beforehand than a limit allows.
    const rlimit memory = {static_cast<rlim_t>(limits.bytes),
                           static_cast<rlim_t>(limits.bytes)};
    setrlimit(RLIMIT_AS, &memory);
#endif
    const rlimit core = {0, 0};
    setrlimit(RLIMIT_CORE, &core);
    // The soft limit sends SIGXCPU; the hard one would kill without a reason.
    const rlimit time = {static_cast<rlim_t>(limits.seconds),
                         static_cast<rlim_t>(limits.seconds + 10)};
    setrlimit(RLIMIT_CPU, &time);
    Limits budget;
    budget.tensor_bytes = limits.tensor_bytes;
    const BudgetScope scope(budget);
    WriteAll(ends[1], Write(CheckCase(one, rules_, *cache_)));
    _exit(0);
  }
  close(ends[1]);
  std::string bytes;
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(kWaiting * limits.seconds);
  const bool ended = ReadUntil(ends[0], end, bytes);
  close(ends[0]);
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  Outcome outcome;
  if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
      Read(bytes, outcome)) {
    return outcome;
  }
  outcome = {};
  if (Interrupted()) {
    outcome.kind = OutcomeKind::kInterrupted;
    return outcome;
  }
  outcome.kind = OutcomeKind::kDiffers;
  if (!ended || RanOutOfTime(status)) {
    outcome.what = "it does not end";
    outcome.text =
        absl::StrCat("within ", limits.seconds, " s of processor time, and ",
                     kWaiting * limits.seconds, " s in all");
  } else if (WIFSIGNALED(status)) {
    outcome.what = absl::StrCat("signal ", WTERMSIG(status));
    outcome.text = strsignal(WTERMSIG(status));
  } else {
    outcome.what = absl::StrCat("exit code ", WEXITSTATUS(status));
  }
  return outcome;
}

}  // namespace cleave::fuzz
