#include "testing/fuzz/differential/isolated.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/rules/rule_files.h"
#include "engine/runtime/kernel.h"
#include "ops/check.h"
#include "transforms/derived_rules.h"

namespace cleave::fuzz {
namespace {

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

// All that comes before the end or the time; false where time was up.
bool ReadUntil(int file, std::chrono::steady_clock::time_point end,
               std::string& bytes) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd ready = {file, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    char buffer[4096];
    const ssize_t n = read(file, buffer, sizeof buffer);
    if (n <= 0) return true;
    bytes.append(buffer, n);
  }
}

}  // namespace

Workbench::Workbench()
    : cache_(std::make_unique<KernelCache>(KernelCacheOptions())) {
  const auto sources = ReadRuleFiles(
      {"rules/core", "rules/derivative", "rules/numerics", "rules/simplify"});
  CLEAVE_CHECK(sources.ok()) << sources.status();
  LoadResult loaded =
      LoadRules(*sources, std::make_shared<Context>(), WithTransforms());
  CLEAVE_CHECK(loaded.rules != nullptr);
  rules_ = loaded.rules;
  GraphBuilder builder(rules_->context());
  const Value x = builder.Input("x", {DType::kF32, {Dim::Variable("n")}});
  const Value y = builder.Apply(Primitive::kNeg, {x});
  const Graph graph = std::move(builder).Build({{"y", y}});
  for (const TargetLevel level : HostLevels()) {
    CompileOptions options;
    options.cache = cache_.get();
    options.level = level;
    CLEAVE_CHECK(Compile(graph, *rules_, options).ok());
  }
}

Outcome Workbench::CheckIsolated(const FuzzCase& one,
                                 const IsolatedLimits& limits) {
  int ends[2];
  CLEAVE_CHECK(pipe(ends) == 0) << std::strerror(errno);
  const pid_t child = fork();
  CLEAVE_CHECK(child >= 0) << std::strerror(errno);
  if (child == 0) {
    close(ends[0]);
    const rlimit memory = {static_cast<rlim_t>(limits.bytes),
                           static_cast<rlim_t>(limits.bytes)};
    setrlimit(RLIMIT_AS, &memory);
    const rlimit core = {0, 0};
    setrlimit(RLIMIT_CORE, &core);
    WriteAll(ends[1], Write(CheckCase(one, rules_, *cache_)));
    _exit(0);
  }
  close(ends[1]);
  std::string bytes;
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(limits.seconds);
  const bool ended = ReadUntil(ends[0], end, bytes);
  close(ends[0]);
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome;
  if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
      Read(bytes, outcome)) {
    return outcome;
  }
  outcome = {};
  outcome.kind = OutcomeKind::kDiffers;
  if (!ended) {
    outcome.what = "it does not end";
    outcome.text = absl::StrCat("within ", limits.seconds, " s");
  } else if (WIFSIGNALED(status)) {
    outcome.what = absl::StrCat("signal ", WTERMSIG(status));
    outcome.text = strsignal(WTERMSIG(status));
  } else {
    outcome.what = absl::StrCat("exit code ", WEXITSTATUS(status));
  }
  return outcome;
}

}  // namespace cleave::fuzz
