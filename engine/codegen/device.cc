#include "engine/codegen/device.h"

#include "absl/strings/str_cat.h"

namespace cleave {
namespace {

constexpr Device kDevices[] = {Device::kCpu, Device::kOpenCl, Device::kCuda};

}  // namespace

absl::string_view DeviceName(Device device) {
  switch (device) {
    case Device::kCpu:
      return "cpu";
    case Device::kOpenCl:
      return "opencl";
    case Device::kCuda:
      return "cuda";
  }
  return "";
}

absl::StatusOr<Device> ParseDevice(absl::string_view name) {
  for (const Device device : kDevices) {
    if (DeviceName(device) == name) return device;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no device `", name, "`: cpu, opencl or cuda"));
}

absl::Status CanRunOn(Device device, GroupKind kind) {
  if (kind == GroupKind::kReference) {
    return absl::UnimplementedError("there is only a reference kernel");
  }
  if (kind == GroupKind::kHost) {
    return absl::UnimplementedError("the host computes it");
  }
  if (device == Device::kCpu) return absl::OkStatus();
  if (kind == GroupKind::kTable) {
    return absl::UnimplementedError("tables are kept by the host");
  }
  if (kind == GroupKind::kRuntime) {
    return absl::UnimplementedError("the runtime's own code is for the CPU");
  }
  if (kind == GroupKind::kLoop) {
    return absl::UnimplementedError("loops and choices run on the CPU");
  }
  if (kind == GroupKind::kStructured) {
    return absl::UnimplementedError(absl::StrCat(
        "a structured kernel has no schedule for ", DeviceName(device)));
  }
  return absl::OkStatus();
}

}  // namespace cleave
