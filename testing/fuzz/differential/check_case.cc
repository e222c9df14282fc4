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
#include "testing/fuzz/differential/check_derivatives.h"
#include "testing/fuzz/differential/check_derived_rules.h"
#include "testing/fuzz/differential/check_kernels.h"
#include "testing/fuzz/differential/compare.h"
#include "testing/fuzz/differential/parts.h"
#include "transforms/vmap/vmap.h"

namespace cleave::fuzz {
namespace {

constexpr int64_t kBatches[] = {2, 1, 3, 0};

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
        CheckKernelsOf(graph_, simple_, Points(), "kernel") && CheckBatch()) {
      CheckSlopes();
    }
    return outcome_;
  }

 private:
  bool Fail(const std::string& what, const std::string& text) {
    return Differs(outcome_, what, text);
  }
  bool Fail(const std::string& what, const absl::Status& status) {
    return Failed(outcome_, what, status);
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

  bool CheckKernelsOf(const Graph& meant, const Graph& made,
                      const std::vector<std::vector<Tensor>>& points,
                      const std::string& what) {
    return CheckKernels(meant, made, points, what, *rules_, cache_,
                        std::hash<std::string>()(one_.rules), outcome_);
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
        // A batch takes more memory than its examples.
        if (IsOverLimits(got) || IsOverLimits(want)) break;
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
    return CheckKernelsOf(*expanded, Simplify(*expanded, *rules_), points,
                          "kernel of a batch");
  }

  // Checks the derivatives of the same function in f64, or c128.
  bool CheckSlopes() {
    static const std::regex floats("\\b(f16|bf16|f32)\\b");
    static const std::regex complexes("\\bc64\\b");
    static const std::regex inexact("\\b(f16|bf16|f32|f64|c64|c128)\\b");
    if (!std::regex_search(one_.rules, inexact)) return true;
    const std::string wide = std::regex_replace(
        std::regex_replace(one_.rules, floats, "f64"), complexes, "c128");
    LoadResult loaded = ExtendRules(base_, {"fuzz64.rules", wide, false, true});
    if (loaded.rules == nullptr) return true;  // a literal, say
    const absl::StatusOr<Graph> function = loaded.rules->Function("f");
    if (!function.ok()) return true;
    std::vector<std::vector<Tensor>> points;
    for (const Point& point : one_.points) {
      std::vector<Tensor> tensors;
      for (const auto& [name, tensor] : point) {
        if (!IsInexact(tensor.dtype())) {
          tensors.push_back(tensor);
          continue;
        }
        Tensor converted(IsComplex(tensor.dtype()) ? DType::kC128 : DType::kF64,
                         tensor.shape());
        for (int64_t i = 0; i < Parts(tensor); ++i) {
          SetPart(converted, i, GetPart(tensor, i));
        }
        tensors.push_back(converted);
      }
      points.push_back(std::move(tensors));
    }
    Slopes slopes = CheckDerivatives(*function, *loaded.rules, points);
    outcome_.comparisons += slopes.comparisons;
    if (slopes.what.empty()) {
      if (!CheckDerivedRules(*function, loaded.rules, points, outcome_)) {
        return false;
      }
      if (!slopes.gradient.has_value()) return true;
      rules_ = loaded.rules;
      return CheckKernelsOf(*slopes.gradient,
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
