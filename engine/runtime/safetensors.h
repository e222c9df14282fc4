// The safetensors file format: named tensors in one file.
// Format: https://huggingface.co/docs/safetensors (8 bytes of header length,
// little endian; a JSON header; the data).
//
//   absl::StatusOr<TensorMap> in = ReadSafetensors("in.safetensors");
//   WriteSafetensors("out.safetensors", {{"y", y}});

#ifndef CLEAVE_ENGINE_RUNTIME_SAFETENSORS_H_
#define CLEAVE_ENGINE_RUNTIME_SAFETENSORS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/tensor.h"

namespace cleave {

using TensorMap = std::map<std::string, Tensor>;

// The longest header that is read, as in the format's own library.
inline constexpr uint64_t kMaxSafetensorsHeader = 100 << 20;

// The tensors in `bytes`. InvalidArgument says what is wrong and with which
// tensor: a short file, a malformed header, an unknown dtype, offsets that
// overlap, leave gaps or do not fit dtype and shape. O(bytes).
absl::StatusOr<TensorMap> ParseSafetensors(absl::string_view bytes);

// As ReadFile and ParseSafetensors; errors name the path.
absl::StatusOr<TensorMap> ReadSafetensors(const std::string& path);

// InvalidArgument for a dtype that the format lacks (complex numbers, keys).
absl::StatusOr<std::string> FormatSafetensors(const TensorMap& tensors);

// As FormatSafetensors and WriteFileAtomically.
absl::Status WriteSafetensors(const std::string& path,
                              const TensorMap& tensors);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_SAFETENSORS_H_
