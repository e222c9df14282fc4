// Verdict: what one layer of the checker found about one op.
//
//   kAgrees        on n samples, the largest error and where it was
//   kDisagrees     with a shrunk counterexample
//   kInconclusive  why; it never counts as agreement
//   kNotIndependent  spec and body are one computation: nothing was compared
//   kNotChecked    why
//
//   verdict.ToString();
//       agrees SAMPLED(20041), worst 1.62 ulp at x = -88.1 (-0x1.607p+6)

#ifndef CLEAVE_TESTING_CHECK_COMPARE_VERDICT_H_
#define CLEAVE_TESTING_CHECK_COMPARE_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cleave {

enum class Layer : uint8_t {
  kForm,        // L0: the loader accepted the rule
  kTypes,       // L1: types and shapes
  kReals,       // L2: spec against body over the reals
  kRounding,    // L3: the error in ULP
  kEdges,       // L4: NaN, infinities, zeros, denormals, guard constants
  kTransforms,  // L5: vmap, jvp and vjp
  kKernels,     // L6: compiled kernels against the interpreter
  kHostKernel,  // the function of a host against the body
  kExamples,    // examples and laws
};
inline constexpr int kNumLayers = 9;
// "L0", ..., "L6", "host", "examples".
absl::string_view LayerName(Layer layer);
// The layer of that name; nullopt where there is none.
std::optional<Layer> FindLayer(absl::string_view name);

enum class VerdictKind : uint8_t {
  kAgrees,
  kDisagrees,
  kInconclusive,
  kNotIndependent,
  kNotChecked,
};
// "agrees", "disagrees", "inconclusive", "not independent", "not checked".
absl::string_view VerdictKindName(VerdictKind kind);
// The kind of that name; nullopt where there is none.
std::optional<VerdictKind> FindVerdictKind(absl::string_view name);

// How strong agreement is.
enum class Strength : uint8_t { kSampled, kExhaustive, kProved };
// "SAMPLED", "EXHAUSTIVE", "PROVED".
absl::string_view StrengthName(Strength strength);
// The strength of that name; nullopt where there is none.
std::optional<Strength> FindStrength(absl::string_view name);

// Inputs at which a rule fails, as small as they could be made.
struct Counterexample {
  std::string call;      // "softplus(x: f32[1], beta: 2)"
  std::string inputs;    // "x = [90] ([0x1.68p+6])"
  std::string expected;  // 30 digits
  std::string got;       // decimal and hexadecimal
  std::string what;      // "value of `y`[0]", "type of `y`", "vmap over x"
  double ulp = 0;        // infinity where it is no number of ULPs
  double bound = 0;      // what the rule allows, in ULP
  std::string place;     // "activation.rules:97", the guilty line
  std::string replay;    // "cleave check FILE --op softplus --seed 1"
  std::string ToString() const;
};

// The ways in which a function of a host is off, from grave to slight.
enum class HostFailureKind : uint8_t {
  kCall,        // an error, another type, a write to the inputs
  kDiscrete,    // another integer, bool or key
  kNotFinite,   // NaN or an infinity in the place of a number
  kSpecial,     // not the infinity, or not the sign of a zero
  kLostNaN,     // a number or an infinity in the place of NaN
  kInaccurate,  // a number that is too far off
};
// "call", "discrete", "not finite", "special", "lost NaN", "inaccurate".
absl::string_view HostFailureKindName(HostFailureKind kind);
// The kind of that name; nullopt where there is none.
std::optional<HostFailureKind> FindHostFailureKind(absl::string_view name);

// The failures of one kind that a survey (CheckOptions::host_survey) found.
struct HostFinding {
  HostFailureKind kind = HostFailureKind::kCall;
  int64_t count = 0;  // elements, or calls
  // The largest error, for kInaccurate; of a pointwise op, also where.
  double worst_ulp = 0;
  std::string worst_at;
  Counterexample example;
};

struct Verdict {
  VerdictKind kind = VerdictKind::kNotChecked;
  Strength strength = Strength::kSampled;
  int64_t samples = 0;
  // The largest error; where; and the bound that the rule declares there.
  double worst_ulp = 0;
  std::string worst_at;
  // The largest error as a part of its bound: 1 uses all of it.
  double worst_part = 0;
  std::string why;                 // kInconclusive, kNotChecked
  std::vector<std::string> notes;  // "2 signatures rejected by declared errors"
  std::optional<Counterexample> counterexample;
  // The findings of a survey that disagrees: the grave ones first.
  std::vector<HostFinding> findings;

  static Verdict NotChecked(std::string why);
  static Verdict Inconclusive(std::string why);
  // SAMPLED(samples), without an error.
  static Verdict Agrees(int64_t samples);
  static Verdict Disagrees(Counterexample counterexample);
  // One line; the counterexample is not in it.
  std::string ToString() const;
};

// Adds `next` to the verdict so far: disagreement, then being inconclusive,
// win; samples add up, and the worst error stays.
void Merge(Verdict& verdict, const Verdict& next);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_COMPARE_VERDICT_H_
