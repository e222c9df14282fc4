#include "testing/debug/find_cause.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "ops/budget.h"
#include "ops/primitive.h"
#include "ops/reference/real.h"
#include "ops/reference/reference.h"
#include "ops/status_macros.h"
#include "ops/tensor.h"

namespace cleave {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A node multiplies errors where its own is so many times that of the operand;
// an operand that is right may be half a unit off all the same.
constexpr double kJump = 4;
constexpr double kRounding = 0.5;
// Condition numbers come from x (1 + 2^-kStepBits).
constexpr int kStepBits = 60;

Primitive PrimitiveOf(const Graph& graph, Value v) {
  return ToPrimitive(graph.node(v).op);
}

// A `result` stands for its operand's: the node that computes, and which one.
struct Computing {
  Value node;
  int result = 0;
};
Computing ComputingOf(const Graph& graph, Value v) {
  if (PrimitiveOf(graph, v) != Primitive::kResult) return {v, 0};
  return {graph.operands(v)[0],
          static_cast<int>(graph.attributes(v).GetInt("index"))};
}

// Sums, whose terms may cancel.
bool IsSum(Primitive primitive) {
  switch (primitive) {
    case Primitive::kAdd:
    case Primitive::kSub:
    case Primitive::kFma:
    case Primitive::kReduceSum:
    case Primitive::kDotGeneral:
    case Primitive::kConv:
    case Primitive::kLinearScan:
    case Primitive::kScatter:
    case Primitive::kWindowsAdd:
      return true;
    default:
      return false;
  }
}

bool Jumps(Primitive primitive) {
  switch (primitive) {
    case Primitive::kFloor:
    case Primitive::kCeil:
    case Primitive::kRoundNearestEven:
    case Primitive::kSign:
    case Primitive::kRem:
    case Primitive::kSelect:
    case Primitive::kCopysign:
    case Primitive::kNextafter:
    case Primitive::kBitcastConvert:
    case Primitive::kSort:
      return true;
    default:
      return false;
  }
}

// Each element of its result is one of its operands'.
bool OnlyMoves(Primitive primitive) {
  return ClassOf(primitive) == PrimitiveClass::kMovement ||
         primitive == Primitive::kWindows || primitive == Primitive::kGather;
}

int64_t CountOf(const RealTensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1},
                         std::multiplies<int64_t>());
}

// How much an element of a node's exact result changes.
double ChangeAt(const RealTensor& changed, const RealTensor& exact,
                int64_t element) {
  if (changed.shape != exact.shape) return kInfinity;
  if (element >= CountOf(exact)) return 0;
  if (IsFloat(exact.dtype)) {
    return RelativeError(changed.reals[element], exact.reals[element],
                         exact.dtype);
  }
  return ErrorOf(exact, changed.discrete, element).relative;
}

// The nodes whose elements depend on the operands' elements at the same place
// alone: an element of one is evaluated alone.
bool IsPointwise(const Graph& graph, Value v) {
  return ClassOf(PrimitiveOf(graph, v)) == PrimitiveClass::kPointwise;
}

RealTensor ScalarOf(const RealTensor& tensor, int64_t element) {
  RealTensor scalar;
  scalar.dtype = tensor.dtype;
  if (IsFloat(tensor.dtype)) {
    scalar.reals = {tensor.reals[element]};
  } else {
    scalar.discrete = ElementOf(tensor.discrete, element);
  }
  return scalar;
}

class Search {
 public:
  Search(const Graph& graph, const NodeValues& values, double ulp)
      : graph_(graph), values_(values), ulp_(ulp) {}

  absl::StatusOr<Cause> Run(DebugPlace place) {
    Cause cause;
    while (true) {
      CLEAVE_RETURN_IF_ERROR(PollBudget());
      CLEAVE_ASSIGN_OR_RETURN(CauseStep step, StepAt(place));
      cause.path.push_back(step);
      if (!step.operand) break;
      if (step.operand_error.relative <= ulp_) break;
      place = *step.operand;
    }
    CLEAVE_RETURN_IF_ERROR(Name(cause));
    return cause;
  }

