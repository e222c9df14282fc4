#include "engine/codegen/code_generator.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

namespace fs = std::filesystem;

constexpr char kFileName[] = "libcleave_codegen.so";
constexpr char kVariable[] = "CLEAVE_CODEGEN";
// CLEAVE_RUNFILES_FOLDER: the name of the repository, from the BUILD file.
constexpr char kRunfile[] =
    CLEAVE_RUNFILES_FOLDER "/engine/codegen/halide/libcleave_codegen.so";

// Empty where it is not set.
std::string Environment(const char* name) {
  const char* value = secure_getenv(name);
  return value != nullptr ? value : "";
}

fs::path ProgramPath() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);  // empty where it fails
}

// The file that this code was loaded from; empty where it is not known.
fs::path ImagePath() {
  Dl_info info;
  void* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&LoadCodeGenerator), &info, &map,
              RTLD_DL_LINKMAP) == 0) {
    return {};
  }
  const fs::path name = static_cast<const link_map*>(map)->l_name;
  if (name.empty()) return ProgramPath();
  // One that is relative holds for the folder that the process was in then.
  return name.is_absolute() ? name : fs::path();
}

// Where it may lie, beside the system's folders.
std::vector<fs::path> Places() {
  std::vector<fs::path> places;
  const fs::path image = ImagePath();
  if (!image.empty()) {
    places.push_back(image.parent_path() / kFileName);
    places.push_back(image.parent_path() / ".." / "lib" / kFileName);
  }
  for (const char* name : {"RUNFILES_DIR", "TEST_SRCDIR"}) {
    const std::string folder = Environment(name);
    if (!folder.empty()) places.push_back(fs::path(folder) / kRunfile);
  }
  const fs::path program = ProgramPath();
  if (!program.empty()) {
    places.push_back(fs::path(program.string() + ".runfiles") / kRunfile);
  }
  return places;
}

absl::Status NoCodeGenerator(const std::string& why) {
  return absl::UnavailableError(absl::StrCat("no code generator: ", why));
}

absl::StatusOr<std::string> Find() {
  std::error_code error;
  const std::string chosen = Environment(kVariable);
  if (!chosen.empty()) {
    if (fs::is_regular_file(chosen, error)) return chosen;
    return NoCodeGenerator(
        absl::StrCat("$", kVariable, " is ", chosen, ", which is no file"));
  }
  for (const fs::path& place : Places()) {
    // The file that a link points to has libHalide.so where it was linked with
    // it.
    const fs::path file = fs::canonical(place, error);
    if (!error && fs::is_regular_file(file, error)) return file.string();
  }
  return std::string(kFileName);
}

absl::StatusOr<CleaveGenerateCode*> Open() {
  CLEAVE_ASSIGN_OR_RETURN(const std::string path, Find());
  // Its names do not meet those of the process. It binds its own names when it
  // is loaded; those of Halide, thousands that are never called, are not bound.
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string why = dlerror();
    if (path != kFileName) return NoCodeGenerator(why);
    return NoCodeGenerator(absl::StrCat(
        why, "; it is not at ",
        absl::StrJoin(Places(), ", ",
                      [](std::string* out, const fs::path& place) {
                        out->append(place.lexically_normal().string());
                      }),
        " either; $", kVariable, " may name it"));
  }
  const auto version = reinterpret_cast<CleaveCodeGeneratorVersion*>(
      dlsym(library, CLEAVE_CODE_GENERATOR_VERSION_NAME));
  const auto generate = reinterpret_cast<CleaveGenerateCode*>(
      dlsym(library, CLEAVE_GENERATE_CODE_NAME));
  if (version == nullptr || generate == nullptr) {
    dlclose(library);
    return NoCodeGenerator(
        absl::StrCat(path, " does not have the functions of one"));
  }
  if (std::strcmp(version(), CLEAVE_CODE_GENERATOR_VERSION) != 0) {
    const std::string other = version();
    dlclose(library);
    return absl::FailedPreconditionError(absl::StrCat(
        "no code generator: ", path, " is of another build: ", other, ", not ",
        CLEAVE_CODE_GENERATOR_VERSION));
  }
  return generate;
}

}  // namespace

absl::StatusOr<CleaveGenerateCode*> LoadCodeGenerator() {
  static std::mutex mutex;
  static CleaveGenerateCode* loaded = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (loaded == nullptr) {
    CLEAVE_ASSIGN_OR_RETURN(loaded, Open());
  }
  return loaded;
}

}  // namespace cleave
