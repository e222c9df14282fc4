// The parts that the verdicts of L6 depend on besides: for programs that
// compile kernels.

#ifndef CLEAVE_TESTING_CERTIFICATE_KERNEL_ENVIRONMENT_H_
#define CLEAVE_TESTING_CERTIFICATE_KERNEL_ENVIRONMENT_H_

#include <string>

namespace cleave {

// For Environment::kernels: "sources 0123.., lowering 4567.., Halide 21.0.0,
// avx2, 2 cores".
std::string KernelEnvironment();

}  // namespace cleave

#endif  // CLEAVE_TESTING_CERTIFICATE_KERNEL_ENVIRONMENT_H_
