// Libraries that a process loads when it needs them, and keeps. Internal to
// engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_LOADED_LIBRARY_H_
#define CLEAVE_ENGINE_RUNTIME_LOADED_LIBRARY_H_

#include <dlfcn.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace cleave {

// `library` for as long as the process runs, once `load` is done with it; else
// the status of that.
template <typename Library>
absl::StatusOr<const Library*> Loaded(std::unique_ptr<Library> library,
                                      absl::Status (Library::*load)()) {
  const absl::Status status = (library.get()->*load)();
  if (!status.ok()) return status;
  return library.release();
}

// Sets `function` to that of a library that dlopen gave. FailedPrecondition,
// with the library's name `file`, where it has none.
template <typename Function>
absl::Status Look(void* library, const char* file, const char* name,
                  Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  if (*function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(file, " has no ", name));
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_LOADED_LIBRARY_H_
