#include "engine/runtime/device_memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/runtime/cuda_driver.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

template <typename Function>
absl::Status Look(const KernelLibrary& library, absl::string_view name,
                  Function** function) {
  *function = reinterpret_cast<Function*>(library.FindInRuntime(name));
  if (*function != nullptr) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the library's runtime has no ", name));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const DeviceInterface>> DeviceInterface::Open(
    std::shared_ptr<const KernelLibrary> library, Device device) {
  auto result = std::make_shared<DeviceInterface>();
  const KernelLibrary& in = *library;
  CLEAVE_RETURN_IF_ERROR(Look(in, "halide_device_malloc", &result->malloc_));
  CLEAVE_RETURN_IF_ERROR(Look(in, "halide_device_free", &result->free_));
  CLEAVE_RETURN_IF_ERROR(
      Look(in, "halide_copy_to_device", &result->copy_to_device_));
  CLEAVE_RETURN_IF_ERROR(
      Look(in, "halide_copy_to_host", &result->copy_to_host_));
  CLEAVE_RETURN_IF_ERROR(Look(in, "halide_device_sync", &result->sync_));
  const halide_device_interface_t* (*interface)() = nullptr;
  CLEAVE_RETURN_IF_ERROR(
      Look(in, absl::StrCat("halide_", DeviceName(device), "_device_interface"),
           &interface));
  result->interface_ = interface();
  result->device_ = device;
  result->library_ = std::move(library);
  KernelCall call;
  DeviceMemory memory(*result, call, 1);
  halide_buffer_t buffer = {};
  const absl::Status room = memory.Write(0, 1, buffer);
  if (!room.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "there is no ", DeviceName(device), " device: ", room.message()));
  }
  return result;
}

DeviceMemory::DeviceMemory(const DeviceInterface& device, KernelCall& call,
                           size_t slots)
    : device_(device), call_(call), slots_(slots) {}

DeviceMemory::~DeviceMemory() {
  // An error here has no reader: the run has its result, or its own error.
  // Memory that is freed serves later requests of the same stream alone.
  if (bytes_to_device_ + bytes_to_host_ > 0) Sync().IgnoreError();
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    Free(static_cast<int>(slot));
  }
}

void DeviceMemory::Shape(int64_t bytes, Slot& place) {
  place.dimension = halide_dimension_t(
      0, static_cast<int32_t>(std::max<int64_t>(bytes, 1)), 1);
  place.buffer.type = halide_type_t(halide_type_uint, 8);
  place.buffer.dimensions = 1;
  place.buffer.dim = &place.dimension;
}

void DeviceMemory::Adopt(int slot, void* address, int64_t bytes, void* host,
                         bool has_value) {
  Slot& place = slots_[slot];
  Shape(bytes, place);
  place.buffer.host = static_cast<uint8_t*>(host);
  place.buffer.device = reinterpret_cast<uint64_t>(address);
  place.buffer.device_interface = device_.interface_;
  // A value without bytes gets its room like any other.
  place.is_callers = address != nullptr;
  place.on_device = has_value;
  place.on_host = bytes == 0;
}

absl::Status DeviceMemory::AdoptCopy(int slot, const void* address,
                                     int64_t bytes, void* host) {
  CLEAVE_RETURN_IF_ERROR(Place(slot, bytes, host));
  CLEAVE_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Get());
  Slot& place = slots_[slot];
  place.on_device = true;
  place.on_host = bytes == 0;
  busy_ = true;
  return driver->Copy(call_.device_ordinal(),
                      reinterpret_cast<void*>(place.buffer.device), address,
                      bytes, call_.stream());
}

absl::Status DeviceMemory::Place(int slot, int64_t bytes, void* host) {
  Slot& place = slots_[slot];
  place.buffer.host = static_cast<uint8_t*>(host);
  if (place.buffer.device != 0) return absl::OkStatus();
  Shape(bytes, place);
  const absl::Status made = call_.ToStatus(
      device_.malloc_(&call_, &place.buffer, device_.interface_), "its driver");
  if (!made.ok()) return absl::ResourceExhaustedError(made.message());
  bytes_ += place.dimension.extent;
  peak_bytes_ = std::max(peak_bytes_, bytes_);
  return absl::OkStatus();
}

