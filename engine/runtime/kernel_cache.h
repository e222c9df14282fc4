// KernelCache: compiled kernels, in memory and in a folder.
//
//   ASSERT_OK_AND_ASSIGN(
//       const std::shared_ptr<const KernelLibrary> library,
//       DefaultKernelCache().Get(
//           key, target, [&] { return CompileObject(graph, target); },
//           [&] { return CompileRuntime(target); }));
//
// Any number of threads and processes may use one folder at once, and be killed
// at any moment. A file is verified as a whole before its code is loaded; what
// is damaged is compiled again and replaced. Where a folder cannot be written,
// is full, or is not safe to load code from, kernels run from memory all the
// same, and stats() says so.

#ifndef CLEAVE_ENGINE_RUNTIME_KERNEL_CACHE_H_
#define CLEAVE_ENGINE_RUNTIME_KERNEL_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/kernel_library.h"

namespace cleave {

struct KernelCacheOptions {
  // Made, with its parents, if it is not there. Empty: memory only.
  std::string folder;
  // Libraries kept loaded, the most recently used. More are loaded while they
  // are in use elsewhere: what is evicted is unloaded by its last user.
  int64_t max_libraries = 1024;
  // Files kept, the most recently used, by their size in total.
  int64_t max_folder_bytes = int64_t{1} << 30;
};

struct KernelCacheStats {
  int64_t memory_hits = 0;    // loaded already, or by another thread meanwhile
  int64_t disk_hits = 0;      // loaded from the folder
  int64_t compiled = 0;       // neither
  int64_t failed = 0;         // could not be compiled or loaded
  int64_t corrupt_files = 0;  // rejected, and compiled again
  int64_t evicted_libraries = 0;
  int64_t evicted_files = 0;
  int64_t stored_files = 0;
  int64_t not_stored_files = 0;
  // For each that was compiled: until it was loaded, without the runtime.
  std::vector<double> compile_milliseconds;
  // Why the last file was not stored; OK if none was refused.
  absl::Status store_error;
};

class KernelCache {
 public:
  using MakeBytes = absl::FunctionRef<absl::StatusOr<std::string>()>;

  explicit KernelCache(KernelCacheOptions options);
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;
  // No Get() may be in progress. Libraries that are in use stay loaded.
  ~KernelCache();

  // The library for `key`, which names all that its code depends on: any bytes,
  // any length. If it is neither loaded nor stored, `make_object` gives the ELF
  // object of the kernels, and `make_runtime` that of the Halide runtime for
  // `runtime_key` (the target), which is loaded once for all libraries. If
  // several threads ask for one key, one works and the others wait; other keys
  // do not wait.
  //
  // An error of make_object or make_runtime is returned as it is; so are those
  // of KernelRuntime::Load and KernelLibrary::Load. None is remembered. The two
  // functions may ask for other keys, but not for this one.
  absl::StatusOr<std::shared_ptr<const KernelLibrary>> Get(
      absl::string_view key, absl::string_view runtime_key,
      MakeBytes make_object, MakeBytes make_runtime);

  // The folder in use; empty for memory only.
  const std::string& folder() const;
  // Why the folder that was asked for is not in use. OK if it is, or if none
  // was asked for.
  absl::Status folder_status() const;

  KernelCacheStats stats() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

// In DefaultCacheFolder(); in memory only where that is empty, or cannot be
// made or used, as folder_status() then says. Lives as long as the process.
KernelCache& DefaultKernelCache();

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_KERNEL_CACHE_H_
