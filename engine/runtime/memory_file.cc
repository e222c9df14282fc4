#include "engine/runtime/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace cleave {
namespace {

// From Linux 6.3 on; older C libraries do not name it.
constexpr unsigned kMemfdExec = 0x10;

absl::Status SystemError(absl::string_view action) {
  const int error = errno;
  return absl::Status(
      absl::ErrnoToStatusCode(error),
      absl::StrCat("cannot ", action, " memory: ", std::strerror(error)));
}

int OpenUnlinked() {
  const char* folder = std::getenv("TMPDIR");
  if (folder == nullptr || *folder == '\0') folder = "/tmp";
  const int unnamed = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0700);
  if (unnamed >= 0) return unnamed;
  std::string name = absl::StrCat(folder, "/cleave-XXXXXX");
  const int named = mkostemp(&name[0], O_CLOEXEC);
  if (named >= 0) {
    fchmod(named, 0700);
    unlink(name.c_str());
  }
  return named;
}

int OpenMemory() {
  constexpr char kName[] = "cleave-kernel";
  int descriptor = memfd_create(kName, MFD_CLOEXEC | kMemfdExec);
  if (descriptor < 0 && errno == EINVAL) {  // an older kernel: always so
    descriptor = memfd_create(kName, MFD_CLOEXEC);
  }
  if (descriptor >= 0 || errno == EMFILE || errno == ENFILE) return descriptor;
  return OpenUnlinked();
}

}  // namespace

absl::StatusOr<MemoryFile> MemoryFile::Create(absl::string_view bytes) {
  MemoryFile file(OpenMemory());
  if (file.descriptor_ < 0) return SystemError("get");
  while (!bytes.empty()) {
    const ssize_t count = write(file.descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("write");
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return file;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : descriptor_(other.descriptor_) {
  other.descriptor_ = -1;
}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<std::string> MemoryFile::Read() const {
  struct stat status;
  if (fstat(descriptor_, &status) != 0) return SystemError("read");
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t count = pread(descriptor_, &bytes[size], bytes.size() - size,
                                static_cast<off_t>(size));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("read");
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace cleave
