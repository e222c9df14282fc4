// LargeSlopes: the derivatives of a large call in f64, where a rule may go by
// an extent. Internal to the layers.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_LARGE_SLOPES_H_
#define CLEAVE_TESTING_CHECK_LAYERS_LARGE_SLOPES_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"
#include "testing/check/layers/op_context.h"
#include "testing/check/layers/screen_slopes.h"
#include "testing/check/samples/value_sampler.h"

namespace cleave {

struct ScreenedInputs {
  std::vector<Tensor> inputs;
  absl::StatusOr<SlopeScreen> screen;
};

class LargeSlopes {
 public:
  // Transforms `large` with f64 in place of its other floats.
  LargeSlopes(const OpContext& context, const PreparedCall& large,
              const RuleSet& rules);

  // The call in f64. Only where Screen has had a result or an error.
  const PreparedCall& call() const { return *call_; }

  // Screens the slopes at inputs that it draws. Nullopt where there is nothing
  // to screen: the call has no f64, no float operand or result, no derivative
  // that is affordable, or no inputs within its domain. Its `inputs` are there
  // where its `screen` is an error, too, unless the transforms have that error.
  std::optional<ScreenedInputs> Screen(ValueSampler& sampler) const;

 private:
  std::optional<PreparedCall> call_;
  std::vector<TensorType> operands_;  // the floats among them
  std::vector<TensorType> results_;
  std::optional<absl::StatusOr<CallSlopes>> slopes_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_LARGE_SLOPES_H_
