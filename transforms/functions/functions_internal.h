// The templates of functions.h. Include that instead.

#ifndef CLEAVE_TRANSFORMS_FUNCTIONS_FUNCTIONS_INTERNAL_H_
#define CLEAVE_TRANSFORMS_FUNCTIONS_FUNCTIONS_INTERNAL_H_

// IWYU pragma: private, include "transforms/functions/functions.h"

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/eager/tensor.h"
#include "engine/eager/tree.h"
#include "transforms/functions/functions.h"

namespace cleave::functional {
namespace internal_functions {

// On trees: `fn` takes a tuple of the arguments.
absl::StatusOr<Tree> CallVmap(const TreeFunction& fn, const Tree& arguments,
                              const MapAxes& in_axes, const MapAxes& out_axes);
// The value and the tangent, as a tuple.
absl::StatusOr<Tree> CallJvp(const TreeFunction& fn, const Tree& arguments,
                             const Tree& tangents);
// The value and the gradients in the arguments numbered, as a tuple; the
// gradients alone unless `with_value`. One gradient stands alone, several are a
// tuple.
absl::StatusOr<Tree> CallGrad(const TreeFunction& fn, const Tree& arguments,
                              const std::vector<size_t>& numbers,
                              bool with_value);

// The tensors that reverse mode keeps of one run.
class Residuals;
struct ValueAndResiduals {
  Tree value;
  std::shared_ptr<const Residuals> residuals;
};
absl::StatusOr<ValueAndResiduals> CallVjp(const TreeFunction& fn,
                                          const Tree& arguments);
// A tuple of the arguments' cotangents.
absl::StatusOr<Tree> PullBack(const Residuals& residuals,
                              const Tree& cotangent);

template <typename T>
struct CarriesMistakes : std::false_type {};
template <>
struct CarriesMistakes<Tensor> : std::true_type {};
template <typename A, typename B>
struct CarriesMistakes<std::pair<A, B>>
    : std::bool_constant<std::is_same_v<A, Tensor> &&
                         std::is_same_v<B, Tensor>> {};
template <typename... Ts>
struct CarriesMistakes<std::tuple<Ts...>>
    : std::bool_constant<(std::is_same_v<Ts, Tensor> && ...)> {};

inline void Spoil(const absl::Status& status, Tensor* x) {
  *x = Tensor::Invalid(status);
}
inline void Spoil(const absl::Status& status, std::pair<Tensor, Tensor>* x) {
  Spoil(status, &x->first);
  Spoil(status, &x->second);
}
template <typename... Ts>
void Spoil(const absl::Status& status, std::tuple<Ts...>* xs) {
  std::apply([&](auto&... x) { (Spoil(status, &x), ...); }, *xs);
}

// T where that can carry a mistake, else a StatusOr of it.
template <typename T>
using Outcome =
    std::conditional_t<CarriesMistakes<T>::value, T, absl::StatusOr<T>>;

template <typename T>
Outcome<T> Deliver(const absl::StatusOr<Tree>& tree) {
  absl::StatusOr<T> value =
      tree.ok() ? FromTree<T>(*tree) : absl::StatusOr<T>(tree.status());
  if constexpr (CarriesMistakes<T>::value) {
    if (value.ok()) return *std::move(value);
    T spoilt;
    Spoil(value.status(), &spoilt);
    return spoilt;
  } else {
    return value;
  }
}

// The type in which the function gets an argument: concrete tensors and numbers
// are tensors, other types trees.
template <typename T>
using ArgumentOf =
    std::conditional_t<!std::is_same_v<std::decay_t<T>, Tensor> &&
                           std::is_convertible_v<const T&, Tensor>,
                       Tensor, std::decay_t<T>>;

template <typename T>
struct WithoutStatus {
  using Type = T;
};
template <typename T>
struct WithoutStatus<absl::StatusOr<T>> {
  using Type = T;
};
template <typename Fn, typename... Arguments>
using ResultOf = typename WithoutStatus<
    std::decay_t<std::invoke_result_t<const Fn&, const Arguments&...>>>::Type;

// `fn` as a function of a tuple. Refers to `fn`.
template <typename... Arguments, typename Fn>
TreeFunction OnTuple(const Fn& fn) {
  return [&fn](const Tree& tree) -> absl::StatusOr<Tree> {
    CLEAVE_ASSIGN_OR_RETURN(const auto arguments,
                            FromTree<std::tuple<Arguments...>>(tree));
    return internal_tree::ResultToTree(std::apply(fn, arguments));
  };
}

template <typename... Arguments>
Tree TupleOf(const Arguments&... arguments) {
  return Tree::Tuple({ToTree(arguments)...});
}

template <typename Fn>
class Vmapped {
 public:
  Vmapped(Fn fn, MapAxes in_axes, MapAxes out_axes)
      : fn_(std::move(fn)),
        in_axes_(std::move(in_axes)),
        out_axes_(std::move(out_axes)) {}

