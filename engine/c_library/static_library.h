// MakeStaticLibrary: one `.a` file from a C driver and the objects that it
// calls, in which only chosen names are visible.

#ifndef CLEAVE_ENGINE_C_LIBRARY_STATIC_LIBRARY_H_
#define CLEAVE_ENGINE_C_LIBRARY_STATIC_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cleave {

struct NamedFile {
  std::string name;
  std::string content;
};

struct LibrarySources {
  std::string name;                  // of lib<name>.a
  std::vector<NamedFile> headers;    // what the driver includes
  NamedFile driver;                  // C
  std::vector<std::string> objects;  // ELF
  std::vector<std::string> exports;  // the symbols that are seen from outside
};

// The bytes of an archive with one object. All symbols but the exports are
// local to it, so that any number of such libraries, and a program's own copy
// of Halide's runtime, go into one program; code that no export needs is left
// out.
//
// Runs the system's cc, ld, objcopy and ar: FailedPrecondition, which names the
// package to install, if one is missing. Internal, with its words, if one
// fails. Works in a folder of its own in $TMPDIR, else /tmp, and removes it;
// ResourceExhausted or by errno where it cannot be made or written.
absl::StatusOr<std::string> MakeStaticLibrary(const LibrarySources& sources);

// Whether all of these programs are there: asked before the work that leads to
// them.
absl::Status CheckLibraryTools();

}  // namespace cleave

#endif  // CLEAVE_ENGINE_C_LIBRARY_STATIC_LIBRARY_H_
