#include "engine/files/file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// Reads errno: nothing may come between the call that failed and this one.
absl::Status SystemError(absl::string_view action, absl::string_view path) {
  const int error = errno;
  const absl::StatusCode code = error == EISDIR
                                    ? absl::StatusCode::kInvalidArgument
                                    : absl::ErrnoToStatusCode(error);
  return absl::Status(code, absl::StrCat("cannot ", action, " ", path, ": ",
                                         std::strerror(error)));
}

// An open file, closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }
  bool valid() const { return number_ >= 0; }
  // close(2), whose result is the last chance to learn of a failed write.
  int Close() {
    const int number = number_;
    number_ = -1;
    return close(number);
  }

 private:
  int number_;
};

absl::Status WriteAll(const Descriptor& file, absl::string_view bytes,
                      absl::string_view path) {
  while (!bytes.empty()) {
    const ssize_t count = write(file.number(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("write", path);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status WriteInPlace(const std::string& path, absl::string_view bytes) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return SystemError("open", path);
  CLEAVE_RETURN_IF_ERROR(WriteAll(file, bytes, path));
  if (file.Close() != 0) return SystemError("write", path);
  return absl::OkStatus();
}

// A name beside `path` that no other writer uses, and no killed one left: in
// containers every run may have the same process id.
std::string PartName(const std::string& path) {
  static std::atomic<uint64_t> count{0};
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number)) {
    number = static_cast<uint64_t>(
        std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return absl::StrCat(path, kPartMark, getpid(), "-", count++, "-",
                      absl::Hex(number));
}

// Writes `bytes` to the new file `part`; `old` is what it will replace, or
// null. `path` is the name to report.
absl::Status WritePart(const std::string& part, absl::string_view bytes,
                       const struct stat* old, Durability durability,
                       const std::string& path) {
  Descriptor file(
      open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.valid()) return SystemError("write", path);
  if (old != nullptr && fchmod(file.number(), old->st_mode & 07777) != 0) {
    return SystemError("set the permissions of", path);
  }
  CLEAVE_RETURN_IF_ERROR(WriteAll(file, bytes, path));
  // Before the rename: else a crash may leave the new name without the bytes.
  if (durability == Durability::kDurable && fsync(file.number()) != 0) {
    return SystemError("write", path);
  }
  if (file.Close() != 0) return SystemError("write", path);
  return absl::OkStatus();
}

// Makes the names in the folder of `path` durable.
absl::Status SyncFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  Descriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // One may write into a folder that one may not read: then the system orders
  // the rename as it likes, and the file is whole in either order.
  if (!file.valid() && errno == EACCES) return absl::OkStatus();
  if (!file.valid()) return SystemError("open", folder);
  // EINVAL: the file system keeps no folders on disk.
  if (fsync(file.number()) != 0 && errno != EINVAL) {
    return SystemError("write", folder);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return SystemError("open", path);
  struct stat status;
  if (fstat(file.number(), &status) != 0) return SystemError("read", path);
  std::string bytes;
  size_t size = 0;
  // One byte more than the file has, so that one read sees its end. A file
  // without a size, or one that grows, is read in steps.
  size_t room = static_cast<size_t>(status.st_size) + 1;
  if (room < 4096) room = 4096;
  while (true) {
    bytes.resize(size + room);
    const ssize_t count = read(file.number(), &bytes[size], room);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("read", path);
    if (count == 0) break;
    size += static_cast<size_t>(count);
    room = bytes.size() - size;
    if (room == 0) room = size;
  }
  bytes.resize(size);
  return bytes;
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view bytes,
                                 Durability durability) {
  struct stat status;
  const bool exists = stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) return SystemError("write", path);
  if (exists && S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    return SystemError("write", path);
  }
  if (exists && !S_ISREG(status.st_mode)) return WriteInPlace(path, bytes);
  std::string target = path;
  if (exists) {
    // Follows links: the link stays, what it names is replaced.
    const std::unique_ptr<char, void (*)(void*)> resolved(
        realpath(path.c_str(), nullptr), std::free);
    if (resolved == nullptr) return SystemError("write", path);
    target = resolved.get();
  }
  const std::string part = PartName(target);
  absl::Status written =
      WritePart(part, bytes, exists ? &status : nullptr, durability, path);
  if (written.ok() && std::rename(part.c_str(), target.c_str()) != 0) {
    written = SystemError("write", path);
  }
  if (!written.ok()) {
    unlink(part.c_str());
    return written;
  }
  return durability == Durability::kDurable ? SyncFolder(target)
                                            : absl::OkStatus();
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && !std::filesystem::is_directory(path, error)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (!error) return absl::OkStatus();
  const absl::StatusCode code = error == std::errc::not_a_directory
                                    ? absl::StatusCode::kInvalidArgument
                                    : absl::ErrnoToStatusCode(error.value());
  return absl::Status(
      code, absl::StrCat("cannot make ", path, ": ", error.message()));
}

}  // namespace cleave
