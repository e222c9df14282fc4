// host_kernel: an op that a function of the program computes.

#include <iostream>

#include "cleave.h"

absl::StatusOr<std::vector<cleave::Tensor>> Thrice(const cleave::HostCall& c) {
  const double x = c.inputs[0].GetDouble(0);
  return std::vector{cleave::Tensor::Scalar(cleave::DType::kF64, 3 * x)};
}

int main() {
  const auto rules = *cleave::ShippedRulesWith(R"(language 1
op thrice(x: f64[]) -> f64[] { jvp x = thrice(dx) }
fn f(x: f64[]) -> f64[] = sin(thrice(x))
)");
  const auto jvp = *cleave::Jvp(*rules->Function("f"), {true}, *rules);
  cleave::InterpretOptions options;
  options.host_kernels.Set("thrice", Thrice);
  const auto x = cleave::Tensor::Scalar(cleave::DType::kF64, 7);
  const auto y = *cleave::Evaluate(jvp.graph, *rules, {x, x}, options);
  std::cout << "sin(3 x) " << y[0].ToString() << "\n"
            << "tangent " << y[1].ToString() << "\n";
}
