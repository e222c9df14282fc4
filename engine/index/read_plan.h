// ReadPlan: how each axis of an array is read, x[n, p * s + k * d - q, 3, t]:
// which axes are slices, windows or splits into digits, and which are gathered.
// Internal to the lowering of index notation.

#ifndef CLEAVE_ENGINE_INDEX_READ_PLAN_H_
#define CLEAVE_ENGINE_INDEX_READ_PLAN_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/index/affine.h"
#include "engine/index/term.h"

namespace cleave {

struct AxisPlan {
  enum class Kind : uint8_t {
    kConstant,  // one place, `start`
    kStrided,   // start + stride * i: a slice
    kSplit,     // start + stride * ((i * J + j) * K + k): a slice, reshaped
    kWindow,    // start + stride * p + dilation * k
    kComputed,  // anything else: a gather
  };
  Kind kind = Kind::kComputed;
  Dim start;
  int64_t stride = 1;
  int64_t dilation = 1;  // kWindow
  // The variables of a slice or split, the slowest first; of a window, p and k.
  std::vector<IndexPtr> indices;
  // Per variable, whether it counts down: it stands for extent - 1 - i.
  std::vector<bool> reversed;
  // Whether the index is proved to be in range: always, and where the
  // conditions around hold.
  bool not_below = false;
  bool not_above = false;
  bool in_range_where_true = false;

  bool InRange() const { return not_below && not_above; }
  // Elements that a slice takes (not of kWindow and kComputed).
  absl::StatusOr<Dim> Size() const;
};

struct ReadPlan {
  std::vector<AxisPlan> axes;
  bool InRange() const;
  bool InRangeWhereTrue() const;
  bool HasComputed() const;
  bool HasWindow() const;
};

// An axis while a read is lowered: of a variable, or of the array's axis
// `origin` that is still to be read as a window or by a gather.
struct AxisLabel {
  IndexPtr index;
  int origin = -1;
};

// Whether start + stride * p + dilation * k is a window although p and k could
// be digits of a slice: x[2 * p + k] for k < 2. `whole_axis`: the slice would
// have as many elements as the axis.
using WindowChoice =
    std::function<bool(const IndexPtr& p, const IndexPtr& k, bool whole_axis)>;

// Plans the read of an array of `shape`. `facts` hold where the read counts.
// The variable p of a window is the one that stands first in `scope`: the
// indices of reductions come last.
ReadPlan PlanRead(const Term& read, const Shape& shape,
                  const std::vector<Affine>& facts,
                  const std::vector<IndexPtr>& scope,
                  const WindowChoice& choice);

// Makes an axis computed: read by a gather.
void MakeComputed(AxisPlan& axis);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_INDEX_READ_PLAN_H_
