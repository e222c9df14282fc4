#include "tools/examples/example_context.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/in_primitives.h"
#include "engine/rules/rule_files.h"
#include "ops/status_macros.h"
#include "transforms/derived_rules.h"

namespace cleave {

absl::StatusOr<std::shared_ptr<const RuleSet>> LoadExampleRules(
    const ExampleContext& context, const std::string& file) {
  std::vector<std::string> paths;
  for (const char* family : {"core", "derivative", "numerics"}) {
    paths.push_back(absl::StrCat(context.rules, "/", family));
  }
  if (!file.empty()) {
    paths.push_back(absl::StrCat(context.folder, "/", file));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<NamedSource> sources,
                          ReadRuleFiles(paths));
  LoadResult loaded =
      LoadRules(sources, std::make_shared<Context>(), WithTransforms());
  if (loaded.rules == nullptr) {
    return absl::InvalidArgumentError(absl::StrJoin(loaded.diagnostics, ""));
  }
  return loaded.rules;
}

absl::StatusOr<Kernel> CompileCalls(const Graph& graph, const RuleSet& rules) {
  CLEAVE_ASSIGN_OR_RETURN(const Graph primitives, InPrimitives(graph, rules));
  return Compile(primitives, rules);
}

absl::StatusOr<std::vector<Tensor>> Drawn(const RuleSet& rules, int64_t seed) {
  CLEAVE_ASSIGN_OR_RETURN(const Graph graph, rules.Function("drawn"));
  CLEAVE_ASSIGN_OR_RETURN(const Graph primitive, Expand(graph, rules));
  return Interpret(primitive, {Tensor::FromInts(DType::kKey, {}, {seed})});
}

Tensor Slice(const Tensor& tensor, int64_t i) {
  const Tensor slices = Slices(tensor, i, i + 1);
  Tensor slice(tensor.dtype(),
               {tensor.shape().begin() + 1, tensor.shape().end()});
  std::copy_n(slices.data(), slices.byte_size(), slice.mutable_data());
  return slice;
}

Tensor Slices(const Tensor& tensor, int64_t begin, int64_t end) {
  std::vector<int64_t> shape = tensor.shape();
  const size_t slice_bytes = tensor.byte_size() / shape[0];
  shape[0] = end - begin;
  Tensor slices(tensor.dtype(), std::move(shape));
  std::copy_n(tensor.data() + begin * slice_bytes, slices.byte_size(),
              slices.mutable_data());
  return slices;
}

absl::StatusOr<double> Milliseconds(const std::function<absl::Status()>& run) {
  CLEAVE_RETURN_IF_ERROR(run());
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    CLEAVE_RETURN_IF_ERROR(run());
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    shortest = std::min(shortest, elapsed.count());
  }
  return shortest;
}

std::string Agreement(double difference, int digits) {
  if (difference < std::pow(10, -digits)) {
    return absl::StrFormat("to %d digits", digits);
  }
  return absl::StrFormat("but for a part of %.1e", difference);
}

std::string RoundedText(const Tensor& tensor) {
  std::vector<std::string> elements;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    elements.push_back(absl::StrFormat("%.6g", tensor.GetDouble(i)));
  }
  return absl::StrCat(tensor.type().ToString(), " [",
                      absl::StrJoin(elements, ", "), "]");
}

}  // namespace cleave
