#include "engine/ir/trace.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ops/status_macros.h"

namespace cleave {
namespace trace {

// The graph that is being recorded, and the first mistake. It outlives Trace in
// the values that refer to it, but records nothing more.
class Tracer : public std::enable_shared_from_this<Tracer> {
 public:
  explicit Tracer(std::shared_ptr<Context> context)
      : builder_(std::move(context)) {}

  GraphBuilder& builder() { return builder_; }
  const absl::Status& status() const { return status_; }
  bool finished() const { return finished_; }

  TracedValue Wrap(Value node) {
    TracedValue x;
    x.tracer_ = shared_from_this();
    x.value_ = node;
    x.status_ = absl::OkStatus();
    return x;
  }

  // Remembers the mistake of the last op, and gives the value that stands for
  // it.
  TracedValue Mistake(const absl::Status& status) {
    absl::Status placed(
        status.code(),
        absl::StrCat("op ", ops_, " of the trace: ", status.message()));
    if (status_.ok()) status_ = placed;
    return Invalid(std::move(placed));
  }
  static TracedValue Invalid(absl::Status status) {
    TracedValue x;
    x.status_ = std::move(status);
    return x;
  }

  // The trace that the operands belong to. Null if none of them does, with the
  // value that stands for the result in `result`; so too after a mistake.
  static Tracer* Find(absl::Span<const TracedValue> operands,
                      TracedValue* result) {
    Tracer* tracer = nullptr;
    absl::Status status;
    bool meet = false;
    for (const TracedValue& x : operands) {
      if (!x.status_.ok()) {
        if (status.ok()) status = x.status_;
        continue;
      }
      if (x.tracer_ == nullptr) continue;
      if (tracer != nullptr && tracer != x.tracer_.get() && status.ok()) {
        status = absl::InvalidArgumentError("values of two traces meet");
        meet = true;
      }
      tracer = x.tracer_.get();
    }
    if (tracer == nullptr) {
      if (status.ok()) {
        status = absl::InvalidArgumentError(
            "numbers alone do not tell a dtype: one operand must be traced");
      }
      *result = Invalid(std::move(status));
      return nullptr;
    }
    ++tracer->ops_;
    if (status.ok() && tracer->finished_) {
      status = absl::FailedPreconditionError("the trace has ended");
    } else if (!status.ok() && !meet) {
      // The operand's, whose place it has already.
      if (tracer->status_.ok()) tracer->status_ = status;
      *result = Invalid(std::move(status));
      return nullptr;
    }
    if (!status.ok()) {
      *result = tracer->Mistake(status);
      return nullptr;
    }
    return tracer;
  }

  absl::StatusOr<Value> Node(const TracedValue& x, DType dtype_of_numbers) {
    if (!x.number_.has_value()) return x.value_;
    return builder_.Add(Primitive::kConstant,
                        ConstantAttributes(*x.number_, dtype_of_numbers), {});
  }
  static bool IsNumber(const TracedValue& x) { return x.number_.has_value(); }
  static const Exact& NumberOf(const TracedValue& x) { return *x.number_; }
  static absl::Status StatusOf(const TracedValue& x) { return x.status_; }
  static bool Owns(const Tracer& tracer, const TracedValue& x) {
    return x.tracer_.get() == &tracer && x.status_.ok();
  }

  TracedValue Finish(absl::StatusOr<Value> node) {
    if (!node.ok()) return Mistake(node.status());
    return Wrap(*node);
  }

  absl::StatusOr<Graph> Build(const std::vector<TracedValue>& results,
                              std::vector<std::string> names);