 private:
  const NodeValue& At(Value v) const { return values_.nodes[v.id]; }

  // Where nothing is known of the error, as of a node whose exact value has
  // another shape, it is infinite; 0 where more bits would not tell it.
  ElementError ErrorAt(DebugPlace place) const {
    const NodeValue& node = At(place.node);
    const auto error = ErrorOf(node, 0, place.element);
    if (error) return *error;
    if (node.exact[0].shape == node.computed[0].shape()) return {};
    return ElementError::Infinite();
  }

  absl::StatusOr<RealTensor> Evaluate(
      Computing at, const std::vector<RealTensor>& operands) const {
    if (At(at.node).no_exact_value.empty()) {
      CLEAVE_ASSIGN_OR_RETURN(std::vector<RealTensor> results,
                              EvaluateNode(graph_, at.node, values_.exact_dims,
                                           operands, values_.bits));
      return std::move(results[at.result]);
    }
    std::vector<Tensor> rounded;
    for (const RealTensor& operand : operands) {
      rounded.push_back(Rounded(operand));
    }
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<Tensor> results,
        EvaluateNode(graph_, at.node, values_.exact_dims, rounded));
    return RealTensor::FromTensor(results[at.result], values_.bits);
  }

  absl::StatusOr<double> PointwiseChange(Computing at, int64_t element,
                                         Value operand) const {
    std::vector<RealTensor> operands;
    for (const Value node : graph_.operands(at.node)) {
      operands.push_back(
          node == operand
              ? RealTensor::FromTensor(ElementOf(At(node).computed[0], element),
                                       values_.bits)
              : ScalarOf(At(node).exact[0], element));
    }
    const auto changed = Evaluate(at, operands);
    if (!changed.ok()) {
      if (EndsCall(changed.status())) return changed.status();
      return kInfinity;
    }
    return ChangeAt(*changed, ScalarOf(At(at.node).exact[0], element), 0);
  }

  // The change of the node's exact value at an element where the operand, or
  // those elements of it, are as they were computed.
  absl::StatusOr<double> Change(Computing at, int64_t element, Value operand,
                                const std::vector<int64_t>* elements) const {
    const auto nodes = graph_.operands(at.node);
    if (IsPointwise(graph_, at.node) && !HasOtherShape(at.node)) {
      return PointwiseChange(at, element, operand);
    }
    std::vector<RealTensor> operands = ExactOperands(graph_, at.node, values_);
    const RealTensor computed =
        RealTensor::FromTensor(At(operand).computed[0], values_.bits);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i] != operand) continue;
      if (elements == nullptr) {
        operands[i] = computed;
        continue;
      }
      for (const int64_t k : *elements) {
        if (IsFloat(computed.dtype)) {
          operands[i].reals[k] = computed.reals[k];
        } else {
          CopyElement(computed.discrete, k, operands[i].discrete);
        }
      }
    }
    const auto changed = Evaluate(at, operands);
    if (!changed.ok()) {
      if (EndsCall(changed.status())) return changed.status();
      return kInfinity;  // it cannot be evaluated there
    }
    return ChangeAt(*changed, At(at.node).exact[at.result], element);
  }

  static void CopyElement(const Tensor& from, int64_t k, Tensor& to) {
    // Copies share their data.
    Tensor own(to.dtype(), to.shape());
    std::copy_n(to.data(), to.byte_size(), own.mutable_data());
    const int bytes = ByteSize(to.dtype());
    std::copy_n(from.data() + k * bytes, bytes, own.mutable_data() + k * bytes);
    to = std::move(own);
  }

  // The elements of an operand that are not exact.
  std::vector<int64_t> Inexact(Value operand) const {
    std::vector<int64_t> elements;
    for (int64_t i = 0; i < At(operand).computed[0].size(); ++i) {
      const auto error = ErrorOf(At(operand), 0, i);
      if (error && error->relative > 0) elements.push_back(i);
    }
    return elements;
  }

  bool HasOtherShape(Value v) const {
    return At(v).exact[0].shape != At(v).computed[0].shape();
  }

  // Where an element of the result comes from, of a node that only moves:
  // nullopt where it is not from this operand.
  absl::StatusOr<std::optional<int64_t>> SourceOf(Computing at, int64_t element,
                                                  Value operand) const {
    CLEAVE_ASSIGN_OR_RETURN(
        const Attributes attributes,
        AttributesWithDims(graph_, at.node, values_.exact_dims));
    const auto nodes = graph_.operands(at.node);
    const bool gather = PrimitiveOf(graph_, at.node) == Primitive::kGather;
    std::vector<Tensor> numbered;
    int64_t begin = -1;
    int64_t count = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const RealTensor& exact = At(nodes[i]).exact[0];
      if (gather && i == 1) {
        numbered.push_back(exact.discrete);
        continue;
      }
      CLEAVE_ASSIGN_OR_RETURN(Tensor numbers,
                              Tensor::Create(DType::kI64, exact.shape));
      if (nodes[i] == operand && begin < 0) begin = count;
      for (int64_t k = 0; k < numbers.size(); ++k) {
        // One operand may stand in several places.
        numbers.SetInt(k, nodes[i] == operand ? begin + k : count + k);
      }
      count += numbers.size();
      numbered.push_back(std::move(numbers));
    }
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<Tensor> moved,
        EvalReference(PrimitiveOf(graph_, at.node), attributes, numbered));
    const int64_t source = moved[0].GetInt(element) - begin;
    if (source < 0 || source >= At(operand).computed[0].size()) {
      return std::nullopt;
    }
    return source;
  }

  // The element of the operand that changes the node's element most.
  absl::StatusOr<DebugPlace> Locate(Computing at, int64_t element,
                                    Value operand) const {
    if (HasOtherShape(operand)) return DebugPlace{operand, 0};
    const Primitive primitive = PrimitiveOf(graph_, at.node);
    if (ClassOf(primitive) == PrimitiveClass::kPointwise) {
      return DebugPlace{operand, element};
    }
    const bool is_index = primitive == Primitive::kGather &&
                          graph_.operands(at.node)[1] == operand;
    if (OnlyMoves(primitive) && !is_index) {
      CLEAVE_ASSIGN_OR_RETURN(const std::optional<int64_t> source,
                              SourceOf(at, element, operand));
      if (source) return DebugPlace{operand, *source};
    }
    std::vector<int64_t> elements = Inexact(operand);
    while (elements.size() > 1) {
      CLEAVE_RETURN_IF_ERROR(PollBudget());
      const auto middle = elements.begin() + elements.size() / 2;
      std::vector<int64_t> lower(elements.begin(), middle);
      std::vector<int64_t> upper(middle, elements.end());
      CLEAVE_ASSIGN_OR_RETURN(const double of_lower,
                              Change(at, element, operand, &lower));
      CLEAVE_ASSIGN_OR_RETURN(const double of_upper,
                              Change(at, element, operand, &upper));
      elements = of_lower >= of_upper ? std::move(lower) : std::move(upper);
    }
    return DebugPlace{operand, elements.empty() ? 0 : elements[0]};
  }

  absl::StatusOr<CauseStep> StepAt(DebugPlace place) const {
    CauseStep step;
    step.place = place;
    step.error = ErrorAt(place);
    const Computing at = ComputingOf(graph_, place.node);
    if (PrimitiveOf(graph_, at.node) == Primitive::kInput) return step;
    CLEAVE_ASSIGN_OR_RETURN(const std::optional<RealTensor> local,
                            ExactOnComputed(graph_, values_, place));
    if (local) {
      const Tensor& computed = At(place.node).computed[0];
      step.own = ErrorOf(*local, ElementOf(computed, place.element), 0);
    }
    double most = 0;
    Value operand;
    std::vector<Value> seen;
    for (const Value candidate : graph_.operands(at.node)) {
      if (std::find(seen.begin(), seen.end(), candidate) != seen.end()) {
        continue;
      }
      seen.push_back(candidate);
      if (!HasOtherShape(candidate) && Inexact(candidate).empty()) continue;
      CLEAVE_ASSIGN_OR_RETURN(const double change,
                              Change(at, place.element, candidate, nullptr));
      if (change <= most) continue;
      most = change;
      operand = candidate;
    }
    // On these very operands the node is as far off. An infinite error that its
    // operands cause is theirs.
    if (!operand.valid() || (step.own.relative >= most && most < kInfinity)) {
      return step;
    }
    CLEAVE_ASSIGN_OR_RETURN(const DebugPlace source,
                            Locate(at, place.element, operand));
    step.operand = source;
    step.operand_error = ErrorAt(source);
    return step;
  }

  static bool IsJump(const CauseStep& step) {
    // Where the exact value is 0 all behind it is infinite, too.
    return std::isfinite(step.operand_error.relative) &&
           step.error.relative >=
               kJump * std::max(step.operand_error.relative, kRounding);
  }

  absl::Status Name(Cause& cause) const {
    cause.first = cause.path.size() - 1;
    const CauseStep& last = cause.path.back();
    if (last.operand) {
      size_t first = cause.path.size();
      while (first > 0 && !IsJump(cause.path[first - 1])) --first;
      if (first == 0) {
        cause.finding = Finding::kAccumulated;
        return absl::OkStatus();
      }
      cause.first = first - 1;
    }
    for (size_t i = cause.first; i-- > 0;) {
      if (IsJump(cause.path[i])) cause.jumps.push_back(i);
    }
    const CauseStep& step = cause.first_off();
    cause.finding = FindingOf(step);
    if (cause.finding == Finding::kCancellation ||
        cause.finding == Finding::kIllConditioned) {
      CLEAVE_ASSIGN_OR_RETURN(cause.condition,
                              ConditionOf(graph_, values_, step.place));
    }
    return absl::OkStatus();
  }

  Finding FindingOf(const CauseStep& step) const {
    const Computing at = ComputingOf(graph_, step.place.node);
    const Primitive primitive = PrimitiveOf(graph_, at.node);
    if (primitive == Primitive::kInput) return Finding::kBroughtIn;
    const NodeValue& node = At(step.place.node);
    const DType dtype = node.computed[0].dtype();
    if (!step.operand) {
      if (!IsFloat(dtype) || HasOtherShape(step.place.node)) {
        return Finding::kOwnError;
      }
      const Real& exact = node.exact[0].reals[step.place.element];
      if (!mpfr_regular_p(exact.get())) return Finding::kOwnError;
      Real size = exact;
      mpfr_abs(size.get(), size.get(), MPFR_RNDN);
      const double got = node.computed[0].GetDouble(step.place.element);
      if (std::isinf(got) && mpfr_cmp_d(size.get(), LargestFinite(dtype)) > 0) {
        return Finding::kOverflow;
      }
      if (std::abs(got) < SmallestNormal(dtype) &&
          mpfr_cmp_d(size.get(), SmallestNormal(dtype)) < 0) {
        return Finding::kUnderflow;
      }
      return Finding::kOwnError;
    }
    if (HasOtherShape(step.place.node) || !IsFloat(dtype) || Jumps(primitive)) {
      return Finding::kDecision;
    }
    const bool finite =
        std::isfinite(node.computed[0].GetDouble(step.place.element));
    const Real& exact = node.exact[0].reals[step.place.element];
    if (finite != (mpfr_number_p(exact.get()) != 0)) {
      return Finding::kNotFinite;
    }
    return IsSum(primitive) ? Finding::kCancellation : Finding::kIllConditioned;
  }

  const Graph& graph_;
  const NodeValues& values_;
  const double ulp_;
};

