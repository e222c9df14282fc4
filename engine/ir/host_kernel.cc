#include "engine/ir/host_kernel.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/check.h"
#include "ops/dtype.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// The types with numbers for the variables that have a value.
absl::StatusOr<std::vector<TensorType>> Evaluated(
    absl::Span<const TensorType> types, const DimValues& dims) {
  std::map<std::string, Dim> values;
  for (const auto& [name, value] : dims) values.emplace(name, Dim(value));
  std::vector<TensorType> result(types.begin(), types.end());
  for (TensorType& type : result) {
    for (Dim& extent : type.shape) {
      if (extent.IsConstant()) continue;
      CLEAVE_ASSIGN_OR_RETURN(extent, extent.CheckedSubstitute(values));
    }
  }
  return result;
}

std::string TypeOf(const Tensor& tensor) {
  return absl::StrCat(DTypeName(tensor.dtype()), "[",
                      absl::StrJoin(tensor.shape(), ", "), "]");
}

}  // namespace

void HostKernels::Set(absl::string_view op, HostFunction function) {
  functions_[std::string(op)] =
      std::make_shared<const HostFunction>(std::move(function));
}

std::set<std::string> HostKernels::Ops() const {
  std::set<std::string> ops;
  for (const auto& [op, function] : functions_) ops.insert(op);
  return ops;
}

absl::StatusOr<std::vector<Tensor>> HostKernels::Run(const HostCall& call,
                                                     DimValues& dims) const {
  const auto it = functions_.find(call.op);
  CLEAVE_CHECK(it != functions_.end()) << call.op;
  const auto fail = [&](absl::StatusCode code, const auto&... what) {
    return absl::Status(
        code, absl::StrCat("the host kernel of `", call.op, "`", what...));
  };
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                          Evaluated(call.results, dims));
  if (*it->second == nullptr) {
    return fail(absl::StatusCode::kInvalidArgument, " is no function");
  }
  absl::StatusOr<std::vector<Tensor>> results =
      (*it->second)({call.op, call.inputs, call.attributes, types});
  if (!results.ok()) {
    return fail(results.status().code(), ": ", results.status().message());
  }
  const auto mistake = [&](const auto&... what) {
    return fail(absl::StatusCode::kInvalidArgument, " gave ", what...);
  };
  if (results->size() != types.size()) {
    return mistake(results->size(),
                   results->size() == 1 ? " result" : " results", ", not ",
                   types.size());
  }
  std::vector<DimEquation> open;
  for (size_t i = 0; i < types.size(); ++i) {
    const Tensor& result = (*results)[i];
    const TensorType& type = types[i];
    if (!result.valid()) {
      return fail(result.status().code(), ": result ", i, ": ",
                  result.status().message());
    }
    bool fits = result.dtype() == type.dtype && result.rank() == type.rank();
    for (int d = 0; fits && d < type.rank(); ++d) {
      const int64_t extent = result.shape()[d];
      if (const auto number = type.shape[d].Value()) {
        fits = extent == *number;
      } else {
        open.push_back({type.shape[d], extent,
                        absl::StrCat("axis ", d, " of result ", i)});
      }
    }
    if (!fits) {
      return mistake(TypeOf(result), " for result ", i, ", which is ",
                     type.ToString());
    }
  }
  if (!open.empty()) {
    const absl::Status status = BindEquations(std::move(open), &dims);
    if (!status.ok()) return fail(status.code(), ": ", status.message());
  }
  return results;
}

}  // namespace cleave
