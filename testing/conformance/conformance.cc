#include "testing/conformance/conformance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/ir/interpreter.h"
#include "engine/runtime/safetensors.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "testing/conformance/case_call.h"
#include "testing/conformance/case_rounding.h"
#include "testing/conformance/compute_section.h"
#include "testing/conformance/tolerance.h"
#include "testing/glob.h"

namespace cleave {
namespace {

absl::StatusOr<std::vector<Tensor>> Interpreted(
    const Graph& graph, absl::Span<const Tensor> inputs) {
  return Interpret(graph, inputs);
}

// A transform that has no answer for the op: a derivative or a batching that is
// impossible. The values themselves have no such excuse.
bool IsUnsupported(const absl::Status& status, const std::string& section) {
  return section != "outputs" && IsImpossible(status);
}

std::string Label(const Case& c, const CaseSection& section) {
  const bool list = section.name == "vmap" || section.name == "vmap_jvp";
  return list ? absl::StrCat(section.name, "[", section.number, "]")
              : section.name;
}

// Runs the cases of one file.
class FileRunner {
 public:
  FileRunner(const CaseFile& file, const RuleSet& rules,
             const std::vector<HostDefect>& defects,
             const ConformanceOptions& options, ConformanceReport& report)
      : file_(file),
        rules_(rules),
        defects_(defects),
        options_(options),
        report_(report) {}

  void Run() {
    for (const Case& c : file_.cases) {
      for (const CaseSection& section : c.sections) {
        if (options_.sections.empty() ||
            options_.sections.count(section.name) != 0) {
          RunSection(c, section);
        }
      }
    }
  }

  const TensorMap& dumped() const { return dumped_; }

 private:
  void RunSection(const Case& c, const CaseSection& section) {
    SectionCounts& counts = report_.ops[file_.op][section.name];
    const auto count = [&](int SectionCounts::*field) {
      ++(counts.*field);
      ++(report_.totals.*field);
    };
    const int left_out = static_cast<int>(report_.left_out.size());
    const absl::StatusOr<std::string> difference = Check(c, section);
    if (!difference.ok() && (IsUnsupported(difference.status(), section.name) ||
                             rules_.Find(file_.op) == nullptr)) {
      report_.unsupported[absl::StrCat(file_.op, " ", section.name)] =
          std::string(difference.status().message());
      count(&SectionCounts::unsupported);
      return;
    }
    if (static_cast<int>(report_.left_out.size()) != left_out) return;
    std::string message = difference.ok()
                              ? *difference
                              : std::string(difference.status().message());
    const std::string label = Label(c, section);
    const bool as_stored = !options_.dtype && !options_.round_inputs;
    for (const HostDefect& defect : defects_) {
      if (!as_stored || defect.op != file_.op || defect.id != c.id ||
          defect.section != label) {
        continue;
      }
      if (message.empty()) {
        message = "named as a defect of its host, but agrees with it";
      } else if (difference.ok() && message == defect.difference) {
        message.clear();
        ++report_.host_defects;
      }
    }
    if (message.empty()) {
      count(&SectionCounts::passed);
    } else {
      count(&SectionCounts::failed);
      report_.failures.push_back({file_.op, c.id, label, message});
    }
  }

  absl::StatusOr<Computed> RunChanged(const Case& c, const CaseSection& section,
                                      ChangeTensor change,
                                      const GraphEvaluator& evaluate) {
    CLEAVE_ASSIGN_OR_RETURN(
        const CaseCall call,
        MakeCaseCall(rules_, file_.op, ChangeArguments(c.arguments, change)));
    return ComputeSection(call, ChangeSection(section, change), rules_,
                          evaluate);
  }

  // Runs the section with float inputs rounded to `rounded` and kept in `kept`.
  absl::StatusOr<Computed> RunRounded(const Case& c, const CaseSection& section,
                                      DType rounded, DType kept,
                                      const GraphEvaluator& evaluate) {
    return RunChanged(
        c, section,
        [&](const Tensor& t) { return RoundTensor(t, rounded, kept); },
        evaluate);
  }

  // Allows each element `factor` times what `computed` is off the truth there,
  // if that is more.
  static void Widen(const Computed& computed, const Computed& truth,
                    double factor, std::vector<Allowance>& allowances) {
    for (size_t o = 0; o < truth.size(); ++o) {
      if (!truth[o] || !IsFloat(truth[o]->dtype())) continue;
      for (int64_t i = 0; i < truth[o]->size(); ++i) {
        const double off = factor * std::abs(computed[o]->GetDouble(i) -
                                             truth[o]->GetDouble(i));
        if (std::isfinite(off)) {
          allowances[o][i] = std::max(allowances[o][i], off);
        }
      }
    }
  }

