// The zoo: derivative and batching rules that other projects had wrong, each
// with the inputs that show it. testing/zoo/zoo.json has the numbers,
// testing/zoo/rules/ID.rules what states them: the function `right`, by shipped
// ops where there are such, and the wrong rule as an override of an op `zoo_*`,
// which the function `planted` calls.
//
//   ZooEntry entry = ReadZoo("testing/zoo/zoo.json")->front();
//   entry.id;               // "tanh_jvp_from_output"
//   entry.inputs.at("x");   // {shape {2}, values {9.5, 1}}

#ifndef CLEAVE_TESTING_ZOO_ZOO_ENTRY_H_
#define CLEAVE_TESTING_ZOO_ZOO_ENTRY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/dtype.h"
#include "ops/tensor.h"

namespace cleave {

// Numbers without a dtype: nested lists in JSON, "inf", "-inf" and "nan" among
// them.
struct ZooTensor {
  std::vector<int64_t> shape;
  std::vector<double> values;

  // Each value rounded once.
  Tensor ToTensor(DType dtype) const;
};

// The question that an entry asks about its function.
enum class ZooTransform {
  kValue,
  // The function is pointwise: its slopes by the inputs `along`, each weighted
  // by what stands there, in forward and in reverse mode.
  kSlope,
  kJvp,  // the tangent along `along`
  kVjp,  // the cotangent of the one input in `along`, of result's cotangent 1
  // The function is pointwise, or scalar: its second derivative along `along`,
  // twice, in all four nestings.
  kSecond,
  kVmap,  // the batch at `in_axes`, and at axis 0 of the result
};

// The fate of the wrong rule.
enum class ZooVerdict {
  kRefuted,    // the checker disagrees in `layer`; in "examples", then `why`
               // says why it must agree in L5
  kRefused,    // the rule is not loaded; `why` is part of the message
  kAccepted,   // the checker agrees; `why` says why it must
  kNotStated,  // the language cannot state it; `why` says so
};

struct ZooEntry {
  std::string id;
  std::string project;
  std::string issue;  // owner/repository#number
  std::string kind;   // jvp, second_order, vmap, tie
  ZooTransform transform = ZooTransform::kValue;
  std::map<std::string, ZooTensor> inputs;
  std::map<std::string, ZooTensor> along;
  std::map<std::string, int> in_axes;
  // Exactly one of `right` and `right_error`, a part of the message with which
  // the function `right` is refused.
  ZooTensor right;
  std::string right_error;
  // Empty where there is no function `planted` that gives it.
  std::vector<ZooTensor> wrong;
  double ulp = 0;  // allowed to what is derived
  // Where the right value is a choice: ours, and why.
  std::string convention;
  ZooVerdict verdict = ZooVerdict::kRefuted;
  std::string layer;  // "L5"
  std::string why;
};

// InvalidArgument for an unknown, missing or malformed member, with its place.
absl::StatusOr<std::vector<ZooEntry>> ReadZoo(const std::string& path);

}  // namespace cleave

#endif  // CLEAVE_TESTING_ZOO_ZOO_ENTRY_H_
