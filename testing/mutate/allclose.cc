#include "testing/mutate/allclose.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/rewrite_rule.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/sampled_call.h"
#include "testing/check/samples/signature_sampler.h"
#include "testing/check/samples/value_sampler.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

// Signatures that are drawn for the samples.
constexpr int kMaxTrials = 200;
constexpr int64_t kBatch = 3;
// The vectors at which rewrites and derivatives of primitives are sampled.
constexpr int64_t kVector = 16;

Tensor ToF64(const Tensor& tensor) {
  if (!IsFloat(tensor.dtype())) return tensor;
  Tensor wide(DType::kF64, tensor.shape());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    wide.SetDouble(i, tensor.GetDouble(i));
  }
  return wide;
}

std::vector<Tensor> ToF64(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> wide;
  for (const Tensor& tensor : tensors) wide.push_back(ToF64(tensor));
  return wide;
}

SampledCall ToF64(SampledCall call) {
  for (SampledInput& input : call.inputs) {
    for (std::optional<TensorType>& type : input.types) {
      if (type && type->dtype == DType::kF32) type->dtype = DType::kF64;
    }
  }
  for (auto& [name, dtype] : call.dtypes) {
    if (dtype == DType::kF32) dtype = DType::kF64;
  }
  Attributes attributes;
  for (const auto& [name, value] : call.attributes.values()) {
    const bool narrow = value.kind() == StaticValue::Kind::kDType &&
                        value.AsDType() == DType::kF32;
    attributes.Set(name, narrow ? StaticValue(DType::kF64) : value);
  }
  call.attributes = std::move(attributes);
  return call;
}

bool HasKey(const SampledCall& call) {
  const std::vector<TensorType> types = call.OperandTypes();
  return std::any_of(types.begin(), types.end(), [](const TensorType& type) {
    return type.dtype == DType::kKey;
  });
}

// The part of a rule that is compared, as a graph of primitives.
absl::StatusOr<Graph> PartOf(const Graph& call, MutatedPart part,
                             const RuleSet& rules) {
  std::vector<bool> active;
  for (const NamedValue& input : call.inputs()) {
    active.push_back(IsFloat(call.type(input.value).dtype));
  }
  switch (part) {
    case MutatedPart::kJvp: {
      CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp, Jvp(call, active, rules));
      return Expand(jvp.graph, rules);
    }
    case MutatedPart::kVjp: {
      CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp, Vjp(call, active, rules));
      return Expand(vjp.graph, rules);
    }
    case MutatedPart::kVmap: {
      const std::vector<int> in_axes(call.inputs().size(), 0);
      const std::vector<int> out_axes(call.outputs().size(), 0);
      CLEAVE_ASSIGN_OR_RETURN(
          const Graph batch, Vmap(call, in_axes, Dim(kBatch), out_axes, rules));
      return Expand(batch, rules);
    }
    default:
      return Expand(call, rules);
  }
}

// Graphs whose values are to agree: that of the mutant, the rule as it was, and
// the truth, which may take f64.
struct Compared {
  Graph mutant;
  Graph original;
  Graph truth;
};

// Whether the mutant's values differ at `inputs`, where those of the rule as it
// was do not. Nullopt: the sample does not count.
std::optional<bool> Differ(const Compared& graphs,
                           const std::vector<Tensor>& inputs, bool wide) {
  const auto truth = Interpret(graphs.truth, wide ? ToF64(inputs) : inputs);
  const auto original = Interpret(graphs.original, inputs);
  if (!truth.ok() || !original.ok()) return std::nullopt;
  const auto agree = [&](const std::vector<Tensor>& got) {
    if (got.size() != truth->size()) return false;
    for (size_t r = 0; r < got.size(); ++r) {
      if (!Allclose(got[r], (*truth)[r])) return false;
    }
    return true;
  };
  if (!agree(*original)) return std::nullopt;
  const auto mutant = Interpret(graphs.mutant, inputs);
  return !mutant.ok() || !agree(*mutant);
}