 private:
  GraphBuilder builder_;
  absl::Status status_;
  bool finished_ = false;
  int64_t ops_ = 0;  // recorded so far
};

TracedValue::TracedValue()
    : status_(absl::InvalidArgumentError("a value that nothing was given")) {}

TracedValue::TracedValue(Exact number) : number_(std::move(number)) {}

const TensorType& TracedValue::type() const {
  static const auto* const none = new TensorType();
  return valid() && !tracer_->finished() ? tracer_->builder().type(value_)
                                         : *none;
}

GraphBuilder& TracedValue::builder() const {
  if (valid() && !tracer_->finished()) return tracer_->builder();
  thread_local GraphBuilder scrap(std::make_shared<Context>());
  return scrap;
}

namespace {

// The dtype that numbers among the operands from `first` on take: that of the
// first which is none.
absl::StatusOr<DType> SharedDType(absl::Span<const TracedValue> operands,
                                  size_t first) {
  for (size_t i = first; i < operands.size(); ++i) {
    if (!Tracer::IsNumber(operands[i])) return operands[i].type().dtype;
  }
  return absl::InvalidArgumentError(
      "numbers alone do not tell a dtype: one operand must be traced");
}

// Broadcasts the nodes against each other, right-aligned.
absl::Status Broadcast(GraphBuilder& builder, std::vector<Value>* nodes) {
  std::vector<Shape> shapes;
  for (Value v : *nodes) shapes.push_back(builder.type(v).shape);
  CLEAVE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(shapes));
  for (Value& v : *nodes) v = builder.BroadcastTo(v, shape);
  return absl::OkStatus();
}

// A pointwise primitive. Numbers among the operands take the dtype of the
// others from operand `first` on.
TracedValue Pointwise(Primitive primitive,
                      absl::Span<const TracedValue> operands,
                      const Attributes& attributes = {}, size_t first = 0) {
  TracedValue result;
  Tracer* tracer = Tracer::Find(operands, &result);
  if (tracer == nullptr) return result;
  auto add = [&]() -> absl::StatusOr<Value> {
    std::vector<Value> nodes;
    for (size_t i = 0; i < operands.size(); ++i) {
      DType dtype = DType::kBool;
      if (Tracer::IsNumber(operands[i])) {
        CLEAVE_ASSIGN_OR_RETURN(dtype,
                                SharedDType(operands, i < first ? 0 : first));
      }
      CLEAVE_ASSIGN_OR_RETURN(const Value node,
                              tracer->Node(operands[i], dtype));
      if (tracer->builder().graph().types(node).size() != 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "`", PrimitiveName(primitive), "`: operand ", i, " is a tuple"));
      }
      nodes.push_back(node);
    }
    CLEAVE_RETURN_IF_ERROR(Broadcast(tracer->builder(), &nodes));
    return tracer->builder().Add(primitive, attributes, nodes);
  };
  return tracer->Finish(add());
}

// The number that an operator of two numbers gives, else the pointwise node.
template <typename Combine>
TracedValue Arithmetic(Primitive primitive, const TracedValue& a,
                       const TracedValue& b, Combine combine) {
  if (Tracer::IsNumber(a) && Tracer::IsNumber(b)) {
    return TracedValue(combine(Tracer::NumberOf(a), Tracer::NumberOf(b)));
  }
  return Pointwise(primitive, {a, b});
}

