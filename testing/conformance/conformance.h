// Conformance: the loaded rules against case suites.
//
// Each section of each case counts once, each element of a list section once.
// `unsupported` is only an op without a rule, or a transform that is impossible
// for it; anything else that does not pass has failed.

#ifndef CLEAVE_TESTING_CONFORMANCE_CONFORMANCE_H_
#define CLEAVE_TESTING_CONFORMANCE_CONFORMANCE_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/rules/rule_set.h"
#include "ops/dtype.h"
#include "testing/conformance/case_suite.h"
#include "testing/conformance/compute_section.h"

namespace cleave {

struct ConformanceOptions {
  // The evaluator that is tested; null: the interpreter.
  GraphEvaluator evaluate;
  // Casts the float inputs of f64 cases; the truth is then the f64 interpreter
  // on the rounded inputs, and the tolerance 16 eps of the dtype (64 eps in
  // derivatives) of |want| + max |want|, and as many times what the truth moves
  // when each input does by eps of its size.
  std::optional<DType> dtype;
  // Runs in f64 on inputs rounded to this dtype.
  std::optional<DType> round_inputs;
  std::set<std::string> sections;  // empty: all
  std::string ops = "*";           // a glob over op names
  // Writes what was computed: FOLDER/<op>.safetensors, under the suite's keys.
  std::string dump_folder;
  // Called before each file, with its op and how many files are done.
  std::function<void(const std::string& op, int done, int total)> progress;
};

// A case whose stored value is a defect of its host. It must still differ, and
// in no other way than `difference`, the message of its failure, says.
struct HostDefect {
  std::string op;
  std::string id;
  std::string section;
  std::string difference;
  std::string reason;
};

struct SectionCounts {
  int passed = 0;
  int failed = 0;
  int unsupported = 0;
};

struct ConformanceFailure {
  std::string op;
  std::string id;
  std::string section;  // `vmap[1]` for elements of a list section
  std::string message;
};

struct ConformanceReport {
  std::map<std::string, std::map<std::string, SectionCounts>> ops;
  SectionCounts totals;
  std::vector<ConformanceFailure> failures;
  // Why ops and transforms were not supported, by `op section`.
  std::map<std::string, std::string> unsupported;
  // Cases that passed because they are named as defects of their host.
  int host_defects = 0;
  // Sections that a dtype leaves out, which count nowhere, with the reason:
  // rounding their inputs changes an index or a mask, so that the f64 truth is
  // that of another case; or the op takes the call in f64 alone, as a view of
  // its bytes.
  std::vector<std::string> left_out;
  // Sections of a dtype, computed by other than the interpreter, that passed
  // because the interpreter in that dtype is as far off the truth: what the
  // rule's formula loses there, no kernel gains.
  std::vector<std::string> as_interpreter;
};

// Runs every case file of `folders` that `options.ops` matches. Errors are
// those of reading the suites; NotFound if no file matches.
absl::StatusOr<ConformanceReport> RunConformance(
    const std::vector<std::string>& folders, const RuleSet& rules,
    const std::vector<HostDefect>& defects, const ConformanceOptions& options);

// The one list of cases whose stored value is wrong at their host.
const std::vector<HostDefect>& KnownHostDefects();

// {"ops": {OP: {SECTION: {"passed", "failed", "unsupported"}}}, "totals":
// {...}, "failures": [{"op", "case", "section", "message"}], "as_interpreter":
// [TEXT]}.
std::string ConformanceJson(const ConformanceReport& report);

// `conformance: P passed, F failed, U unsupported of N`.
std::string ConformanceLine(const ConformanceReport& report);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CONFORMANCE_CONFORMANCE_H_
