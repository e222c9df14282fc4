#include "testing/fuzz/differential/check_case.h"

#include <cmath>
#include <functional>
#include <optional>
#include <regex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/simplify.h"
#include "engine/rule_text/graph_to_rule.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/thread_pool.h"
#include "testing/fuzz/differential/check_derivatives.h"
#include "testing/fuzz/differential/noise.h"
#include "transforms/vmap/vmap.h"

namespace cleave::fuzz {
namespace {

using Results = absl::StatusOr<std::vector<Tensor>>;

constexpr int kNoises = 6;
constexpr int64_t kBatches[] = {2, 1, 3, 0};

bool IsOverLimits(const Results& results) {
  return absl::IsResourceExhausted(results.status());
}

// How two results part; empty where they do not. Where one of them is over
// limits, nothing is known.
std::string Parting(const Results& got, const Results& want) {
  if (IsOverLimits(got) || IsOverLimits(want)) return "";
  if (got.ok() != want.ok() ||
      (!want.ok() && got.status().code() != want.status().code())) {
    return absl::StrCat("got ", got.status().ToString(), ", want ",
                        want.status().ToString());
  }
  if (!want.ok()) return "";
  for (size_t r = 0; r < want->size(); ++r) {
    if (SameValue((*got)[r], (*want)[r])) continue;
    return absl::StrCat("result ", r, ": got ", (*got)[r].ToString(), "\nwant ",
                        (*want)[r].ToString());
  }
  return "";
}

// Elements of `axis` at `i`, without the axis (0), of a tensor.
Tensor Example(const Tensor& batch, int64_t i) {
  std::vector<int64_t> shape(batch.shape().begin() + 1, batch.shape().end());
  Tensor one(batch.dtype(), shape);
  if (one.byte_size() == 0) return one;
  std::copy(batch.data() + i * one.byte_size(),
            batch.data() + (i + 1) * one.byte_size(), one.mutable_data());
  return one;
}

Tensor Stacked(const std::vector<Tensor>& examples) {
  std::vector<int64_t> shape = examples[0].shape();
  shape.insert(shape.begin(), examples.size());
  Tensor batch(examples[0].dtype(), shape);
  for (size_t i = 0; i < examples.size(); ++i) {
    std::copy(examples[i].data(), examples[i].data() + examples[i].byte_size(),
              batch.mutable_data() + i * examples[i].byte_size());
  }
  return batch;
}

// Another tensor of the same elements, rotated.
Tensor Rotated(const Tensor& tensor, int64_t by) {
  Tensor result(tensor.dtype(), tensor.shape());
  if (tensor.size() == 0) return result;
  const size_t width = tensor.byte_size() / tensor.size();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t from = (i + by) % tensor.size();
    std::copy(tensor.data() + from * width, tensor.data() + (from + 1) * width,
              result.mutable_data() + i * width);
  }
  return result;
}

class Checker {
 public:
  Checker(const FuzzCase& one, std::shared_ptr<const RuleSet> base,
          KernelCache& cache)
      : one_(one), base_(std::move(base)), cache_(cache) {}

  Outcome Check() {
    if (!Load()) return outcome_;
    outcome_.kind = OutcomeKind::kAgrees;
    if (!CheckTexts()) return outcome_;
    std::vector<Results> wanted;
    for (const Point& point : one_.points) {
      wanted.push_back(Interpret(graph_, TensorsOf(point)));
      if (IsOverLimits(wanted.back())) {
        Fail("interpreter", wanted.back().status());
        return outcome_;
      }
      if (wanted.back().status().code() == absl::StatusCode::kInternal) {
        Fail("internal error", wanted.back().status().ToString());
        return outcome_;
      }
    }
    if (CheckSimplified(wanted) && CheckWritten(wanted) &&
        CheckKernels(graph_, simple_, Points(), "kernel") && CheckBatch()) {
      CheckSlopes();
    }
    return outcome_;
  }

 private:
  bool Fail(const std::string& what, const std::string& text) {
    outcome_.kind = OutcomeKind::kDiffers;
    outcome_.what = what;
    outcome_.text = text;
    return false;
  }

  // A step that did not succeed.
  bool Fail(const std::string& what, const absl::Status& status) {
    if (!absl::IsResourceExhausted(status))
      return Fail(what, status.ToString());
    outcome_.kind = OutcomeKind::kOverLimits;
    outcome_.text = absl::StrCat(what, ": ", status.message());
    return false;
  }

