// Atomic: in eager code, ops that are computed as one.
//
//   auto forward = Atomic([&](const Tensor& x) {
//     return Gelu(Matmul(x, weight) + bias);   // one graph, fused
//   });
//   Tensor y = forward(x);
//
//   { AtomicScope scope;  y = Exp(x); x += y; }   // the same as a scope
//
// The ops within accumulate in one graph, which is expanded, fused and compiled
// as one, found again by its structure, and runs at the end of the outermost
// scope: what is within another joins it. To ask for a value within runs what
// there is so far (SessionStatistics::early_runs counts that).
//
// It says when ops run, and nothing else: values are bit by bit those of ops
// that run one by one, for floats are strict in kernels however they are fused.
// Under a trace, and with EagerMode::kLazy, it has no effect. It neither lifts
// functions (lift.h) nor transforms them.

#ifndef CLEAVE_ENGINE_EAGER_ATOMIC_H_
#define CLEAVE_ENGINE_EAGER_ATOMIC_H_

#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "engine/eager/session.h"

namespace cleave::functional {

// Scopes nest; ops accumulate until the last of a session's scopes has ended.
class AtomicScope {
 public:
  AtomicScope();
  AtomicScope(const AtomicScope&) = delete;
  AtomicScope& operator=(const AtomicScope&) = delete;
  // As End(), but for what it tells: the tensors carry the status of the run,
  // and a refused in-place operator is told by Session::Run().
  ~AtomicScope();

  // Ends the scope: if it is the outermost one, runs what has accumulated. The
  // first mistake of that run, or else of an in-place operator, which wrote
  // nothing.
  absl::Status End();

 private:
  absl::Status End(bool tell);

  std::shared_ptr<Session::Impl> session_;  // null where there is no effect
};

// `fn` with an AtomicScope around each call. Arguments and results are those of
// `fn`.
template <typename Fn>
auto Atomic(Fn fn) {
  return [fn = std::move(fn)](auto&&... arguments)
             -> std::invoke_result_t<const Fn&, decltype(arguments)...> {
    const AtomicScope scope;
    return fn(std::forward<decltype(arguments)>(arguments)...);
  };
}

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_ATOMIC_H_