class OpSamples {
 public:
  OpSamples(const RuleSet& mutant, const RuleSet& original, const Item& item,
            MutatedPart part, uint64_t seed)
      : mutant_(mutant),
        original_(original),
        item_(item),
        part_(part),
        signatures_(item, seed),
        values_(seed + 1) {}

  bool Kill() {
    int samples = 0;
    for (int trial = 0; trial < kMaxTrials && samples < kAllcloseSamples;
         ++trial) {
      const std::optional<bool> differ = Sample();
      if (!differ) continue;
      if (*differ) return true;
      ++samples;
    }
    return false;
  }

 private:
  std::optional<bool> Sample() {
    DrawOptions options;
    options.dtype = DType::kF32;
    const absl::StatusOr<SampledCall> call = signatures_.Draw(options);
    if (!call.ok()) return std::nullopt;
    const absl::StatusOr<Graph> original = MakeCallGraph(original_, *call);
    if (!original.ok() || HasNegativeExtent(*original)) return std::nullopt;
    // A key draws other numbers in another dtype, and some ops take one alone.
    const bool wide =
        !HasKey(*call) && MakeCallGraph(original_, ToF64(*call)).ok();
    Compared graphs;
    const auto set = [](Graph& graph, absl::StatusOr<Graph> made) {
      if (made.ok()) graph = *std::move(made);
      return made.ok();
    };
    if (!set(graphs.original, PartOf(*original, part_, original_)) ||
        !set(graphs.truth, Truth(wide ? ToF64(*call) : *call))) {
      return std::nullopt;
    }
    const absl::StatusOr<Graph> mutant = MakeCallGraph(mutant_, *call);
    if (!mutant.ok() || !set(graphs.mutant, PartOf(*mutant, part_, mutant_))) {
      return true;
    }
    return Differ(graphs, Inputs(*call, graphs.original), wide);
  }

  absl::StatusOr<Graph> Truth(const SampledCall& call) {
    CLEAVE_ASSIGN_OR_RETURN(const CallGraphs graphs,
                            MakeCallGraphs(original_, call));
    return PartOf(graphs.spec ? *graphs.spec : graphs.call, part_, original_);
  }

  // Normal numbers for the operands, and behind them for what the transform
  // takes.
  std::vector<Tensor> Inputs(const SampledCall& call, const Graph& graph) {
    std::vector<Tensor> inputs = values_.Tensors(call, Pattern::kNormal);
    if (part_ == MutatedPart::kVmap) {
      std::vector<std::vector<Tensor>> examples = {inputs};
      while (examples.size() < kBatch) {
        examples.push_back(values_.Tensors(call, Pattern::kNormal));
      }
      for (size_t k = 0; k < inputs.size(); ++k) {
        std::vector<Tensor> slices;
        for (const auto& example : examples) slices.push_back(example[k]);
        inputs[k] = Stack(examples[0][k], slices);
      }
    }
    for (size_t i = inputs.size(); i < graph.inputs().size(); ++i) {
      inputs.push_back(values_.Tangent(graph.type(graph.inputs()[i].value)));
    }
    return inputs;
  }

  const RuleSet& mutant_;
  const RuleSet& original_;
  const Item& item_;
  const MutatedPart part_;
  SignatureSampler signatures_;
  ValueSampler values_;
};

// A vector for each of the graph's inputs.
std::vector<Tensor> Vectors(const Graph& graph, ValueSampler& values) {
  SampledCall call;
  for (const NamedValue& input : graph.inputs()) {
    call.inputs.push_back({input.name, false, {graph.type(input.value)}});
  }
  return values.Tensors(call, Pattern::kNormal);
}

