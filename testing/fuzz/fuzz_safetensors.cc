// Any bytes: read, or rejected with a message; what is read is written and read
// back the same.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/safetensors.h"
#include "ops/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using cleave::ParseSafetensors;
  using cleave::TensorMap;
  const absl::StatusOr<TensorMap> read = ParseSafetensors(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!read.ok()) {
    CLEAVE_CHECK(!read.status().message().empty());
    return 0;
  }
  const absl::StatusOr<std::string> written = cleave::FormatSafetensors(*read);
  CLEAVE_CHECK(written.ok()) << written.status();
  const absl::StatusOr<TensorMap> again = ParseSafetensors(*written);
  CLEAVE_CHECK(again.ok()) << again.status();
  CLEAVE_CHECK(again->size() == read->size());
  auto it = again->begin();
  for (const auto& [name, tensor] : *read) {
    CLEAVE_CHECK(it->first == name && it->second.dtype() == tensor.dtype() &&
                 it->second.shape() == tensor.shape())
        << name;
    CLEAVE_CHECK(
        tensor.byte_size() == 0 ||
        std::memcmp(it->second.data(), tensor.data(), tensor.byte_size()) == 0)
        << name;
    ++it;
  }
  return 0;
}
