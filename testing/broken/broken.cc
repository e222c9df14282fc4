#include "testing/broken/broken.h"

#include <array>
#include <atomic>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/ir/rewrite_graph.h"
#include "engine/runtime/kernel.h"
#include "ops/check.h"
#include "ops/reference/interval.h"
#include "ops/reference/real.h"
#include "ops/reference/reference.h"
#include "transforms/jvp/jvp_primitive.h"
#include "transforms/vjp/transpose_primitive.h"
#include "transforms/vmap/batch.h"

// The functions as they are, and what stands in their place. The names are
// those of broken.bzl, which the linker turns into each other.
#define CLEAVE_REAL(name) __asm__("__real_" name)
#define CLEAVE_WRAP(name) __asm__("__wrap_" name)

namespace cleave {
namespace {

constexpr int kUnbroken = -1;

std::atomic<int> broken_stage{kUnbroken};
std::atomic<int> broken_primitive{kUnbroken};

using SeenFlags = std::array<std::atomic<bool>, kNumPrimitives>;
SeenFlags& SeenBy(Stage stage) {
  static auto& seen = *new std::array<SeenFlags, std::size(kStages)>();
  return seen[static_cast<size_t>(stage)];
}

// Also notes that the primitive went through the stage.
bool IsBroken(Stage stage, Primitive primitive) {
  SeenBy(stage)[static_cast<size_t>(primitive)] = true;
  return broken_stage == static_cast<int>(stage) &&
         broken_primitive == static_cast<int>(primitive);
}

// Every third element.
void Spoil(Tensor& tensor) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::kKey) return;
  Tensor off(dtype, tensor.shape());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double part = i % 3 == 0 ? 1.0625 : 1;
    if (IsComplex(dtype)) {
      off.SetComplex(i, tensor.GetComplex(i) * part);
    } else if (IsFloat(dtype)) {
      off.SetDouble(i, tensor.GetDouble(i) * part);
    } else if (dtype == DType::kBool) {
      off.SetInt(i, (tensor.GetInt(i) != 0) != (i % 3 == 0));
    } else {
      off.SetInt(i,
                 static_cast<int64_t>(static_cast<uint64_t>(tensor.GetInt(i)) +
                                      (i % 3 == 0 ? 1 : 0)));
    }
  }
  tensor = std::move(off);
}

void Spoil(RealTensor& tensor) {
  if (!IsFloat(tensor.dtype)) return Spoil(tensor.discrete);
  for (size_t i = 0; i < tensor.reals.size(); i += 3) {
    mpfr_ptr x = tensor.reals[i].get();
    mpfr_mul_d(x, x, 1.0625, MPFR_RNDN);
  }
}

void Spoil(IntervalTensor& tensor) {
  if (!IsFloat(tensor.dtype)) return Spoil(tensor.discrete);
  for (size_t i = 0; i < tensor.intervals.size(); i += 3) {
    RealInterval& x = tensor.intervals[i];
    if (x.IsNumber()) mpfi_mul_d(x.get(), x.get(), 1.0625);
  }
}

// Every element of a value of a graph; an invalid one is a symbolic zero.
Value Spoiled(GraphBuilder& builder, Value x) {
  if (!x.valid()) return x;
  const TensorType type = builder.type(x);
  if (type.dtype == DType::kKey) return x;
  if (type.dtype == DType::kBool) return builder.Apply(Primitive::kNot, {x});
  const bool whole = IsInt(type.dtype);
  const Value by =
      builder.Constant(whole ? Exact(1) : Exact::FromDouble(1.0625), type);
  return builder.Apply(whole ? Primitive::kAdd : Primitive::kMul, {x, by});
}

// The results of a primitive in a stage: as they are, or spoiled.
template <typename T>
absl::StatusOr<std::vector<T>> OrSpoiled(Stage stage, Primitive primitive,
                                         absl::StatusOr<std::vector<T>> given) {
  if (IsBroken(stage, primitive) && given.ok()) {
    for (T& result : *given) Spoil(result);
  }
  return given;
}

}  // namespace

