#include "ops/tensor_type.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

constexpr int kMaxRank = 64;

absl::Status BadType(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read the type `", text.substr(0, 200), "`: ", why));
}

// Splits at the commas that stand outside parentheses.
std::vector<absl::string_view> SplitExtents(absl::string_view text) {
  std::vector<absl::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '(') - (text[i] == ')');
    if (text[i] == ',' && depth == 0) {
      parts.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  parts.push_back(text.substr(start));
  return parts;
}

}  // namespace

std::string TensorType::ToString() const {
  return absl::StrCat(DTypeName(dtype), ShapeToString(shape));
}

std::string ShapeToString(const Shape& shape) {
  return absl::StrCat("[",
                      absl::StrJoin(shape, ", ",
                                    [](std::string* out, const Dim& extent) {
                                      absl::StrAppend(out, extent.ToString());
                                    }),
                      "]");
}

absl::StatusOr<TensorType> ParseTensorType(absl::string_view text) {
  const absl::string_view stripped = absl::StripAsciiWhitespace(text);
  const size_t open = stripped.find('[');
  TensorType type;
  CLEAVE_ASSIGN_OR_RETURN(
      type.dtype,
      ParseDType(absl::StripAsciiWhitespace(stripped.substr(0, open))));
  if (open == absl::string_view::npos) return type;
  if (stripped.back() != ']') return BadType(text, "expected `]` at the end");
  const absl::string_view extents = absl::StripAsciiWhitespace(
      stripped.substr(open + 1, stripped.size() - open - 2));
  if (extents.empty()) return type;
  for (absl::string_view extent : SplitExtents(extents)) {
    if (type.rank() == kMaxRank) {
      return BadType(text, absl::StrCat("more than ", kMaxRank, " axes"));
    }
    CLEAVE_ASSIGN_OR_RETURN(Dim dim, Dim::Parse(extent));
    if (dim.Value().value_or(0) < 0) {
      return BadType(text,
                     absl::StrCat("the extent ", dim.ToString(), " is < 0"));
    }
    type.shape.push_back(std::move(dim));
  }
  return type;
}

absl::Status CheckDims(const Shape& shape) {
  for (const Dim& extent : shape) {
    if (ABSL_PREDICT_FALSE(!extent.valid())) return extent.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<Dim> NumElements(const Shape& shape) {
  CLEAVE_RETURN_IF_ERROR(CheckDims(shape));
  Dim product = 1;
  for (const Dim& extent : shape) {
    // An empty shape has no elements, however large its other extents.
    if (extent == Dim(0)) return Dim(0);
  }
  for (const Dim& extent : shape) {
    CLEAVE_ASSIGN_OR_RETURN(product, Dim::CheckedMul(product, extent));
  }
  return product;
}

absl::StatusOr<Shape> BroadcastShapes(const std::vector<Shape>& shapes) {
  size_t rank = 0;
  for (const Shape& shape : shapes) {
    CLEAVE_RETURN_IF_ERROR(CheckDims(shape));
    rank = std::max(rank, shape.size());
  }
  Shape result(rank, Dim(1));
  for (const Shape& shape : shapes) {
    const size_t offset = rank - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      Dim& known = result[offset + i];
      const Dim& extent = shape[i];
      if (extent == Dim(1) || extent == known) continue;
      if (known == Dim(1)) {
        known = extent;
        continue;
      }
      const Truth equal = Compare(known, CompareOp::kEq, extent);
      if (equal == Truth::kTrue) continue;
      std::string message =
          absl::StrCat("cannot broadcast ", known.ToString(), " and ",
                       extent.ToString(), " (axis ", offset + i, " of ",
                       absl::StrJoin(shapes, ", ",
                                     [](std::string* out, const Shape& s) {
                                       absl::StrAppend(out, ShapeToString(s));
                                     }),
                       ")");
      if (equal == Truth::kUnknown) {
        absl::StrAppend(&message, "; it needs ",
                        DecidingConstraint(known, CompareOp::kEq, extent));
      }
      return absl::InvalidArgumentError(message);
    }
  }
  return result;
}

}  // namespace cleave
