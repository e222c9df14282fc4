#include "engine/codegen/compile_group.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/codegen/device_code.h"
#include "engine/codegen/lower_group.h"
#include "engine/codegen/lowering_digest.h"
#include "engine/codegen/target.h"

namespace cleave {
namespace {

// Halide writes objects to files: to one without a name.
class ScratchFile {
 public:
  ScratchFile() : path_(absl::StrCat(Folder(), "/cleave-XXXXXX.o")) {
    descriptor_ = mkstemps(path_.data(), 2);
  }
  ~ScratchFile() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    unlink(path_.c_str());
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  bool ok() const { return descriptor_ >= 0; }
  const std::string& path() const { return path_; }

  absl::StatusOr<std::string> Read() const {
    std::ifstream in(path_, std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    if (!in || bytes.str().empty()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot write the object file ", path_));
    }
    return bytes.str();
  }

 private:
  static std::string Folder() {
    const char* folder = std::getenv("TMPDIR");
    return folder != nullptr && *folder != 0 ? folder : "/tmp";
  }
  std::string path_;
  int descriptor_;
};

template <typename Compile>
absl::StatusOr<std::string> ToObject(const Compile& compile) {
  const ScratchFile file;
  if (!file.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot make the object file ", file.path()));
  }
  try {
    compile(file.path());
  } catch (const Halide::Error& error) {
    return absl::InternalError(absl::StrCat("Halide: ", error.what()));
  }
  return file.Read();
}

}  // namespace

absl::StatusOr<std::string> CompileGroup(const Graph& graph, GroupKind kind,
                                         const std::string& name,
                                         TargetLevel level,
                                         const ScheduleOptions& options) {
  return ToObject([&](const std::string& path) {
    LowerGroup(graph, kind, name, KernelTarget(level), options)
        .compile({{Halide::OutputFileType::object, path}});
  });
}

absl::StatusOr<std::string> CompileGroups(
    const std::vector<DeviceGroup>& groups, TargetLevel level, Device device) {
  return ToObject([&](const std::string& path) {
    const Halide::Target target = KernelTarget(level, device);
    Halide::Module module("kernels", target);
    module.set_any_strict_float(true);
    for (const DeviceGroup& group : groups) {
      const Halide::Module one =
          LowerGroup(*group.graph, group.kind, group.name, target);
      AppendStrict(one, absl::StrCat(group.name, "_"), module);
    }
    module.compile({{Halide::OutputFileType::object, path}});
  });
}

absl::StatusOr<std::string> CompileRuntime(TargetLevel level, Device device) {
  return ToObject([&](const std::string& path) {
    // It computes nothing: Halide has no strict runtime.
    Halide::compile_standalone_runtime(
        path, KernelTarget(level, device)
                  .without_feature(Halide::Target::NoRuntime)
                  .without_feature(Halide::Target::StrictFloat));
  });
}

std::string CodeVersion(TargetLevel level, Device device) {
  return absl::StrCat("lowering " CLEAVE_LOWERING_DIGEST ", Halide ",
                      HALIDE_VERSION_MAJOR, ".", HALIDE_VERSION_MINOR, ".",
                      HALIDE_VERSION_PATCH, ", ",
                      KernelTarget(level, device).to_string());
}

}  // namespace cleave
