#include "engine/runtime/kernel_linker.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/runtime/memory_file.h"
#include "engine/runtime/program.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// The kernels, and what a host sets or calls of a runtime, devices' included.
constexpr char kVersionScript[] =
    "{ global: *_argv; halide_set_*; halide_default_semaphore_*;"
    " halide_default_do_*task; halide_device_*; halide_copy_to_*;"
    " halide_*_device_interface; halide_reuse_device_allocations;"
    " halide_cuda_*; halide_opencl_*;"
    " local: *; };\n";

struct Linker {
  std::string path;
  // A compiler's driver, which passes on what stands behind -Wl.
  bool driver = false;
  // LLVM's writes a new file and renames it, which none without a name allows;
  // but it also writes to a pipe.
  bool to_pipe = false;
};

Linker LinkerAt(std::string path) {
  const absl::string_view name =
      absl::string_view(path).substr(path.rfind('/') + 1);
  Linker linker;
  linker.to_pipe = absl::StrContains(name, "lld");
  linker.driver = !absl::StartsWith(name, "ld") &&
                  !absl::StrContains(name, "-ld") && name != "mold" &&
                  name != "lld";
  linker.path = std::move(path);
  return linker;
}

absl::StatusOr<Linker> FindLinker() {
  if (const char* chosen = std::getenv("CLEAVE_LINKER");
      chosen != nullptr && *chosen != '\0') {
    std::string path = FindProgram(chosen);
    if (path.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("CLEAVE_LINKER=", chosen, " is not a program"));
    }
    return LinkerAt(std::move(path));
  }
  for (const char* name : {"ld", "ld.lld", "cc"}) {
    std::string path = FindProgram(name);
    if (!path.empty()) return LinkerAt(std::move(path));
  }
  return absl::FailedPreconditionError(
      "kernels need a linker, and there is no ld, ld.lld or cc on $PATH. Try: "
      "apt-get install binutils; or name one in $CLEAVE_LINKER");
}

// The file of a library that this process has loaded, or could.
absl::StatusOr<std::string> LibraryFile(const char* name) {
  void* const handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot load ", name, ": ", dlerror()));
  }
  link_map* map = nullptr;
  const bool found = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0;
  std::string path = found ? map->l_name : "";
  dlclose(handle);
  if (path.empty()) {
    return absl::InternalError(absl::StrCat("where is ", name, "?"));
  }
  return path;
}

// Linkers go on and on.
constexpr size_t kMaxWords = 2000;

enum ChildDescriptor { kObject, kRuntime, kScript, kOutput };

absl::StatusOr<std::vector<std::string>> Arguments(const Linker& linker) {
  CLEAVE_ASSIGN_OR_RETURN(const std::string libc, LibraryFile("libc.so.6"));
  CLEAVE_ASSIGN_OR_RETURN(const std::string libm, LibraryFile("libm.so.6"));
  std::vector<std::string> result = {linker.path, "-shared"};
  if (linker.driver) result.push_back("-nostdlib");
  const absl::string_view prefix = linker.driver ? "-Wl," : "";
  for (const absl::string_view option :
       {"-Bsymbolic", "--gc-sections", "-znow", "-znoexecstack",
        "--hash-style=gnu", "--build-id=none"}) {
    result.push_back(absl::StrCat(prefix, option));
  }
  result.push_back(
      absl::StrCat(prefix, "--version-script=", ChildFile(kScript)));
  for (std::string argument :
       {std::string("-o"), ChildFile(kOutput), ChildFile(kObject),
        ChildFile(kRuntime), libm, libc}) {
    result.push_back(std::move(argument));
  }
  return result;
}

std::string ReadPipe(int descriptor) {
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = read(descriptor, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

absl::StatusOr<std::string> LinkKernelLibrary(
    absl::string_view object, absl::string_view runtime_object) {
  CLEAVE_ASSIGN_OR_RETURN(const Linker linker, FindLinker());
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::string> arguments,
                          Arguments(linker));
  CLEAVE_ASSIGN_OR_RETURN(const MemoryFile object_file,
                          MemoryFile::Create(object));
  CLEAVE_ASSIGN_OR_RETURN(const MemoryFile runtime_file,
                          MemoryFile::Create(runtime_object));
  CLEAVE_ASSIGN_OR_RETURN(const MemoryFile script,
                          MemoryFile::Create(kVersionScript));
  CLEAVE_ASSIGN_OR_RETURN(const MemoryFile output, MemoryFile::Create(""));
  CLEAVE_ASSIGN_OR_RETURN(const MemoryFile messages, MemoryFile::Create(""));
  int pipe_ends[2] = {-1, -1};
  if (linker.to_pipe && pipe2(pipe_ends, O_CLOEXEC) != 0) {
    return absl::Status(
        absl::ErrnoToStatusCode(errno),
        absl::StrCat("cannot make a pipe: ", std::strerror(errno)));
  }
  const int sink = linker.to_pipe ? pipe_ends[1] : output.descriptor();
  const absl::StatusOr<pid_t> child =
      StartProgram(arguments,
                   {object_file.descriptor(), runtime_file.descriptor(),
                    script.descriptor(), sink},
                   messages.descriptor());
  std::string image;
  if (linker.to_pipe) {
    close(pipe_ends[1]);
    if (child.ok()) image = ReadPipe(pipe_ends[0]);
    close(pipe_ends[0]);
  }
  if (!child.ok()) return child.status();
  const std::string failure = WaitForProgram(*child);
  if (failure.empty() && !linker.to_pipe) {
    CLEAVE_ASSIGN_OR_RETURN(image, output.Read());
  }
  if (failure.empty() && absl::StartsWith(image,
                                          "\x7f"
                                          "ELF"))
    return image;
  CLEAVE_ASSIGN_OR_RETURN(const std::string words, messages.Read());
  return absl::InternalError(
      absl::StrCat("cannot link a kernel: ", linker.path, " ",
                   failure.empty() ? "wrote no library" : failure, "\n",
                   absl::StripAsciiWhitespace(words).substr(0, kMaxWords)));
}

}  // namespace cleave
