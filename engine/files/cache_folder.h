// CacheFolder: bytes under keys in a folder that processes share.
//
//   ASSERT_OK_AND_ASSIGN(auto folder, CacheFolder::Open(path, 1 << 30));
//   EXPECT_OK(folder->Write(key, ".so", image));
//   ASSERT_OK_AND_ASSIGN(const std::optional<std::string> image,
//                        folder->Read(key, ".so"));
//
// One file for each key, named by the key's hash. The bytes stand first, so
// that other tools read the file as what it holds; then the key itself, the
// lengths, a version, and a checksum of all of it. Files appear whole, in one
// step; no locks are held. A checksum finds each file that a damaged disk or a
// crash of the machine has changed.

#ifndef CLEAVE_ENGINE_FILES_CACHE_FOLDER_H_
#define CLEAVE_ENGINE_FILES_CACHE_FOLDER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cleave {

// Thread-safe.
class CacheFolder {
 public:
  // Makes the folder and its parents where they are not there, for this user
  // alone. FailedPrecondition for a folder that belongs to another user (but
  // root), or that others may write to: its files become code. Else by errno.
  static absl::StatusOr<std::unique_ptr<CacheFolder>> Open(std::string path,
                                                           int64_t max_bytes);

  // The bytes under the key, which become the most recently used; none if there
  // is no file, or one of another key that has the same hash. DataLoss for a
  // damaged file; else by errno. `kind` is the end of the file's name.
  absl::StatusOr<std::optional<std::string>> Read(absl::string_view key,
                                                  absl::string_view kind);

  // Replaces what is there. Then removes the least recently used files, other
  // than this one, until the rest fits in `max_bytes`; and files that killed
  // writers left behind. By errno, as for a full disk; nothing changes then.
  absl::Status Write(absl::string_view key, absl::string_view kind,
                     absl::string_view bytes);

  const std::string& path() const { return path_; }
  std::string FileName(absl::string_view key, absl::string_view kind) const;

  // Files that this object removed to make room.
  int64_t evicted() const;

 private:
  CacheFolder(std::string path, int64_t max_bytes)
      : path_(std::move(path)), max_bytes_(max_bytes) {}

  // Removes the files that Write() says, and counts the bytes of the others.
  void Clean(const std::string& keep);

  const std::string path_;
  const int64_t max_bytes_;
  mutable std::mutex mutex_;
  // The bytes in the folder, as far as known; guarded by mutex_, as are the
  // next.
  int64_t bytes_ = 0;
  int64_t writes_until_clean_ = 0;
  int64_t evicted_ = 0;
};

// $CLEAVE_CACHE, else $XDG_CACHE_HOME/cleave, else ~/.cache/cleave. Empty if
// $CLEAVE_CACHE is, or if there is no home.
std::string DefaultCacheFolder();

}  // namespace cleave

#endif  // CLEAVE_ENGINE_FILES_CACHE_FOLDER_H_