  bool Load() {
    LoadResult loaded =
        ExtendRules(base_, {"fuzz.rules", one_.rules, false, true});
    const auto reject = [&](const std::string& why) {
      outcome_.kind = OutcomeKind::kRejected;
      outcome_.text = why;
      return false;
    };
    if (loaded.rules == nullptr) {
      return reject(absl::StrJoin(loaded.diagnostics, "\n"));
    }
    rules_ = loaded.rules;
    const absl::StatusOr<Graph> function = rules_->Function("f");
    if (!function.ok()) return reject(function.status().ToString());
    function_ = *function;
    const absl::StatusOr<Graph> expanded = Expand(function_, *rules_);
    if (absl::IsResourceExhausted(expanded.status())) {
      return Fail("expansion", expanded.status());
    }
    if (!expanded.ok()) return reject(expanded.status().ToString());
    graph_ = *expanded;
    simple_ = Simplify(graph_, *rules_);
    return true;
  }

  std::vector<std::vector<Tensor>> Points() const {
    std::vector<std::vector<Tensor>> points;
    for (const Point& point : one_.points) points.push_back(TensorsOf(point));
    return points;
  }

  bool CheckTexts() {
    for (const Graph* graph : {&function_, &graph_, &simple_}) {
      ++outcome_.comparisons;
      const absl::Status verified = Verify(*graph);
      if (!verified.ok()) return Fail("verify", verified.ToString());
      const std::string text = PrintGraph(*graph);
      const absl::StatusOr<Graph> read = ParseGraph(text, graph->context());
      if (graph == &function_) continue;  // calls are typed by their rules
      if (!read.ok()) return Fail("graph text", read.status().ToString());
      if (PrintGraph(*read) != text) {
        return Fail("graph text", absl::StrCat(text, PrintGraph(*read)));
      }
    }
    return true;
  }

