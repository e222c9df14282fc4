#include "engine/runtime/kernel_library.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "engine/runtime/kernel_handlers.h"
#include "engine/runtime/memory_file.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// A path to the open file that the process has not used before. The dynamic
// loader takes a path that it has loaded once for the same library, while
// descriptors are used again: so `number` is spelled in the steps of the path,
// each bit as "/." or "//.".
std::string UniquePath(int descriptor, uint64_t number) {
  std::string path = "/proc/self/fd";
  for (; number != 0; number >>= 1) {
    path += (number & 1) != 0 ? "//." : "/.";
  }
  absl::StrAppend(&path, "/", descriptor);
  return path;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const KernelLibrary>> KernelLibrary::Load(
    absl::string_view image) {
  static std::atomic<uint64_t> count{0};
  // What is loaded is the copy in memory: no other process can change it.
  CLEAVE_ASSIGN_OR_RETURN(const MemoryFile file, MemoryFile::Create(image));
  const std::string path = UniquePath(file.descriptor(), ++count);
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot load a kernel library: ", dlerror()));
  }
  const std::shared_ptr<const KernelLibrary> library(new KernelLibrary(handle));
  CLEAVE_RETURN_IF_ERROR(internal_kernel::InstallKernelHandlers(handle));
  return library;
}

KernelLibrary::~KernelLibrary() { dlclose(handle_); }

absl::StatusOr<KernelLibrary::Entry> KernelLibrary::Find(
    absl::string_view name) const {
  void* const symbol = FindSymbol(absl::StrCat(name, "_argv"));
  if (symbol == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the library has no kernel `", name, "`"));
  }
  return reinterpret_cast<Entry>(symbol);
}

void* KernelLibrary::FindSymbol(absl::string_view name) const {
  return dlsym(handle_, std::string(name).c_str());
}

}  // namespace cleave
