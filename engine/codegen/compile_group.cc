#include "engine/codegen/compile_group.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/codegen/code_generator.h"
#include "engine/codegen/code_generator_interface.h"
#include "engine/ir/graph_text.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

absl::StatusOr<std::string> Generate(absl::Span<const DeviceGroup> groups,
                                     TargetLevel level, Device device,
                                     bool plain_schedule) {
  CLEAVE_ASSIGN_OR_RETURN(CleaveGenerateCode* const generate,
                          LoadCodeGenerator());
  std::vector<std::string> graphs;
  for (const DeviceGroup& group : groups) {
    graphs.push_back(PrintGraph(*group.graph));
  }
  std::vector<CleaveKernelSource> kernels;
  for (size_t i = 0; i < groups.size(); ++i) {
    kernels.push_back({groups[i].name.c_str(), graphs[i].data(),
                       graphs[i].size(), static_cast<int32_t>(groups[i].kind)});
  }
  const CleaveCodeRequest request = {
      static_cast<int32_t>(level), static_cast<int32_t>(device), plain_schedule,
      kernels.size(), kernels.data()};
  absl::StatusOr<std::string> object = absl::InternalError("no code");
  generate(
      &request,
      [](void* context, int32_t code, const char* bytes, size_t size) {
        auto& result = *static_cast<absl::StatusOr<std::string>*>(context);
        if (code == 0) {
          result.emplace(bytes, size);
        } else {
          result = absl::Status(static_cast<absl::StatusCode>(code),
                                absl::string_view(bytes, size));
        }
      },
      &object);
  return object;
}

}  // namespace

absl::StatusOr<std::string> CompileGroup(const Graph& graph, GroupKind kind,
                                         const std::string& name,
                                         TargetLevel level,
                                         const ScheduleOptions& options) {
  const DeviceGroup group = {&graph, kind, name};
  return Generate({&group, 1}, level, Device::kCpu, options.plain);
}

absl::StatusOr<std::string> CompileGroups(
    const std::vector<DeviceGroup>& groups, TargetLevel level, Device device) {
  CLEAVE_CHECK(!groups.empty()) << "a library without a kernel";
  return Generate(groups, level, device, /*plain_schedule=*/false);
}

absl::StatusOr<std::string> CompileRuntime(TargetLevel level, Device device) {
  return Generate({}, level, device, /*plain_schedule=*/false);
}

std::string CodeVersion(TargetLevel level, Device device) {
  return absl::StrCat(CLEAVE_CODE_GENERATOR_VERSION ", ",
                      TargetLevelName(level), ", ", DeviceName(device));
}

}  // namespace cleave