  bool CheckSimplified(const std::vector<Results>& wanted) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i].ok()) continue;  // what failed may not be needed
      ++outcome_.comparisons;
      const std::string parting =
          Parting(Interpret(simple_, TensorsOf(one_.points[i])), wanted[i]);
      if (!parting.empty()) return Fail("simplified", parting);
    }
    return true;
  }

  // As rule text, and back.
  bool CheckWritten(const std::vector<Results>& wanted) {
    GraphToOpOptions options;
    options.keep_inputs = true;
    const absl::StatusOr<WrittenOp> written =
        GraphToOp(graph_, "written", *rules_, options);
    if (written.status().code() == absl::StatusCode::kUnimplemented)
      return true;
    if (!written.ok()) return Fail("rule text", written.status());
    const std::string text = absl::StrCat("language 1\n\n", written->text);
    LoadResult loaded =
        ExtendRules(base_, {"written.rules", text, false, true});
    if (loaded.rules == nullptr) {
      return Fail("rule text does not load",
                  absl::StrCat(text, absl::StrJoin(loaded.diagnostics, "\n")));
    }
    if (!written->sizes.empty()) return true;  // attributes
    GraphBuilder builder(graph_.context());
    std::vector<Argument> arguments;
    for (const NamedValue& input : graph_.inputs()) {
      arguments.push_back(
          {"", builder.Input(input.name, graph_.type(input.value))});
    }
    const auto results =
        loaded.rules->Call(builder, "written", arguments, Attributes());
    if (!results.ok()) {
      return Fail("rule text is refused",
                  absl::StrCat(text, results.status().ToString()));
    }
    std::vector<NamedValue> outputs;
    for (size_t r = 0; r < results->size(); ++r) {
      outputs.push_back({graph_.outputs()[r].name, *(*results)[r]});
    }
    const absl::StatusOr<Graph> again =
        Expand(*std::move(builder).Build(std::move(outputs)), *loaded.rules);
    if (!again.ok()) {
      return Fail("rule text does not expand",
                  absl::StrCat(text, again.status().ToString()));
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i].ok()) continue;
      ++outcome_.comparisons;
      const std::string parting =
          Parting(Interpret(*again, TensorsOf(one_.points[i])), wanted[i]);
      if (!parting.empty()) {
        return Fail("rule text", absl::StrCat(text, parting));
      }
    }
    return true;
  }

  // Kernels of `made`, held to the interpreter's results of `meant`.
  bool CheckKernels(const Graph& meant, const Graph& made,
                    const std::vector<std::vector<Tensor>>& points,
                    const std::string& what) {
    static ThreadPool* const pool = MakeThreadPool(3).release();
    const std::vector<TargetLevel> levels = HostLevels();
    // One of these by turns: code takes time to make.
    const size_t other = std::hash<std::string>()(one_.rules) % 4;
    for (const bool second : {false, true}) {
      CompileOptions options;
      options.cache = &cache_;
      if (second) {
        if (other == 0) options.plain_schedule = true;
        if (other == 1) options.generalize_extents = true;
        options.level = levels[other % levels.size()];
        if (other == 3) break;
      }
      const absl::StatusOr<Kernel> kernel = Compile(made, *rules_, options);
      if (!kernel.ok()) {
        return Fail(absl::StrCat(what, " is not made"), kernel.status());
      }
      for (const std::vector<Tensor>& inputs : points) {
        const Results want = Interpret(meant, inputs);
        // What is simplified may not need what fails.
        if (!want.ok() && Interpret(made, inputs).ok()) continue;
        RunOptions serial;
        serial.call.serial = true;
        const Results got = kernel->Run(inputs, serial);
        ++outcome_.comparisons;
        if (!Near(meant, inputs, got, want, what)) {
          outcome_.text = absl::StrCat(
              second ? absl::StrCat("other options ", other, ": ") : "",
              outcome_.text);
          return false;
        }
        RunOptions parallel;
        parallel.call.pool = pool;
        const std::string parting = Parting(kernel->Run(inputs, parallel), got);
        if (!parting.empty()) {
          return Fail(absl::StrCat(what, " on several threads"), parting);
        }
      }
    }
    return true;
  }

  // Whether `got` is `want`, or as near as noise leads.
  bool Near(const Graph& graph, const std::vector<Tensor>& inputs,
            const Results& got, const Results& want, const std::string& what) {
    const std::string parting = Parting(got, want);
    if (parting.empty()) return true;
    if (!got.ok() || !want.ok()) return Fail(what, parting);
    std::vector<std::vector<Tensor>> noisy;
    for (int i = 0; i < kNoises; ++i) {
      Results results = InterpretWithNoise(graph, inputs, i);
      if (!results.ok()) {
        ++outcome_.undecided;
        return true;
      }
      noisy.push_back(*std::move(results));
    }
    for (size_t r = 0; r < want->size(); ++r) {
      const Tensor& a = (*got)[r];
      const Tensor& b = (*want)[r];
      if (a.dtype() != b.dtype() || a.shape() != b.shape()) {
        return Fail(what, parting);
      }
      for (int64_t i = 0; i < b.size(); ++i) {
        const double x = a.GetDouble(i);
        const double y = b.GetDouble(i);
        if (x == y || (std::isnan(x) && std::isnan(y))) {
          if (IsFloat(b.dtype()) || a.GetInt(i) == b.GetInt(i)) continue;
        }
        double spread = 0;
        bool unsettled = false;
        for (const std::vector<Tensor>& results : noisy) {
          const double z = results[r].GetDouble(i);
          const double by = std::abs(z - y);
          unsettled |= !std::isfinite(by) && !(z == y);
          if (std::isfinite(by)) spread = std::max(spread, by);
        }
        unsettled |= !IsFloat(b.dtype()) && spread > 0;
        if (unsettled || std::abs(x - y) <= 4 * spread) {
          ++outcome_.undecided;
          continue;
        }
        return Fail(what, absl::StrCat("element ", i, " of ", parting,
                                       "\nnoise ", spread));
      }
    }
    return true;
  }

  bool CheckBatch() {
    const int inputs = static_cast<int>(graph_.inputs().size());
    const Dim batch = Dim::Variable(FreshBatch(function_));
    std::vector<int> axes(inputs, 0);
    // An input in all but some of the cases is shared by the examples.
    const size_t shared = std::hash<std::string>()(one_.rules) % (inputs + 1);
    if (inputs > 1 && shared < axes.size()) axes[shared] = kNotMapped;
    const std::vector<int> out(graph_.outputs().size(), 0);
    const absl::StatusOr<Graph> batched =
        Vmap(function_, axes, batch, out, *rules_);
    if (!batched.ok()) {
      if (batched.status().code() == absl::StatusCode::kUnimplemented ||
          batched.status().code() == absl::StatusCode::kInvalidArgument) {
        return true;  // an output that does not depend on the batch
      }
      return Fail("vmap", batched.status());
    }
    const absl::StatusOr<Graph> expanded = Expand(*batched, *rules_);
    if (!expanded.ok()) return Fail("vmap", expanded.status());
    std::vector<std::vector<Tensor>> points;
    for (size_t p = 0; p < one_.points.size() && p < 4; ++p) {
      std::vector<Tensor> stacks;
      std::vector<std::vector<Tensor>> examples(kBatches[p]);
      const std::vector<Tensor> first = TensorsOf(one_.points[p]);
      for (int i = 0; i < inputs; ++i) {
        if (axes[i] == kNotMapped) {
          stacks.push_back(first[i]);
          for (auto& example : examples) example.push_back(first[i]);
          continue;
        }
        std::vector<Tensor> stack;
        for (size_t e = 0; e < examples.size(); ++e) {
          stack.push_back(Rotated(first[i], e));
          examples[e].push_back(stack.back());
        }
        if (stack.empty()) {
          std::vector<int64_t> shape = first[i].shape();
          shape.insert(shape.begin(), 0);
          stacks.emplace_back(first[i].dtype(), shape);
        } else {
          stacks.push_back(Stacked(stack));
        }
      }
      points.push_back(stacks);
      if (examples.empty()) continue;
      const Results got = Interpret(*expanded, stacks);
      for (size_t e = 0; e < examples.size(); ++e) {
        const Results want = Interpret(graph_, examples[e]);
        ++outcome_.comparisons;
        if (!want.ok() || !got.ok()) {
          if (want.ok() == got.ok() || e > 0) break;
          bool any = false;
          for (const auto& example : examples) {
            any |= !Interpret(graph_, example).ok();
          }
          if (any != got.ok()) break;
          return Fail("vmap",
                      absl::StrCat("got ", got.status().ToString(), ", want ",
                                   want.status().ToString()));
        }
        std::vector<Tensor> mine;
        for (const Tensor& result : *got) {
          mine.push_back(Example(result, static_cast<int64_t>(e)));
        }
        const std::string parting = Parting(mine, want);
        if (!parting.empty()) {
          return Fail("vmap", absl::StrCat("example ", e, ", ", parting));
        }
      }
    }
    return CheckKernels(*expanded, Simplify(*expanded, *rules_), points,
                        "kernel of a batch");
  }

  // Of the same function in f64.
  bool CheckSlopes() {
    static const std::regex dtypes("\\b(f16|bf16|f32)\\b");
    if (!std::regex_search(one_.rules,
                           std::regex("\\b(f16|bf16|f32|f64)\\b"))) {
      return true;
    }
    LoadResult loaded = ExtendRules(
        base_, {"fuzz64.rules", std::regex_replace(one_.rules, dtypes, "f64"),
                false, true});
    if (loaded.rules == nullptr) return true;  // a literal, say
    const absl::StatusOr<Graph> function = loaded.rules->Function("f");
    if (!function.ok()) return true;
    std::vector<std::vector<Tensor>> points;
    for (const Point& point : one_.points) {
      std::vector<Tensor> tensors;
      for (const auto& [name, tensor] : point) {
        if (!IsFloat(tensor.dtype())) {
          tensors.push_back(tensor);
          continue;
        }
        Tensor wide(DType::kF64, tensor.shape());
        for (int64_t i = 0; i < tensor.size(); ++i) {
          wide.SetDouble(i, tensor.GetDouble(i));
        }
        tensors.push_back(wide);
      }
      points.push_back(std::move(tensors));
    }
    Slopes slopes = CheckDerivatives(*function, *loaded.rules, points);
    outcome_.comparisons += slopes.comparisons;
    if (slopes.what.empty()) {
      if (!slopes.gradient.has_value()) return true;
      rules_ = loaded.rules;
      return CheckKernels(*slopes.gradient,
                          Simplify(*slopes.gradient, *loaded.rules),
                          slopes.gradient_points, "kernel of a gradient");
    }
    return Fail(slopes.what, slopes.text);
  }

  const FuzzCase& one_;
  const std::shared_ptr<const RuleSet> base_;
  KernelCache& cache_;
  std::shared_ptr<const RuleSet> rules_;
  Graph function_;  // of calls
  Graph graph_;
  Graph simple_;
  Outcome outcome_;
};

}  // namespace

Outcome CheckCase(const FuzzCase& one, std::shared_ptr<const RuleSet> base,
                  KernelCache& cache) {
  return Checker(one, std::move(base), cache).Check();
}

}  // namespace cleave::fuzz
