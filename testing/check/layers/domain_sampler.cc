#include "testing/check/layers/domain_sampler.h"

#include "engine/ir/graph.h"
#include "testing/check/reference/domain.h"

namespace cleave {
namespace {

// The draws of a pattern, before others take its place.
constexpr int kDrawsOfPattern = 6;
// The calls in a row that tell of the others.
constexpr int kTellingMisses = 2;

// The pattern of draw `drawn` where the one that was asked for is rare: a
// domain may want weights whose sum is 1, or matrices that are positive
// definite.
Pattern Substitute(int drawn, bool has_matrices) {
  if (drawn % 4 == 3) return Pattern::kShares;
  return drawn % 4 == 2 && has_matrices ? Pattern::kDominant : Pattern::kNormal;
}

}  // namespace

std::optional<std::vector<Tensor>> DomainSampler::Tensors(
    const PreparedCall& call, Pattern pattern) {
  const int own_draws = IsRare(pattern) ? 1 : kDrawsOfPattern;
  const bool has_matrices = HasSquareMatrices(call.call);
  bool is_own = true;
  const auto draw = [&](int drawn) {
    is_own = drawn < own_draws;
    return values_.Tensors(call.call,
                           is_own ? pattern : Substitute(drawn, has_matrices));
  };
  // The elements of elementwise calls come from several draws.
  if (IsElementwise(call.graphs.body)) return call.domain.ElementsWithin(draw);
  std::optional<std::vector<Tensor>> within = call.domain.FirstWithin(draw);
  // A domain may exclude a pattern: equal numbers have no inverse.
  if (within && is_own) {
    misses_.erase(pattern);
  } else {
    ++misses_[pattern];
  }
  return within;
}

bool DomainSampler::IsRare(Pattern pattern) const {
  const auto it = misses_.find(pattern);
  return it != misses_.end() && it->second >= kTellingMisses;
}

}  // namespace cleave