void DeviceMemory::Point(int slot, halide_buffer_t& buffer) {
  buffer.device = slots_[slot].buffer.device;
  buffer.device_interface = slots_[slot].buffer.device_interface;
  buffer.flags = 0;
  busy_ = true;
}

absl::Status DeviceMemory::Read(int slot, int64_t bytes,
                                halide_buffer_t& buffer) {
  CLEAVE_RETURN_IF_ERROR(Place(slot, bytes, buffer.host));
  if (!slots_[slot].on_device && bytes > 0) {
    CLEAVE_RETURN_IF_ERROR(CopyToDevice(slot));
  }
  slots_[slot].on_device = true;
  Point(slot, buffer);
  return absl::OkStatus();
}

absl::Status DeviceMemory::CopyToDevice(int slot) {
  Slot& place = slots_[slot];
  place.buffer.flags = halide_buffer_flag_host_dirty;
  CLEAVE_RETURN_IF_ERROR(call_.ToStatus(
      device_.copy_to_device_(&call_, &place.buffer, device_.interface_),
      "a copy to the device"));
  bytes_to_device_ += place.dimension.extent;
  place.on_device = true;
  busy_ = true;
  return absl::OkStatus();
}

absl::Status DeviceMemory::Write(int slot, int64_t bytes,
                                 halide_buffer_t& buffer) {
  CLEAVE_RETURN_IF_ERROR(Place(slot, bytes, buffer.host));
  slots_[slot].on_device = true;
  slots_[slot].on_host = bytes == 0;
  Point(slot, buffer);
  return absl::OkStatus();
}

absl::Status DeviceMemory::BringToHost(int slot) {
  Slot& place = slots_[slot];
  if (place.on_host) return absl::OkStatus();
  place.buffer.flags = halide_buffer_flag_device_dirty;
  CLEAVE_RETURN_IF_ERROR(call_.ToStatus(
      device_.copy_to_host_(&call_, &place.buffer), "a copy from the device"));
  bytes_to_host_ += place.dimension.extent;
  place.on_host = true;
  return absl::OkStatus();
}

absl::Status DeviceMemory::BringToHost(int slot, void* host) {
  slots_[slot].buffer.host = static_cast<uint8_t*>(host);
  return BringToHost(slot);
}

absl::Status DeviceMemory::Deliver(int slot) {
  const Slot& place = slots_[slot];
  if (!place.is_callers) return BringToHost(slot);
  return place.on_device ? absl::OkStatus() : CopyToDevice(slot);
}

absl::Status DeviceMemory::CopyTo(int slot, int64_t bytes, const void* host,
                                  void* target) {
  const Slot& place = slots_[slot];
  CLEAVE_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Get());
  const void* const source =
      place.on_device ? reinterpret_cast<const void*>(place.buffer.device)
                      : host;
  if (!place.on_device) bytes_to_device_ += bytes;
  busy_ = true;
  return driver->Copy(call_.device_ordinal(), target, source, bytes,
                      call_.stream());
}

void DeviceMemory::WrittenByHost(int slot) {
  slots_[slot].on_host = true;
  slots_[slot].on_device = false;
}

void DeviceMemory::Free(int slot) {
  Slot& place = slots_[slot];
  if (place.buffer.device == 0 || place.is_callers) return;
  device_.free_(&call_, &place.buffer);
  bytes_ -= place.dimension.extent;
  place.on_device = false;
}

absl::Status DeviceMemory::Sync() {
  if (!busy_) return absl::OkStatus();
  for (Slot& place : slots_) {
    if (place.buffer.device == 0) continue;
    busy_ = false;
    return call_.ToStatus(device_.sync_(&call_, &place.buffer), "the device");
  }
  return absl::OkStatus();
}

}  // namespace cleave
