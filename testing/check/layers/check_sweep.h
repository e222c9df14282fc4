// A sweep: L3 of a pointwise op at all values of its operands, where these are
// finitely many: every f32 of one operand, every pair of f16 or of bf16 of two.
//
//   for (const Sweep& sweep : SweepsOf(rules, *item, options.dtypes)) {
//     Verdict verdict = CheckSweep(context, sweep);   // a part: 2^26 points
//   }
//
// Intervals of f64 (double_interval.h) decide most points; the rest is compared
// as the other samples of L3 are. The attributes have their defaults.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_CHECK_SWEEP_H_
#define CLEAVE_TESTING_CHECK_LAYERS_CHECK_SWEEP_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"
#include "ops/dtype.h"
#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// All points of a sweep, and the parts that they are checked in.
inline constexpr int64_t kSweepPoints = int64_t{1} << 32;
inline constexpr int kSweepParts = 64;

struct Sweep {
  std::string op;
  DType dtype = DType::kF32;
  int operands = 1;
  int part = 1;  // of `parts`, a power of two
  int parts = kSweepParts;

  // "sweep gelu f32 03/64".
  std::string Name() const;
};

// The name of all parts: "sweep gelu f32" of "sweep gelu f32 03/64". Empty for
// what names no part of a sweep.
std::string WholeSweep(absl::string_view name);
// The op: "gelu".
std::string OpOfSweep(absl::string_view name);

// The parts of the sweeps of an op that is pointwise in one or two operands of
// one float dtype, of those among `dtypes`, or of all where it is empty.
std::vector<Sweep> SweepsOf(const RuleSet& rules, const Item& item,
                            const std::set<DType>& dtypes);

// EXHAUSTIVE where each point was decided. NotChecked, and why, where no
// interval encloses the spec, or the claim has no constant part: 256 bits at
// each point would take days.
Verdict CheckSweep(OpContext context, const Sweep& sweep);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_CHECK_SWEEP_H_
