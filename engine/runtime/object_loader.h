// LoadedObject: a relocatable object (object_file.h) as code in this process.
//
//   ASSERT_OK_AND_ASSIGN(const auto runtime,
//                        LoadedObject::Load(runtime_bytes, nullptr));
//   ASSERT_OK_AND_ASSIGN(const auto kernels,
//                        LoadedObject::Load(bytes, runtime));
//   void* entry = kernels->Find("kernel_argv");
//
// Memory is never writable and executable at once: sections are placed and
// relocated in fresh pages, which then become what each is, code or data that
// is only read. Nothing of the object runs when it is loaded or unloaded.

#ifndef CLEAVE_ENGINE_RUNTIME_OBJECT_LOADER_H_
#define CLEAVE_ENGINE_RUNTIME_OBJECT_LOADER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cleave::internal_kernel {

class LoadedObject {
 public:
  // `needed`: an object that defines symbols which this one lacks, and lives as
  // long; null for none. A symbol that neither defines must be in a fixed list
  // of functions of libc and libm. InvalidArgument for bytes that are no such
  // object (ObjectFile::Parse), that name a symbol defined nowhere, or that
  // reach too far; FailedPrecondition where the system gives no memory for
  // code; ResourceExhausted where there is no memory at all.
  static absl::StatusOr<std::shared_ptr<const LoadedObject>> Load(
      absl::string_view bytes, std::shared_ptr<const LoadedObject> needed);

  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;
  // None of its functions may be running.
  ~LoadedObject();

  // The address of a global symbol that the object defines; null for none.
  void* Find(absl::string_view name) const;

  // The functions that the object would have run when it is loaded, in this
  // order, and before it is unloaded, in the reverse order. None of them is
  // called.
  const std::vector<void (*)()>& initializers() const { return initializers_; }
  const std::vector<void (*)()>& finalizers() const { return finalizers_; }

  const std::shared_ptr<const LoadedObject>& needed() const { return needed_; }

 private:
  friend class ObjectPlacer;
  LoadedObject() = default;

  std::shared_ptr<const LoadedObject> needed_;
  uint8_t* base_ = nullptr;
  uint64_t size_ = 0;
  absl::flat_hash_map<std::string, void*> symbols_;
  std::vector<void (*)()> initializers_;
  std::vector<void (*)()> finalizers_;
};

// The address of a function of libc or libm that kernels and Halide's runtime
// may call; null for any other name.
void* FindSystemSymbol(absl::string_view name);

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_OBJECT_LOADER_H_
