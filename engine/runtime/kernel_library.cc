#include "engine/runtime/kernel_library.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/runtime/kernel_handlers.h"
#include "engine/runtime/object_loader.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_kernel::LoadedObject;

absl::StatusOr<std::shared_ptr<const KernelRuntime>> KernelRuntime::Load(
    absl::string_view object) {
  CLEAVE_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedObject> loaded,
                          LoadedObject::Load(object, nullptr));
  for (void (*const initialize)() : loaded->initializers()) initialize();
  CLEAVE_RETURN_IF_ERROR(internal_kernel::InstallKernelHandlers(*loaded));
  return std::shared_ptr<const KernelRuntime>(
      new KernelRuntime(std::move(loaded)));
}

KernelRuntime::~KernelRuntime() {
  const std::vector<void (*)()>& finalizers = object_->finalizers();
  for (size_t i = finalizers.size(); i-- > 0;) finalizers[i]();
}

KernelLibrary::KernelLibrary(std::shared_ptr<const LoadedObject> object,
                             std::shared_ptr<const KernelRuntime> runtime)
    : runtime_(std::move(runtime)), object_(std::move(object)) {}

KernelLibrary::~KernelLibrary() = default;

absl::StatusOr<std::shared_ptr<const KernelLibrary>> KernelLibrary::Load(
    absl::string_view object, std::shared_ptr<const KernelRuntime> runtime) {
  CLEAVE_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedObject> loaded,
                          LoadedObject::Load(object, runtime->object_));
  return std::shared_ptr<const KernelLibrary>(
      new KernelLibrary(std::move(loaded), std::move(runtime)));
}

absl::StatusOr<KernelLibrary::Entry> KernelLibrary::Find(
    absl::string_view name) const {
  void* const symbol = object_->Find(absl::StrCat(name, "_argv"));
  if (symbol == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the library has no kernel `", name, "`"));
  }
  return reinterpret_cast<Entry>(symbol);
}

void* KernelLibrary::FindInRuntime(absl::string_view name) const {
  return runtime_->object_->Find(name);
}

const absl::Status& CodeStatus() {
  static const auto* const status = [] {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* const memory = mmap(nullptr, page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // Want of memory for a page shows soon enough elsewhere.
    if (memory == MAP_FAILED) return new absl::Status;
    std::memset(memory, 0xcc, page);
    const bool allowed = mprotect(memory, page, PROT_READ | PROT_EXEC) == 0;
    const int error = errno;
    munmap(memory, page);
    if (allowed) return new absl::Status;
    return new absl::Status(absl::FailedPreconditionError(absl::StrCat(
        "the system gives no memory for code: ", std::strerror(error))));
  }();
  return *status;
}

}  // namespace cleave
