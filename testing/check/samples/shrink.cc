#include "testing/check/samples/shrink.h"

#include <cmath>
#include <complex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "testing/check/samples/float_points.h"

namespace cleave {
namespace {

// Deep: tensors share their data.
Tensor Copy(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.shape());
  std::copy(tensor.data(), tensor.data() + tensor.byte_size(),
            copy.mutable_data());
  return copy;
}

// Plainer values than `value`, the plainest first.
std::vector<double> Plainer(double value, DType dtype) {
  std::vector<double> plainer = {0, 1, -1};
  if (std::isnan(value) || std::isinf(value) || value == 0) {
    plainer.clear();
    return plainer;
  }
  const double magnitude =
      std::pow(10, std::floor(std::log10(std::abs(value))));
  for (int digits = 1; digits <= 4; ++digits) {
    plainer.push_back(
        std::strtod(absl::StrFormat("%.*g", digits, value).c_str(), nullptr));
  }
  plainer.push_back(std::copysign(magnitude, value));
  plainer.push_back(std::trunc(value));
  plainer.push_back(value / 2);
  std::vector<double> rounded;
  for (double candidate : plainer) {
    const double r = RoundToDType(candidate, dtype);
    if (r == value) break;  // as plain as this already
    rounded.push_back(r);
  }
  return rounded;
}

}  // namespace

std::vector<Tensor> ShrinkValues(
    std::vector<Tensor> inputs,
    const std::function<bool(absl::Span<const Tensor>)>& fails, int trials) {
  bool changed = true;
  while (changed && trials > 0) {
    changed = false;
    for (size_t k = 0; k < inputs.size() && trials > 0; ++k) {
      for (int64_t i = 0; i < inputs[k].size() && trials > 0; ++i) {
        const DType dtype = inputs[k].dtype();
        // Each tensor differs from the input in this element.
        std::vector<Tensor> candidates;
        const auto add = [&](const auto& set) {
          candidates.push_back(Copy(inputs[k]));
          set(candidates.back());
        };
        if (IsFloat(dtype)) {
          for (double value : Plainer(inputs[k].GetDouble(i), dtype)) {
            add([&](Tensor& t) { t.SetDouble(i, value); });
          }
        } else if (IsComplex(dtype)) {
          const std::complex<double> z = inputs[k].GetComplex(i);
          const DType part = dtype == DType::kC64 ? DType::kF32 : DType::kF64;
          for (double value : Plainer(z.real(), part)) {
            add([&](Tensor& t) { t.SetComplex(i, {value, z.imag()}); });
          }
          for (double value : Plainer(z.imag(), part)) {
            add([&](Tensor& t) { t.SetComplex(i, {z.real(), value}); });
          }
        } else if (inputs[k].GetInt(i) != 0) {
          add([&](Tensor& t) { t.SetInt(i, 0); });
        }
        for (const Tensor& candidate : candidates) {
          std::vector<Tensor> trial = inputs;
          trial[k] = candidate;
          if (--trials < 0) break;
          if (fails(trial)) {
            inputs = std::move(trial);
            changed = true;
            break;
          }
        }
      }
    }
  }
  return inputs;
}

std::string DescribeInputs(const std::vector<std::string>& names,
                           absl::Span<const Tensor> inputs) {
  constexpr int64_t kShown = 48;
  std::vector<std::string> parts;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Tensor& tensor = inputs[k];
    const std::string name = k < names.size() ? names[k] : "?";
    if (tensor.size() == 1 && IsFloat(tensor.dtype())) {
      parts.push_back(absl::StrCat(
          name, " = ", FloatToString(tensor.GetDouble(0), tensor.dtype())));
    } else if (tensor.size() <= kShown) {
      parts.push_back(absl::StrCat(name, " = ", tensor.ToString()));
    } else {
      parts.push_back(absl::StrCat(name, ": ", tensor.type().ToString()));
    }
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace cleave
