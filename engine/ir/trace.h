// Tracing: C++ functions on traced values record a graph.
//
//   TensorType matrix{DType::kF32, {Dim::Variable("n"), 10}};
//   absl::StatusOr<Graph> graph = Trace(
//       context,
//       [](TracedValue x, TracedValue y) {
//         TracedValue e = trace::Exp(x - trace::ReduceMax(x, {1}, true));
//         return e / trace::ReduceSum(e, {1}, true) + 0.5 * y;
//       },
//       {matrix, matrix});
//
// Operands are broadcast against each other, right-aligned; a number becomes an
// exact constant of the other operand's dtype, rounded once (0.1 is the double;
// Exact::Parse("0.1") the decimal). A mistake makes a value that is not valid,
// as is what is computed of it; Trace returns the first one. Nothing crashes.
// Nodes stand in the order that C++ evaluates the operands in, which is the
// compiler's choice within one expression.
//
// Extension: a call of what is no primitive adds nodes to builder() and wraps
// the result: trace::Wrap(x, node). Regions of scan and cond are made by Trace
// and MakeRegion, and given to trace::Apply as attributes.

#ifndef CLEAVE_ENGINE_IR_TRACE_H_
#define CLEAVE_ENGINE_IR_TRACE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave {
namespace trace {

class Tracer;

// A node of the graph that is being recorded, or a number that waits for the
// dtype of what it meets.
class TracedValue {
 public:
  TracedValue();  // not valid
  template <typename T,
            typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  TracedValue(T number)  // NOLINT: numbers mix with values.
      : TracedValue(FromNumber(number)) {}
  TracedValue(Exact number);  // NOLINT

  // Whether this is a node; false for numbers and after a mistake.
  bool valid() const { return tracer_ != nullptr && status_.ok(); }
  // The type of a valid value.
  const TensorType& type() const;
  // For extensions, of a valid value: where nodes are added, and the node.
  GraphBuilder& builder() const;
  Value value() const { return value_; }
  // The mistake, if there was one.
  const absl::Status& status() const { return status_; }

  friend TracedValue operator+(const TracedValue& a, const TracedValue& b);
  friend TracedValue operator-(const TracedValue& a, const TracedValue& b);
  friend TracedValue operator*(const TracedValue& a, const TracedValue& b);
  friend TracedValue operator/(const TracedValue& a, const TracedValue& b);
  TracedValue operator-() const;

 private:
  friend class Tracer;
  static Exact FromNumber(bool number) { return Exact(number ? 1 : 0); }
  template <typename T>
  static Exact FromNumber(T number) {
    if constexpr (std::is_floating_point_v<T>) {
      return Exact::FromDouble(static_cast<double>(number));
    } else if constexpr (std::is_signed_v<T>) {
      return Exact(static_cast<int64_t>(number));
    } else {  // u64 goes beyond i64
      return Exact(static_cast<int64_t>(number >> 1)) * Exact(2) +
             Exact(static_cast<int64_t>(number & 1));
    }
  }

  std::shared_ptr<Tracer> tracer_;  // null for numbers
  Value value_;
  std::optional<Exact> number_;
  absl::Status status_;
};

// One function for each pointwise primitive without attributes whose operands
// are of one dtype: Exp(x), Lt(a, b), Fma(a, b, c).
#define PRIMITIVE(...)
#define UNARY(function, ...) TracedValue function(const TracedValue& x);
#define BINARY(function, ...) \
  TracedValue function(const TracedValue& a, const TracedValue& b);
#define TERNARY(function, ...)                                     \
  TracedValue function(const TracedValue& a, const TracedValue& b, \
                       const TracedValue& c);
#include "ops/primitive.def"

TracedValue Convert(const TracedValue& x, DType dtype);
TracedValue BitcastConvert(const TracedValue& x, DType dtype);
// tie: "even", "first" or "second": the derivative's choice where a equals b.
TracedValue Max(const TracedValue& a, const TracedValue& b,
                absl::string_view tie = "even");
TracedValue Min(const TracedValue& a, const TracedValue& b,
                absl::string_view tie = "even");
// a where the condition holds, else b.
TracedValue Select(const TracedValue& condition, const TracedValue& a,
                   const TracedValue& b);
// x * 2^exponent; the exponent is i32.
TracedValue Ldexp(const TracedValue& x, const TracedValue& exponent);

// Axes may be negative: counted from the last. Reductions drop their axes, or
// keep them with extent 1.
using Axes = std::vector<int>;
TracedValue ReduceSum(const TracedValue& x, const Axes& axes,
                      bool keep_axes = false);
TracedValue ReduceProd(const TracedValue& x, const Axes& axes,
                       bool keep_axes = false);
TracedValue ReduceMax(const TracedValue& x, const Axes& axes,
                      bool keep_axes = false);
TracedValue ReduceMin(const TracedValue& x, const Axes& axes,
                      bool keep_axes = false);
TracedValue ReduceAll(const TracedValue& x, const Axes& axes,
                      bool keep_axes = false);
TracedValue ReduceAny(const TracedValue& x, const Axes& axes,
                      bool keep_axes = false);
TracedValue Argmax(const TracedValue& x, const Axes& axes,
                   bool keep_axes = false);
TracedValue Argmin(const TracedValue& x, const Axes& axes,
                   bool keep_axes = false);

TracedValue BroadcastTo(const TracedValue& x, const Shape& shape);
TracedValue Reshape(const TracedValue& x, const Shape& shape);
// Axis d of the result is axes[d] of x.
TracedValue Transpose(const TracedValue& x, const Axes& axes);
TracedValue Slice(const TracedValue& x, const std::vector<Dim>& start,
                  const std::vector<Dim>& size,
                  const std::vector<int64_t>& stride);
TracedValue Reverse(const TracedValue& x, const Axes& axes);
// Between neighbours and at both ends of each axis, `fill` is put in.
TracedValue Pad(const TracedValue& x, const TracedValue& fill,
                const std::vector<Dim>& low, const std::vector<Dim>& high,
                const std::vector<Dim>& interior);
TracedValue Concatenate(const std::vector<TracedValue>& xs, int axis);

// a[.., i, k] and b[.., k, j] of equal rank >= 2, leading axes equal.
TracedValue MatMul(const TracedValue& a, const TracedValue& b);
TracedValue LinearScan(const TracedValue& a, const TracedValue& b,
                       const TracedValue& init, int axis, bool reverse = false);
struct Sorted {
  TracedValue values;
  TracedValue indices;
};
Sorted Sort(const TracedValue& x, int axis, bool descending = false);

// Any primitive, with its attributes as ops/primitive.h has them and operands
// as they are: not broadcast, no numbers. One value per result; one invalid
// value after a mistake.
std::vector<TracedValue> Apply(Primitive primitive,
                               absl::Span<const TracedValue> operands,
                               const Attributes& attributes = {});

// `node` of like.builder() as a traced value.
TracedValue Wrap(const TracedValue& like, Value node);

}  // namespace trace

