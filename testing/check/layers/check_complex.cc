#include "testing/check/layers/check_complex.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/status_macros.h"
#include "testing/check/layers/complex_points.h"
#include "testing/check/samples/shrink.h"
#include "testing/check/samples/signature_sampler.h"
#include "testing/check/samples/value_sampler.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"

namespace cleave {
namespace {

using Complex = std::complex<double>;

constexpr int kComplexCalls = 10;
constexpr int kComplexTrials = 60;
constexpr int kDraws = 4;  // of the values of a call
// Results agree to this part of the largest one, tangents of differences too.
constexpr double kTolerance = 1e-8;
// The two sides of the adjoint law, which nothing but rounding tells apart.
constexpr double kAdjointTolerance = 1e-11;

// A rule that asks for dtypes is drawn with those, too.
bool TakesComplex(const SampledCall& call) {
  const std::vector<TensorType> types = call.OperandTypes();
  return std::any_of(types.begin(), types.end(), [](const TensorType& type) {
    return IsComplex(type.dtype);
  });
}

int64_t ElementsOf(const SampledCall& call) {
  int64_t elements = 0;
  for (const TensorType& type : call.OperandTypes()) {
    int64_t size = 1;
    for (const Dim& extent : type.shape) size *= extent.Value().value_or(0);
    elements += size;
  }
  return elements;
}

// The inputs of a call: complex numbers of moderate size, and what the sampler
// has for the others.
std::vector<Tensor> DrawInputs(const SampledCall& call, ValueSampler& sampler) {
  std::vector<Tensor> inputs = sampler.Tensors(call, Pattern::kNormal);
  for (Tensor& input : inputs) {
    if (IsComplex(input.dtype())) {
      input = ComplexTensor(input.shape(), sampler.random());
    }
  }
  return inputs;
}

// A direction of an input, or a weight of a result.
Tensor DrawLike(const Tensor& tensor, ValueSampler& sampler) {
  return IsComplex(tensor.dtype())
             ? ComplexTensor(tensor.shape(), sampler.random())
             : sampler.Tangent(tensor.type());
}

bool IsInexact(DType dtype) { return InClass(dtype, DTypeClass::kInexact); }

// The largest finite magnitude, and 1.
double LargestOf(const Tensor& tensor) {
  double largest = 1;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double size = std::abs(tensor.GetComplex(i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  return largest;
}

bool IsFinite(Complex z) {
  return std::isfinite(z.real()) && std::isfinite(z.imag());
}

// An infinite complex number has no sign, and NaN in a part is NaN.
bool Agree(Complex got, Complex want, double tolerance) {
  if (IsFinite(got) != IsFinite(want)) return false;
  return !IsFinite(want) || std::abs(got - want) <= tolerance;
}

struct Mismatch {
  size_t result = 0;
  int64_t element = 0;
  Complex expected;
  Complex got;
};

std::optional<Mismatch> FindMismatch(const std::vector<Tensor>& got,
                                     const std::vector<Tensor>& want) {
  for (size_t r = 0; r < want.size(); ++r) {
    const double tolerance = kTolerance * LargestOf(want[r]);
    for (int64_t i = 0; i < want[r].size(); ++i) {
      const Complex x = got[r].GetComplex(i);
      const Complex y = want[r].GetComplex(i);
      if (!Agree(x, y, tolerance)) return Mismatch{r, i, y, x};
    }
  }
  return std::nullopt;
}

Counterexample Explain(const OpContext& context, const PreparedCall& prepared,
                       const std::vector<Tensor>& inputs, std::string what,
                       Complex expected, Complex got, std::string place) {
  Counterexample example;
  example.call = prepared.call.ToString();
  example.inputs = DescribeInputs(prepared.call.OperandNames(), inputs);
  example.what = std::move(what);
  example.expected = ComplexText(expected);
  example.got = ComplexText(got);
  example.ulp = HUGE_VAL;
  example.place = std::move(place);
  example.replay = context.Replay();
  return example;
}

int64_t SizeOf(const std::vector<Tensor>& tensors) {
  int64_t size = 0;
  for (const Tensor& tensor : tensors) size += tensor.size();
  return size;
}

// The derivatives of one call by one operand, expanded: results and tangents;
// results and the operand's cotangent.
struct Derivatives {
  Graph jvp;
  Graph vjp;
};
absl::StatusOr<Derivatives> Differentiate(const Graph& call, size_t operand,
                                          const RuleSet& rules) {
  std::vector<bool> active(call.inputs().size());
  active[operand] = true;
  Derivatives derivatives;
  CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp, Jvp(call, active, rules));
  CLEAVE_ASSIGN_OR_RETURN(derivatives.jvp, Expand(jvp.graph, rules));
  CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp, Vjp(call, active, rules));
  CLEAVE_ASSIGN_OR_RETURN(derivatives.vjp, Expand(vjp.graph, rules));
  return derivatives;
}

// The inexact results of a graph of primal results, in order.
std::vector<size_t> InexactResults(const Graph& graph) {
  std::vector<size_t> results;
  for (size_t r = 0; r < graph.outputs().size(); ++r) {
    if (IsInexact(graph.type(graph.outputs()[r].value).dtype)) {
      results.push_back(r);
    }
  }
  return results;
}

// Re <a, b>, the inner product of the parts; NaN where one is not finite.
double InnerProduct(const Tensor& a, const Tensor& b, double* size) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double term = (std::conj(a.GetComplex(i)) * b.GetComplex(i)).real();
    sum += term;
    *size += std::abs(term);
  }
  return sum;
}

