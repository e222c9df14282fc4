#include "tools/command/function_inputs.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

constexpr size_t kMostAxes = 32;

std::optional<double> ReadDouble(const std::string& word) {
  if (word == "true") return 1;
  if (word == "false") return 0;
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);  // hexadecimal, too
  if (word.empty() || *end != '\0') return std::nullopt;
  return value;
}

std::optional<int64_t> ReadInt(const std::string& word, DType dtype) {
  if (word == "true") return 1;
  if (word == "false") return 0;
  if (uint64_t value; !IsSigned(dtype) && absl::SimpleAtoi(word, &value)) {
    return static_cast<int64_t>(value);
  }
  if (int64_t value; absl::SimpleAtoi(word, &value)) return value;
  return std::nullopt;
}

// Reads `[[1, 2], [3, 4]]`.
class LiteralReader {
 public:
  LiteralReader(absl::string_view text, std::vector<int64_t>& shape,
                std::vector<std::string>& words)
      : text_(text), shape_(shape), words_(words) {}

  absl::Status Read() {
    CLEAVE_RETURN_IF_ERROR(ReadValue(0));
    SkipSpaces();
    if (at_ != text_.size()) return Unexpected();
    return absl::OkStatus();
  }

 private:
  void SkipSpaces() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }
  bool Take(char c) {
    SkipSpaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  absl::Status Unexpected() const {
    if (at_ >= text_.size()) return absl::InvalidArgumentError("it ends early");
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected `", text_.substr(at_, 1), "`"));
  }

  absl::Status ReadValue(size_t depth) {
    if (!Take('[')) return ReadWord(depth);
    if (depth == kMostAxes) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", kMostAxes, " axes"));
    }
    int64_t count = 0;
    if (!Take(']')) {
      do {
        CLEAVE_RETURN_IF_ERROR(ReadValue(depth + 1));
        ++count;
      } while (Take(','));
      if (!Take(']')) return Unexpected();
    }
    if (shape_.size() <= depth) {
      // A list of nothing: its own axes are found before those around it.
      shape_.resize(depth + 1, -1);
    }
    if (shape_[depth] < 0) shape_[depth] = count;
    if (shape_[depth] != count) {
      return absl::InvalidArgumentError(
          absl::StrCat("a list of ", count, " beside one of ", shape_[depth]));
    }
    return absl::OkStatus();
  }

  absl::Status ReadWord(size_t depth) {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ']' &&
           text_[at_] != '[' && !absl::ascii_isspace(text_[at_])) {
      ++at_;
    }
    if (at_ == begin) return Unexpected();
    words_.emplace_back(text_.substr(begin, at_ - begin));
    if (axes_ && *axes_ != depth) {
      return absl::InvalidArgumentError("a number beside a list");
    }
    axes_ = depth;
    return absl::OkStatus();
  }

  const absl::string_view text_;
  size_t at_ = 0;
  std::optional<size_t> axes_;  // of the numbers
  std::vector<int64_t>& shape_;
  std::vector<std::string>& words_;
};

}  // namespace

Tensor WithDType(const Tensor& tensor, DType dtype) {
  Tensor result(dtype, tensor.shape());
  std::copy(tensor.data(), tensor.data() + tensor.byte_size(),
            result.mutable_data());
  return result;
}

absl::StatusOr<FunctionInputs::Literal> FunctionInputs::ParseLiteral(
    const std::string& text) {
  Literal literal;
  CLEAVE_RETURN_IF_ERROR(
      LiteralReader(text, literal.shape, literal.words).Read());
  int64_t count = 1;
  for (const int64_t extent : literal.shape) count *= extent;
  if (count != static_cast<int64_t>(literal.words.size())) {
    return absl::InvalidArgumentError("a number beside a list");
  }
  return literal;
}

absl::StatusOr<Tensor> FunctionInputs::ToTensor(const Literal& literal,
                                                DType dtype) {
  std::vector<double> doubles;
  std::vector<int64_t> ints;
  for (const std::string& word : literal.words) {
    if (IsFloat(dtype)) {
      const std::optional<double> value = ReadDouble(word);
      if (value) {
        doubles.push_back(*value);
        continue;
      }
    } else if (!IsComplex(dtype)) {
      const std::optional<int64_t> value = ReadInt(word, dtype);
      if (value) {
        ints.push_back(*value);
        continue;
      }
    }
    return absl::InvalidArgumentError(
        absl::StrCat("`", word, "` is no ", DTypeName(dtype)));
  }
  Tensor tensor =
      IsFloat(dtype)
          ? Tensor::FromDoubles(dtype, literal.shape, doubles)
          : Tensor::FromInts(dtype == DType::kKey ? DType::kU64 : dtype,
                             literal.shape, ints);
  CLEAVE_RETURN_IF_ERROR(tensor.status());
  return dtype == DType::kKey ? WithDType(tensor, dtype) : tensor;
}

absl::StatusOr<FunctionInputs> FunctionInputs::Read(
    const std::string& path, const std::vector<std::string>& values) {
  FunctionInputs inputs;
  inputs.path_ = path;
  if (!path.empty()) {
    CLEAVE_ASSIGN_OR_RETURN(inputs.file_, ReadSafetensors(path));
  }
  for (const std::string& value : values) {
    const size_t equals = value.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", value, "` is not of the form NAME=VALUE"));
    }
    const std::string name = value.substr(0, equals);
    const auto literal = ParseLiteral(value.substr(equals + 1));
    if (!literal.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", value, "`: ", literal.status().message()));
    }
    if (!inputs.values_.emplace(name, *literal).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", name, "` is given twice"));
    }
  }
  return inputs;
}

absl::StatusOr<std::vector<std::string>> FunctionInputs::WithTangents(
    const Graph& graph) const {
  std::vector<std::string> names;
  for (const NamedValue& input : graph.inputs()) {
    if (Has(input.name + ".tangent")) names.push_back(input.name);
  }
  if (names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--jvp: ", values_.empty() ? "the input file has" : "there is",
        " no tensor named `<input>.tangent`"));
  }
  return names;
}

absl::StatusOr<std::vector<Tensor>> FunctionInputs::Of(
    const Graph& graph, const std::string& function) const {
  const std::string place = path_.empty() ? "" : path_ + ": ";
  std::vector<Tensor> tensors;
  for (const NamedValue& input : graph.inputs()) {
    const DType dtype = graph.type(input.value).dtype;
    if (const auto it = values_.find(input.name); it != values_.end()) {
      auto tensor = ToTensor(it->second, dtype);
      if (!tensor.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the input `", input.name, "`: ", tensor.status().message()));
      }
      tensors.push_back(*std::move(tensor));
      continue;
    }
    const auto it = file_.find(input.name);
    if (it == file_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, "there is no tensor `", input.name, "`"));
    }
    const bool is_key =
        dtype == DType::kKey && it->second.dtype() == DType::kU64;
    tensors.push_back(is_key ? WithDType(it->second, DType::kKey) : it->second);
  }
  const auto check = [&](const std::string& name,
                         const std::string& where) -> absl::Status {
    for (const NamedValue& input : graph.inputs()) {
      if (input.name == name) return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(where, "`", function, "` has no input `", name, "`"));
  };
  for (const auto& [name, tensor] : file_) {
    CLEAVE_RETURN_IF_ERROR(check(name, place));
  }
  for (const auto& [name, literal] : values_) {
    CLEAVE_RETURN_IF_ERROR(check(name, ""));
  }
  return tensors;
}

}  // namespace cleave