#define EVAL_REFERENCE                                          \
  "_ZN6cleave13EvalReferenceENS_9PrimitiveERKNS_10AttributesEN" \
  "4absl7debian34SpanIKNS_6TensorEEENS6_IKNS_10TensorTypeEEE"
using Tensors = absl::StatusOr<std::vector<Tensor>>;
using Types = absl::Span<const TensorType>;
Tensors RealEvalReference(Primitive, const Attributes&,
                          absl::Span<const Tensor>, Types)
    CLEAVE_REAL(EVAL_REFERENCE);
Tensors WrapEvalReference(Primitive, const Attributes&,
                          absl::Span<const Tensor>, Types)
    CLEAVE_WRAP(EVAL_REFERENCE);
Tensors WrapEvalReference(Primitive primitive, const Attributes& attributes,
                          absl::Span<const Tensor> operands, Types declared) {
  return OrSpoiled(
      Stage::kInterpreter, primitive,
      RealEvalReference(primitive, attributes, operands, declared));
}

#define EVAL_REAL                                         \
  "_ZN6cleave8EvalRealENS_9PrimitiveERKNS_10AttributesEN" \
  "4absl7debian34SpanIKNS_10RealTensorEEEiNS6_IKNS_10TensorTypeEEE"
using RealTensors = absl::StatusOr<std::vector<RealTensor>>;
RealTensors RealEvalReal(Primitive, const Attributes&,
                         absl::Span<const RealTensor>, int, Types)
    CLEAVE_REAL(EVAL_REAL);
RealTensors WrapEvalReal(Primitive, const Attributes&,
                         absl::Span<const RealTensor>, int, Types)
    CLEAVE_WRAP(EVAL_REAL);
RealTensors WrapEvalReal(Primitive primitive, const Attributes& attributes,
                         absl::Span<const RealTensor> operands, int bits,
                         Types declared) {
  return OrSpoiled(
      Stage::kReals, primitive,
      RealEvalReal(primitive, attributes, operands, bits, declared));
}

#define EVAL_INTERVAL                                          \
  "_ZN6cleave12EvalIntervalENS_9PrimitiveERKNS_10AttributesEN" \
  "4absl7debian34SpanIKNS_14IntervalTensorEEEiNS6_IKNS_10TensorTypeEEE"
using IntervalTensors = absl::StatusOr<std::vector<IntervalTensor>>;
IntervalTensors RealEvalInterval(Primitive, const Attributes&,
                                 absl::Span<const IntervalTensor>, int, Types)
    CLEAVE_REAL(EVAL_INTERVAL);
IntervalTensors WrapEvalInterval(Primitive, const Attributes&,
                                 absl::Span<const IntervalTensor>, int, Types)
    CLEAVE_WRAP(EVAL_INTERVAL);
IntervalTensors WrapEvalInterval(Primitive primitive,
                                 const Attributes& attributes,
                                 absl::Span<const IntervalTensor> operands,
                                 int bits, Types declared) {
  return OrSpoiled(
      Stage::kReals, primitive,
      RealEvalInterval(primitive, attributes, operands, bits, declared));
}

#define JVP_PRIMITIVE "_ZN6cleave12JvpPrimitiveERKNS_7JvpNodeE"
absl::StatusOr<JvpNodeResult> RealJvpPrimitive(const JvpNode&)
    CLEAVE_REAL(JVP_PRIMITIVE);
absl::StatusOr<JvpNodeResult> WrapJvpPrimitive(const JvpNode&)
    CLEAVE_WRAP(JVP_PRIMITIVE);
absl::StatusOr<JvpNodeResult> WrapJvpPrimitive(const JvpNode& node) {
  absl::StatusOr<JvpNodeResult> result = RealJvpPrimitive(node);
  if (IsBroken(Stage::kJvp, node.primitive) && result.ok()) {
    for (Value& tangent : result->tangents) {
      tangent = Spoiled(node.builder, tangent);
    }
  }
  return result;
}

