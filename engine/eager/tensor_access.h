// The inside of tensors, for the other files of engine/eager.

#ifndef CLEAVE_ENGINE_EAGER_TENSOR_ACCESS_H_
#define CLEAVE_ENGINE_EAGER_TENSOR_ACCESS_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/eager/storage.h"
#include "engine/eager/tensor.h"
#include "engine/ir/graph.h"
#include "ops/dtype.h"

namespace cleave::functional {

struct TensorAccess {
  static const std::shared_ptr<Storage>& StorageOf(const Tensor& x) {
    return x.storage_;
  }
  // All of the storage.
  static Tensor Make(std::shared_ptr<Storage> storage) {
    Tensor x;
    x.status_ = absl::OkStatus();
    x.view_ = storage->whole;
    x.storage_ = std::move(storage);
    return x;
  }
  // A new storage whose value is a node.
  static Tensor Make(Recorder& recorder, Value node) {
    auto storage = std::make_shared<Storage>();
    storage->SetNode(recorder.shared_from_this(), node,
                     recorder.builder().type(node));
    recorder.Written(storage);
    return Make(std::move(storage));
  }

  // The node with the value of a tensor, or of a number as one of `dtype`.
  static absl::StatusOr<Value> Read(Recorder& recorder, const Tensor& x,
                                    DType dtype_of_numbers);
  static absl::StatusOr<Value> Read(Recorder& recorder, const Tensor& x);

  // In eager code, runs what a new result waits for if its size depends on
  // values: nothing can be typed on a size that is not known.
  static absl::Status Settle(const Recorder& recorder, Tensor* result);

  // Runs what the storage, which has a recorder, waits for. OK where it has a
  // value then.
  static absl::Status Settle(Storage& storage);

  // A concrete tensor of a number. As Full.
  static absl::StatusOr<cleave::Tensor> Filled(DType dtype, const Shape& shape,
                                               const Tensor& number);

  // A number known here: FailedPrecondition for an extent of a trace.
  static absl::StatusOr<Exact> NumberOf(const Tensor& x);

  // OK for tensors that are valid and for numbers.
  static absl::Status Check(const Tensor& x) { return x.status(); }
};

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_TENSOR_ACCESS_H_
