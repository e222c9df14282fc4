#include "engine/c_library/static_library.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/files/file.h"
#include "engine/runtime/memory_file.h"
#include "engine/runtime/program.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// Compilers go on and on.
constexpr size_t kMaxWords = 2000;

class ScratchFolder {
 public:
  ScratchFolder() {
    const char* folder = std::getenv("TMPDIR");
    path_ = absl::StrCat(folder != nullptr && *folder != 0 ? folder : "/tmp",
                         "/cleave-XXXXXX");
    made_ = mkdtemp(path_.data()) != nullptr;
    if (!made_) error_ = errno;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (made_) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  absl::Status status() const {
    if (made_) return absl::OkStatus();
    return absl::Status(absl::ErrnoToStatusCode(error_),
                        absl::StrCat("cannot make the folder ", path_, ": ",
                                     std::strerror(error_)));
  }
  std::string File(absl::string_view name) const {
    return absl::StrCat(path_, "/", name);
  }

 private:
  std::string path_;
  bool made_ = false;
  int error_ = 0;
};

absl::StatusOr<std::string> Find(const std::string& name) {
  std::string path = FindProgram(name);
  if (!path.empty()) return path;
  return absl::FailedPreconditionError(
      absl::StrCat("a static library needs `", name,
                   "`, which is not on $PATH. Try: apt-get install ",
                   name == "cc" ? "gcc" : "binutils"));
}

// arguments[0] is a name on $PATH.
absl::Status RunTool(std::vector<std::string> arguments) {
  const std::string name = arguments[0];
  CLEAVE_ASSIGN_OR_RETURN(arguments[0], Find(name));
  CLEAVE_ASSIGN_OR_RETURN(const MemoryFile messages, MemoryFile::Create(""));
  CLEAVE_ASSIGN_OR_RETURN(const pid_t child,
                          StartProgram(arguments, {}, messages.descriptor()));
  const std::string failure = WaitForProgram(child);
  if (failure.empty()) return absl::OkStatus();
  CLEAVE_ASSIGN_OR_RETURN(const std::string words, messages.Read());
  return absl::InternalError(absl::StrCat(
      "cannot make a static library: ", arguments[0], " ", failure, "\n",
      absl::StripAsciiWhitespace(words).substr(0, kMaxWords)));
}

}  // namespace

absl::Status CheckLibraryTools() {
  for (const char* name : {"cc", "ld", "objcopy", "ar"}) {
    CLEAVE_RETURN_IF_ERROR(Find(name).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakeStaticLibrary(const LibrarySources& sources) {
  CLEAVE_RETURN_IF_ERROR(CheckLibraryTools());
  const ScratchFolder folder;
  CLEAVE_RETURN_IF_ERROR(folder.status());
  const auto write = [&](absl::string_view name, absl::string_view content) {
    return WriteFileAtomically(folder.File(name), content,
                               Durability::kVolatile);
  };
  for (const NamedFile& header : sources.headers) {
    CLEAVE_RETURN_IF_ERROR(write(header.name, header.content));
  }
  CLEAVE_RETURN_IF_ERROR(write(sources.driver.name, sources.driver.content));
  const std::string driver = folder.File("driver.o");
  CLEAVE_RETURN_IF_ERROR(RunTool({"cc", "-std=c99", "-O2", "-fPIC", "-c", "-o",
                                  driver, folder.File(sources.driver.name)}));
  // Sections that no export reaches are dropped. Groups are dissolved: a linker
  // would take a group from one library only, though the others need theirs.
  const std::string linked = folder.File("linked.o");
  std::vector<std::string> link = {"ld", "-r", "--gc-sections",
                                   "--force-group-allocation", "-znoexecstack"};
  std::vector<std::string> localize = {"objcopy"};
  for (const std::string& symbol : sources.exports) {
    link.insert(link.end(), {"-u", symbol});
    localize.push_back(absl::StrCat("--keep-global-symbol=", symbol));
  }
  link.insert(link.end(), {"-e", sources.exports[0], "-o", linked, driver});
  for (size_t i = 0; i < sources.objects.size(); ++i) {
    const std::string name = absl::StrCat("object_", i, ".o");
    CLEAVE_RETURN_IF_ERROR(write(name, sources.objects[i]));
    link.push_back(folder.File(name));
  }
  CLEAVE_RETURN_IF_ERROR(RunTool(std::move(link)));
  const std::string object = folder.File(sources.name + ".o");
  localize.insert(localize.end(), {linked, object});
  CLEAVE_RETURN_IF_ERROR(RunTool(std::move(localize)));
  const std::string archive = folder.File("archive.a");
  CLEAVE_RETURN_IF_ERROR(RunTool({"ar", "rcsD", archive, object}));
  return ReadFile(archive);
}

}  // namespace cleave
