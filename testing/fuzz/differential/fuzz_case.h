// FuzzCase: a rule file with a `fn f`, and the points at which it is evaluated.
// Its text is a rule file, the points being comments:
//
//   language 1
//
//   // point
//   // x: i32[2, 2] = 1 -3 0 7
//
//   fn f(x: i32[n, m]) -> i32[n] { .. }
//
// A complex number is `0.5,-2`.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_FUZZ_CASE_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_FUZZ_CASE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/tensor.h"

namespace cleave::fuzz {

// A tensor for each input of f, in order.
using Point = std::vector<std::pair<std::string, Tensor>>;

struct FuzzCase {
  std::string rules;  // without the points
  std::vector<Point> points;
};

std::string CaseToText(const FuzzCase& one);
// InvalidArgument, with the line, where a point is malformed.
absl::StatusOr<FuzzCase> CaseFromText(absl::string_view text);

std::vector<Tensor> TensorsOf(const Point& point);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_FUZZ_CASE_H_
