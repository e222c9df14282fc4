// override: a shipped op with a derivative of the program's own.

#include <iostream>

#include "cleave.h"

int main() {
  const auto rules = *cleave::ShippedRulesWith(R"(language 1
override silu { jvp x = 2 * dx }
fn f(x: f32[1]) -> f32[1] = silu(x)
)");
  const auto jvp = *cleave::Jvp(*rules->Function("f"), {true}, *rules);
  const auto x = cleave::Tensor::FromDoubles(cleave::DType::kF32, {1}, {7});
  const auto y = *cleave::Evaluate(jvp.graph, *rules, {x, x});
  std::cout << "silu " << y[0].ToString() << "\n"
            << "tangent " << y[1].ToString() << "\n";
}