  template <typename... Arguments>
  auto operator()(const Arguments&... arguments) const {
    return On<ArgumentOf<Arguments>...>(arguments...);
  }

 private:
  template <typename... Arguments>
  Outcome<ResultOf<Fn, Arguments...>> On(const Arguments&... arguments) const {
    return Deliver<ResultOf<Fn, Arguments...>>(
        CallVmap(OnTuple<Arguments...>(fn_), TupleOf(arguments...), in_axes_,
                 out_axes_));
  }

  Fn fn_;
  MapAxes in_axes_;
  MapAxes out_axes_;
};

template <typename Fn>
class Jvped {
 public:
  explicit Jvped(Fn fn) : fn_(std::move(fn)) {}

  template <typename... Arguments>
  auto operator()(const Arguments&... arguments) const {
    static_assert(sizeof...(Arguments) % 2 == 0 && sizeof...(Arguments) > 0,
                  "Jvp(f) takes f's arguments, then a tangent for each");
    return Split(std::make_index_sequence<sizeof...(Arguments) / 2>(),
                 std::tuple<ArgumentOf<Arguments>...>(arguments...));
  }

 private:
  template <size_t... kPrimal, typename Given>
  auto Split(std::index_sequence<kPrimal...>, const Given& given) const {
    return On<std::tuple_element_t<kPrimal, Given>...>(
        TupleOf(std::get<kPrimal>(given)...),
        TupleOf(std::get<sizeof...(kPrimal) + kPrimal>(given)...));
  }
  template <typename... Primals>
  auto On(const Tree& primals, const Tree& tangents) const {
    using Result = ResultOf<Fn, Primals...>;
    return Deliver<std::pair<Result, Result>>(
        CallJvp(OnTuple<Primals...>(fn_), primals, tangents));
  }

  Fn fn_;
};

// From the cotangent of a result to those of the arguments.
template <typename Result, typename... Arguments>
class Pullback {
 public:
  using Gradients =
      std::conditional_t<sizeof...(Arguments) == 1,
                         std::tuple_element_t<0, std::tuple<Arguments...>>,
                         std::tuple<Arguments...>>;

  explicit Pullback(std::shared_ptr<const Residuals> residuals)
      : residuals_(std::move(residuals)) {}

  Outcome<Gradients> operator()(const Result& cotangent) const {
    absl::StatusOr<Tree> gradients = PullBack(*residuals_, ToTree(cotangent));
    if constexpr (sizeof...(Arguments) == 1) {
      if (gradients.ok()) gradients = gradients->Children()[0];
    }
    return Deliver<Gradients>(gradients);
  }

 private:
  std::shared_ptr<const Residuals> residuals_;
};

template <typename Result, typename... Arguments>
struct ValueAndPullback {
  Result value;
  Pullback<Result, Arguments...> pullback;
};

template <typename Fn>
class Vjped {
 public:
  explicit Vjped(Fn fn) : fn_(std::move(fn)) {}

  template <typename... Arguments>
  auto operator()(const Arguments&... arguments) const {
    return On<ArgumentOf<Arguments>...>(arguments...);
  }

 private:
  template <typename... Arguments>
  auto On(const Arguments&... arguments) const -> absl::StatusOr<
      ValueAndPullback<ResultOf<Fn, Arguments...>, Arguments...>> {
    using Result = ResultOf<Fn, Arguments...>;
    CLEAVE_ASSIGN_OR_RETURN(
        ValueAndResiduals run,
        CallVjp(OnTuple<Arguments...>(fn_), TupleOf(arguments...)));
    CLEAVE_ASSIGN_OR_RETURN(Result value, FromTree<Result>(run.value));
    return ValueAndPullback<Result, Arguments...>{
        std::move(value),
        Pullback<Result, Arguments...>(std::move(run.residuals))};
  }

