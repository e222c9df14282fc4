// KernelLibrary: machine code in this process.
//
//   ASSERT_OK_AND_ASSIGN(const auto runtime,
//                        KernelRuntime::Load(runtime_object));
//   ASSERT_OK_AND_ASSIGN(const auto library,
//                        KernelLibrary::Load(object, runtime));
//   ASSERT_OK_AND_ASSIGN(const KernelEntry entry, library->Find("softmax"));
//   KernelCall call;
//   EXPECT_OK(call.Run(entry, arguments));
//
// Both are ELF objects as Halide writes them, which are relocated here: no
// linker runs, and no file is made. A runtime points to the handlers of
// KernelCall, and serves any number of libraries; its names are seen by those
// alone, so that runtimes of two Halide versions, and a host program that uses
// Halide itself, do not meet.

#ifndef CLEAVE_ENGINE_RUNTIME_KERNEL_LIBRARY_H_
#define CLEAVE_ENGINE_RUNTIME_KERNEL_LIBRARY_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/kernel_call.h"

namespace cleave {

namespace internal_kernel {
class LoadedObject;
}  // namespace internal_kernel

// Halide's runtime for one target.
class KernelRuntime {
 public:
  // Loads the object that CompileRuntime gives. InvalidArgument for bytes that
  // are no object, or have no Halide runtime; FailedPrecondition where the
  // system gives no memory for code.
  static absl::StatusOr<std::shared_ptr<const KernelRuntime>> Load(
      absl::string_view object);

  KernelRuntime(const KernelRuntime&) = delete;
  KernelRuntime& operator=(const KernelRuntime&) = delete;
  // Gives devices back.
  ~KernelRuntime();

 private:
  friend class KernelLibrary;
  explicit KernelRuntime(
      std::shared_ptr<const internal_kernel::LoadedObject> object)
      : object_(std::move(object)) {}

  const std::shared_ptr<const internal_kernel::LoadedObject> object_;
};

class KernelLibrary {
 public:
  using Entry = KernelEntry;

  // Loads an object that CompileGroup gives: compiled without a runtime.
  // InvalidArgument for bytes that are no object, are damaged, or need a
  // function that neither the runtime has nor kernels may call;
  // FailedPrecondition where the system gives no memory for code. The library
  // keeps the runtime loaded.
  static absl::StatusOr<std::shared_ptr<const KernelLibrary>> Load(
      absl::string_view object, std::shared_ptr<const KernelRuntime> runtime);

  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;
  // Unloads the code: no kernel of it may be running.
  ~KernelLibrary();

  // The kernel that was compiled as the function `name`: its `name_argv`.
  // NotFound.
  absl::StatusOr<Entry> Find(absl::string_view name) const;

  // The address of a function of the runtime, as of `halide_device_sync`; null
  // if there is none.
  void* FindInRuntime(absl::string_view name) const;

 private:
  KernelLibrary(std::shared_ptr<const internal_kernel::LoadedObject> object,
                std::shared_ptr<const KernelRuntime> runtime);

  const std::shared_ptr<const KernelRuntime> runtime_;
  const std::shared_ptr<const internal_kernel::LoadedObject> object_;
};

// Whether this process can make code: OK, or FailedPrecondition with the
// system's word where memory that was written may not be run, as some systems
// are set up. Asked once, of the system, and the same from then on.
const absl::Status& CodeStatus();

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_KERNEL_LIBRARY_H_
