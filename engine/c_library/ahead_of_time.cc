#include "engine/c_library/ahead_of_time.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/c_library/c_interface.h"
#include "engine/c_library/driver.h"
#include "engine/c_library/programs.h"
#include "engine/codegen/compile_group.h"
#include "engine/files/file.h"
#include "engine/ir/graph_text.h"
#include "engine/runtime/kernel_plan.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using internal_kernel::PlannedStep;

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

// The objects of all kernels, the symbols of which the programs get. Equal
// kernels share their code.
absl::StatusOr<std::vector<std::string>> CompileSteps(
    const std::string& name, const std::vector<TargetLevel>& levels,
    std::vector<DriverProgram>& programs) {
  std::vector<std::string> objects;
  std::map<std::string, DriverKernel> made;
  for (DriverProgram& program : programs) {
    for (const PlannedStep& one : program.plan.steps) {
      if (!HasCode(one.step.kind)) {
        program.kernels.emplace_back();
        continue;
      }
      const std::string key = absl::StrCat(GroupKindName(one.step.kind), "\n",
                                           PrintGraph(one.kernel));
      const auto [it, is_new] = made.try_emplace(key);
      if (is_new) {
        for (const TargetLevel level : levels) {
          const std::string entry =
              absl::StrCat("cleave_", name, "_", made.size() - 1, "_level_",
                           static_cast<int>(level));
          CLEAVE_ASSIGN_OR_RETURN(
              objects.emplace_back(),
              CompileGroup(one.kernel, one.step.kind, entry, level));
          it->second.entries.push_back(entry + "_argv");
        }
      }
      program.kernels.push_back(it->second);
    }
  }
  // The runtime computes nothing: one serves kernels of all levels.
  CLEAVE_ASSIGN_OR_RETURN(objects.emplace_back(), RuntimeObject(levels[0]));
  return objects;
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
  CLEAVE_ASSIGN_OR_RETURN(std::vector<DriverProgram> programs,
                          PlanPrograms(graph, rules, interface));
  CLEAVE_RETURN_IF_ERROR(CheckLibraryTools());
  CLEAVE_ASSIGN_OR_RETURN(std::vector<std::string> objects,
                          CompileSteps(name, levels, programs));
  const NamedFile header = {name + ".h", CHeader(interface, levels)};
  const NamedFile driver = {name + "_driver.c",
                            CDriver(interface, programs, levels)};
  LibrarySources sources;
  sources.name = name;
  sources.headers = {header};
  sources.driver = driver;
  sources.objects = std::move(objects);
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
