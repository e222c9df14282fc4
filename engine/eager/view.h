// View: an index map from the elements of a tensor to those of its storage.
//
// The storage model. A *storage* is a mutable cell that holds one dense value
// and a version number, which counts the writes. A *view* is a base, which is
// the storage's whole value, and an index map: a chain of movement steps, each
// a primitive with its attributes. A tensor (tensor.h) is a storage and a view
// of it; tensors share a storage where one was made from the other by basic
// indexing, transposing, reshaping and the like.
//
//   - To read a tensor applies the steps to the base: movement nodes, which
//     fuse into the op that reads.
//   - To write a tensor computes a new base, in which the elements that the
//     view reaches are replaced and all others keep their bits, and puts it
//     into the storage. All tensors of that storage see it. No memory is ever
//     overwritten: a value that was read before the write stays what it was.
//   - A broadcast maps several places to one element: it can be read only.
//
//   View all(TensorType{DType::kF32, {4, n}});
//   View row = *all.Slice({1, 0}, {1, n}, {});
//   View flat = *row.Reshape({n});
//   Value y = *ReadView(builder, base, flat);
//   Value new_base = *WriteView(builder, base, flat, value);
//
// Parameters of steps are Dims: a view holds at symbolic extents as well. A
// condition that typing cannot decide there becomes a guard of the graph that
// reads or writes.

#ifndef CLEAVE_ENGINE_EAGER_VIEW_H_
#define CLEAVE_ENGINE_EAGER_VIEW_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "ops/dim.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave::functional {

// slice, reverse, transpose, reshape or broadcast_in_dim, with attributes as in
// ops/primitive.h.
struct ViewStep {
  Primitive primitive = Primitive::kReshape;
  Attributes attributes;
  TensorType result;
  friend bool operator==(const ViewStep& a, const ViewStep& b) {
    return a.primitive == b.primitive && a.attributes == b.attributes &&
           a.result == b.result;
  }
};

class View {
 public:
  // The whole of an f32[].
  View() : rep_(Whole()) {}
  // The whole of a base of that type.
  explicit View(TensorType base)
      : rep_(std::make_shared<const Rep>(Rep{std::move(base), {}})) {}

  // A view that was moved from stays what it was.
  View(const View&) = default;
  View& operator=(const View&) = default;

  const TensorType& base() const { return rep_->base; }
  // The type of the values that are read and written through this view.
  const TensorType& type() const {
    return rep_->steps.empty() ? rep_->base : rep_->steps.back().result;
  }
  const std::vector<ViewStep>& steps() const { return rep_->steps; }
  bool IsIdentity() const { return rep_->steps.empty(); }
  // Whether no step is a broadcast.
  bool writable() const;

  // This view, seen through one more step. InvalidArgument where it does not
  // fit the type. Steps that move nothing are left out, and neighbours of one
  // kind joined, so that many chains that mean the same are equal.
  // Elements start[d] + i * stride[d], i < size[d]; no strides are all 1.
  absl::StatusOr<View> Slice(const std::vector<Dim>& start,
                             const std::vector<Dim>& size,
                             const std::vector<int64_t>& stride = {}) const;
  // Axis d of the result is axes[d].
  absl::StatusOr<View> Transpose(const std::vector<int>& axes) const;
  // As many elements, in row-major order.
  absl::StatusOr<View> Reshape(const Shape& shape) const;
  absl::StatusOr<View> Reverse(const std::vector<int>& axes) const;
  // Right-aligned, as in NumPy.
  absl::StatusOr<View> BroadcastTo(const Shape& shape) const;
  // Axis d becomes axes[d]; an extent 1 stretches.
  absl::StatusOr<View> BroadcastInDim(const Shape& shape,
                                      const std::vector<int>& axes) const;
  // One of the five by its primitive.
  absl::StatusOr<View> Then(Primitive primitive, Attributes attributes) const;

  // `base f32[4, n]: slice(..) -> f32[1, n]: reshape(..) -> f32[n]`.
  std::string ToString() const;
  // Equal chains: the same elements. Unequal ones may be the same, too.
  friend bool operator==(const View& a, const View& b) {
    return a.rep_ == b.rep_ ||
           (a.rep_->base == b.rep_->base && a.rep_->steps == b.rep_->steps);
  }
  friend bool operator!=(const View& a, const View& b) { return !(a == b); }

 private:
  // Copies share it: tensors are copied often, and views never change.
  struct Rep {
    TensorType base;
    std::vector<ViewStep> steps;
  };
  explicit View(Rep rep) : rep_(std::make_shared<const Rep>(std::move(rep))) {}
  static const std::shared_ptr<const Rep>& Whole();

  std::shared_ptr<const Rep> rep_;  // never null
};

// The value that `view` reads from `base`, a node of the view's base type
// (InvalidArgument otherwise). Adds one movement node per step.
absl::StatusOr<Value> ReadView(GraphBuilder& builder, Value base,
                               const View& view);

// The base with `value`, of the view's type, in the view's place, and the bits
// of `base` elsewhere. InvalidArgument for a view that is not writable and
// types that do not fit; Unimplemented for a slice of keys.
absl::StatusOr<Value> WriteView(GraphBuilder& builder, Value base,
                                const View& view, Value value);

// Whether the tensor has that type: no type is made of it, as calls ask this of
// each of their arguments.
bool HasType(const cleave::Tensor& tensor, const TensorType& type);

// The value that `view` reads from the concrete `base`, copied; the base itself
// if the view is the identity. O(elements); no kernel runs. InvalidArgument if
// the view is of another type or its parameters are not numbers.
absl::StatusOr<cleave::Tensor> CopyView(const cleave::Tensor& base,
                                        const View& view);

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_VIEW_H_
