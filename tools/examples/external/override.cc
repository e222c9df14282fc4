// override RULES...: silu with a derivative of the program's own.

#include <iostream>

#include "cleave.h"

int main(int argc, char** argv) {
  const auto shipped = cleave::LoadRules(
      *cleave::ReadRuleFiles({argv + 1, argv + argc}),
      std::make_shared<cleave::Context>(), cleave::WithTransforms());
  const auto mine = cleave::ExtendRules(shipped.rules, {"mine", R"(language 1
override silu { jvp x = 2 * dx }
fn f(x: f32[1]) -> f32[1] = silu(x)
)"});
  const auto f = *mine.rules->Function("f");
  const auto jvp = cleave::Jvp(f, {true}, *mine.rules)->graph;
  const auto x = cleave::Tensor::FromDoubles(cleave::DType::kF32, {1}, {7});
  const auto y = *cleave::Interpret(*Expand(jvp, *mine.rules), {x, x});
  std::cout << y[1].ToString() << "\n";  // the tangent: 14
}