// The sides of the rewrite at its first choice of dtypes, f32 where it may be.
bool RewriteKills(const RuleSet& mutant, const Item& item, uint64_t seed) {
  const Rewrite* rewrite = mutant.rewrites().Find(item.name);
  if (rewrite == nullptr) return true;
  const auto choices = TypingChoices(*rewrite, *mutant.context());
  if (choices.empty()) return true;
  const auto floats = [](const std::vector<DType>& choice) {
    return std::count(choice.begin(), choice.end(), DType::kF32);
  };
  const std::vector<DType>& chosen = *std::max_element(
      choices.begin(), choices.end(),
      [&](const auto& a, const auto& b) { return floats(a) < floats(b); });
  const auto side = [&](const RewriteSide& nodes) {
    return GraphOfSide(*rewrite, nodes, chosen, {Dim(kVector)},
                       mutant.context());
  };
  Compared graphs;
  graphs.truth = graphs.original = side(rewrite->left);
  graphs.mutant = side(rewrite->right);
  ValueSampler values(seed);
  for (int i = 0; i < kAllcloseSamples; ++i) {
    const auto differ =
        Differ(graphs, Vectors(graphs.truth, values), /*wide=*/false);
    if (differ.value_or(false)) return true;
  }
  return false;
}

absl::StatusOr<Graph> DerivativeOf(const RuleSet& rules, const Item& item,
                                   DType dtype) {
  const auto primitive = FindPrimitive(item.name);
  if (!primitive) return absl::NotFoundError(item.name);
  GraphBuilder builder(rules.context());
  Signature signature;
  signature.op = ToOpId(*primitive);
  std::vector<Value> operands;
  std::vector<bool> active;
  for (size_t k = 0; k < item.parameters.size(); ++k) {
    const bool predicate = *primitive == Primitive::kSelect && k == 0;
    const TensorType type{predicate ? DType::kBool : dtype, {Dim(kVector)}};
    signature.operands.push_back(rules.context()->Intern(type));
    operands.push_back(builder.Input(item.parameters[k], type));
    active.push_back(!predicate);
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value y, builder.Add(*primitive, {}, operands));
  CLEAVE_ASSIGN_OR_RETURN(const Graph* tangent,
                          rules.PrimitiveJvp(signature, active));
  std::vector<Value> arguments = operands;
  arguments.push_back(y);
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!active[k]) continue;
    arguments.push_back(builder.Input(item.parameters[k] + ".tangent",
                                      {dtype, {Dim(kVector)}}));
  }
  const Value result = builder.Inline(*tangent, arguments).front();
  CLEAVE_ASSIGN_OR_RETURN(const Graph graph,
                          std::move(builder).Build({{"y.tangent", result}}));
  return Expand(graph, rules);
}

bool DerivativeKills(const RuleSet& mutant, const RuleSet& original,
                     const Item& item, uint64_t seed) {
  const auto changed = DerivativeOf(mutant, item, DType::kF32);
  const auto narrow = DerivativeOf(original, item, DType::kF32);
  const auto truth = DerivativeOf(original, item, DType::kF64);
  if (!narrow.ok() || !truth.ok()) return false;
  if (!changed.ok()) return true;
  ValueSampler values(seed);
  for (int i = 0; i < kAllcloseSamples; ++i) {
    const auto differ = Differ({*changed, *narrow, *truth},
                               Vectors(*narrow, values), /*wide=*/true);
    if (differ.value_or(false)) return true;
  }
  return false;
}

}  // namespace

bool Allclose(const Tensor& got, const Tensor& want) {
  if (got.shape() != want.shape() ||
      KindOf(got.dtype()) != KindOf(want.dtype())) {
    return false;
  }
  if (!IsFloat(got.dtype())) return SameValue(got, want);
  for (int64_t i = 0; i < got.size(); ++i) {
    const double a = got.GetDouble(i);
    const double b = want.GetDouble(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    // The f32 nearest to an f64 that is beyond f32 is an infinity.
    if (std::isinf(a) && static_cast<double>(static_cast<float>(b)) == a) {
      continue;
    }
    if (!(std::abs(a - b) <=
          kAllcloseAbsolute + kAllcloseRelative * std::abs(b))) {
      return false;
    }
  }
  return true;
}

bool AllcloseKills(const RuleSet& mutant, const RuleSet& original,
                   const Item& item, MutatedPart part, uint64_t seed) {
  if (item.kind == ItemKind::kRewrite) return RewriteKills(mutant, item, seed);
  if (item.kind == ItemKind::kJvp) {
    return DerivativeKills(mutant, original, item, seed);
  }
  return OpSamples(mutant, original, item, part, seed).Kill();
}

}  // namespace cleave
