// An oracle: a function of a user's shared library that computes an op, in a
// process of its own, so that a crash or a hang of it is a finding like any
// other.
//
//   OracleOptions options;
//   options.library = "./libmyop.so";
//   options.symbol = "my_softplus";
//   absl::StatusOr<HostFunction> oracle = StartOracle(options);
//   check.host_kernels.Set("softplus", *oracle);  // CheckOptions
//
// The function is a cleave_host_function of engine/embed/cleave.h:
//
//   cleave_status* my_softplus(void* context, const cleave_host_call* call);
//
// Its context is NULL. The program's main function calls RunOracleWorker first,
// since the process runs the same program.

#ifndef CLEAVE_TOOLS_ORACLE_ORACLE_H_
#define CLEAVE_TOOLS_ORACLE_ORACLE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/ir/host_kernel.h"

namespace cleave {

struct OracleOptions {
  std::string library;  // a path with a slash, or a name that the linker finds
  std::string symbol;
  // How long one call may take.
  double seconds = 10;
  // The program that calls RunOracleWorker.
  std::string program = "/proc/self/exe";
};

// The function in a process that was started. It may be called by any thread;
// one call runs at a time. A call that ends the process is an InternalError
// with the signal, and the next call starts another. After a call that took too
// long the function is Unimplemented: waiting again and again would take hours.
//
// NotFound where the library cannot be loaded or has no such function, with the
// loader's words.
absl::StatusOr<HostFunction> StartOracle(const OracleOptions& options);

// The exit status, where the arguments are those of a process that StartOracle
// starts; else nullopt, and nothing was done.
std::optional<int> RunOracleWorker(int argc, char** argv);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_ORACLE_ORACLE_H_