// |f(|x|)| / |f(x)| of a sum, or a sum of products, of arrays.
absl::StatusOr<std::optional<double>> ConditionOfSum(const Graph& graph,
                                                     const NodeValues& values,
                                                     DebugPlace place) {
  std::vector<RealTensor> operands = ExactOperands(graph, place.node, values);
  for (RealTensor& operand : operands) {
    for (Real& real : operand.reals) {
      mpfr_abs(real.get(), real.get(), MPFR_RNDN);
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<RealTensor> sums,
                          EvaluateNode(graph, place.node, values.exact_dims,
                                       operands, values.bits));
  Real ratio = sums[0].reals[place.element];
  const RealTensor& exact = values.nodes[place.node.id].exact[0];
  mpfr_div(ratio.get(), ratio.get(), exact.reals[place.element].get(),
           MPFR_RNDN);
  return std::abs(ratio.ToDouble());
}

}  // namespace

absl::string_view FindingName(Finding finding) {
  switch (finding) {
#define FINDING(enumerator, name) \
  case Finding::enumerator:       \
    return name;
#include "testing/debug/finding.def"
  }
  return "";
}

absl::StatusOr<std::optional<double>> ConditionOf(const Graph& graph,
                                                  const NodeValues& values,
                                                  DebugPlace place) {
  const Primitive primitive = PrimitiveOf(graph, place.node);
  const NodeValue& node = values.nodes[place.node.id];
  if (!IsFloat(node.computed[0].dtype()) || !node.no_exact_value.empty()) {
    return std::nullopt;
  }
  if (node.exact[0].shape != node.computed[0].shape()) return std::nullopt;
  const Real& exact = node.exact[0].reals[place.element];
  if (!mpfr_regular_p(exact.get()) || Jumps(primitive)) return std::nullopt;
  if (!IsPointwise(graph, place.node)) {
    const bool adds =
        primitive != Primitive::kScatter ||
        graph.attributes(place.node).Get("mode").AsString() == "add";
    if (!IsSum(primitive) || !adds) return std::nullopt;
    return ConditionOfSum(graph, values, place);
  }
  if (primitive == Primitive::kConvert || primitive == Primitive::kNograd) {
    return std::nullopt;
  }
  std::vector<RealTensor> operands;
  for (const Value operand : graph.operands(place.node)) {
    const RealTensor& exact = values.nodes[operand.id].exact[0];
    operands.push_back(ScalarOf(exact, place.element));
  }
  double condition = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!IsFloat(operands[i].dtype)) continue;
    std::vector<RealTensor> moved = operands;
    Real& x = moved[i].reals[0];
    Real step = x;
    mpfr_div_2ui(step.get(), step.get(), kStepBits, MPFR_RNDN);
    mpfr_add(x.get(), x.get(), step.get(), MPFR_RNDN);
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<RealTensor> there,
        EvalReal(primitive, graph.attributes(place.node), moved, values.bits));
    Real change = there[0].reals[0];
    mpfr_sub(change.get(), change.get(), exact.get(), MPFR_RNDN);
    mpfr_div(change.get(), change.get(), exact.get(), MPFR_RNDN);
    mpfr_mul_2ui(change.get(), change.get(), kStepBits, MPFR_RNDN);
    condition += std::abs(change.ToDouble());
  }
  if (!std::isfinite(condition)) return std::nullopt;
  return condition;
}

