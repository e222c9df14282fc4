// host_kernel: an op that a function of the program computes.

#include <iostream>

#include "cleave.h"

absl::StatusOr<std::vector<cleave::Tensor>> Thrice(const cleave::HostCall& c) {
  const double x = c.inputs[0].GetDouble(0);
  return std::vector{
      cleave::Tensor::FromDoubles(c.results[0].dtype, {1}, {3 * x})};
}

int main() {
  const auto mine = cleave::LoadRules({{"mine", R"(language 1
op thrice(x: f64[n]) -> f64[n] { jvp x = thrice(dx) }
fn f(x: f64[1]) -> f64[1] = thrice(x)
)"}},
                                      std::make_shared<cleave::Context>(),
                                      cleave::WithTransforms());
  const auto f = *mine.rules->Function("f");
  const auto jvp = cleave::Jvp(f, {true}, *mine.rules)->graph;
  cleave::InterpretOptions options;
  options.host_kernels.Set("thrice", Thrice);
  const auto x = cleave::Tensor::FromDoubles(cleave::DType::kF64, {1}, {7});
  const auto y = *cleave::Interpret(*Expand(jvp, *mine.rules), {x, x}, options);
  std::cout << y[1].ToString() << "\n";  // the tangent: 21
}
