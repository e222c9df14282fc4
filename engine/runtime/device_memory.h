// DeviceMemory: where the values of one run lie, on the host or on a device.
//
//   DeviceMemory memory(library, Device::kOpenCl, call, slots);
//   halide_buffer_t buffer = ...;              // of the kernel
//   CLEAVE_RETURN_IF_ERROR(memory.Read(slot, buffer));     // copies if needed
//   CLEAVE_RETURN_IF_ERROR(memory.Write(result, other));   // makes room
//   ...call the kernel...
//   CLEAVE_RETURN_IF_ERROR(memory.BringToHost(result));    // copies if needed
//
// A value is copied when it is read on the other side, and not before: what
// passes from kernel to kernel on the device stays there. The caller's own
// memory on the device serves as it is (Adopt). All copies are counted.
// Internal to engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_DEVICE_MEMORY_H_
#define CLEAVE_ENGINE_RUNTIME_DEVICE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "HalideRuntime.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/codegen/device.h"
#include "engine/runtime/kernel_call.h"
#include "engine/runtime/kernel_library.h"

namespace cleave {

// A device as the runtime in one library of kernels reaches it.
class DeviceInterface {
 public:
  // FailedPrecondition with the driver's words where there is no such device.
  static absl::StatusOr<std::shared_ptr<const DeviceInterface>> Open(
      std::shared_ptr<const KernelLibrary> library, Device device);

  Device device() const { return device_; }

 private:
  friend class DeviceMemory;
  Device device_ = Device::kCpu;
  std::shared_ptr<const KernelLibrary> library_;
  const halide_device_interface_t* interface_ = nullptr;
  decltype(halide_device_malloc)* malloc_ = nullptr;
  decltype(halide_device_free)* free_ = nullptr;
  decltype(halide_copy_to_device)* copy_to_device_ = nullptr;
  decltype(halide_copy_to_host)* copy_to_host_ = nullptr;
  decltype(halide_device_sync)* sync_ = nullptr;
};

// The memory of one run, whose steps run one after the other.
class DeviceMemory {
 public:
  // Both outlive this.
  DeviceMemory(const DeviceInterface& device, KernelCall& call, size_t slots);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  // Frees what it holds. Waits for the device where something was copied
  // between it and the host: else the caller's stream has the order.
  ~DeviceMemory();

  // The slot's value lies at `address` on the device, in memory of the caller
  // (CUDA's alone): `has_value` where that is an input. `host` is room for a
  // copy; null where no step on the host touches the value.
  void Adopt(int slot, void* address, int64_t bytes, void* host,
             bool has_value);
  // The same for a copy of what lies at `address`.
  absl::Status AdoptCopy(int slot, const void* address, int64_t bytes,
                         void* host);

  // Points `buffer`, whose host address is set, to the slot's memory on the
  // device, with the value that the host has if that is the newer; of `bytes`
  // bytes, 0 for a value that has none. ResourceExhausted where the device
  // refuses memory.
  absl::Status Read(int slot, int64_t bytes, halide_buffer_t& buffer);
  // The same for a value that a kernel is about to write.
  absl::Status Write(int slot, int64_t bytes, halide_buffer_t& buffer);
  // The host's memory has the value from here on.
  absl::Status BringToHost(int slot);
  // The same for a value that has no memory there yet: this.
  absl::Status BringToHost(int slot, void* host);
  // The caller has the value of an output: on the host, or where it was
  // adopted.
  absl::Status Deliver(int slot);
  // Copies the value to `target` on a CUDA device; `host` is where the host has
  // it, if it has.
  absl::Status CopyTo(int slot, int64_t bytes, const void* host, void* target);
  // The host has written the value.
  void WrittenByHost(int slot);
  // The value is not needed on the device any more.
  void Free(int slot);
  // Waits until the device has done all that it was given.
  absl::Status Sync();

  int64_t bytes_to_device() const { return bytes_to_device_; }
  int64_t bytes_to_host() const { return bytes_to_host_; }
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  struct Slot {
    halide_buffer_t buffer = {};  // its bytes; `device` is 0 where it has none
    halide_dimension_t dimension;
    bool is_callers = false;  // the memory on the device
    bool on_device = false;   // the device has the value
    bool on_host = true;      // the host has the value
  };

  // A buffer of bytes.
  static void Shape(int64_t bytes, Slot& place);
  // Makes room on the device.
  absl::Status Place(int slot, int64_t bytes, void* host);
  void Point(int slot, halide_buffer_t& buffer);
  absl::Status CopyToDevice(int slot);

  const DeviceInterface& device_;
  KernelCall& call_;
  std::vector<Slot> slots_;
  bool busy_ = false;  // something was given to the device since Sync()
  int64_t bytes_ = 0;
  int64_t peak_bytes_ = 0;
  int64_t bytes_to_device_ = 0;
  int64_t bytes_to_host_ = 0;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_DEVICE_MEMORY_H_
