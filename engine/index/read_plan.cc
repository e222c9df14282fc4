#include "engine/index/read_plan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ops/status_macros.h"

namespace cleave {
namespace {

// A variable of an index, its coefficient made positive by counting down.
struct Digit {
  IndexPtr index;
  Dim coefficient;
  bool reversed = false;
};

// The digits of an affine index, and the index where all of them are 0; nullopt
// where a coefficient's sign is not known.
std::optional<std::vector<Digit>> DigitsOf(const Affine& index, Dim& start) {
  std::vector<Digit> digits;
  start = index.constant;
  for (const auto& [variable, coefficient] : index.terms) {
    Digit digit{variable, coefficient, false};
    if (Compare(coefficient, CompareOp::kGe, 0) != Truth::kTrue) {
      if (Compare(coefficient, CompareOp::kLt, 0) != Truth::kTrue) {
        return std::nullopt;
      }
      absl::StatusOr<Dim> last = Dim::CheckedSub(variable->extent, 1);
      if (last.ok()) last = Dim::CheckedMul(coefficient, *last);
      if (last.ok()) last = Dim::CheckedAdd(start, *last);
      const absl::StatusOr<Dim> negated = Dim::CheckedSub(0, coefficient);
      if (!last.ok() || !negated.ok()) return std::nullopt;
      start = *last;
      digit.coefficient = *negated;
      digit.reversed = true;
    }
    digits.push_back(digit);
  }
  return digits;
}

// Orders digits, slowest first, so that each counts the whole range of those
// behind it: together they are one running number. False if there is no such
// order.
bool SortAsRunningNumber(std::vector<Digit>& digits) {
  for (size_t last = 0; last < digits.size(); ++last) {
    std::vector<Digit> left = digits;
    std::vector<Digit> sorted;
    size_t next = last;
    while (true) {
      const absl::StatusOr<Dim> beyond =
          Dim::CheckedMul(left[next].coefficient, left[next].index->extent);
      sorted.push_back(left[next]);
      left.erase(left.begin() + next);
      const auto it =
          std::find_if(left.begin(), left.end(), [&beyond](const Digit& digit) {
            return beyond.ok() && digit.coefficient == *beyond;
          });
      if (it == left.end()) break;
      next = it - left.begin();
    }
    if (left.empty()) {
      digits.assign(sorted.rbegin(), sorted.rend());
      return true;
    }
  }
  return false;
}

void SetDigits(const std::vector<Digit>& digits, AxisPlan& axis) {
  for (const Digit& digit : digits) {
    axis.indices.push_back(digit.index);
    axis.reversed.push_back(digit.reversed);
  }
}

bool PlanSplit(std::vector<Digit> digits, AxisPlan& axis) {
  if (!SortAsRunningNumber(digits)) return false;
  const std::optional<int64_t> stride = digits.back().coefficient.Value();
  if (!stride.has_value()) return false;
  axis.kind =
      digits.size() == 1 ? AxisPlan::Kind::kStrided : AxisPlan::Kind::kSplit;
  axis.stride = *stride;
  SetDigits(digits, axis);
  return true;
}

bool PlanWindow(const std::vector<Digit>& digits, AxisPlan& axis) {
  const std::optional<int64_t> p = digits[0].coefficient.Value();
  const std::optional<int64_t> k = digits[1].coefficient.Value();
  if (!p.has_value() || !k.has_value()) return false;
  axis.kind = AxisPlan::Kind::kWindow;
  axis.stride = *p;
  axis.dilation = *k;
  SetDigits(digits, axis);
  return true;
}

// The plan of one axis, apart from ranges.
void PlanAxis(const Affine& index, const Dim& extent,
              const std::vector<IndexPtr>& scope, const WindowChoice& choice,
              AxisPlan& axis) {
  std::optional<std::vector<Digit>> digits = DigitsOf(index, axis.start);
  if (!digits.has_value()) return;
  if (digits->empty()) {
    axis.kind = AxisPlan::Kind::kConstant;
    return;
  }
  if (digits->size() != 2) {
    PlanSplit(*digits, axis);
    return;
  }
  const auto place = [&scope](const Digit& digit) {
    return std::find(scope.begin(), scope.end(), digit.index) - scope.begin();
  };
  if (place((*digits)[1]) < place((*digits)[0])) {
    std::swap((*digits)[0], (*digits)[1]);
  }
  const absl::StatusOr<Dim> reads =
      Dim::CheckedMul((*digits)[0].index->extent, (*digits)[1].index->extent);
  const bool whole_axis =
      axis.start == Dim(0) && reads.ok() && *reads == extent;
  const bool window = !axis.InRange() || choice((*digits)[0].index,
                                                (*digits)[1].index, whole_axis);
  if (window && PlanWindow(*digits, axis)) return;
  if (PlanSplit(*digits, axis)) return;
  PlanWindow(*digits, axis);
}

}  // namespace

absl::StatusOr<Dim> AxisPlan::Size() const {
  Dim size = 1;
  for (const IndexPtr& index : indices) {
    CLEAVE_ASSIGN_OR_RETURN(size, Dim::CheckedMul(size, index->extent));
  }
  return size;
}

bool ReadPlan::InRange() const {
  return std::all_of(axes.begin(), axes.end(),
                     [](const AxisPlan& axis) { return axis.InRange(); });
}

bool ReadPlan::InRangeWhereTrue() const {
  return std::all_of(axes.begin(), axes.end(), [](const AxisPlan& axis) {
    return axis.in_range_where_true;
  });
}

bool ReadPlan::HasComputed() const {
  return std::any_of(axes.begin(), axes.end(), [](const AxisPlan& axis) {
    return axis.kind == AxisPlan::Kind::kComputed;
  });
}

bool ReadPlan::HasWindow() const {
  return std::any_of(axes.begin(), axes.end(), [](const AxisPlan& axis) {
    return axis.kind == AxisPlan::Kind::kWindow;
  });
}

void MakeComputed(AxisPlan& axis) {
  axis.kind = AxisPlan::Kind::kComputed;
  axis.start = 0;
  axis.stride = 1;
  axis.dilation = 1;
  axis.indices.clear();
  axis.reversed.clear();
}

ReadPlan PlanRead(const Term& read, const Shape& shape,
                  const std::vector<Affine>& facts,
                  const std::vector<IndexPtr>& scope,
                  const WindowChoice& choice) {
  ReadPlan plan;
  std::set<const IndexVariable*> used;
  for (size_t d = 0; d < shape.size(); ++d) {
    AxisPlan axis;
    const std::optional<Affine> index = ToAffine(*read.children[d + 1]);
    const Term& element = *read.children[d + 1];
    const RangeProof proof = ProveRange(element, shape[d]);
    axis.not_below = proof.not_below;
    axis.not_above = proof.not_above;
    axis.in_range_where_true = proof.not_below && proof.not_above;
    if (!axis.in_range_where_true && !facts.empty()) {
      const RangeProof counted = ProveRange(element, shape[d], facts);
      axis.in_range_where_true = counted.not_below && counted.not_above;
    }
    if (index.has_value()) {
      PlanAxis(*index, shape[d], scope, choice, axis);
    }
    // Each variable moves one axis; a diagonal's second axis is gathered.
    const bool again = std::any_of(
        axis.indices.begin(), axis.indices.end(),
        [&used](const IndexPtr& v) { return used.count(v.get()) != 0; });
    if (again || axis.kind == AxisPlan::Kind::kComputed) {
      MakeComputed(axis);
    } else {
      for (const IndexPtr& v : axis.indices) used.insert(v.get());
    }
    plan.axes.push_back(std::move(axis));
  }
  return plan;
}

}  // namespace cleave