using trace::TracedValue;

using TracedFunction =
    std::function<std::vector<TracedValue>(const std::vector<TracedValue>&)>;

// Names of inputs and outputs; where there are none: x, or x0, x1, ..; y, or
// y0, y1, ..
struct TraceNames {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

// The graph of `function` on inputs of `types`. InvalidArgument for the first
// mistake, for names that are not distinct or too few or many, or a result
// that is no value of this trace.
absl::StatusOr<Graph> TraceFunction(std::shared_ptr<Context> context,
                                    const TracedFunction& function,
                                    const std::vector<TensorType>& types,
                                    const TraceNames& names = {});

namespace internal_trace {

inline constexpr size_t kMaxArity = 12;

inline std::vector<TracedValue> ToVector(TracedValue value) {
  return {std::move(value)};
}
inline std::vector<TracedValue> ToVector(std::vector<TracedValue> values) {
  return values;
}

template <size_t>
using Argument = const TracedValue&;

template <typename Fn, typename Indices>
struct TakesIndices;
template <typename Fn, size_t... kIndex>
struct TakesIndices<Fn, std::index_sequence<kIndex...>>
    : std::is_invocable<Fn, Argument<kIndex>...> {};
template <typename Fn, size_t kArity>
inline constexpr bool kTakes =
    TakesIndices<Fn, std::make_index_sequence<kArity>>::value;

template <typename Fn, size_t... kIndex>
std::vector<TracedValue> Call(const Fn& fn, const std::vector<TracedValue>& x,
                              std::index_sequence<kIndex...>) {
  return ToVector(fn(x[kIndex]...));
}

// Calls `fn` with as many arguments as there are; nothing if it takes others.
template <size_t kArity, typename Fn>
std::optional<std::vector<TracedValue>> CallWith(
    const Fn& fn, const std::vector<TracedValue>& x) {
  if constexpr (kTakes<const Fn&, kArity>) {
    if (x.size() == kArity) {
      return Call(fn, x, std::make_index_sequence<kArity>());
    }
  }
  if constexpr (kArity < kMaxArity) return CallWith<kArity + 1>(fn, x);
  return std::nullopt;
}

}  // namespace internal_trace

// TraceFunction for a callable that takes a vector of traced values, or up to
// 12 of them one by one, and returns one or a vector. InvalidArgument if it
// takes another number than there are types.
template <typename Fn>
absl::StatusOr<Graph> Trace(std::shared_ptr<Context> context, const Fn& fn,
                            const std::vector<TensorType>& types,
                            const TraceNames& names = {}) {
  if constexpr (std::is_invocable_v<const Fn&,
                                    const std::vector<TracedValue>&>) {
    return TraceFunction(
        std::move(context),
        [&fn](const std::vector<TracedValue>& x) {
          return internal_trace::ToVector(fn(x));
        },
        types, names);
  } else {
    bool fits = true;
    absl::StatusOr<Graph> graph = TraceFunction(
        std::move(context),
        [&](const std::vector<TracedValue>& x) {
          auto results = internal_trace::CallWith<0>(fn, x);
          fits = results.has_value();
          return std::move(results).value_or(std::vector<TracedValue>());
        },
        types, names);
    if (!fits) {
      return absl::InvalidArgumentError(
          "the traced function takes another number of arguments than there "
          "are types");
    }
    return graph;
  }
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_TRACE_H_