// Checks the derivatives of one call by one operand at one point.
class PointCheck {
 public:
  PointCheck(const OpContext& context, const PreparedCall& prepared,
             size_t operand, const Derivatives& derivatives)
      : context_(context),
        prepared_(prepared),
        operand_(operand),
        derivatives_(derivatives) {}

  // False once the rule is refuted.
  absl::StatusOr<bool> Check(const std::vector<Tensor>& inputs,
                             ValueSampler& sampler, Verdict& verdict) const {
    const Tensor direction = DrawLike(inputs[operand_], sampler);
    std::vector<Tensor> arguments = inputs;
    arguments.push_back(direction);
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> pushed,
                            Interpret(derivatives_.jvp, arguments));
    const std::vector<size_t> results = InexactResults(prepared_.graphs.call);
    const std::vector<Tensor> tangents(
        pushed.end() - static_cast<int64_t>(results.size()), pushed.end());
    CLEAVE_ASSIGN_OR_RETURN(
        const bool agrees,
        CheckTangents(inputs, direction, results, tangents, verdict));
    if (!agrees) return false;
    return CheckAdjoint(inputs, direction, tangents, sampler, verdict);
  }

 private:
  // Differences count where the coarse and the fine ones are the same.
  absl::StatusOr<bool> CheckTangents(const std::vector<Tensor>& inputs,
                                     const Tensor& direction,
                                     const std::vector<size_t>& results,
                                     const std::vector<Tensor>& tangents,
                                     Verdict& verdict) const {
    constexpr double kStep = 0x1p-12;
    std::vector<std::vector<Tensor>> values(results.size());  // by result
    for (const double steps : kSlopePoints) {
      std::vector<Tensor> moved = inputs;
      moved[operand_] = MovedAlong(inputs[operand_], direction, steps * kStep);
      CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results_there,
                              Interpret(prepared_.graphs.Meaning(), moved));
      for (size_t k = 0; k < results.size(); ++k) {
        values[k].push_back(results_there[results[k]]);
      }
    }
    int64_t compared = 0;
    for (size_t k = 0; k < results.size(); ++k) {
      const Tensor& tangent = tangents[k];
      const double tolerance = kTolerance * LargestOf(values[k][0]) *
                               std::max(1.0, LargestOf(tangent));
      for (int64_t i = 0; i < tangent.size(); ++i) {
        const auto [want, fine] = SlopeAt(values[k], i, kStep);
        if (!IsFinite(want) || !(std::abs(fine - want) <= tolerance)) continue;
        ++compared;
        const Complex got = tangent.GetComplex(i);
        // A NaN is none of the two.
        if (std::abs(got - want) <= tolerance) continue;
        const auto& name = prepared_.graphs.body.outputs()[results[k]].name;
        Refute(inputs,
               absl::StrCat("derivative of ", name, "[", i, "] by ",
                            OperandName(), " along ", direction.ToString()),
               want, got, derivatives_.jvp, verdict);
        return false;
      }
    }
    if (compared > 0) Merge(verdict, Verdict::Agrees(compared));
    return true;
  }

  absl::StatusOr<bool> CheckAdjoint(const std::vector<Tensor>& inputs,
                                    const Tensor& direction,
                                    const std::vector<Tensor>& tangents,
                                    ValueSampler& sampler,
                                    Verdict& verdict) const {
    std::vector<Tensor> arguments = inputs;
    double expected = 0;
    double size = 0;
    for (const Tensor& tangent : tangents) {
      Tensor weight = DrawLike(tangent, sampler);
      expected += InnerProduct(tangent, weight, &size);
      arguments.push_back(std::move(weight));
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> pulled,
                            Interpret(derivatives_.vjp, arguments));
    const double got = InnerProduct(direction, pulled.back(), &size);
    if (!std::isfinite(expected)) return true;
    if (std::abs(got - expected) <= kAdjointTolerance * std::max(1.0, size)) {
      Merge(verdict, Verdict::Agrees(1));
      return true;
    }
    Refute(inputs,
           absl::StrCat("Re <Jv, w> = Re <v, J^T w> by ", OperandName()),
           expected, got, derivatives_.vjp, verdict);
    return false;
  }

  std::string OperandName() const {
    return prepared_.call.OperandNames()[operand_];
  }

  void Refute(const std::vector<Tensor>& inputs, std::string what,
              Complex expected, Complex got, const Graph& graph,
              Verdict& verdict) const {
    const int last = static_cast<int>(graph.outputs().size()) - 1;
    Merge(verdict, Verdict::Disagrees(Explain(context_, prepared_, inputs,
                                              std::move(what), expected, got,
                                              context_.Place(graph, last))));
  }

  const OpContext& context_;
  const PreparedCall& prepared_;
  const size_t operand_;
  const Derivatives& derivatives_;
};

}  // namespace

