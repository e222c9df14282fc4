#include "engine/runtime/safetensors.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "nlohmann/json.hpp"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using nlohmann::json;

struct FormatDType {
  const char* name;
  DType dtype;
};

constexpr FormatDType kFormatDTypes[] = {
    {"BOOL", DType::kBool}, {"U8", DType::kU8},     {"U16", DType::kU16},
    {"U32", DType::kU32},   {"U64", DType::kU64},   {"I8", DType::kI8},
    {"I16", DType::kI16},   {"I32", DType::kI32},   {"I64", DType::kI64},
    {"F16", DType::kF16},   {"BF16", DType::kBF16}, {"F32", DType::kF32},
    {"F64", DType::kF64},
};

std::optional<DType> FindFormatDType(const std::string& name) {
  for (const FormatDType& entry : kFormatDTypes) {
    if (name == entry.name) return entry.dtype;
  }
  return std::nullopt;
}

// One tensor of the header.
struct Entry {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  uint64_t begin;
  uint64_t end;
};

absl::Status Invalid(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("safetensors: tensor `", name, "`: ", what));
}

// A list of non-negative integers below 2^63.
std::optional<std::vector<int64_t>> ToSizes(const json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<int64_t> sizes;
  for (const json& element : value) {
    if (!element.is_number_unsigned()) return std::nullopt;
    const uint64_t size = element.get<uint64_t>();
    if (size > INT64_MAX) return std::nullopt;
    sizes.push_back(static_cast<int64_t>(size));
  }
  return sizes;
}

absl::StatusOr<Entry> ReadEntry(const std::string& name, const json& value) {
  if (!value.is_object()) return Invalid(name, "the entry is not an object");
  for (const auto& member : value.items()) {
    if (member.key() != "dtype" && member.key() != "shape" &&
        member.key() != "data_offsets") {
      return Invalid(name, absl::StrCat("unknown member `", member.key(), "`"));
    }
  }
  const auto dtype = value.find("dtype");
  const auto shape = value.find("shape");
  const auto offsets = value.find("data_offsets");
  if (dtype == value.end() || shape == value.end() || offsets == value.end()) {
    return Invalid(name, "dtype, shape and data_offsets are needed");
  }
  Entry entry;
  entry.name = name;
  if (!dtype->is_string()) return Invalid(name, "the dtype is not a string");
  const std::optional<DType> known = FindFormatDType(dtype->get<std::string>());
  if (!known) {
    return Invalid(
        name, absl::StrCat("unknown dtype `", dtype->get<std::string>(), "`"));
  }
  entry.dtype = *known;
  auto sizes = ToSizes(*shape);
  if (!sizes) return Invalid(name, "the shape is not a list of extents");
  entry.shape = *std::move(sizes);
  auto range = ToSizes(*offsets);
  if (!range || range->size() != 2 || (*range)[0] > (*range)[1]) {
    return Invalid(name, "data_offsets are not [begin, end]");
  }
  entry.begin = (*range)[0];
  entry.end = (*range)[1];
  uint64_t bytes = ByteSize(entry.dtype);
  for (int64_t extent : entry.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) {
      return Invalid(name, "the shape is too large");
    }
  }
  if (bytes != entry.end - entry.begin) {
    return Invalid(name, absl::StrCat("dtype and shape need ", bytes,
                                      " bytes, data_offsets span ",
                                      entry.end - entry.begin));
  }
  return entry;
}

// The header as JSON; member names must not repeat, nesting is shallow.
absl::StatusOr<json> ParseHeader(absl::string_view text) {
  std::set<std::string> names;
  std::string repeated;
  bool deep = false;
  const auto callback = [&](int depth, json::parse_event_t event,
                            json& parsed) {
    if (depth > 4) deep = true;
    if (depth == 1 && event == json::parse_event_t::key &&
        !names.insert(parsed.get<std::string>()).second) {
      repeated = parsed.get<std::string>();
    }
    return !deep;
  };
  json header = json::parse(text.begin(), text.end(), callback,
                            /*allow_exceptions=*/false);
  if (deep || header.is_discarded() || !header.is_object()) {
    return absl::InvalidArgumentError(
        "safetensors: the header is not a JSON object of tensors");
  }
  if (!repeated.empty()) return Invalid(repeated, "the name occurs twice");
  return header;
}

}  // namespace

