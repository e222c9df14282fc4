// The closed vocabulary: every graph ends in these operations.
//
// Attributes of the structured ones (shapes are Dims; axes are ints, normalised
// and non-negative; B, I, P, K stand for groups of axes):
//
//   constant(value: real|bool, dtype)            -> D[]
//   extent(value: Dim)                           -> i64[]
//   iota(size: Dim)                              -> i64[size]
//   input(name, index), type given               -> as declared
//   result(t; index)                             -> that result of t
//   convert(x; dtype), bitcast_convert(x; dtype)
//   max, min(a, b; tie: "even"|"first"|"second"), the derivative's choice
//   broadcast_in_dim(x; shape, axes): axis d of x becomes axes[d] of shape; an
//       extent 1 of x stretches; axes ascend
//   reshape(x; shape): same number of elements (proved, or a guard)
//   transpose(x; axes): axis d of the result is axes[d] of x
//   slice(x; start, size, stride): Dims per axis, stride ints >= 1
//   reverse(x; axes)
//   pad_general(x, fill: T[]; low, high, interior): Dims per axis; low and high
//       may be negative (cropping), interior >= 0 between neighbours
//   windows(x: T[B.., S..], fill: T[]; sizes, strides, dilations, low, counts):
//       over the trailing len(sizes) axes; result T[B.., P.., K..], P = counts,
//       K = sizes; element (p, k) reads x at p * stride + k * dilation - low,
//       or fill where that is out of range
//   windows_add(u: T[B.., P.., K..]; sizes, strides, dilations, low, counts,
//       shape): its transpose; adds each element where windows read it; shape
//       is S..; what was out of range is dropped
//   reduce_*(x; axes) of nothing: 0, 1, lowest, highest, true, false;
//       reduce_max, reduce_min(tie: "even"|"first"); NaN wins
//   argmax, argmin(x; axes) -> i64: row-major number within the axes, the first
//       of equals, NaN wins; of nothing: -1
//   dot_general(a, b; batch_a, batch_b, contract_a, contract_b, zeros)
//       -> T[batch.., free_a.., free_b..]; zeros tells that blocks of an
//       operand are likely to be 0, and changes no value
//   conv(x: T[N, C, S..], w: T[O, C/groups, K..]; stride, low, high,
//       lhs_dilation, rhs_dilation, groups, batch_groups): low and high are
//       Dims of padding per spatial axis, possibly negative; correlation (no
//       flip). With batch_groups = g, N = g * n, O = g * o, and group i of the
//       batch meets group i of the outputs: result T[n, O, P..]
//   linear_scan(a, b, init; axis, reverse): y_i = a_i y_(i-1) + b_i, y_(-1) =
//       init (without the axis); a, b of the result's shape
//   cumulative_max, cumulative_min(x; axis, reverse): NaN stays
//   gather(x: T[B.., X..], index: i64[B.., I.., k], fill: T[];
//       axes, batch, mode): batch = len(B); axes: k ascending axes of x, each
//       >= batch; result T[B.., I.., rest of X..]; mode "fill" reads fill out
//       of range; "error" fails with OutOfRange (the operand fill is not read)
//   scatter(x: T[B.., X..], index: i64[B.., I.., k],
//       updates: T[B.., I.., rest]; axes, batch, mode): mode "add"|"mul"|"max"|
//       "min"|"set" in row-major order of I.. (set: the last one stays); out of
//       range is dropped; max and min: tie: "even"|"first", the first update,
//       else x
//   sort(x; axis, descending) -> (values, indices: i64): stable; NaN is largest
//   nonzero(x: bool|number; size: Dim) -> i64[size, rank], row-major
//   random_bits(key; shape, dtype), random_uniform(key; shape, dtype) in
//       [0, 1), random_split(key; count) -> key[count]: Philox 4x32-10 on
//       (key, counter); key[S..] gives S.. blocks, each as its key alone would
//   random_fold_in(key[S..], i: i64[S..]) -> key[S..]: key number i of the
//       2^64 that each key has beside those of random_split
//   scan(consts.., carries.., xs..; body: Region, consts: int, carries: int,
//       length: Dim, reverse: bool) -> (carries.., ys..): body takes (consts..,
//       carries.., slices of xs along axis 0..), gives (carries.., ys..)
//   cond(p: bool[], operands..; then: Region, else: Region): both regions take
//       the operands and give the same types
//   while(consts.., carries..; cond: Region, body: Region, consts: int,
//       max: Dim, optional) -> (carries..): both regions take (consts..,
//       carries..); cond gives bool[], body the next carries. The body runs as
//       long as cond holds; where it still holds after `max` steps, evaluation
//       fails with OutOfRange: a result is never cut short
//
// A primitive with several results has a tuple type; `result` projects it.
// Pointwise operands have equal shapes: broadcasting is explicit in a graph.
// Floats are IEEE: NaN propagates (max and min included), signed zeros are kept
// (max(-0, 0) = 0, min(0, -0) = -0), nothing is reassociated or contracted.
// Integers wrap; integer division by zero is an error of the evaluation.

#ifndef CLEAVE_OPS_PRIMITIVE_H_
#define CLEAVE_OPS_PRIMITIVE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "ops/dtype.h"

namespace cleave {

enum class Primitive : uint8_t {
#define PRIMITIVE(enumerator, ...) enumerator,
#include "ops/primitive.def"
};

#define PRIMITIVE(...) +1
inline constexpr int kNumPrimitives = 0
#include "ops/primitive.def"
    ;

// Batching is written once per class.
enum class PrimitiveClass : uint8_t {
  kLeaf,
  kProjection,
  kPointwise,
  kMovement,
  kWindow,
  kReduction,
  kContraction,
  kScan,
  kGather,
  kScatter,
  kSort,
  kDynamic,
  kRandom,
  kControl,
};

enum class DerivativeKind : uint8_t { kRule, kLinear, kBuiltin, kZero };

absl::string_view PrimitiveName(Primitive primitive);
std::optional<Primitive> FindPrimitive(absl::string_view name);
PrimitiveClass ClassOf(Primitive primitive);
DerivativeKind DerivativeOf(Primitive primitive);
// Whether it is one of eq, ne, lt, le, gt and ge: two operands of one dtype to
// a bool.
inline bool IsComparison(Primitive primitive) {
  return primitive >= Primitive::kEq && primitive <= Primitive::kGe;
}

// An operand: `a: bool|int`. A last `xs..` is any number of them.
struct PrimitiveOperand {
  absl::string_view name;
  // The dtypes of a pointwise primitive, as text and a bit for each. Without,
  // the dtype is that of the operand before it.
  absl::string_view dtypes;
  uint32_t dtype_bits = 0;

  bool Takes(DType dtype) const {
    return (dtype_bits >> static_cast<int>(dtype) & 1) != 0;
  }
};
const std::vector<PrimitiveOperand>& OperandsOf(Primitive primitive);

// An attribute of a node: `batch: int = 0`.
struct PrimitiveAttribute {
  absl::string_view name;
  absl::string_view type;      // "int", "dim[]", ..: as in rule files
  absl::string_view fallback;  // "0"; empty: none
  bool may_lack = false;       // `max: dim?`
};
const std::vector<PrimitiveAttribute>& AttributesOf(Primitive primitive);
// Null where it has none of that name.
const PrimitiveAttribute* FindAttribute(Primitive primitive,
                                        absl::string_view name);

// Number of operands, -1 if any number.
int OperandCount(Primitive primitive);
// Number of results, -1 if it depends on the attributes.
int ResultCount(Primitive primitive);

}  // namespace cleave

#endif  // CLEAVE_OPS_PRIMITIVE_H_