  // How far the truth moves when the rounded inputs do by as many units as a
  // result may be off: as far may be a result that is exact for inputs nearby.
  absl::StatusOr<std::vector<Allowance>> MeasureCondition(
      const Case& c, const CaseSection& section, DType dtype,
      const Computed& truth) {
    constexpr int kTrials = 8;
    std::vector<Allowance> result(truth.size());
    for (size_t o = 0; o < truth.size(); ++o) {
      if (truth[o]) result[o].resize(truth[o]->size());
    }
    for (int trial = 0; trial < kTrials; ++trial) {
      uint64_t seed = trial << 16;
      CLEAVE_ASSIGN_OR_RETURN(const Computed moved,
                              RunChanged(
                                  c, section,
                                  [&](const Tensor& t) {
                                    return MoveTensor(
                                        RoundTensor(t, dtype, DType::kF64),
                                        Epsilon(dtype), ++seed);
                                  },
                                  Interpreted));
      Widen(moved, truth, UnitsFor(section.name), result);
    }
    return result;
  }

  GraphEvaluator Evaluator() const {
    return options_.evaluate ? options_.evaluate : GraphEvaluator(Interpreted);
  }

  absl::StatusOr<std::string> Check(const Case& c, const CaseSection& section) {
    CLEAVE_ASSIGN_OR_RETURN(const CaseCall call,
                            MakeCaseCall(rules_, file_.op, c.arguments));
    const ExpectedOutputs expected = ExpectedOf(call, section);
    if (options_.dtype && InF64(c.arguments)) {
      return CheckInDType(c, section, expected, *options_.dtype);
    }
    Computed computed;
    if (options_.round_inputs && InF64(c.arguments)) {
      CLEAVE_ASSIGN_OR_RETURN(
          computed, RunRounded(c, section, *options_.round_inputs, DType::kF64,
                               Evaluator()));
      Dump(computed, expected);
      return "";
    }
    CLEAVE_ASSIGN_OR_RETURN(computed,
                            ComputeSection(call, section, rules_, Evaluator()));
    Dump(computed, expected);
    return CompareAll(computed, expected,
                      [&](const Tensor&) { return section.tolerance; });
  }

  void LeaveOut(const Case& c, const CaseSection& section, const char* why) {
    report_.left_out.push_back(
        absl::StrCat(file_.op, " ", c.id, " ", Label(c, section), ": ", why));
  }

  // The result in `dtype` against the f64 interpreter on the rounded inputs.
  absl::StatusOr<std::string> CheckInDType(const Case& c,
                                           const CaseSection& section,
                                           const ExpectedOutputs& expected,
                                           DType dtype) {
    CLEAVE_ASSIGN_OR_RETURN(
        const Computed truth,
        RunRounded(c, section, dtype, DType::kF64, Interpreted));
    const absl::StatusOr<Computed> ran =
        RunRounded(c, section, dtype, dtype, Evaluator());
    if (absl::IsInvalidArgument(ran.status()) &&
        absl::IsInvalidArgument(
            RunRounded(c, section, dtype, dtype, Interpreted).status())) {
      LeaveOut(c, section, "the op refuses the call in this dtype");
      return "";
    }
    CLEAVE_RETURN_IF_ERROR(ran.status());
    const Computed& computed = *ran;
    Dump(computed, expected);
    ExpectedOutputs want;
    for (size_t i = 0; i < truth.size(); ++i) {
      if (!truth[i]) {
        want.push_back(std::nullopt);
        continue;
      }
      if (!IsFloat(truth[i]->dtype()) && i < expected.size() && expected[i] &&
          !Difference(*truth[i], expected[i]->tensor, {}, false).empty()) {
        LeaveOut(c, section, "rounding changes a discrete result");
        return "";
      }
      want.push_back(CaseValue::TensorRef{
          "", WantedInDType(*truth[i], computed[i], dtype)});
    }
    const auto tolerance = [&](const Tensor& w) {
      return ToleranceFor(dtype, w, section.name);
    };
    const std::string difference = CompareAll(computed, want, tolerance,
                                              /*same_dtype=*/false);
    if (difference.empty()) return "";
    CLEAVE_ASSIGN_OR_RETURN(std::vector<Allowance> allowances,
                            MeasureCondition(c, section, dtype, truth));
    const std::string far = CompareAll(computed, want, tolerance,
                                       /*same_dtype=*/false, allowances);
    if (far.empty() || !options_.evaluate) return far;
    CLEAVE_RETURN_IF_ERROR(WidenByInterpreter(c, section, dtype, allowances));
    CLEAVE_ASSIGN_OR_RETURN(const Computed interpreted,
                            RunRounded(c, section, dtype, dtype, Interpreted));
    ExpectedOutputs same;
    for (const std::optional<Tensor>& output : interpreted) {
      same.push_back(std::nullopt);
      if (output) same.back() = CaseValue::TensorRef{"", *output};
    }
    if (!CompareAll(computed, same, tolerance, /*same_dtype=*/false, allowances)
             .empty()) {
      return far;
    }
    report_.as_interpreter.push_back(
        absl::StrCat(file_.op, " ", c.id, " ", Label(c, section), ": ", far));
    return "";
  }

