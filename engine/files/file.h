// Whole files: read, and replaced in one step.
//
//   absl::StatusOr<std::string> text = ReadFile("a.rules");
//   absl::Status written = WriteFileAtomically("report.json", json);
//
// Errors name the path and say the system's reason, as in
// `cannot open none.rules: No such file or directory`.

#ifndef CLEAVE_ENGINE_FILES_FILE_H_
#define CLEAVE_ENGINE_FILES_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cleave {

// The bytes of a file, also of a pipe or a device. NotFound where there is
// none, InvalidArgument for a folder, PermissionDenied; else by errno.
absl::StatusOr<std::string> ReadFile(const std::string& path);

enum class Durability {
  // A crash of the machine leaves the old file or the new one, whole.
  kDurable,
  // After a crash of the machine the file may be anything: for what is verified
  // as it is read, and can be made again. Does not wait for the disk.
  kVolatile,
};

// Makes `bytes` the content of the file, which may be there already. They are
// written beside it, reach the disk, and take its place: whoever reads, also
// after the process was killed, sees the old file or the new one, whole. A file
// keeps its permissions; through a symbolic link its target is replaced. Pipes
// and devices (/dev/stdout) are written in place. On an error nothing is left
// behind; a process that is killed may leave `path` + kPartMark + anything.
// NotFound for a folder that is not there, InvalidArgument for a path that is a
// folder; else by errno.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view bytes,
                                 Durability durability = Durability::kDurable);

// Makes a folder and its parents, where they are not there. InvalidArgument for
// a path that is no folder; else by errno.
absl::Status MakeFolder(const std::string& path);

inline constexpr char kPartMark[] = ".part-";

}  // namespace cleave

#endif  // CLEAVE_ENGINE_FILES_FILE_H_