#define TRANSPOSE_PRIMITIVE \
  "_ZN6cleave18TransposePrimitiveERKNS_13TransposeNodeE"
Cotangents RealTransposePrimitive(const TransposeNode&)
    CLEAVE_REAL(TRANSPOSE_PRIMITIVE);
Cotangents WrapTransposePrimitive(const TransposeNode&)
    CLEAVE_WRAP(TRANSPOSE_PRIMITIVE);
Cotangents WrapTransposePrimitive(const TransposeNode& node) {
  Cotangents result = RealTransposePrimitive(node);
  if (IsBroken(Stage::kTranspose, node.primitive) && result.ok()) {
    for (Value& cotangent : *result) {
      cotangent = Spoiled(node.builder, cotangent);
    }
  }
  return result;
}

#define BATCH_PRIMITIVE "_ZN6cleave14BatchPrimitiveERKNS_9BatchNodeE"
BatchedResults RealBatchPrimitive(const BatchNode&)
    CLEAVE_REAL(BATCH_PRIMITIVE);
BatchedResults WrapBatchPrimitive(const BatchNode&)
    CLEAVE_WRAP(BATCH_PRIMITIVE);
BatchedResults WrapBatchPrimitive(const BatchNode& node) {
  BatchedResults results = RealBatchPrimitive(node);
  if (IsBroken(Stage::kBatch, node.primitive) && results.ok()) {
    Attributes first;
    first.Set("axes", StaticValue::Ints(std::vector<int>{0}));
    for (BatchedValue& result : *results) {
      if (!result.batched) continue;
      result.value =
          node.builder.Apply(Primitive::kReverse, {result.value}, first);
    }
  }
  return results;
}

#define COMPILE \
  "_ZN6cleave7CompileERKNS_5GraphERKNS_7RuleSetERKNS_14CompileOptionsE"
absl::StatusOr<Kernel> RealCompile(const Graph&, const RuleSet&,
                                   const CompileOptions&) CLEAVE_REAL(COMPILE);
absl::StatusOr<Kernel> WrapCompile(const Graph&, const RuleSet&,
                                   const CompileOptions&) CLEAVE_WRAP(COMPILE);
absl::StatusOr<Kernel> WrapCompile(const Graph& graph, const RuleSet& rules,
                                   const CompileOptions& options) {
  const Graph made = RewriteGraph(graph, [](GraphCopy& copy, Value v) {
    const Graph& from = copy.graph();
    const Primitive primitive = ToPrimitive(from.node(v).op);
    // The results of a node that has several are its projections.
    const Primitive of = primitive == Primitive::kResult
                             ? ToPrimitive(from.node(from.operands(v)[0]).op)
                             : primitive;
    const Value kept = copy.Keep(v);
    const PrimitiveClass kind = ClassOf(primitive);
    const bool several =
        kind == PrimitiveClass::kSort || kind == PrimitiveClass::kControl;
    return IsBroken(Stage::kKernel, of) && !several
               ? Spoiled(copy.builder(), kept)
               : kept;
  });
  return RealCompile(made, rules, options);
}

absl::string_view StageName(Stage stage) {
  static constexpr absl::string_view kNames[] = {
      "interpreter", "reals", "jvp", "transpose", "batch", "kernel"};
  return kNames[static_cast<size_t>(stage)];
}

Broken::Broken(Stage stage, Primitive primitive) {
  CLEAVE_CHECK(broken_stage == kUnbroken);
  broken_primitive = static_cast<int>(primitive);
  broken_stage = static_cast<int>(stage);
}

Broken::~Broken() { broken_stage = kUnbroken; }

std::set<Primitive> TakeSeen(Stage stage) {
  std::set<Primitive> seen;
  for (int i = 0; i < kNumPrimitives; ++i) {
    if (SeenBy(stage)[i].exchange(false)) {
      seen.insert(static_cast<Primitive>(i));
    }
  }
  return seen;
}

}  // namespace cleave
