#include "engine/files/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

constexpr char kMagic[8] = {'C', 'L', 'E', 'A', 'V', 'E', 'K', 'C'};
// The version of the layout below and of the meaning of the bytes: raised with
// either.
constexpr uint64_t kVersion = 1;

using Hash = std::array<char, 16>;

// The end of each file. The checksum covers all bytes before itself.
struct Trailer {
  uint64_t byte_count;
  uint64_t key_size;
  uint64_t version;
  char magic[8];
  Hash checksum;
};
static_assert(sizeof(Trailer) == 48, "no padding");

// A folder is listed anew after so many writes, as other processes write, too.
constexpr int64_t kWritesBetweenCleans = 64;

// A writer takes milliseconds: after so many seconds it is gone.
constexpr int64_t kStaleSeconds = 600;

Hash Canonical(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Hash result;
  static_assert(sizeof(canonical.digest) == sizeof(result), "128 bits");
  std::memcpy(result.data(), canonical.digest, sizeof(result));
  return result;
}

std::string Pack(absl::string_view key, absl::string_view bytes) {
  Trailer trailer = {};
  trailer.byte_count = bytes.size();
  trailer.key_size = key.size();
  trailer.version = kVersion;
  std::copy(std::begin(kMagic), std::end(kMagic), trailer.magic);
  std::string file;
  file.reserve(bytes.size() + key.size() + sizeof(trailer));
  absl::StrAppend(&file, bytes, key);
  file.append(reinterpret_cast<const char*>(&trailer),
              sizeof(trailer) - sizeof(trailer.checksum));
  const Hash checksum = Canonical(XXH3_128bits(file.data(), file.size()));
  file.append(checksum.data(), checksum.size());
  return file;
}

// The bytes of a packed file; none for another key's.
absl::StatusOr<std::optional<std::string>> Unpack(std::string file,
                                                  absl::string_view key) {
  Trailer trailer;
  if (file.size() < sizeof(trailer)) return absl::DataLossError("too short");
  const size_t content = file.size() - sizeof(trailer);
  std::memcpy(&trailer, &file[content], sizeof(trailer));
  const Hash checksum = Canonical(
      XXH3_128bits(file.data(), file.size() - sizeof(trailer.checksum)));
  if (checksum != trailer.checksum) {
    return absl::DataLossError("its checksum does not match");
  }
  if (std::memcmp(trailer.magic, kMagic, sizeof(kMagic)) != 0 ||
      trailer.version != kVersion || trailer.key_size > content ||
      trailer.byte_count != content - trailer.key_size) {
    return absl::DataLossError("it is no cache file");
  }
  if (absl::string_view(file).substr(trailer.byte_count, trailer.key_size) !=
      key) {
    return std::optional<std::string>();
  }
  file.resize(trailer.byte_count);
  return std::optional<std::string>(std::move(file));
}

absl::Status SystemError(absl::string_view action, absl::string_view path) {
  const int error = errno;
  return absl::Status(
      absl::ErrnoToStatusCode(error),
      absl::StrCat("cannot ", action, " ", path, ": ", std::strerror(error)));
}

absl::Status MakeFolders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST &&
        // A parent that is there may lie where one must not write.
        access(folder.c_str(), F_OK) != 0) {
      return SystemError("make the folder", folder);
    }
    if (end == std::string::npos) return absl::OkStatus();
  }
}

absl::Status CheckFolder(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return SystemError("open", path);
  if (!S_ISDIR(status.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is no folder"));
  }
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " belongs to another user, whose code would be run"));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " may be written by others, whose code would be "
                     "run. Try: chmod go-w ",
                     path));
  }
  return absl::OkStatus();
}

// Whether it is the name of a file of ours; if so, whether of one that is being
// written, or was.
bool IsOurs(absl::string_view name, bool* part) {
  constexpr size_t kHexDigits = 2 * sizeof(Hash);
  if (name.size() <= kHexDigits || name[kHexDigits] != '.') return false;
  for (const char c : name.substr(0, kHexDigits)) {
    if (!absl::ascii_isxdigit(c)) return false;
  }
  *part = absl::StrContains(name, kPartMark);
  return true;
}

