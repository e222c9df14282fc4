#include "testing/fuzz/differential/fuzz_case.h"

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ops/status_macros.h"

namespace cleave::fuzz {
namespace {

constexpr absl::string_view kHeader = "language 1\n";
constexpr absl::string_view kPoint = "// point";

// Decimal digits that read back as the same number.
std::string Number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return absl::StrFormat("%.17g", value);
}

// A complex number is its two parts with a comma.
std::string Number(const Tensor& tensor, int64_t i) {
  if (IsFloat(tensor.dtype())) return Number(tensor.GetDouble(i));
  if (!IsComplex(tensor.dtype())) return absl::StrCat(tensor.GetInt(i));
  const std::complex<double> value = tensor.GetComplex(i);
  return absl::StrCat(Number(value.real()), ",", Number(value.imag()));
}

absl::Status SetNumber(absl::string_view text, int64_t i, Tensor& tensor) {
  if (IsFloat(tensor.dtype())) {
    double value = 0;
    if (!absl::SimpleAtod(text, &value)) {
      return absl::InvalidArgumentError(absl::StrCat("no number: ", text));
    }
    tensor.SetDouble(i, value);
    return absl::OkStatus();
  }
  if (IsComplex(tensor.dtype())) {
    const std::vector<std::string> parts = absl::StrSplit(text, ',');
    double real = 0, imaginary = 0;
    if (parts.size() != 2 || !absl::SimpleAtod(parts[0], &real) ||
        !absl::SimpleAtod(parts[1], &imaginary)) {
      return absl::InvalidArgumentError(
          absl::StrCat("no complex number `1,-2`: ", text));
    }
    tensor.SetComplex(i, {real, imaginary});
    return absl::OkStatus();
  }
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) {
    return absl::InvalidArgumentError(absl::StrCat("no integer: ", text));
  }
  tensor.SetInt(i, value);
  return absl::OkStatus();
}

// "x: i32[2, 2] = 1 -3 0 7"
absl::Status ReadTensor(absl::string_view line, Point& point) {
  const auto malformed = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "a tensor is `x: i32[2, 2] = 1 -3 0 7`, not `", line, "`"));
  };
  const std::vector<std::string> sides =
      absl::StrSplit(line, absl::MaxSplits('=', 1));
  const std::vector<std::string> head =
      absl::StrSplit(sides[0], absl::MaxSplits(':', 1));
  if (sides.size() != 2 || head.size() != 2) return malformed();
  const std::vector<std::string> type =
      absl::StrSplit(head[1], absl::ByAnyChar("[]"));
  if (type.size() != 3) return malformed();
  const auto dtype = ParseDType(absl::StripAsciiWhitespace(type[0]));
  if (!dtype.ok()) return malformed();
  std::vector<int64_t> shape;
  for (const absl::string_view extent :
       absl::StrSplit(type[1], ',', absl::SkipWhitespace())) {
    if (!absl::SimpleAtoi(extent, &shape.emplace_back())) return malformed();
  }
  CLEAVE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(*dtype, shape));
  const std::vector<std::string> values =
      absl::StrSplit(sides[1], ' ', absl::SkipWhitespace());
  if (static_cast<int64_t>(values.size()) != tensor.size()) return malformed();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(SetNumber(values[i], i, tensor));
  }
  point.emplace_back(absl::StripAsciiWhitespace(head[0]), std::move(tensor));
  return absl::OkStatus();
}

}  // namespace

std::string CaseToText(const FuzzCase& one) {
  std::string points;
  for (const Point& point : one.points) {
    absl::StrAppend(&points, "\n", kPoint, "\n");
    for (const auto& [name, tensor] : point) {
      absl::StrAppend(&points, "// ", name, ": ", DTypeName(tensor.dtype()),
                      "[", absl::StrJoin(tensor.shape(), ", "), "] =");
      for (int64_t i = 0; i < tensor.size(); ++i) {
        absl::StrAppend(&points, " ", Number(tensor, i));
      }
      absl::StrAppend(&points, "\n");
    }
  }
  absl::string_view rest = one.rules;
  absl::ConsumePrefix(&rest, kHeader);
  return absl::StrCat(kHeader, points, rest);
}

absl::StatusOr<FuzzCase> CaseFromText(absl::string_view text) {
  FuzzCase one;
  bool in_point = false;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line == kPoint) {
      in_point = true;
      one.points.emplace_back();
    } else if (in_point && absl::ConsumePrefix(&line, "// ")) {
      const absl::Status read = ReadTensor(line, one.points.back());
      if (!read.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", number, ": ", read.message()));
      }
    } else {
      in_point = false;
      absl::StrAppend(&one.rules, line, "\n");
    }
  }
  while (absl::EndsWith(one.rules, "\n\n")) one.rules.pop_back();
  return one;
}

std::vector<Tensor> TensorsOf(const Point& point) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : point) tensors.push_back(tensor);
  return tensors;
}

}  // namespace cleave::fuzz
