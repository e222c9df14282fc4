#include "testing/check/check_host_testing.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/check/check_testing.h"

namespace cleave {

using Results = absl::StatusOr<std::vector<Tensor>>;

namespace {

std::vector<int64_t> ShapeOf(const TensorType& type) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(*dim.Value());
  return shape;
}

// A tensor as lanes along `axis`: element j of lane l.
struct Lanes {
  Lanes(const Tensor& x, int64_t axis) : extent(x.shape()[axis]) {
    for (int64_t d = axis + 1; d < x.rank(); ++d) inner *= x.shape()[d];
    count = extent == 0 ? 0 : x.size() / extent;
    for (int64_t d = 0; extent == 0 && d < x.rank(); ++d) {
      count = d == 0 ? 1 : count;
      if (d != axis) count *= x.shape()[d];
    }
    if (x.rank() == 1) count = 1;
  }
  int64_t At(int64_t lane, int64_t j) const {
    return (lane / inner * extent + j) * inner + lane % inner;
  }
  int64_t extent;
  int64_t inner = 1;
  int64_t count = 0;
};

}  // namespace

CheckOptions WithKernel(HostFunction kernel) {
  CheckOptions options;
  options.ops = "checked";
  options.layers = {Layer::kHostKernel};
  options.host_kernels.Set("checked", std::move(kernel));
  return options;
}

Verdict CheckHost(const std::string& text, const CheckOptions& options) {
  const auto rules =
      LoadText("test.rules", absl::StrCat("language 1\n\n", text, "\n"));
  if (rules == nullptr) return Verdict();
  const CheckReport report = CheckedRules(rules, options);
  const OpReport* op = report.Find("checked");
  EXPECT_NE(op, nullptr);
  if (op == nullptr || op->layers.count(Layer::kHostKernel) == 0) {
    ADD_FAILURE() << "no verdict on the kernel\n" << report.ToString();
    return Verdict();
  }
  return op->layers.at(Layer::kHostKernel);
}

Verdict CheckHost(const std::string& text, HostFunction kernel) {
  return CheckHost(text, WithKernel(std::move(kernel)));
}

std::string Shown(const Verdict& verdict) {
  return absl::StrCat(
      verdict.ToString(), "\n",
      verdict.counterexample ? verdict.counterexample->ToString() : "");
}

HostFunction Pointwise(
    std::function<double(const std::vector<double>&, const HostCall&)> f) {
  return [f](const HostCall& call) -> Results {
    Tensor y(call.results[0].dtype, call.inputs[0].shape());
    for (int64_t i = 0; i < y.size(); ++i) {
      std::vector<double> x;
      for (const Tensor& input : call.inputs) x.push_back(input.GetDouble(i));
      y.SetDouble(i, f(x, call));
    }
    return std::vector<Tensor>{y};
  };
}

HostFunction OfOne(double (*f)(double)) {
  return Pointwise(
      [f](const std::vector<double>& x, const HostCall&) { return f(x[0]); });
}

HostFunction AlongAxis(
    std::function<std::vector<double>(const std::vector<double>& lane,
                                      const HostCall& call)>
        f,
    bool wrong_axis) {
  return [=](const HostCall& call) -> Results {
    const Tensor& x = call.inputs[0];
    int64_t axis = call.attributes.GetInt("axis");
    if (wrong_axis) axis = x.rank() - 1 - axis;
    Tensor y(call.results[0].dtype, ShapeOf(call.results[0]));
    const bool keeps = y.rank() == x.rank();
    const Lanes lanes(x, axis);
    for (int64_t l = 0; l < lanes.count; ++l) {
      std::vector<double> lane;
      for (int64_t j = 0; j < lanes.extent; ++j) {
        lane.push_back(x.GetDouble(lanes.At(l, j)));
      }
      const std::vector<double> out = f(lane, call);
      if (!keeps) {
        if (l < y.size()) y.SetDouble(l, out[0]);
        continue;
      }
      for (int64_t j = 0; j < lanes.extent; ++j) {
        y.SetDouble(lanes.At(l, j), out[j]);
      }
    }
    return std::vector<Tensor>{y};
  };
}

}  // namespace cleave
