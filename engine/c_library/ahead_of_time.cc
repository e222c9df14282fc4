#include "engine/c_library/ahead_of_time.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/c_library/c_interface.h"
#include "engine/c_library/driver.h"
#include "engine/codegen/compile_group.h"
#include "engine/files/file.h"
#include "engine/ir/graph_text.h"
#include "engine/runtime/kernel_plan.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using internal_kernel::PlannedGraph;
using internal_kernel::PlannedStep;

// Unimplemented where a step would run by a reference kernel.
absl::Status CheckSupported(const PlannedGraph& plan, const std::string& name) {
  std::vector<std::string> reasons;
  for (const PlannedStep& one : plan.steps) {
    if (HasCode(one.step.kind)) continue;
    std::string reason = one.step.kind == GroupKind::kLoop
                             ? "a loop or a choice: no code of one function"
                             : one.step.why;
    if (std::count(reasons.begin(), reasons.end(), reason) == 0) {
      reasons.push_back(std::move(reason));
    }
  }
  if (!reasons.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("not supported: a library with `", name,
                     "`, which needs what only a reference kernel computes: ",
                     absl::StrJoin(reasons, "; ")));
  }
  if (!plan.static_shapes) {
    return absl::UnimplementedError(
        absl::StrCat("not supported: a library with `", name,
                     "`, the extents of which depend on its data"));
  }
  return absl::OkStatus();
}

// It takes a second to make, and is the same for all functions: a process keeps
// one per level.
absl::StatusOr<std::string> RuntimeObject(TargetLevel level) {
  static std::mutex mutex;
  static auto* const made = new std::map<TargetLevel, std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto it = made->find(level);
  if (it != made->end()) return it->second;
  CLEAVE_ASSIGN_OR_RETURN(std::string object, CompileRuntime(level));
  return made->emplace(level, std::move(object)).first->second;
}

struct Code {
  std::vector<DriverKernel> kernels;  // per step
  std::vector<std::string> objects;
};

// Equal kernels share their code.
absl::StatusOr<Code> CompileSteps(const PlannedGraph& plan,
                                  const std::string& name,
                                  const std::vector<TargetLevel>& levels) {
  Code code;
  std::map<std::string, DriverKernel> made;
  for (const PlannedStep& one : plan.steps) {
    const std::string key = absl::StrCat(GroupKindName(one.step.kind), "\n",
                                         PrintGraph(one.kernel));
    const auto [it, is_new] = made.try_emplace(key);
    if (is_new) {
      for (const TargetLevel level : levels) {
        const std::string entry =
            absl::StrCat("cleave_", name, "_", made.size() - 1, "_level_",
                         static_cast<int>(level));
        CLEAVE_ASSIGN_OR_RETURN(
            code.objects.emplace_back(),
            CompileGroup(one.kernel, one.step.kind, entry, level));
        it->second.entries.push_back(entry + "_argv");
      }
    }
    code.kernels.push_back(it->second);
  }
  // The runtime computes nothing: one serves kernels of all levels.
  CLEAVE_ASSIGN_OR_RETURN(code.objects.emplace_back(),
                          RuntimeObject(levels[0]));
  return code;
}

}  // namespace

absl::StatusOr<std::vector<NamedFile>> CompileAheadOfTime(
    const Graph& graph, const RuleSet& rules,
    const AheadOfTimeOptions& options) {
  std::vector<TargetLevel> levels = options.levels;
  if (levels.empty()) {
    levels = {TargetLevel::kSse41, TargetLevel::kAvx2, TargetLevel::kAvx512};
  }
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  const std::string& name = options.name;
  CLEAVE_ASSIGN_OR_RETURN(const CInterface interface,
                          MakeCInterface(graph, name));
  FusionOptions fusion;
  fusion.runtime_code = false;
  fusion.tables = false;
  CLEAVE_ASSIGN_OR_RETURN(const PlannedGraph plan,
                          internal_kernel::PlanSteps(graph, rules, fusion, {}));
  CLEAVE_RETURN_IF_ERROR(CheckSupported(plan, name));
  CLEAVE_RETURN_IF_ERROR(CheckLibraryTools());
  CLEAVE_ASSIGN_OR_RETURN(Code code, CompileSteps(plan, name, levels));
  const NamedFile header = {name + ".h", CHeader(interface, levels)};
  const NamedFile driver = {name + "_driver.c",
                            CDriver(interface, plan, code.kernels, levels)};
  LibrarySources sources;
  sources.name = name;
  sources.headers = {header};
  sources.driver = driver;
  sources.objects = std::move(code.objects);
  sources.exports = {name, name + "_error"};
  CLEAVE_ASSIGN_OR_RETURN(std::string archive, MakeStaticLibrary(sources));
  return std::vector<NamedFile>{
      {absl::StrCat("lib", name, ".a"), std::move(archive)},
      header,
      driver,
      {name + "_example.c", CExample(interface, graph)}};
}

absl::Status WriteFiles(const std::vector<NamedFile>& files,
                        const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool made = fs::create_directory(folder, error);
  if (error) {
    return absl::Status(
        absl::ErrnoToStatusCode(error.value()),
        absl::StrCat("cannot make the folder ", folder, ": ", error.message()));
  }
  std::vector<std::string> written;
  for (const NamedFile& file : files) {
    const std::string path = absl::StrCat(folder, "/", file.name);
    const bool is_new = !fs::exists(path, error);
    const absl::Status status = WriteFileAtomically(path, file.content);
    if (!status.ok()) {
      for (const std::string& one : written) fs::remove(one, error);
      if (made) fs::remove(folder, error);
      return status;
    }
    if (is_new) written.push_back(path);
  }
  return absl::OkStatus();
}

}  // namespace cleave
