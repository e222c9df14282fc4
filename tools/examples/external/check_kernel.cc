// check_kernel: does an op mean what the program's function computes?

#include <cmath>
#include <iostream>

#include "cleave.h"

absl::StatusOr<std::vector<cleave::Tensor>> Abs(const cleave::HostCall& call) {
  cleave::Tensor y(cleave::DType::kF32, call.inputs[0].shape());
  for (int64_t i = 0; i < y.size(); ++i) {
    y.SetDouble(i, std::abs(call.inputs[0].GetDouble(i)));
  }
  return std::vector{y};
}

int main() {
  const auto rules = *cleave::ShippedRulesWith(R"(language 1
op magnitude(x: f32[n]) -> f32[n] = max(x, 0)
)");
  cleave::CheckOptions options;
  options.ops = "magnitude";
  options.layers = {cleave::Layer::kHostKernel};
  options.host_kernels.Set("magnitude", Abs);
  std::cout << cleave::CheckRules(rules, options)->ToString();
}
