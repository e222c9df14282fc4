// Values for the operands of a sampled call: grids and tuples for pointwise
// ops, patterned tensors for the others.

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_VALUE_SAMPLER_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_VALUE_SAMPLER_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ops/tensor.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

// The floats that a tensor is filled with.
enum class Pattern : uint8_t {
  kNormal,        // mean 0, deviation 1
  kWide,          // magnitudes 2^-12 to 2^12, both signs
  kLargeMean,     // deviation 1 about a large mean
  kCancellation,  // pairs that nearly cancel
  kOneHuge,       // one element far above the others
  kTies,          // few different values
  kAllEqual,
  kUnit,   // in (0, 1): probabilities
  kEdges,  // ordinary values with infinities, NaN, zeros among them
  kAllMinusInfinity,
  // Patterns for derivatives alone.
  kFar,  // every other one so large that exponentials of the others vanish
  kAllZero,
  // For laws, of orders say: a few floats below 1, each next to another.
  kNeighbours,
  // Patterns for L3 alone.
  kDominated,  // one is 0, the others lie below it by 1 to 13
  kSmall,      // all of one small scale, where a function is nearly linear
  kHuge,       // of one scale, so large that squares overflow
  kTiny,       // of one scale, so small that squares underflow
  kMixed,      // normal numbers, one in three of the scale of kHuge
  // Half are integers from -4 to 4, half of magnitude 2^-6 to 2^10: in branches
  // that few numbers are in.
  kBranches,
  // Normal numbers; in square matrices, diagonals from 1 to 2 that outweigh the
  // rest of their rows: those are positive definite, and far from singular.
  kDominant,
  // Patterns for L2 and L3.
  kShares,  // positive, with a sum of 1 along the first axis or the last
};
// The patterns that host kernels are compared at.
inline constexpr int kNumPlainPatterns = 8;
// The patterns that vmap uses, up to kAllMinusInfinity.
inline constexpr int kNumPatterns =
    static_cast<int>(Pattern::kAllMinusInfinity) + 1;
// The patterns of L3, and those whose numbers it draws apart.
inline constexpr Pattern kRoundingPatterns[] = {
    Pattern::kNormal,   Pattern::kWide,         Pattern::kLargeMean,
    Pattern::kOneHuge,  Pattern::kCancellation, Pattern::kTies,
    Pattern::kAllEqual, Pattern::kUnit,         Pattern::kDominated,
    Pattern::kSmall};
inline constexpr Pattern kFurtherPatterns[] = {
    Pattern::kHuge, Pattern::kTiny, Pattern::kShares, Pattern::kMixed};
// The patterns at which derivatives of structured ops are taken: zeros, alone
// and in numbers, are where quotients of the results fail.
inline constexpr Pattern kDerivativePatterns[] = {
    Pattern::kNormal, Pattern::kUnit, Pattern::kWide,
    Pattern::kTies,   Pattern::kFar,  Pattern::kAllZero};

// Whether the last two axes have one extent.
bool HasSquareMatrices(const TensorType& type);

// Floats are those of `SampledCall::points`, where there are such, whatever
// else is asked for.
class ValueSampler {
 public:
  explicit ValueSampler(uint64_t seed) : random_(seed) {}

  // One tensor per operand; indices lie below `index_limit`, or below every
  // nonzero extent of the call if it is 0. Other integers are small ones; of
  // all magnitudes in kWide and, some of them, in kEdges; at the ends of their
  // range in kLargeMean and kOneHuge.
  std::vector<Tensor> Tensors(const SampledCall& call, Pattern pattern,
                              int64_t index_limit = 0);

  // `count` elements per operand for L3 of a pointwise op: a ULP-uniform grid
  // (or all values of a 16-bit dtype, if `exhaustive`) for one float operand,
  // stratified tuples for several.
  std::vector<Tensor> Points(const SampledCall& call, int64_t count,
                             bool exhaustive);

  // `count` elements per operand: magnitudes 2^-6 to 2^10, of both signs. All
  // operands are floats.
  std::vector<Tensor> OrdinaryPoints(const SampledCall& call, int64_t count);

  // The cross product of special values and of `guards`, for integers those of
  // the call, with their neighbours, thinned to about `limit` tuples.
  std::vector<Tensor> EdgePoints(const SampledCall& call,
                                 const std::vector<double>& guards,
                                 int64_t limit);

  // Ordinary numbers, `count` in each cell between neighbouring guards, and
  // both outer ones; f64.
  std::vector<Tensor> CellPoints(const SampledCall& call,
                                 const std::vector<double>& guards,
                                 int64_t count);

  // A tensor of ordinary floats, for tangents.
  Tensor Tangent(const TensorType& type);

  std::mt19937_64& random() { return random_; }

 private:
  // An element for each of the call's points.
  std::vector<Tensor> GivenPoints(const SampledCall& call);
  double Normal();
  double LogUniform(double low, double high);  // exponents of two
  int64_t Uniform(int64_t low, int64_t high);  // inclusive
  // One of any magnitude: some bits alone, any bits, or one of `near`.
  int64_t WideInt(DType dtype, const std::vector<int64_t>& near);
  // 0 to limit - 1, and one of `marks` now and then.
  void FillIndices(Tensor& tensor, int64_t limit,
                   absl::Span<const int64_t> marks);
  void FillWithShares(Tensor& tensor);
  // `tensor` has normal numbers.
  void MakeDiagonalsDominant(Tensor& tensor);
  // `guards`: those of the call.
  void FillDiscrete(const std::vector<int64_t>& guards, Pattern pattern,
                    Tensor& tensor);
  // Small integers, and one of WideInt in three; 3 for 0 if `nonzero`.
  void FillInts(const std::vector<int64_t>& guards, bool nonzero,
                Tensor& tensor);

  std::mt19937_64 random_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_VALUE_SAMPLER_H_
