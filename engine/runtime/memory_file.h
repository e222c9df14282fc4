// MemoryFile: a file without a name, which ends with the process.

#ifndef CLEAVE_ENGINE_RUNTIME_MEMORY_FILE_H_
#define CLEAVE_ENGINE_RUNTIME_MEMORY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cleave {

class MemoryFile {
 public:
  // Holds `bytes`. ResourceExhausted for want of memory or descriptors; else by
  // errno. Where the system has no memfd_create, or forbids to run code from
  // one, it is an unlinked file in $TMPDIR, else /tmp.
  static absl::StatusOr<MemoryFile> Create(absl::string_view bytes);

  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) = delete;
  ~MemoryFile();

  // Closed when a child process runs another program.
  int descriptor() const { return descriptor_; }

  absl::StatusOr<std::string> Read() const;

 private:
  explicit MemoryFile(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_MEMORY_FILE_H_