absl::StatusOr<std::vector<int>> Normalise(absl::string_view what,
                                           const Axes& axes, int rank) {
  std::vector<int> result;
  for (int axis : axes) {
    if (axis < -rank || axis >= rank) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", what, "`: axis ", axis, " is out of range for ", rank, " axes"));
    }
    result.push_back(axis < 0 ? axis + rank : axis);
  }
  return result;
}

// A primitive of one traced operand and others; `add` makes the node.
template <typename Add>
TracedValue Structured(absl::Span<const TracedValue> operands, Add add) {
  TracedValue result;
  Tracer* tracer = Tracer::Find(operands, &result);
  if (tracer == nullptr) return result;
  for (const TracedValue& x : operands) {
    if (Tracer::IsNumber(x) && &x == &operands[0]) {
      return tracer->Mistake(absl::InvalidArgumentError(
          "a number has no axes: the first operand must be traced"));
    }
  }
  return tracer->Finish(add(tracer));
}

TracedValue OfOne(Primitive primitive, const TracedValue& x,
                  const Attributes& attributes) {
  return Structured({x}, [&](Tracer* tracer) {
    return tracer->builder().Add(primitive, attributes, {x.value()});
  });
}

TracedValue OfAxes(Primitive primitive, const TracedValue& x,
                   const Axes& axes) {
  return Structured({x}, [&](Tracer* tracer) -> absl::StatusOr<Value> {
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<int> normal,
        Normalise(PrimitiveName(primitive), axes, x.type().rank()));
    return tracer->builder().Add(
        primitive, {{"axes", StaticValue::Ints(normal)}}, {x.value()});
  });
}

TracedValue Reduce(Primitive primitive, const TracedValue& x, const Axes& axes,
                   bool keep_axes) {
  return Structured({x}, [&](Tracer* tracer) -> absl::StatusOr<Value> {
    GraphBuilder& builder = tracer->builder();
    Shape kept = x.type().shape;
    CLEAVE_ASSIGN_OR_RETURN(
        std::vector<int> normal,
        Normalise(PrimitiveName(primitive), axes, x.type().rank()));
    std::sort(normal.begin(), normal.end());
    CLEAVE_ASSIGN_OR_RETURN(
        const Value reduced,
        builder.Add(primitive, {{"axes", StaticValue::Ints(normal)}},
                    {x.value()}));
    if (!keep_axes) return reduced;
    for (int axis : normal) kept[axis] = Dim(1);
    return builder.Add(Primitive::kReshape,
                       {{"shape", StaticValue::Dims(kept)}}, {reduced});
  });
}

}  // namespace

TracedValue operator+(const TracedValue& a, const TracedValue& b) {
  return Arithmetic(Primitive::kAdd, a, b,
                    [](const Exact& x, const Exact& y) { return x + y; });
}
TracedValue operator-(const TracedValue& a, const TracedValue& b) {
  return Arithmetic(Primitive::kSub, a, b,
                    [](const Exact& x, const Exact& y) { return x - y; });
}
TracedValue operator*(const TracedValue& a, const TracedValue& b) {
  return Arithmetic(Primitive::kMul, a, b,
                    [](const Exact& x, const Exact& y) { return x * y; });
}
TracedValue operator/(const TracedValue& a, const TracedValue& b) {
  return Arithmetic(Primitive::kDiv, a, b,
                    [](const Exact& x, const Exact& y) { return x / y; });
}
TracedValue TracedValue::operator-() const {
  if (number_.has_value()) return TracedValue(-*number_);
  return Pointwise(Primitive::kNeg, {*this});
}

#define PRIMITIVE(...)
#define UNARY(function, ...)                       \
  TracedValue function(const TracedValue& x) {     \
    return Pointwise(Primitive::k##function, {x}); \
  }
#define BINARY(function, ...)                                        \
  TracedValue function(const TracedValue& a, const TracedValue& b) { \
    return Pointwise(Primitive::k##function, {a, b});                \
  }
#define TERNARY(function, ...)                                     \
  TracedValue function(const TracedValue& a, const TracedValue& b, \
                       const TracedValue& c) {                     \
    return Pointwise(Primitive::k##function, {a, b, c});           \
  }
#include "ops/primitive.def"

TracedValue Convert(const TracedValue& x, DType dtype) {
  return Pointwise(Primitive::kConvert, {x}, {{"dtype", dtype}});
}

TracedValue BitcastConvert(const TracedValue& x, DType dtype) {
  return Pointwise(Primitive::kBitcastConvert, {x}, {{"dtype", dtype}});
}

TracedValue Max(const TracedValue& a, const TracedValue& b,
                absl::string_view tie) {
  return Pointwise(Primitive::kMax, {a, b}, {{"tie", std::string(tie)}});
}

TracedValue Min(const TracedValue& a, const TracedValue& b,
                absl::string_view tie) {
  return Pointwise(Primitive::kMin, {a, b}, {{"tie", std::string(tie)}});
}

TracedValue Select(const TracedValue& condition, const TracedValue& a,
                   const TracedValue& b) {
  return Pointwise(Primitive::kSelect, {condition, a, b}, {}, 1);
}

TracedValue Ldexp(const TracedValue& x, const TracedValue& exponent) {
  return Structured(
      {x, exponent}, [&](Tracer* tracer) -> absl::StatusOr<Value> {
        CLEAVE_ASSIGN_OR_RETURN(const Value number,
                                tracer->Node(exponent, DType::kI32));
        std::vector<Value> nodes = {x.value(), number};
        CLEAVE_RETURN_IF_ERROR(Broadcast(tracer->builder(), &nodes));
        return tracer->builder().Add(Primitive::kLdexp, {}, nodes);
      });
}

#define REDUCTION(function)                                    \
  TracedValue function(const TracedValue& x, const Axes& axes, \
                       bool keep_axes) {                       \
    return Reduce(Primitive::k##function, x, axes, keep_axes); \
  }
REDUCTION(ReduceSum)
REDUCTION(ReduceProd)
REDUCTION(ReduceMax)
REDUCTION(ReduceMin)
REDUCTION(ReduceAll)
REDUCTION(ReduceAny)
REDUCTION(Argmax)
REDUCTION(Argmin)
#undef REDUCTION

TracedValue BroadcastTo(const TracedValue& x, const Shape& shape) {
  return Structured({x}, [&](Tracer* tracer) -> absl::StatusOr<Value> {
    const int new_axes = static_cast<int>(shape.size()) - x.type().rank();
    if (new_axes < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("`broadcast_in_dim`: ", x.type().ToString(),
                       " has more axes than ", ShapeToString(shape)));
    }
    std::vector<int> axes(x.type().rank());
    for (size_t d = 0; d < axes.size(); ++d) {
      axes[d] = new_axes + static_cast<int>(d);
    }
    return tracer->builder().Add(Primitive::kBroadcastInDim,
                                 {{"shape", StaticValue::Dims(shape)},
                                  {"axes", StaticValue::Ints(axes)}},
                                 {x.value()});
  });
}

TracedValue Reshape(const TracedValue& x, const Shape& shape) {
  return OfOne(Primitive::kReshape, x, {{"shape", StaticValue::Dims(shape)}});
}

TracedValue Transpose(const TracedValue& x, const Axes& axes) {
  return OfAxes(Primitive::kTranspose, x, axes);
}

TracedValue Slice(const TracedValue& x, const std::vector<Dim>& start,
                  const std::vector<Dim>& size,
                  const std::vector<int64_t>& stride) {
  return OfOne(Primitive::kSlice, x,
               {{"start", StaticValue::Dims(start)},
                {"size", StaticValue::Dims(size)},
                {"stride", StaticValue::Ints(stride)}});
}

TracedValue Reverse(const TracedValue& x, const Axes& axes) {
  return OfAxes(Primitive::kReverse, x, axes);
}

TracedValue Pad(const TracedValue& x, const TracedValue& fill,
                const std::vector<Dim>& low, const std::vector<Dim>& high,
                const std::vector<Dim>& interior) {
  return Structured({x, fill}, [&](Tracer* tracer) -> absl::StatusOr<Value> {
    CLEAVE_ASSIGN_OR_RETURN(const Value fill_node,
                            tracer->Node(fill, x.type().dtype));
    return tracer->builder().Add(Primitive::kPad,
                                 {{"low", StaticValue::Dims(low)},
                                  {"high", StaticValue::Dims(high)},
                                  {"interior", StaticValue::Dims(interior)}},
                                 {x.value(), fill_node});
  });
}

TracedValue Concatenate(const std::vector<TracedValue>& xs, int axis) {
  return Structured(xs, [&](Tracer* tracer) -> absl::StatusOr<Value> {
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<int> normal,
        Normalise("concatenate", {axis}, xs[0].type().rank()));
    std::vector<Value> nodes;
    for (const TracedValue& x : xs) {
      if (Tracer::IsNumber(x)) {
        return absl::InvalidArgumentError("`concatenate`: a number");
      }
      nodes.push_back(x.value());
    }
    return tracer->builder().Add(Primitive::kConcatenate, {{"axis", normal[0]}},
                                 nodes);
  });
}

TracedValue MatMul(const TracedValue& a, const TracedValue& b) {
  return Structured({a, b}, [&](Tracer* tracer) -> absl::StatusOr<Value> {
    if (Tracer::IsNumber(b) || a.type().rank() < 2 ||
        a.type().rank() != b.type().rank()) {
      return absl::InvalidArgumentError(
          "`dot_general`: both operands must be of one rank, at least 2");
    }
    const int rank = a.type().rank();
    std::vector<int> batch(rank - 2);
    for (int d = 0; d < rank - 2; ++d) batch[d] = d;
    return tracer->builder().Add(
        Primitive::kDotGeneral,
        {{"batch_a", StaticValue::Ints(batch)},
         {"batch_b", StaticValue::Ints(batch)},
         {"contract_a", StaticValue::Ints(std::vector<int>{rank - 1})},
         {"contract_b", StaticValue::Ints(std::vector<int>{rank - 2})}},
        {a.value(), b.value()});
  });
}

TracedValue LinearScan(const TracedValue& a, const TracedValue& b,
                       const TracedValue& init, int axis, bool reverse) {
  return Structured({a, b, init}, [&](Tracer* tracer) -> absl::StatusOr<Value> {
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<int> normal,
                            Normalise("linear_scan", {axis}, a.type().rank()));
    const DType dtype = a.type().dtype;
    CLEAVE_ASSIGN_OR_RETURN(const Value b_node, tracer->Node(b, dtype));
    CLEAVE_ASSIGN_OR_RETURN(const Value init_node, tracer->Node(init, dtype));
    GraphBuilder& builder = tracer->builder();
    std::vector<Value> series = {a.value(), b_node};
    CLEAVE_RETURN_IF_ERROR(Broadcast(builder, &series));
    if (builder.type(series[0]).rank() != a.type().rank()) {
      return absl::InvalidArgumentError(
          "`linear_scan`: b has more axes than a");
    }
    Shape shape = builder.type(series[0]).shape;
    shape.erase(shape.begin() + normal[0]);
    CLEAVE_ASSIGN_OR_RETURN(
        const Shape init_shape,
        BroadcastShapes({shape, builder.type(init_node).shape}));
    if (init_shape != shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("`linear_scan`: init of shape ",
                       ShapeToString(builder.type(init_node).shape), " for ",
                       ShapeToString(shape)));
    }
    return builder.Add(
        Primitive::kLinearScan, {{"axis", normal[0]}, {"reverse", reverse}},
        {series[0], series[1], builder.BroadcastTo(init_node, shape)});
  });
}

Sorted Sort(const TracedValue& x, int axis, bool descending) {
  const TracedValue tuple =
      Structured({x}, [&](Tracer* tracer) -> absl::StatusOr<Value> {
        CLEAVE_ASSIGN_OR_RETURN(const std::vector<int> normal,
                                Normalise("sort", {axis}, x.type().rank()));
        return tracer->builder().Add(
            Primitive::kSort, {{"axis", normal[0]}, {"descending", descending}},
            {x.value()});
      });
  if (!tuple.valid()) return {tuple, tuple};
  return {Wrap(tuple, tuple.builder().Result(tuple.value(), 0)),
          Wrap(tuple, tuple.builder().Result(tuple.value(), 1))};
}

std::vector<TracedValue> Apply(Primitive primitive,
                               absl::Span<const TracedValue> operands,
                               const Attributes& attributes) {
  TracedValue result;
  Tracer* tracer = Tracer::Find(operands, &result);
  if (tracer == nullptr) return {result};
  std::vector<Value> nodes;
  for (const TracedValue& x : operands) {
    if (Tracer::IsNumber(x)) {
      return {tracer->Mistake(absl::InvalidArgumentError(absl::StrCat(
          "`", PrimitiveName(primitive), "`: a number has no dtype here")))};
    }
    nodes.push_back(x.value());
  }
  GraphBuilder& builder = tracer->builder();
  const absl::StatusOr<Value> node = builder.Add(primitive, attributes, nodes);
  if (!node.ok()) return {tracer->Mistake(node.status())};
  std::vector<TracedValue> results;
  for (size_t i = 0; i < builder.graph().types(*node).size(); ++i) {
    results.push_back(tracer->Wrap(builder.Result(*node, static_cast<int>(i))));
  }
  return results;
}

TracedValue Wrap(const TracedValue& like, Value node) {
  TracedValue result;
  Tracer* tracer = Tracer::Find({like}, &result);
  if (tracer == nullptr) return result;
  if (node.id >= tracer->builder().graph().size()) {
    return tracer->Mistake(absl::InvalidArgumentError(
        "a node that is no node of the trace's builder"));
  }
  return tracer->Wrap(node);
}

absl::StatusOr<Graph> Tracer::Build(const std::vector<TracedValue>& results,
                                    std::vector<std::string> names) {
  CLEAVE_RETURN_IF_ERROR(status_);
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(StatusOf(results[i]));
    if (IsNumber(results[i]) || !Owns(*this, results[i])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "result ", i, " of the traced function is no value of this trace"));
    }
    if (builder_.graph().types(results[i].value_).size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("result ", i, " of the traced function is a tuple"));
    }
    outputs.push_back({std::move(names[i]), results[i].value_});
  }
  finished_ = true;
  return std::move(builder_).Build(std::move(outputs));
}

}  // namespace trace

namespace {

// The names given, or `stem`, `stem`0, `stem`1, ..
absl::StatusOr<std::vector<std::string>> NamesFor(
    absl::string_view stem, size_t count,
    const std::vector<std::string>& given) {
  std::vector<std::string> names = given;
  if (names.empty()) {
    for (size_t i = 0; i < count; ++i) {
      names.push_back(count == 1 ? std::string(stem) : absl::StrCat(stem, i));
    }
  }
  if (names.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat(names.size(), " names are given for ", count, " values"));
  }
  absl::flat_hash_set<std::string> distinct;
  for (const std::string& name : names) {
    if (!distinct.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two values are named ", name));
    }
  }
  return names;
}

}  // namespace

absl::StatusOr<Graph> TraceFunction(std::shared_ptr<Context> context,
                                    const TracedFunction& function,
                                    const std::vector<TensorType>& types,
                                    const TraceNames& names) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::string> input_names,
                          NamesFor("x", types.size(), names.inputs));
  if (context == nullptr || function == nullptr) {
    return absl::InvalidArgumentError(context == nullptr
                                          ? "a trace needs a context"
                                          : "there is no function to trace");
  }
  for (const TensorType& type : types) {
    CLEAVE_RETURN_IF_ERROR(CheckDims(type.shape));
  }
  auto tracer = std::make_shared<trace::Tracer>(std::move(context));
  std::vector<TracedValue> inputs;
  for (size_t i = 0; i < types.size(); ++i) {
    inputs.push_back(
        tracer->Wrap(tracer->builder().Input(input_names[i], types[i])));
  }
  const std::vector<TracedValue> results = function(inputs);
  CLEAVE_ASSIGN_OR_RETURN(std::vector<std::string> output_names,
                          NamesFor("y", results.size(), names.outputs));
  return tracer->Build(results, std::move(output_names));
}

}  // namespace cleave
