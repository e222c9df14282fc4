// Small kernels by Halide, to test what links, loads, keeps and runs kernels.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_KERNEL_TESTING_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_KERNEL_TESTING_H_

#include <cstdint>
#include <string>

namespace cleave {

// ELF objects, each made once in a process. The kernels (all arrays are
// one-dimensional; the arguments follow the user context):
//   marked(u64 out[n])           out[i] = the mark of MarkedKernels(mark) + i
//   smooth(f32 in[n + 2], f32 out[n])
//                                out[i] = 2 in[i] + 2 in[i + 2] in parallel
//                                tasks of 64, each with doubled `in` in scratch
//                                memory
//   nested(i32 width, i32 height, i32 out[width * height])
//                                out[i] = 3 i in nested parallel loops
//   hidden_locks(i32 in[n], i32 out[2])
//                                the sum and the count of `in`, by parallel
//                                updates under the runtime's locks
//   waiting(f32 in[n], f32 out[n])
//                                out[i] = 2 in[i], by tasks that wait for each
//                                other
const std::string& TestRuntime();
const std::string& TestKernels();
// TestKernels() with another mark: a change of bytes, made in no time.
std::string MarkedKernels(uint64_t mark);
inline constexpr uint64_t kTestMark = 0x9e3779b97f4a7c15;

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_KERNEL_TESTING_H_