std::vector<DType> ComplexDTypes(const Item& item) {
  if (item.where.empty()) return {};
  const auto dtype_class = ParseDTypeClass(item.where[0].dtype_class);
  std::vector<DType> dtypes;
  for (const DType dtype : {DType::kC64, DType::kC128}) {
    if (dtype_class.ok() && InClass(dtype, *dtype_class)) {
      dtypes.push_back(dtype);
    }
  }
  return dtypes;
}

bool TakesComplexAlone(const Item& item) {
  return !ComplexDTypes(item).empty() &&
         SignatureSampler(item, 1).DTypes().empty();
}

std::vector<PreparedCall> PrepareComplexCalls(const OpContext& context) {
  std::vector<PreparedCall> calls;
  if (ComplexDTypes(*context.item).empty() || !context.Wants(DType::kC128) ||
      !context.item->domains.empty()) {
    return calls;
  }
  SignatureSampler sampler(*context.item, context.seed + 21);
  sampler.FixSizes(context.sizes);
  for (int trial = 0; trial < kComplexTrials && !context.Expired() &&
                      static_cast<int>(calls.size()) < kComplexCalls;
       ++trial) {
    DrawOptions options;
    options.dtype = DType::kC128;
    options.nonempty = true;
    options.vary_attributes = trial > 0;
    const absl::StatusOr<SampledCall> call = sampler.Draw(options);
    if (call.status().code() == absl::StatusCode::kUnimplemented) break;
    if (!call.ok() || !TakesComplex(*call)) continue;
    // Calls that the op refuses, and calls that do not type, are L1's.
    absl::StatusOr<CallGraphs> graphs = MakeCallGraphs(context.rules(), *call);
    if (!graphs.ok() || HasNegativeExtent(graphs->call)) continue;
    calls.push_back({*call, *std::move(graphs)});
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const PreparedCall& a, const PreparedCall& b) {
                     return ElementsOf(a.call) < ElementsOf(b.call);
                   });
  return calls;
}

