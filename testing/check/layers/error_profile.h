// ErrorProfile: the largest errors of a function of one float along the line of
// its inputs, for a plot.
//
//   ErrorProfile profile(DType::kF32, "x");
//   profile.Add(-88.1, 1.6);
//   profile.bins()[profile.BinOf(-88.1)].worst_ulp;  // 1.6

#ifndef CLEAVE_TESTING_CHECK_LAYERS_ERROR_PROFILE_H_
#define CLEAVE_TESTING_CHECK_LAYERS_ERROR_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/dtype.h"

namespace cleave {

class ErrorProfile {
 public:
  static constexpr int kBins = 256;

  struct Bin {
    int64_t samples = 0;
    double worst_ulp = 0;  // may be infinite
    double worst_at = 0;
  };

  ErrorProfile(DType dtype, std::string input)
      : dtype_(dtype), input_(std::move(input)), bins_(kBins) {}

  // The finite floats in ascending order make kBins parts of as many each: half
  // of them are between -1 and 1.
  int BinOf(double input) const;
  // Inputs that are not finite are left out.
  void Add(double input, double ulp);

  DType dtype() const { return dtype_; }
  const std::string& input() const { return input_; }
  const std::vector<Bin>& bins() const { return bins_; }
  int64_t samples() const;
  // The bin of the largest error; null without samples.
  const Bin* Worst() const;

 private:
  DType dtype_;
  std::string input_;
  std::vector<Bin> bins_;
};

// The profiles of one op, which layers fill: for a pointwise op of one float
// input, at its default attributes, in f32 or, where it takes none, its first
// dtype.
struct ErrorProfiles {
  std::optional<ErrorProfile> value;  // L3
  std::optional<ErrorProfile> slope;  // L5, of jvp
};

// The profile to which errors of calls in `dtype` are added: `profile`, made or
// made anew where f32 comes behind another dtype; null where they are not
// wanted.
ErrorProfile* ProfileFor(std::optional<ErrorProfile>& profile, DType dtype,
                         const std::string& input);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_ERROR_PROFILE_H_
