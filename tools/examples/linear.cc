// A linear layer whose forward is atomic: its ops run as one fused kernel,
// where op by op each runs its own. The result is the same, to the bit.

#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/eager/atomic.h"
#include "engine/eager/core_ops.h"
#include "engine/eager/session.h"
#include "engine/eager/tensor.h"
#include "ops/status_macros.h"
#include "tools/examples/examples.h"

namespace cleave {
namespace {

struct Linear {
  functional::Tensor weight;
  functional::Tensor bias;

  functional::Tensor Forward(const functional::Tensor& x) const {
    return functional::Gelu(functional::Matmul(x, weight) + bias);
  }
  functional::Tensor AtomicForward(const functional::Tensor& x) const {
    const functional::AtomicScope scope;
    return Forward(x);
  }
};

// Prints what one call runs, and how long it takes.
template <typename Forward>
absl::StatusOr<Tensor> Show(const char* name, functional::Session& session,
                            bool times, std::ostream& out,
                            const Forward& forward) {
  session.ResetStatistics();
  CLEAVE_ASSIGN_OR_RETURN(Tensor y, forward().Concrete());
  const functional::SessionStatistics ran = session.statistics();
  out << absl::StrFormat(
      "%s\n  ops: %d\n  kernels: %d\n  bytes read: %d\n  bytes written: %d\n",
      name, ran.ops, ran.kernels_run, ran.bytes_read, ran.bytes_written);
  if (times) {
    CLEAVE_ASSIGN_OR_RETURN(const double milliseconds, Milliseconds([&]() {
                              return forward().Concrete().status();
                            }));
    out << absl::StrFormat("  milliseconds: %.2f\n", milliseconds);
  }
  return y;
}

}  // namespace

absl::Status RunLinear(const ExampleContext& context, std::ostream& out) {
  CLEAVE_ASSIGN_OR_RETURN(const auto rules,
                          LoadExampleRules(context, "linear.rules"));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> drawn,
                          Drawn(*rules, /*seed=*/1));
  functional::Session session(rules);
  const functional::SessionScope scope(session);
  const functional::Tensor x = drawn[0];
  const Linear layer = {drawn[1], drawn[2]};
  CLEAVE_ASSIGN_OR_RETURN(const Tensor apart,
                          Show("op by op", session, context.times, out,
                               [&]() { return layer.Forward(x); }));
  CLEAVE_ASSIGN_OR_RETURN(const Tensor together,
                          Show("atomic", session, context.times, out,
                               [&]() { return layer.AtomicForward(x); }));
  out << absl::StrFormat(
      "%s, %s\n", together.type().ToString(),
      SameValue(apart, together) ? "the same bits" : "other bits");
  return absl::OkStatus();
}

}  // namespace cleave