Verdict CheckComplexValues(const OpContext& context,
                           const std::vector<PreparedCall>& calls) {
  Verdict verdict = Verdict::NotChecked("no complex calls with a spec");
  ValueSampler sampler(context.seed + 22);
  for (const PreparedCall& prepared : calls) {
    if (!prepared.graphs.spec || prepared.graphs.same) continue;
    for (int draw = 0; draw < kDraws && !context.Expired(); ++draw) {
      const std::vector<Tensor> inputs = DrawInputs(prepared.call, sampler);
      const auto want = Interpret(*prepared.graphs.spec, inputs);
      const auto got = Interpret(prepared.graphs.body, inputs);
      if (IsBadSample(want.status()) || IsBadSample(got.status())) continue;
      if (!want.ok() || !got.ok()) {
        Merge(verdict, Verdict::Inconclusive(absl::StrCat(
                           prepared.call.ToString(), ": ",
                           (want.ok() ? got : want).status().message())));
        break;
      }
      if (const auto wrong = FindMismatch(*got, *want)) {
        const int result = static_cast<int>(wrong->result);
        const Graph& body = prepared.graphs.body;
        Merge(verdict,
              Verdict::Disagrees(Explain(
                  context, prepared, inputs,
                  absl::StrCat("value of `", body.outputs()[result].name, "`[",
                               wrong->element, "]"),
                  wrong->expected, wrong->got, context.Place(body, result))));
        return verdict;
      }
      Merge(verdict, Verdict::Agrees(SizeOf(*want)));
    }
  }
  return verdict;
}

Verdict CheckComplexDerivatives(const OpContext& context,
                                const std::vector<PreparedCall>& calls,
                                const RuleSet& rules) {
  Verdict verdict = Verdict::NotChecked("no complex calls");
  ValueSampler sampler(context.seed + 23);
  for (const PreparedCall& prepared : calls) {
    const std::vector<TensorType> types = prepared.call.OperandTypes();
    for (size_t k = 0; k < types.size(); ++k) {
      if (!IsInexact(types[k].dtype) || context.Expired()) continue;
      if (InexactResults(prepared.graphs.call).empty()) continue;
      const auto derivatives = Differentiate(prepared.graphs.call, k, rules);
      if (!derivatives.ok()) {
        Merge(verdict, NotTransformed(context, prepared.call, "derivative",
                                      derivatives.status()));
        if (verdict.kind == VerdictKind::kDisagrees) return verdict;
        continue;
      }
      const PointCheck point(context, prepared, k, *derivatives);
      for (int draw = 0; draw < kDraws; ++draw) {
        const std::vector<Tensor> inputs = DrawInputs(prepared.call, sampler);
        const auto agrees = point.Check(inputs, sampler, verdict);
        if (IsBadSample(agrees.status())) continue;
        if (!agrees.ok()) {
          Merge(verdict, Verdict::Inconclusive(
                             absl::StrCat(prepared.call.ToString(), ": ",
                                          agrees.status().message())));
          break;
        }
        if (!*agrees) return verdict;
      }
    }
  }
  return verdict;
}

}  // namespace cleave
