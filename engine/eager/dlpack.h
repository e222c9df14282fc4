// DLPack (0.6): arrays in and out of other frameworks, without a copy where
// their memory allows it. https://dmlc.github.io/dlpack
//
//   Tensor x = FromDlpack(managed);              // takes ownership
//   DLManagedTensor* out = *ToDlpack(x * 2);     // the consumer calls deleter
//
// Memory is shared in both directions, as with numpy.from_dlpack, and so must
// not be written while both have it: DLPack has no word for that. To write a
// tensor here never writes memory that it was given (view.h).

#ifndef CLEAVE_ENGINE_EAGER_DLPACK_H_
#define CLEAVE_ENGINE_EAGER_DLPACK_H_

#include "absl/status/statusor.h"
#include "dlpack/dlpack.h"
#include "engine/eager/tensor.h"
#include "ops/dtype.h"

namespace cleave::functional {

// Calls the deleter of `managed` once, when no tensor needs the memory any
// more: at once where the elements are copied, and where this fails. They are
// shared if they lie in row-major order without gaps and begin at a multiple of
// 64 bytes, and copied otherwise. A mistake gives a tensor that carries it:
// Unimplemented for a device other than the CPU, vectors (lanes), and dtypes
// that Cleave lacks; InvalidArgument for a null pointer, a negative extent, or
// elements outside of the address space.
Tensor FromDlpack(DLManagedTensor* managed);

// The value of a tensor, computed if it waits. Shares the memory of a tensor
// that is its storage's whole value; that of a view is copied. Bools are u8 of
// 0 and 1: DLPack 0.6 has no bool. Unimplemented for keys; else the tensor's
// mistake. Release it with its deleter, on any thread.
absl::StatusOr<DLManagedTensor*> ToDlpack(const Tensor& x);

// The dtypes of the two that are the same; bool goes out as u8, and u8 comes in
// as u8. Unimplemented where there is none.
absl::StatusOr<DLDataType> ToDlpackType(DType dtype);
absl::StatusOr<DType> FromDlpackType(DLDataType type);

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_DLPACK_H_
