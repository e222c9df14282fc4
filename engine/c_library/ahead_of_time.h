// Ahead of time: a graph becomes a static library with a C header.
//
//   AheadOfTimeOptions options;
//   options.name = "softmax";
//   std::vector<NamedFile> files = *CompileAheadOfTime(graph, rules, options);
//   absl::Status written = WriteFiles(files, "out");
//   // out/libsoftmax.a, softmax.h, softmax_driver.c, softmax_example.c
//
// The library needs libc, libm and POSIX threads: neither Cleave, nor Halide,
// nor a C++ runtime. It computes what Compile's kernels compute at the level of
// the CPU that it runs on, for all extents.

#ifndef CLEAVE_ENGINE_C_LIBRARY_AHEAD_OF_TIME_H_
#define CLEAVE_ENGINE_C_LIBRARY_AHEAD_OF_TIME_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/c_library/static_library.h"
#include "engine/codegen/target_level.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

struct AheadOfTimeOptions {
  std::string name;  // of the C function
  // The vector instructions to make code for, which need not be this machine's;
  // the library takes the highest that its CPU has. All where empty: it runs on
  // each x86-64 CPU with SSE4.1, and nowhere slower than it could.
  std::vector<TargetLevel> levels;
};

// The files of the library, lib<name>.a first. InvalidArgument for a name that
// C does not take, or a composite node (expand first). Unimplemented, with all
// ops that have no vector code, for a graph that would run reference kernels,
// for extents that depend on data, and for dtypes that C arrays do not have.
// FailedPrecondition where the system has no C compiler or binutils.
absl::StatusOr<std::vector<NamedFile>> CompileAheadOfTime(
    const Graph& graph, const RuleSet& rules,
    const AheadOfTimeOptions& options);

// Writes the files into a folder, which is made if it is not there; its parent
// must be. On an error nothing new is left behind.
absl::Status WriteFiles(const std::vector<NamedFile>& files,
                        const std::string& folder);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_C_LIBRARY_AHEAD_OF_TIME_H_
