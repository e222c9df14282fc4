// DomainSampler: values for the operands of an op's calls, within its domain.
// Internal to the layers.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_DOMAIN_SAMPLER_H_
#define CLEAVE_TESTING_CHECK_LAYERS_DOMAIN_SAMPLER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ops/tensor.h"
#include "testing/check/layers/op_context.h"
#include "testing/check/samples/value_sampler.h"

namespace cleave {

// The calls that it draws for are those of one op.
class DomainSampler {
 public:
  explicit DomainSampler(uint64_t seed) : values_(seed) {}

  // Inputs of the call within its domain: of that pattern, or, where few of
  // those are, of normal numbers or shares. Nullopt where none were drawn. A
  // pattern that none of the op's last calls had within is tried once, since a
  // domain may cost as much as the op: whether a matrix is regular, say.
  std::optional<std::vector<Tensor>> Tensors(const PreparedCall& call,
                                             Pattern pattern);

  // Whether the pattern is one that none of the last calls had within: others
  // take its place.
  bool IsRare(Pattern pattern) const;

  // Values wherever they are, of the same draws.
  ValueSampler& values() { return values_; }

 private:
  ValueSampler values_;
  // The calls in a row for which no draw of the pattern was within.
  std::map<Pattern, int> misses_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_DOMAIN_SAMPLER_H_
