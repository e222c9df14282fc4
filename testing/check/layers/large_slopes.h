// LargeSlopes: the derivatives of a large call in f64, where a rule may go by
// an extent. Internal to the layers.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_LARGE_SLOPES_H_
#define CLEAVE_TESTING_CHECK_LAYERS_LARGE_SLOPES_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"
#include "testing/check/layers/domain_sampler.h"
#include "testing/check/layers/large_calls.h"
#include "testing/check/layers/op_context.h"
#include "testing/check/layers/screen_slopes.h"
#include "testing/check/reference/work.h"

namespace cleave {

// The most work (WorkOf) of a call whose slopes are judged over the reals.
inline constexpr double kJudgedWork = 3e5;
// The same of one whose slopes are screened, and the inputs at which they must
// look wrong where they are not judged.
inline constexpr double kScreenedWork = 1.2e6;
inline constexpr int kScreens = 3;

// The most work of both transforms of a call that is screened, one of several
// large ones: of a loop they do far more than the call does.
inline constexpr double kSlopesWork = 6e6;
// The same of one that alone takes a branch, or has the sizes asked for.
inline constexpr double kDearSlopesWork = 1e8;

// Whether the slopes of a call are screened alone, in forward mode and in
// reverse: its large extents, or those that were asked for, make them too dear
// over the reals. A call that is large of itself is judged where f64 is not
// wanted.
inline bool IsScreened(const OpContext& context, const PreparedCall& call) {
  const bool is_large =
      LargestExtent(call.call) > kAllExtents && context.Wants(DType::kF64);
  return (!context.sizes.empty() || is_large) &&
         WorkOf(call.graphs) > kJudgedWork;
}

// The call with f64 in place of its other floats.
SampledCall InF64(SampledCall call);

// The verdict on such a call whose slopes are not even affordable in f64.
inline Verdict TooDear() {
  constexpr char kWhy[] = "derivatives at these sizes take too much work";
  Verdict verdict = Verdict::NotChecked(kWhy);
  verdict.notes = {kWhy};
  return verdict;
}

struct ScreenedInputs {
  std::vector<Tensor> inputs;
  absl::StatusOr<SlopeScreen> screen;
};

class LargeSlopes {
 public:
  // Transforms `large` with f64 in place of its other floats. There is nothing
  // to screen where both transforms do more than `most_work`.
  LargeSlopes(const OpContext& context, const PreparedCall& large,
              double most_work, const RuleSet& rules);

  // Why the call has no transforms. OK, too, where there is nothing to screen.
  const absl::Status& status() const { return status_; }
  // The call in f64. Only where Screen has had a result, or there is an error.
  const PreparedCall& call() const { return *call_; }

  // Screens the slopes at inputs that it draws. Nullopt where there is nothing
  // to screen: the call has no f64, no float operand or result, no derivative
  // that is affordable, or no inputs within its domain.
  std::optional<ScreenedInputs> Screen(DomainSampler& sampler) const;

 private:
  std::optional<PreparedCall> call_;
  absl::Status status_;
  std::optional<CallSlopes> slopes_;
  std::vector<TensorType> operands_;  // the floats among them
  std::vector<TensorType> tangents_;  // of the results that have one
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_LARGE_SLOPES_H_
