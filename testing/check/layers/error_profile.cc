#include "testing/check/layers/error_profile.h"

#include <algorithm>
#include <cmath>

#include "testing/check/samples/float_points.h"

namespace cleave {

int ErrorProfile::BinOf(double input) const {
  const double max = static_cast<double>(MaxOrdinal(dtype_));
  const double part =
      (static_cast<double>(Ordinal(input, dtype_)) / max + 1) / 2;
  return std::clamp(static_cast<int>(part * kBins), 0, kBins - 1);
}

void ErrorProfile::Add(double input, double ulp) {
  if (!std::isfinite(input) || std::isnan(ulp)) return;
  Bin& bin = bins_[BinOf(input)];
  if (bin.samples++ == 0 || ulp > bin.worst_ulp) {
    bin.worst_ulp = ulp;
    bin.worst_at = input;
  }
}

int64_t ErrorProfile::samples() const {
  int64_t samples = 0;
  for (const Bin& bin : bins_) samples += bin.samples;
  return samples;
}

const ErrorProfile::Bin* ErrorProfile::Worst() const {
  const Bin* worst = nullptr;
  for (const Bin& bin : bins_) {
    if (bin.samples > 0 &&
        (worst == nullptr || bin.worst_ulp > worst->worst_ulp)) {
      worst = &bin;
    }
  }
  return worst;
}

ErrorProfile* ProfileFor(std::optional<ErrorProfile>& profile, DType dtype,
                         const std::string& input) {
  if (!profile || (profile->dtype() != dtype && dtype == DType::kF32)) {
    profile.emplace(dtype, input);
  }
  return profile->dtype() == dtype ? &*profile : nullptr;
}

}  // namespace cleave
