// How the calls of an op are made ready: those that its `error` clauses refuse
// are moved, by what the clause hangs on, to ones that it takes.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_PREPARE_CALL_H_
#define CLEAVE_TESTING_CHECK_LAYERS_PREPARE_CALL_H_

#include <vector>

#include "absl/status/status.h"
#include "ops/dtype.h"
#include "testing/check/layers/op_context.h"
#include "testing/check/samples/pair_cover.h"
#include "testing/check/samples/refusals.h"
#include "testing/check/samples/sampled_call.h"
#include "testing/check/samples/signature_sampler.h"

namespace cleave {

// An error that a call may meet and that no rule is wrong for.
bool IsRejection(const absl::Status& status);

void AddProblem(PreparedCalls& prepared, const absl::Status& status);

// The elements of all operands. In double: declared extents may be of any size.
double ElementCount(const SampledCall& call);

// Adds `call` if the op takes it. Whether it did; if an error of the op is why
// it did not, that is in `refusal`.
bool Prepare(const OpContext& context, SampledCall call, bool defaults,
             PreparedCalls& prepared, absl::Status* refusal = nullptr);

std::vector<DType> WantedDTypes(const OpContext& context,
                                const SignatureSampler& sampler);

// The next trial after a refusal: the call with another value of a name that
// the clause hangs on; any other call; none, since the choices that are kept
// are refused as such. The cover learns choices and pairs that are.
enum class AfterRefusal { kMoved, kAnew, kForbidden };

class RowMoves {
 public:
  RowMoves(const OpContext& context, SignatureSampler& sampler)
      : refusals_(context.rules(), *context.item), sampler_(sampler) {}

  // `options.row` is there. `kept`: the factors whose choices do not move.
  // `cover` may be null.
  AfterRefusal Next(const absl::Status& refusal, const std::vector<int>& kept,
                    DrawOptions& options, PairCover* cover);

 private:
  const Refusals refusals_;
  SignatureSampler& sampler_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_PREPARE_CALL_H_