  // A kernel may be as far off the truth as the same operations in another
  // order are: a few times what the interpreter is at inputs nearby.
  absl::Status WidenByInterpreter(const Case& c, const CaseSection& section,
                                  DType dtype,
                                  std::vector<Allowance>& allowances) {
    constexpr int kTrials = 8;
    constexpr double kFactor = 4;
    for (int trial = 0; trial < kTrials; ++trial) {
      const auto run = [&](DType kept) {
        uint64_t seed = trial << 16;
        return RunChanged(
            c, section,
            [&](const Tensor& t) {
              const Tensor moved =
                  MoveTensor(RoundTensor(t, dtype, DType::kF64),
                             trial * Epsilon(dtype), ++seed);
              return RoundTensor(RoundTensor(moved, dtype, DType::kF64), dtype,
                                 kept);
            },
            Interpreted);
      };
      CLEAVE_ASSIGN_OR_RETURN(const Computed truth, run(DType::kF64));
      CLEAVE_ASSIGN_OR_RETURN(const Computed interpreted, run(dtype));
      Widen(interpreted, truth, kFactor, allowances);
    }
    return absl::OkStatus();
  }

  // Whether there are float inputs, all of them f64.
  static bool InF64(const CaseArguments& arguments) {
    bool any = false;
    const auto add = [&any](DType dtype) {
      any = any || dtype == DType::kF64;
      return !IsFloat(dtype) || dtype == DType::kF64;
    };
    for (const auto& [name, value] : arguments) {
      if (const auto* ref = value.tensor()) {
        if (!add(ref->tensor.dtype())) return false;
      } else if (const CaseValue::List* list = value.list()) {
        for (const CaseValue& element : *list) {
          if (element.tensor() == nullptr) continue;
          if (!add(element.tensor()->tensor.dtype())) return false;
        }
      }
    }
    return any;
  }

  template <typename ToleranceOf>
  static std::string CompareAll(const Computed& computed,
                                const ExpectedOutputs& want,
                                ToleranceOf tolerance_of,
                                bool same_dtype = true,
                                const std::vector<Allowance>& allowances = {}) {
    for (size_t i = want.size(); i < computed.size(); ++i) {
      // A host may leave out the last of its results, and so may the rule.
      if (computed[i]) {
        return absl::StrCat("output ", i, " is there, want ", want.size());
      }
    }
    for (size_t i = 0; i < want.size(); ++i) {
      if (!want[i]) continue;
      if (i >= computed.size() || !computed[i]) {
        return absl::StrCat("there is no output ", i);
      }
      const std::string difference = Difference(
          *computed[i], want[i]->tensor, tolerance_of(want[i]->tensor),
          same_dtype, allowances.empty() ? Allowance() : allowances[i]);
      if (!difference.empty()) {
        return absl::StrCat("output ", i, ": ", difference);
      }
    }
    return "";
  }

  void Dump(const Computed& computed, const ExpectedOutputs& expected) {
    if (options_.dump_folder.empty()) return;
    for (size_t i = 0; i < computed.size() && i < expected.size(); ++i) {
      if (computed[i] && expected[i]) {
        dumped_.insert_or_assign(expected[i]->key, *computed[i]);
      }
    }
  }

  const CaseFile& file_;
  const RuleSet& rules_;
  const std::vector<HostDefect>& defects_;
  const ConformanceOptions& options_;
  ConformanceReport& report_;
  TensorMap dumped_;
};

}  // namespace

absl::StatusOr<ConformanceReport> RunConformance(
    const std::vector<std::string>& folders, const RuleSet& rules,
    const std::vector<HostDefect>& defects, const ConformanceOptions& options) {
  std::vector<std::string> files;
  for (const std::string& folder : folders) {
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::string> found,
                            ListCaseFiles(folder));
    files.insert(files.end(), found.begin(), found.end());
  }
  const auto stem_of = [](const std::string& file) {
    const size_t slash = file.rfind('/');
    return file.substr(slash + 1, file.rfind('.') - (slash + 1));
  };
  files.erase(std::remove_if(files.begin(), files.end(),
                             [&](const std::string& file) {
                               return !MatchesGlob(options.ops, stem_of(file));
                             }),
              files.end());
  if (files.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no suite is of an op like `", options.ops, "`"));
  }
  ConformanceReport report;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string stem = stem_of(files[i]);
    if (options.progress) {
      options.progress(stem, static_cast<int>(i),
                       static_cast<int>(files.size()));
    }
    CLEAVE_ASSIGN_OR_RETURN(const CaseFile file, ReadCaseFile(files[i]));
    FileRunner runner(file, rules, defects, options, report);
    runner.Run();
    if (!options.dump_folder.empty()) {
      CLEAVE_RETURN_IF_ERROR(WriteSafetensors(
          absl::StrCat(options.dump_folder, "/", file.op, ".safetensors"),
          runner.dumped()));
    }
  }
  return report;
}

}  // namespace cleave
