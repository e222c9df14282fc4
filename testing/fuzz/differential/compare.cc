#include "testing/fuzz/differential/compare.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "testing/fuzz/differential/noise.h"
#include "testing/fuzz/differential/parts.h"

namespace cleave::fuzz {
namespace {

constexpr int kNoises = 6;
// For what is seen of noise in so many samples.
constexpr double kMargin = 4;

// Part `i` of an inexact tensor, element `i` of another.
double NumberAt(const Tensor& tensor, int64_t i) {
  return IsInexact(tensor.dtype())       ? GetPart(tensor, i)
         : tensor.dtype() == DType::kKey ? static_cast<double>(tensor.GetInt(i))
                                         : tensor.GetDouble(i);
}

}  // namespace

bool IsOverLimits(const Results& results) {
  return absl::IsResourceExhausted(results.status());
}

std::string Parting(const Results& got, const Results& want) {
  if (IsOverLimits(got) || IsOverLimits(want)) return "";
  if (got.ok() != want.ok() ||
      (!want.ok() && got.status().code() != want.status().code())) {
    return absl::StrCat("got ", got.status().ToString(), ", want ",
                        want.status().ToString());
  }
  if (!want.ok()) return "";
  for (size_t r = 0; r < want->size(); ++r) {
    if (SameValue((*got)[r], (*want)[r])) continue;
    return absl::StrCat("result ", r, ": got ", (*got)[r].ToString(), "\nwant ",
                        (*want)[r].ToString());
  }
  return "";
}

bool Differs(Outcome& outcome, const std::string& what,
             const std::string& text) {
  outcome.kind = OutcomeKind::kDiffers;
  outcome.what = what;
  outcome.text = text;
  return false;
}

bool Failed(Outcome& outcome, const std::string& what,
            const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) {
    return Differs(outcome, what, status.ToString());
  }
  outcome.kind = OutcomeKind::kOverLimits;
  outcome.text = absl::StrCat(what, ": ", status.message());
  return false;
}

bool IsNear(const Graph& graph, const std::vector<Tensor>& inputs,
            const Results& got, const Results& want, const std::string& what,
            Outcome& outcome) {
  const std::string parting = Parting(got, want);
  if (parting.empty()) return true;
  if (!got.ok() || !want.ok()) return Differs(outcome, what, parting);
  std::vector<std::vector<Tensor>> noisy;
  for (int i = 0; i < kNoises; ++i) {
    Results results = InterpretWithNoise(graph, inputs, i);
    if (!results.ok()) {
      ++outcome.undecided;
      return true;
    }
    noisy.push_back(*std::move(results));
  }
  for (size_t r = 0; r < want->size(); ++r) {
    const Tensor& a = (*got)[r];
    const Tensor& b = (*want)[r];
    if (a.dtype() != b.dtype() || a.shape() != b.shape()) {
      return Differs(outcome, what, parting);
    }
    const bool inexact = IsInexact(b.dtype());
    const int64_t count = inexact ? Parts(b) : b.size();
    for (int64_t i = 0; i < count; ++i) {
      const double x = NumberAt(a, i);
      const double y = NumberAt(b, i);
      if (inexact ? x == y || (std::isnan(x) && std::isnan(y))
                  : a.GetInt(i) == b.GetInt(i)) {
        continue;
      }
      double spread = 0;
      bool unsettled = false;
      for (const std::vector<Tensor>& results : noisy) {
        const double z = NumberAt(results[r], i);
        const double by = std::abs(z - y);
        unsettled |= !std::isfinite(by) && !(z == y);
        if (std::isfinite(by)) spread = std::max(spread, by);
      }
      unsettled |= !inexact && spread > 0;
      if (unsettled || std::abs(x - y) <= kMargin * spread) {
        ++outcome.undecided;
        continue;
      }
      return Differs(
          outcome, what,
          absl::StrFormat("part %d: got %.17g, want %.17g, noise %g\n%s", i, x,
                          y, spread, parting));
    }
  }
  return true;
}

}  // namespace cleave::fuzz
