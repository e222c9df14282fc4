// The functions that libcleave_codegen.so exports.

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "Halide.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/codegen/code_generator_interface.h"
#include "engine/codegen/device.h"
#include "engine/codegen/fusion.h"
#include "engine/codegen/halide/device_code.h"
#include "engine/codegen/halide/lower_group.h"
#include "engine/codegen/halide/survive_aborts.h"
#include "engine/codegen/halide/target.h"
#include "engine/codegen/target_level.h"
#include "engine/ir/context.h"
#include "engine/ir/parse_typed_graph.h"
#include "ops/status_macros.h"

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

absl::StatusOr<Halide::Module> Lower(const CleaveKernelSource& source,
                                     const Halide::Target& target,
                                     bool plain_schedule) {
  CLEAVE_ASSIGN_OR_RETURN(
      const Graph graph,
      ParseTypedGraph(absl::string_view(source.graph, source.graph_size),
                      std::make_shared<Context>()));
  return LowerGroup(graph, static_cast<GroupKind>(source.group_kind),
                    source.name, target, plain_schedule);
}

// Aborted where LLVM gave up.
absl::Status Compile(const Halide::Module& module, const std::string& path) {
  return SurviveAborts(
      reinterpret_cast<const void*>(&Halide::get_host_target), [&] {
        module.compile({{Halide::OutputFileType::object, path}});
      });
}

absl::Status WriteAt(TargetLevel level, const CleaveCodeRequest& request,
                     const std::string& path) {
  const auto device = static_cast<Device>(request.device);
  const Halide::Target target = KernelTarget(level, device);
  const bool plain = request.plain_schedule != 0;
  const absl::Span<const CleaveKernelSource> kernels(request.kernels,
                                                     request.kernel_count);
  if (kernels.empty()) {
    // It computes nothing: Halide has no strict runtime.
    Halide::compile_standalone_runtime(
        path, target.without_feature(Halide::Target::NoRuntime)
                  .without_feature(Halide::Target::StrictFloat));
    return absl::OkStatus();
  }
  if (device == Device::kCpu && kernels.size() == 1) {
    CLEAVE_ASSIGN_OR_RETURN(const Halide::Module module,
                            Lower(kernels.front(), target, plain));
    return Compile(module, path);
  }
  Halide::Module all("kernels", target);
  all.set_any_strict_float(true);
  for (const CleaveKernelSource& kernel : kernels) {
    CLEAVE_ASSIGN_OR_RETURN(const Halide::Module module,
                            Lower(kernel, target, plain));
    AppendStrict(module, absl::StrCat(kernel.name, "_"), all);
  }
  return Compile(all, path);
}

// Code that LLVM cannot write for a level has the instructions of a lower one,
// which every machine of that level runs, too.
absl::Status Write(const CleaveCodeRequest& request, const std::string& path) {
  int level = request.level;
  absl::Status written;
  do {
    written = WriteAt(static_cast<TargetLevel>(level), request, path);
  } while (absl::IsAborted(written) && --level >= 0);
  if (absl::IsAborted(written)) {
    return absl::InternalError(written.message());
  }
  return written;
}

absl::StatusOr<std::string> Generate(const CleaveCodeRequest& request) {
  const ScratchFile file;
  if (!file.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot make the object file ", file.path()));
  }
  try {
    CLEAVE_RETURN_IF_ERROR(Write(request, file.path()));
  } catch (const Halide::Error& error) {
    return absl::InternalError(absl::StrCat("Halide: ", error.what()));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("code generator: ", error.what()));
  }
  return file.Read();
}

}  // namespace
}  // namespace cleave

extern "C" {

__attribute__((visibility("default"))) const char*
cleave_code_generator_version() {
  return CLEAVE_CODE_GENERATOR_VERSION;
}

__attribute__((visibility("default"))) void cleave_generate_code(
    const CleaveCodeRequest* request, CleaveCodeResult* result, void* context) {
  const absl::StatusOr<std::string> object = cleave::Generate(*request);
  const absl::string_view bytes =
      object.ok() ? absl::string_view(*object) : object.status().message();
  result(context, object.status().raw_code(), bytes.data(), bytes.size());
}

}  // extern "C"