struct File {
  timespec used;
  int64_t bytes;
  std::string path;

  bool operator<(const File& other) const {
    return std::tie(used.tv_sec, used.tv_nsec, path) <
           std::tie(other.used.tv_sec, other.used.tv_nsec, other.path);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<CacheFolder>> CacheFolder::Open(
    std::string path, int64_t max_bytes) {
  CLEAVE_RETURN_IF_ERROR(MakeFolders(path));
  CLEAVE_RETURN_IF_ERROR(CheckFolder(path));
  return std::unique_ptr<CacheFolder>(
      new CacheFolder(std::move(path), max_bytes));
}

std::string CacheFolder::FileName(absl::string_view key,
                                  absl::string_view kind) const {
  // The version is the seed: so that versions have their own files.
  const Hash hash = Canonical(
      XXH3_128bits_withSeed(key.data(), key.size(), XXH64_hash_t{kVersion}));
  return absl::StrCat(
      path_, "/",
      absl::BytesToHexString(absl::string_view(hash.data(), hash.size())),
      kind);
}

absl::StatusOr<std::optional<std::string>> CacheFolder::Read(
    absl::string_view key, absl::string_view kind) {
  const std::string path = FileName(key, kind);
  absl::StatusOr<std::string> file = ReadFile(path);
  if (absl::IsNotFound(file.status())) return std::optional<std::string>();
  if (!file.ok()) return file.status();
  absl::StatusOr<std::optional<std::string>> bytes =
      Unpack(*std::move(file), key);
  if (absl::IsDataLoss(bytes.status())) {
    return absl::DataLossError(
        absl::StrCat(path, " is damaged: ", bytes.status().message()));
  }
  // Its time of change says when it was used last; a folder that may only be
  // read is not cleaned either.
  if (bytes.ok() && bytes->has_value()) {
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  }
  return bytes;
}

absl::Status CacheFolder::Write(absl::string_view key, absl::string_view kind,
                                absl::string_view bytes) {
  const std::string path = FileName(key, kind);
  const std::string file = Pack(key, bytes);
  CLEAVE_RETURN_IF_ERROR(
      WriteFileAtomically(path, file, Durability::kVolatile));
  const std::lock_guard<std::mutex> lock(mutex_);
  bytes_ += static_cast<int64_t>(file.size());
  if (bytes_ > max_bytes_ || writes_until_clean_ <= 0) {
    writes_until_clean_ = kWritesBetweenCleans;
    Clean(path);
  }
  --writes_until_clean_;
  return absl::OkStatus();
}

void CacheFolder::Clean(const std::string& keep) {
  DIR* const folder = opendir(path_.c_str());
  if (folder == nullptr) return;
  const int64_t now = time(nullptr);
  std::vector<File> files;
  bytes_ = 0;
  while (const dirent* entry = readdir(folder)) {
    bool part = false;
    if (!IsOurs(entry->d_name, &part)) continue;
    struct stat status;
    // Another process may have removed it.
    if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) !=
        0) {
      continue;
    }
    std::string path = absl::StrCat(path_, "/", entry->d_name);
    if (part) {
      if (now - status.st_mtim.tv_sec > kStaleSeconds) unlink(path.c_str());
      continue;
    }
    bytes_ += status.st_size;
    if (path == keep) continue;
    files.push_back({status.st_mtim, status.st_size, std::move(path)});
  }
  closedir(folder);
  if (bytes_ <= max_bytes_) return;
  std::sort(files.begin(), files.end());
  // A tenth more than need be, so that not every write lists the folder.
  const int64_t aim = max_bytes_ - max_bytes_ / 10;
  for (const File& file : files) {
    if (bytes_ <= aim) return;
    if (unlink(file.path.c_str()) == 0) ++evicted_;
    bytes_ -= file.bytes;
  }
}

int64_t CacheFolder::evicted() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return evicted_;
}

std::string DefaultCacheFolder() {
  if (const char* chosen = std::getenv("CLEAVE_CACHE")) return chosen;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  // The specification has relative ones ignored.
  if (cache != nullptr && *cache == '/') return absl::StrCat(cache, "/cleave");
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return "";
  return absl::StrCat(home, "/.cache/cleave");
}

}  // namespace cleave