absl::StatusOr<Cause> FindCause(const Graph& graph, const NodeValues& values,
                                DebugPlace output, double ulp) {
  return Search(graph, values, ulp).Run(output);
}

absl::StatusOr<std::optional<RealTensor>> ExactOnComputed(
    const Graph& graph, const NodeValues& values, DebugPlace place) {
  const Computing at = ComputingOf(graph, place.node);
  const NodeValue& node = values.nodes[at.node.id];
  if (PrimitiveOf(graph, at.node) == Primitive::kInput ||
      !node.no_exact_value.empty() ||
      place.element >= node.computed[at.result].size()) {
    return std::nullopt;
  }
  std::vector<Tensor> operands = ComputedOperands(graph, at.node, values);
  int64_t element = place.element;
  if (IsPointwise(graph, at.node)) {
    for (Tensor& operand : operands) operand = ElementOf(operand, element);
    element = 0;
  }
  const auto results =
      EvaluateNode(graph, at.node, values.computed_dims,
                   AsReals(operands, values.bits), values.bits);
  if (!results.ok()) {
    if (EndsCall(results.status())) return results.status();
    return std::nullopt;
  }
  const RealTensor& exact = (*results)[at.result];
  if (element >= CountOf(exact)) return std::nullopt;
  return ScalarOf(exact, element);
}

}  // namespace cleave
