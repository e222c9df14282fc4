// Lift: a function on graph values becomes a function on tensors.
//
//   TracedValue Softplus(const TracedValue& x) {       // engine/ir/trace.h
//     return trace::Max(x, 0) + trace::Log1p(trace::Exp(-trace::Abs(x)));
//   }
//   auto softplus = Lift(Softplus);
//   Tensor y = softplus(x);           // eagerly: each node runs as an op does
//   TracedValue z = softplus(value);  // on graph values: the function itself
//
// Under a trace, and within an AtomicScope, the nodes join the graph there. It
// has no other meaning: nothing is fused, transformed, or remembered between
// calls, and arguments are not written.
//
// Arguments are tensors, numbers, and vectors of tensors; the function takes a
// TracedValue for each tensor or number and a vector for each vector, and
// returns a TracedValue or a vector of them. It is called once each time, and
// sees types: concrete in eager code. A mistake makes tensors that carry it.

#ifndef CLEAVE_ENGINE_EAGER_LIFT_H_
#define CLEAVE_ENGINE_EAGER_LIFT_H_

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/eager/tensor.h"
#include "engine/ir/trace.h"

namespace cleave::functional {

// The traced function on `arguments`: one result each.
absl::StatusOr<std::vector<Tensor>> CallTraced(
    const TracedFunction& fn, const std::vector<Tensor>& arguments);

namespace internal_lift {

template <typename T>
inline constexpr bool kIsTraced =
    std::is_same_v<std::decay_t<T>, TracedValue> ||
    std::is_same_v<std::decay_t<T>, std::vector<TracedValue>>;
template <typename T>
inline constexpr bool kIsVector =
    std::is_same_v<std::decay_t<T>, std::vector<Tensor>>;

inline void Append(const Tensor& x, std::vector<Tensor>* all) {
  all->push_back(x);
}
inline void Append(const std::vector<Tensor>& xs, std::vector<Tensor>* all) {
  all->insert(all->end(), xs.begin(), xs.end());
}

template <typename T>
using TracedArgument =
    std::conditional_t<kIsVector<T>, std::vector<TracedValue>, TracedValue>;

inline void Take(size_t, const TracedValue*& next, TracedValue* argument) {
  *argument = *next++;
}
inline void Take(size_t count, const TracedValue*& next,
                 std::vector<TracedValue>* argument) {
  argument->assign(next, next + count);
  next += count;
}
inline size_t CountOf(const Tensor&) { return 1; }
inline size_t CountOf(const std::vector<Tensor>& xs) { return xs.size(); }

template <typename Fn>
class Lifted {
 public:
  explicit Lifted(Fn fn) : fn_(std::move(fn)) {}

  template <typename... Arguments>
  auto operator()(const Arguments&... arguments) const {
    if constexpr ((kIsTraced<Arguments> || ...)) {
      return fn_(arguments...);
    } else {
      return OnTensors<std::conditional_t<kIsVector<Arguments>,
                                          std::vector<Tensor>, Tensor>...>(
          arguments...);
    }
  }

 private:
  template <typename... Arguments>
  auto OnTensors(const Arguments&... arguments) const {
    static_assert(
        std::is_invocable_v<const Fn&, const TracedArgument<Arguments>&...>,
        "a lifted function takes a TracedValue for each tensor or number that "
        "it is called with, and a std::vector<TracedValue> for each vector of "
        "tensors; a call operator is `const`");
    using Result = std::decay_t<
        std::invoke_result_t<const Fn&, const TracedArgument<Arguments>&...>>;
    constexpr bool kOne = std::is_same_v<Result, TracedValue>;
    static_assert(
        kOne || std::is_same_v<Result, std::vector<TracedValue>>,
        "a lifted function returns a TracedValue or a vector of them");
    std::vector<Tensor> all;
    (Append(arguments, &all), ...);
    absl::StatusOr<std::vector<Tensor>> results = CallTraced(
        [&](const std::vector<TracedValue>& values) {
          std::tuple<TracedArgument<Arguments>...> given;
          const TracedValue* next = values.data();
          std::apply(
              [&](auto&... argument) {
                (Take(CountOf(arguments), next, &argument), ...);
              },
              given);
          if constexpr (kOne) {
            return std::vector<TracedValue>{std::apply(fn_, given)};
          } else {
            return std::apply(fn_, given);
          }
        },
        all);
    if constexpr (kOne) {
      return results.ok() ? (*results)[0] : Tensor::Invalid(results.status());
    } else {
      return results.ok()
                 ? *std::move(results)
                 : std::vector<Tensor>{Tensor::Invalid(results.status())};
    }
  }

  Fn fn_;
};

}  // namespace internal_lift

// A function that returns a vector gives one tensor that carries the mistake
// where there was one.
template <typename Fn>
internal_lift::Lifted<std::decay_t<Fn>> Lift(Fn fn) {
  return internal_lift::Lifted<std::decay_t<Fn>>(std::move(fn));
}

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_LIFT_H_