  Fn fn_;
};

template <bool kWithValue, typename Fn, size_t... kArguments>
class Graded {
 public:
  explicit Graded(Fn fn) : fn_(std::move(fn)) {}

  template <typename... Arguments>
  auto operator()(const Arguments&... arguments) const {
    static_assert(((kArguments < sizeof...(Arguments)) && ...),
                  "a gradient is asked for in an argument that is not there");
    return On<ArgumentOf<Arguments>...>(arguments...);
  }

 private:
  template <typename... Arguments>
  auto On(const Arguments&... arguments) const {
    using All = std::tuple<Arguments...>;
    static_assert(std::is_same_v<ResultOf<Fn, Arguments...>, Tensor> ||
                      std::is_same_v<ResultOf<Fn, Arguments...>, Tree>,
                  "a gradient is that of one tensor");
    using Gradients = std::conditional_t<
        sizeof...(kArguments) == 1,
        std::tuple_element_t<std::min({kArguments...}), All>,
        std::tuple<std::tuple_element_t<kArguments, All>...>>;
    using Result =
        std::conditional_t<kWithValue, std::pair<Tensor, Gradients>, Gradients>;
    return Deliver<Result>(CallGrad(OnTuple<Arguments...>(fn_),
                                    TupleOf(arguments...), {kArguments...},
                                    kWithValue));
  }

  Fn fn_;
};

// The first argument, unless others are named.
template <bool kWithValue, typename Fn, size_t... kArguments>
struct GradedInOrder {
  using Type = Graded<kWithValue, Fn, kArguments...>;
};
template <bool kWithValue, typename Fn>
struct GradedInOrder<kWithValue, Fn> {
  using Type = Graded<kWithValue, Fn, 0>;
};
template <typename Fn, size_t... kArguments>
using GradOf = typename GradedInOrder<false, Fn, kArguments...>::Type;
template <typename Fn, size_t... kArguments>
using ValueAndGradOf = typename GradedInOrder<true, Fn, kArguments...>::Type;

}  // namespace internal_functions

namespace internal_tree {

// The parameters of a transformed function, for AotFunction::Make and
// ToTreeFunction: those of the function that was transformed.
template <typename Arguments>
struct CallTraitsOn;
template <typename... Arguments>
struct CallTraitsOn<std::tuple<Arguments...>> {
  template <typename Fn>
  using Result = std::invoke_result_t<const Fn&, const Arguments&...>;
};
template <typename Wrapped, typename Fn>
struct TransformedTraits {
  using Arguments = typename CallTraits<Fn>::Arguments;
  using Result = typename CallTraitsOn<Arguments>::template Result<Wrapped>;
};
template <typename Fn>
struct HasKnownParameters<internal_functions::Vmapped<Fn>>
    : HasKnownParameters<Fn> {};
template <bool kWithValue, typename Fn, size_t... kArguments>
struct HasKnownParameters<
    internal_functions::Graded<kWithValue, Fn, kArguments...>>
    : HasKnownParameters<Fn> {};
template <typename Fn>
struct HasKnownParameters<internal_functions::Jvped<Fn>>
    : HasKnownParameters<Fn> {};

template <typename Fn>
struct CallTraits<internal_functions::Vmapped<Fn>>
    : TransformedTraits<internal_functions::Vmapped<Fn>, Fn> {};
template <bool kWithValue, typename Fn, size_t... kArguments>
struct CallTraits<internal_functions::Graded<kWithValue, Fn, kArguments...>>
    : TransformedTraits<
          internal_functions::Graded<kWithValue, Fn, kArguments...>, Fn> {};
template <typename Fn>
struct CallTraits<internal_functions::Jvped<Fn>> {
  template <typename Arguments>
  static auto Twice(const Arguments& arguments)
      -> decltype(std::tuple_cat(arguments, arguments));
  using Arguments = decltype(Twice(
      std::declval<const typename CallTraits<Fn>::Arguments&>()));
  using Result = typename CallTraitsOn<Arguments>::template Result<
      internal_functions::Jvped<Fn>>;
};

}  // namespace internal_tree
}  // namespace cleave::functional

#endif  // CLEAVE_TRANSFORMS_FUNCTIONS_FUNCTIONS_INTERNAL_H_
