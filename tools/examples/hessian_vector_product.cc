// How the gradient of a loss changes along a direction, without the Hessian:
// forward mode over reverse mode costs a few gradients, whatever the number of
// weights is.

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

#include "absl/strings/str_format.h"
#include "ops/status_macros.h"
#include "tools/examples/examples.h"
#include "transforms/vjp/derivatives.h"

namespace cleave {

absl::Status RunHessianVectorProduct(const ExampleContext& context,
                                     std::ostream& out) {
  CLEAVE_ASSIGN_OR_RETURN(
      const auto rules,
      LoadExampleRules(context, "hessian_vector_product.rules"));
  CLEAVE_ASSIGN_OR_RETURN(const Graph loss, rules->Function("loss"));
  CLEAVE_ASSIGN_OR_RETURN(const Graph apply_graph, rules->Function("apply"));
  CLEAVE_ASSIGN_OR_RETURN(
      const Graph product_graph,
      HessianVectorProduct(loss, /*active=*/{true, false, false}, *rules));
  CLEAVE_ASSIGN_OR_RETURN(const Graph hessian_graph,
                          Hessian(loss, /*input=*/0, *rules));
  CLEAVE_ASSIGN_OR_RETURN(const Kernel product_kernel,
                          CompileCalls(product_graph, *rules));
  CLEAVE_ASSIGN_OR_RETURN(const Kernel hessian_kernel,
                          CompileCalls(hessian_graph, *rules));
  CLEAVE_ASSIGN_OR_RETURN(const Kernel apply,
                          CompileCalls(apply_graph, *rules));

  // w, x and y, and behind them the direction.
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> drawn,
                          Drawn(*rules, /*seed=*/1));
  const std::vector<Tensor> point(drawn.begin(), drawn.begin() + 3);
  std::vector<Tensor> product;
  std::vector<Tensor> hessian;
  CLEAVE_ASSIGN_OR_RETURN(
      const double product_milliseconds, Milliseconds([&]() -> absl::Status {
        CLEAVE_ASSIGN_OR_RETURN(product, product_kernel.Run(drawn));
        return absl::OkStatus();
      }));
  CLEAVE_ASSIGN_OR_RETURN(
      const double hessian_milliseconds, Milliseconds([&]() -> absl::Status {
        CLEAVE_ASSIGN_OR_RETURN(hessian, hessian_kernel.Run(point));
        return absl::OkStatus();
      }));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> expected,
                          apply.Run({hessian[0], drawn[3]}));

  double difference = 0;
  double largest = 0;
  for (int64_t i = 0; i < product[0].size(); ++i) {
    const double want = expected[0].GetDouble(i);
    difference = std::max(difference, std::abs(product[0].GetDouble(i) - want));
    largest = std::max(largest, std::abs(want));
  }
  out << absl::StrFormat(
      "%d weights\nproduct %s, %d bytes\nHessian %s, %d bytes\n"
      "they agree %s\n",
      drawn[0].size(), product[0].type().ToString(), product[0].byte_size(),
      hessian[0].type().ToString(), hessian[0].byte_size(),
      Agreement(difference / largest));
  if (context.times) {
    out << absl::StrFormat("product %.2f ms, Hessian %.2f ms\n",
                           product_milliseconds, hessian_milliseconds);
  }
  return absl::OkStatus();
}

}  // namespace cleave