absl::StatusOr<TensorMap> ParseSafetensors(absl::string_view bytes) {
  if (bytes.size() < 8) {
    return absl::InvalidArgumentError(
        "safetensors: the file is shorter than its header's length");
  }
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) {
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  }
  if (length > kMaxSafetensorsHeader || length > bytes.size() - 8) {
    return absl::InvalidArgumentError(absl::StrCat(
        "safetensors: a header of ", length, " bytes does not fit the file"));
  }
  CLEAVE_ASSIGN_OR_RETURN(const json header,
                          ParseHeader(bytes.substr(8, length)));
  const absl::string_view data = bytes.substr(8 + length);
  std::vector<Entry> entries;
  for (const auto& member : header.items()) {
    if (member.key() == "__metadata__") {
      if (!member.value().is_object()) {
        return Invalid(member.key(), "the metadata is not an object");
      }
      continue;
    }
    CLEAVE_ASSIGN_OR_RETURN(Entry entry,
                            ReadEntry(member.key(), member.value()));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != end) {
      return Invalid(entry.name, "data_offsets overlap or leave a gap");
    }
    end = entry.end;
  }
  if (end != data.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("safetensors: the tensors span ", end,
                     " bytes, the data has ", data.size()));
  }
  TensorMap tensors;
  for (const Entry& entry : entries) {
    CLEAVE_ASSIGN_OR_RETURN(Tensor tensor,
                            Tensor::Create(entry.dtype, entry.shape));
    if (entry.dtype == DType::kBool) {
      for (uint64_t i = entry.begin; i < entry.end; ++i) {
        if (data[i] != 0 && data[i] != 1) {
          return Invalid(entry.name, "a BOOL is neither 0 nor 1");
        }
      }
    }
    if (entry.end > entry.begin) {
      std::memcpy(tensor.mutable_data(), data.data() + entry.begin,
                  entry.end - entry.begin);
    }
    tensors.emplace(entry.name, std::move(tensor));
  }
  return tensors;
}

absl::StatusOr<TensorMap> ReadSafetensors(const std::string& path) {
  CLEAVE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  absl::StatusOr<TensorMap> tensors = ParseSafetensors(bytes);
  if (!tensors.ok()) {
    return absl::Status(tensors.status().code(),
                        absl::StrCat(path, ": ", tensors.status().message()));
  }
  return tensors;
}

absl::StatusOr<std::string> FormatSafetensors(const TensorMap& tensors) {
  json header = json::object();
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const DType dtype = tensor.dtype();
    const auto* entry =
        std::find_if(std::begin(kFormatDTypes), std::end(kFormatDTypes),
                     [&](const FormatDType& e) { return e.dtype == dtype; });
    if (entry == std::end(kFormatDTypes)) {
      return Invalid(
          name, absl::StrCat("the format has no dtype for ", DTypeName(dtype)));
    }
    header[name] = {{"dtype", entry->name},
                    {"shape", tensor.shape()},
                    {"data_offsets", {offset, offset + tensor.byte_size()}}};
    offset += tensor.byte_size();
  }
  std::string text =
      header.dump(-1, ' ', false, json::error_handler_t::replace);
  // Data begins at a multiple of 8.
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string bytes;
  bytes.reserve(8 + text.size() + offset);
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>(text.size() >> (8 * i) & 0xff));
  }
  bytes += text;
  for (const auto& [name, tensor] : tensors) {
    bytes.append(reinterpret_cast<const char*>(tensor.data()),
                 tensor.byte_size());
  }
  return bytes;
}

absl::Status WriteSafetensors(const std::string& path,
                              const TensorMap& tensors) {
  CLEAVE_ASSIGN_OR_RETURN(const std::string bytes, FormatSafetensors(tensors));
  return WriteFileAtomically(path, bytes);
}

}  // namespace cleave
