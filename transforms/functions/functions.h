// Vmap, Jvp, Vjp, Grad, ValueAndGrad: a C++ function on tensors becomes its
// batch, or its derivative: again a function on tensors.
//
//   const auto loss = [](const Tensor& w, const Tensor& x) {
//     return Sum(Sin(Matmul(x, w)));
//   };
//   Tensor dw = Grad(loss)(w, x);
//   Tensor each = Vmap(Grad(loss), {kNotMapped, 0})(w, xs);  // one per example
//   auto [y, dy] = Jvp(loss)(w, x, w_tangent, Zeros(DType::kF32, {2, 3}));
//
// They nest in any order and to any depth, with themselves and with Lift,
// Atomic and AotFunction: Grad(Grad(f)), Vmap(Grad(f)), Jvp(Vmap(f)).
//
// A call runs the function once on traced tensors, transforms the graph that
// it made, and runs that: fused, as one graph, by the session of this thread.
// Nothing is remembered of the function, so that it may look at the world as it
// is; graphs of one structure are transformed and compiled once. Under a trace
// the nodes join it. Tensors that the function captures are constants for the
// transform, and what they are for one around it.
//
// Arguments and results are tensors or trees of them (engine/eager/tree.h); a
// function may also return an absl::StatusOr of one. A transformed function
// that gives a tensor, or a pair or tuple of tensors, gives tensors that carry
// the mistake, if there is one; else it gives an absl::StatusOr. Mistakes are
// those of the function (with their place in its trace), of the transform
// (transforms/vmap/vmap.h, jvp.h, vjp.h) and of the run; FailedPrecondition
// where this thread has neither a session nor a trace with rules.
// InvalidArgument for a function that writes its argument: it can write a
// Clone().

#ifndef CLEAVE_TRANSFORMS_FUNCTIONS_FUNCTIONS_H_
#define CLEAVE_TRANSFORMS_FUNCTIONS_FUNCTIONS_H_

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/eager/tensor.h"
#include "engine/eager/tree.h"
#include "transforms/vmap/vmap.h"

namespace cleave::functional {

// Where the examples stand in a tree of tensors: one axis for all of its leaves
// (kNotMapped: all examples share them; kSplit: of keys, each example has its
// own), or an entry for each child, of maps in the order of their keys.
//
//   0    {0, kNotMapped}    {{kNotMapped, 1}, 0}
class MapAxes {
 public:
  MapAxes(int axis) : axis_(axis) {}  // NOLINT: an axis for all leaves.
  MapAxes(std::initializer_list<MapAxes> children)
      : children_(children), has_children_(true) {}

  // Per leaf of a tree of that structure. InvalidArgument where there are
  // other children; `what` names the axes in the message.
  absl::StatusOr<std::vector<int>> PerLeaf(const TreeShape& shape,
                                           absl::string_view what) const;

 private:
  absl::Status Append(const TreeShape& shape, absl::string_view what,
                      std::vector<int>* axes) const;

  int axis_ = 0;
  std::vector<MapAxes> children_;
  bool has_children_ = false;
};

}  // namespace cleave::functional

#include "transforms/functions/functions_internal.h"

namespace cleave::functional {

// `fn` on many examples at once: the results are those of the loop over them,
// stacked at `out_axes`. `in_axes` has an entry for each argument, or is one
// axis for all; axes count from 0. All examples' extents must be one.
//
//   Vmap(f)(xs)   Vmap(f, {0, kNotMapped})(xs, w)   Vmap(f, 0, 1)(xs)
template <typename Fn>
auto Vmap(Fn fn, MapAxes in_axes = 0, MapAxes out_axes = 0) {
  return internal_functions::Vmapped<std::decay_t<Fn>>(
      std::move(fn), std::move(in_axes), std::move(out_axes));
}

// The value and its tangent, as a pair: of the arguments, then a tangent for
// each of them, of the same structure and types. A leaf Tensor() among the
// tangents stands for zeros, and for those of exact dtypes, which have none;
// so it does in the result.
//
//   auto [y, dy] = Jvp(f)(x, w, dx, dw);
template <typename Fn>
auto Jvp(Fn fn) {
  return internal_functions::Jvped<std::decay_t<Fn>>(std::move(fn));
}

// The value at the arguments, and the function from its cotangent to the
// cotangents of the arguments (a tuple, if there are several), which may be
// called any number of times: what it needs of the run is kept. Always an
// absl::StatusOr. A leaf Tensor() stands for zeros, as in Jvp.
//
//   auto y = Vjp(f)(x);               // y->value
//   Tensor dx = y->pullback(dy);
template <typename Fn>
auto Vjp(Fn fn) {
  return internal_functions::Vjped<std::decay_t<Fn>>(std::move(fn));
}

// The gradient of a function whose one result is a real float scalar, in the
// arguments with these numbers (a tuple of gradients, if there are several); in
// the first one, unless numbers are given. Leaves of exact dtypes have
// Tensor().
//
//   Grad(f)(x, w)   Grad<1>(f)(x, w)   auto [dx, dw] = Grad<0, 1>(f)(x, w);
template <size_t... kArguments, typename Fn>
auto Grad(Fn fn) {
  return internal_functions::GradOf<std::decay_t<Fn>, kArguments...>(
      std::move(fn));
}

// A pair: the value, and what Grad gives.
template <size_t... kArguments, typename Fn>
auto ValueAndGrad(Fn fn) {
  return internal_functions::ValueAndGradOf<std::decay_t<Fn>, kArguments...>(
      std::move(fn));
}

}  // namespace cleave::functional

#endif  // CLEAVE_TRANSFORMS_FUNCTIONS_FUNCTIONS_H_
