// KernelLibrary: machine code in this process.
//
//   ASSERT_OK_AND_ASSIGN(const std::string image,
//                        LinkKernelLibrary(object, runtime_object));
//   ASSERT_OK_AND_ASSIGN(const auto library, KernelLibrary::Load(image));
//   ASSERT_OK_AND_ASSIGN(const KernelEntry entry, library->Find("softmax"));
//   KernelCall call;
//   EXPECT_OK(call.Run(entry, arguments));
//
// Each library holds a Halide runtime of its own, which Load() points to the
// handlers of KernelCall: so kernels of two Halide versions, and a host program
// that uses Halide itself, do not meet.

#ifndef CLEAVE_ENGINE_RUNTIME_KERNEL_LIBRARY_H_
#define CLEAVE_ENGINE_RUNTIME_KERNEL_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/kernel_call.h"

namespace cleave {

class KernelLibrary {
 public:
  using Entry = KernelEntry;

  // Loads an image from LinkKernelLibrary. InvalidArgument with the loader's
  // words for what it refuses, or if the Halide runtime is missing.
  static absl::StatusOr<std::shared_ptr<const KernelLibrary>> Load(
      absl::string_view image);

  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;
  // Unloads the code: no kernel of it may be running.
  ~KernelLibrary();

  // The kernel that was compiled as the function `name`: its `name_argv`.
  // NotFound.
  absl::StatusOr<Entry> Find(absl::string_view name) const;

  // The address of any visible symbol, as of `halide_device_sync`; null if
  // there is none.
  void* FindSymbol(absl::string_view name) const;

 private:
  explicit KernelLibrary(void* handle) : handle_(handle) {}

  void* const handle_;  // dlopen's
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_KERNEL_LIBRARY_H_
