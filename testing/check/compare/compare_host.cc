#include "testing/check/compare/compare_host.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/interpreter.h"
#include "ops/status_macros.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/sample_counts.h"

namespace cleave {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Where an element at first seems wrong the reals are computed again.
constexpr int kSecondBits = 1280;
constexpr int kThirdBits = 2560;
constexpr int kStructuredBits = 640;
// Suspects of a pointwise call that are settled at a time.
constexpr size_t kBatch = 32;
// The number of entries of HostComparison::largest.
constexpr size_t kLargest = 12;
// Bytes on either side of the inputs that a kernel gets.
constexpr size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xA5};

// A copy of a tensor's elements between guards.
class GuardedInput {
 public:
  static absl::StatusOr<GuardedInput> Make(const Tensor& tensor) {
    GuardedInput input;
    input.original_ = tensor;
    const size_t size =
        (tensor.byte_size() + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
    input.memory_.reset(static_cast<std::byte*>(std::aligned_alloc(
                            kGuardBytes, size + 2 * kGuardBytes)),
                        std::free);
    if (input.memory_ == nullptr) {
      return absl::ResourceExhaustedError("no memory for an input");
    }
    std::fill_n(input.memory_.get(), size + 2 * kGuardBytes, kGuard);
    std::copy_n(tensor.data(), tensor.byte_size(), input.elements());
    CLEAVE_ASSIGN_OR_RETURN(
        input.tensor_,
        Tensor::FromMemory(
            tensor.dtype(), tensor.shape(),
            std::shared_ptr<std::byte>(input.memory_, input.elements())));
    return input;
  }

  const Tensor& tensor() const { return tensor_; }
  bool ElementsChanged() const {
    return original_.byte_size() > 0 &&
           std::memcmp(original_.data(), elements(), original_.byte_size()) !=
               0;
  }
  bool GuardsChanged() const {
    const std::byte* end = elements() + original_.byte_size();
    const auto guards = [](const std::byte* begin) {
      return std::all_of(begin, begin + kGuardBytes,
                         [](std::byte b) { return b == kGuard; });
    };
    return !guards(memory_.get()) || !guards(end);
  }

 private:
  std::byte* elements() const { return memory_.get() + kGuardBytes; }

  std::shared_ptr<std::byte> memory_;
  Tensor original_;
  Tensor tensor_;
};

// Memory of the results' sizes that was freed just before holds no numbers that
// could be taken for results.
void PoisonFreedMemory(absl::Span<const Tensor> results) {
  std::vector<Tensor> poisoned;
  for (const Tensor& result : results) {
    auto tensor = Tensor::CreateUninitialized(result.dtype(), result.shape());
    if (!tensor.ok() || tensor->byte_size() == 0) continue;
    std::memset(tensor->mutable_data(), 0xFF, tensor->byte_size());
    poisoned.push_back(*std::move(tensor));
  }
}

std::string TypesOf(absl::Span<const Tensor> tensors) {
  return absl::StrJoin(tensors, ", ", [](std::string* out, const Tensor& t) {
    absl::StrAppend(out, t.type().ToString());
  });
}

// Complex numbers as pairs of floats.
Tensor Parts(const Tensor& tensor) {
  if (!IsComplex(tensor.dtype())) return tensor;
  std::vector<int64_t> shape = tensor.shape();
  shape.push_back(2);
  Tensor parts(tensor.dtype() == DType::kC64 ? DType::kF32 : DType::kF64,
               std::move(shape));
  if (tensor.byte_size() > 0) {
    std::memcpy(parts.mutable_data(), tensor.data(), tensor.byte_size());
  }
  return parts;
}

bool SameNumber(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool IsFinite(const Real& real) { return mpfr_number_p(real.get()) != 0; }

HostFailureKind KindOf(double expected, double got) {
  if (std::isnan(expected)) return HostFailureKind::kLostNaN;
  if (std::isinf(expected)) return HostFailureKind::kSpecial;
  return std::isfinite(got) ? HostFailureKind::kInaccurate
                            : HostFailureKind::kNotFinite;
}

double Positive(double value) { return value > 0 ? value : 0; }

// |a - b| near `at`, in ULP; 0 where it is not a finite number.
double Distance(const Real& a, const Real& b, const Real& at, DType dtype) {
  if (!IsFinite(a) || !IsFinite(b)) return 0;
  Real difference(at.bits());
  mpfr_sub(difference.get(), a.get(), b.get(), MPFR_RNDN);
  // Beside a zero of f64 a difference is more of the smallest numbers than a
  // double counts.
  return std::min(UlpsOf(difference, at, dtype),
                  std::numeric_limits<double>::max());
}

// x moved by `ulps` units in its last place in `dtype`.
void Move(Real& x, double ulps, DType dtype) {
  if (!IsFinite(x)) return;
  const double value = x.RoundTo(dtype);
  const double magnitude = std::abs(value);
  // The distance to the next number, which is one for all of a binade.
  const double next = FromOrdinal(Ordinal(magnitude, dtype) + 1, dtype);
  const double unit =
      std::isinf(next)
          ? magnitude - FromOrdinal(Ordinal(magnitude, dtype) - 1, dtype)
          : next - magnitude;
  Real step(unit, x.bits());
  mpfr_mul_d(step.get(), step.get(), ulps, MPFR_RNDN);
  mpfr_add(x.get(), x.get(), step.get(), MPFR_RNDN);
}

std::vector<RealTensor> RealsOf(absl::Span<const Tensor> tensors, int bits) {
  std::vector<RealTensor> reals;
  for (const Tensor& tensor : tensors) {
    reals.push_back(RealTensor::FromTensor(tensor, bits));
  }
  return reals;
}

bool HasSpecialValue(const Tensor& tensor, int64_t i) {
  return IsFloat(tensor.dtype()) && !std::isfinite(tensor.GetDouble(i));
}

}  // namespace

// A float that is farther from the body than `ulp` alone allows.
struct HostComparer::Suspect {
  int result = 0;
  int64_t element = 0;
  double got = 0;
  double body = 0;  // in floating point
  DType dtype = DType::kF64;
};

void HostComparison::Add(HostFailure wrong) {
  HostFailures& of_kind = failures[wrong.kind];
  if (of_kind.count++ == 0 || wrong.ulp > of_kind.worst.ulp) {
    of_kind.worst = wrong;
  }
  if (!failure) failure = std::move(wrong);
}

HostComparer::HostComparer(SampledCall call, CallGraphs graphs,
                           const HostKernels& kernels,
                           const HostTolerance& tolerance, bool all_failures)
    : call_(std::move(call)),
      graphs_(std::move(graphs)),
      kernels_(kernels),
      tolerance_(tolerance),
      all_failures_(all_failures) {
  tolerance_.ulp = Positive(tolerance.ulp);
  tolerance_.input_ulp = Positive(tolerance.input_ulp);
  tolerance_.absolute = Positive(tolerance.absolute);
  const Graph& body = graphs_.body;
  if (body.inputs().empty() || !IsElementwise(body)) return;
  // Apart only at the symbolic shape [n], which tensors of any size have.
  const TensorType& first = body.type(body.inputs()[0].value);
  elementwise_ = first.rank() == 1 && !first.shape[0].IsConstant();
}

// Empty where the kernel failed, as `comparison` says.
absl::StatusOr<std::vector<Tensor>> HostComparer::RunKernel(
    absl::Span<const Tensor> inputs, HostComparison& comparison,
    std::optional<HostFailure>& failed) const {
  std::vector<GuardedInput> guarded;
  std::vector<Tensor> operands;
  for (const Tensor& input : inputs) {
    CLEAVE_ASSIGN_OR_RETURN(GuardedInput one, GuardedInput::Make(input));
    operands.push_back(one.tensor());
    guarded.push_back(std::move(one));
  }
  // The interpreter runs the call as it does in a host's program; around the
  // function stands one that knows whether an error is the kernel's.
  absl::Status status = absl::OkStatus();
  bool called = false;
  InterpretOptions options;
  options.host_kernels.Set(call_.op, [&](const HostCall& call) {
    called = true;
    DimValues decided;
    auto results = kernels_.Run(call, decided);
    status = results.status();
    return results;
  });
  auto results = Interpret(graphs_.call, operands, options);
  if (!called) {
    return results.ok() ? absl::InternalError("the call is not in its graph")
                        : results.status();
  }
  if (status.code() == absl::StatusCode::kUnimplemented) {
    comparison.unimplemented = std::string(status.message());
    return std::vector<Tensor>();
  }
  HostFailure failure;
  const std::vector<std::string> names = call_.OperandNames();
  for (size_t k = 0; k < guarded.size(); ++k) {
    if (guarded[k].ElementsChanged()) {
      failure.what =
          absl::StrCat("input ", names[k], ", to which the host kernel wrote");
      failure.expected = inputs[k].ToString();
      failure.got = guarded[k].tensor().ToString();
    } else if (guarded[k].GuardsChanged()) {
      failure.what = absl::StrCat("memory around the input ", names[k],
                                  ", to which the host kernel wrote");
    }
  }
  if (!results.ok()) {
    failure.what = "what the host kernel returns";
    failure.got =
        std::string((status.ok() ? results.status() : status).message());
  }
  if (failure.what.empty()) return results;
  failure.ulp = kInfinity;
  failed = std::move(failure);
  return std::vector<Tensor>();
}

absl::StatusOr<HostComparison> HostComparer::Compare(
    absl::Span<const Tensor> inputs) const {
  HostComparison comparison;
  // The body first: a kernel gets what the op accepts only.
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> want,
                          Interpret(graphs_.body, inputs));
  auto exact =
      InterpretReal(graphs_.BodyOverReals(),
                    RealsOf(inputs, kFirstReferenceBits), kFirstReferenceBits);
  if (absl::IsUnimplemented(exact.status())) {
    comparison.not_real = std::string(exact.status().message());
  } else if (!exact.ok()) {
    return exact.status();
  }
  std::vector<bool> skipped;  // per element of a pointwise call, or of all
  if (!tolerance_.special_values) {
    for (const Tensor& input : inputs) {
      skipped.resize(elementwise_ ? input.size() : 1);
      for (int64_t i = 0; i < input.size(); ++i) {
        if (HasSpecialValue(input, i)) skipped[elementwise_ ? i : 0] = true;
      }
    }
    if (!elementwise_ && !skipped.empty() && skipped[0]) {
      for (const Tensor& result : want)
        comparison.not_compared += result.size();
      return comparison;
    }
    if (!elementwise_) skipped.clear();
  }
  PoisonFreedMemory(want);
  std::optional<HostFailure> failed;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> got,
                          RunKernel(inputs, comparison, failed));
  if (failed) {
    if (failed->expected.empty()) failed->expected = TypesOf(want);
    comparison.Add(*std::move(failed));
  }
  if (comparison.failure || comparison.unimplemented) return comparison;
  std::vector<Suspect> suspects;
  for (size_t r = 0; r < want.size() && GoesOn(comparison); ++r) {
    const std::string& name = graphs_.body.outputs()[r].name;
    if (got[r].dtype() != want[r].dtype() ||
        got[r].shape() != want[r].shape()) {
      HostFailure failure;
      failure.result = static_cast<int>(r);
      failure.what = absl::StrCat("type of ", name);
      failure.expected = want[r].type().ToString();
      failure.got = got[r].type().ToString();
      failure.ulp = kInfinity;
      comparison.Add(std::move(failure));
      continue;
    }
    Judge(static_cast<int>(r), Parts(want[r]),
          exact.ok() ? std::make_optional((*exact)[r]) : std::nullopt,
          Parts(got[r]), skipped, suspects, comparison);
  }
  if (GoesOn(comparison)) {
    CLEAVE_RETURN_IF_ERROR(Settle(inputs, std::move(suspects), comparison));
  }
  std::sort(comparison.largest.rbegin(), comparison.largest.rend());
  if (comparison.largest.size() > kLargest) comparison.largest.resize(kLargest);
  return comparison;
}

void HostComparer::Judge(int result, const Tensor& want,
                         const std::optional<RealTensor>& exact,
                         const Tensor& got, const std::vector<bool>& skipped,
                         std::vector<Suspect>& suspects,
                         HostComparison& comparison) const {
  const DType dtype = want.dtype();
  const auto fail = [&](HostFailureKind kind, int64_t i, std::string expected,
                        std::string found) {
    HostFailure failure;
    failure.kind = kind;
    failure.result = result;
    failure.element = i;
    failure.what = absl::StrCat(graphs_.body.outputs()[result].name, "[", i,
                                "] of the host kernel, in ", DTypeName(dtype));
    failure.expected = std::move(expected);
    failure.got = std::move(found);
    failure.ulp = kInfinity;
    comparison.Add(std::move(failure));
  };
  for (int64_t i = 0; i < want.size() && GoesOn(comparison); ++i) {
    if (!skipped.empty() && skipped[i]) {
      ++comparison.not_compared;
      continue;
    }
    if (!IsFloat(dtype)) {
      const int64_t expected =
          exact ? exact->discrete.GetInt(i) : want.GetInt(i);
      const int64_t found = IsBool(dtype)
                                ? std::to_integer<int64_t>(got.data()[i])
                                : got.GetInt(i);
      if (found != expected && found != want.GetInt(i)) {
        fail(HostFailureKind::kDiscrete, i, absl::StrCat(expected),
             absl::StrCat(found));
        continue;
      }
      if (found != expected) ++comparison.as_body;
      ++comparison.samples;
      continue;
    }
    const double body = want.GetDouble(i);
    const double found = got.GetDouble(i);
    const Real expected =
        exact ? exact->reals[i] : Real(body, kFirstReferenceBits);
    const double rounded = expected.RoundTo(dtype);
    if (!tolerance_.special_values &&
        (!std::isfinite(rounded) || !std::isfinite(body))) {
      ++comparison.not_compared;
      continue;
    }
    if (found == 0 && rounded == 0 &&
        std::signbit(found) != std::signbit(rounded) &&
        std::signbit(found) != std::signbit(body)) {
      if (tolerance_.signed_zeros) {
        fail(HostFailureKind::kSpecial, i, FloatToString(body, dtype),
             FloatToString(found, dtype));
        continue;
      }
      ++comparison.other_zeros;
    }
    const double error = UlpError(expected, found, dtype);
    if (error > tolerance_.ulp && SameNumber(found, body)) {
      ++comparison.as_body;
      ++comparison.samples;
      continue;
    }
    if (error > tolerance_.ulp) {
      suspects.push_back({result, i, found, body, dtype});
      continue;
    }
    ++comparison.samples;
    if (error > comparison.worst_ulp || comparison.worst_element < 0) {
      comparison.worst_ulp = error;
      comparison.worst_element = i;
    }
    if (error > 0) {
      const double part = error / tolerance_.ulp;
      comparison.worst_part = std::max(comparison.worst_part, part);
      comparison.largest.emplace_back(part, i);
    }
  }
}

absl::StatusOr<std::vector<double>> HostComparer::Spreads(
    absl::Span<const Tensor> inputs, const std::vector<RealTensor>& center,
    const std::vector<Suspect>& suspects,
    const std::vector<int64_t>& places) const {
  std::vector<double> spreads(suspects.size(), 0);
  if (tolerance_.input_ulp == 0) return spreads;
  const int bits = elementwise_ ? kSecondBits : kStructuredBits;
  const std::vector<RealTensor> reals = RealsOf(inputs, bits);
  for (size_t k = 0; k < reals.size(); ++k) {
    const size_t size = reals[k].reals.size();
    const size_t step = elementwise_ ? std::max<size_t>(size, 1) : 1;
    for (size_t begin = 0; begin < size; begin += step) {
      std::vector<double> smaller(suspects.size(), kInfinity);
      for (const int side : {1, -1}) {
        std::vector<RealTensor> moved = reals;
        for (size_t i = begin; i < begin + step; ++i) {
          Move(moved[k].reals[i], side * tolerance_.input_ulp,
               inputs[k].dtype());
        }
        const auto results =
            InterpretReal(graphs_.BodyOverReals(), moved, bits);
        for (size_t s = 0; s < suspects.size(); ++s) {
          double distance = 0;
          if (results.ok()) {
            const int r = suspects[s].result;
            const Real& at = center[r].reals[places[s]];
            distance = Distance((*results)[r].reals[places[s]], at, at,
                                suspects[s].dtype);
          }
          smaller[s] = std::min(smaller[s], distance);
        }
      }
      for (size_t s = 0; s < suspects.size(); ++s) spreads[s] += smaller[s];
    }
  }
  return spreads;
}

absl::Status HostComparer::Settle(absl::Span<const Tensor> inputs,
                                  std::vector<Suspect> suspects,
                                  HostComparison& comparison) const {
  const int low = elementwise_ ? kSecondBits : kStructuredBits;
  const int high = elementwise_ ? kThirdBits : kSecondBits;
  const size_t batch =
      elementwise_ ? kBatch : std::max<size_t>(suspects.size(), 1);
  for (size_t begin = 0; begin < suspects.size() && GoesOn(comparison);
       begin += batch) {
    const std::vector<Suspect> some(
        suspects.begin() + begin,
        suspects.begin() + std::min(suspects.size(), begin + batch));
    std::vector<Tensor> chosen(inputs.begin(), inputs.end());
    std::vector<int64_t> places;
    for (const Suspect& suspect : some) places.push_back(suspect.element);
    if (elementwise_) {
      chosen = SelectElements(inputs, places);
      for (size_t s = 0; s < some.size(); ++s) {
        places[s] = static_cast<int64_t>(s);
      }
    }
    // nullopt where the body has no meaning over the reals.
    std::optional<std::vector<RealTensor>> first;
    std::vector<RealTensor> second;
    std::vector<double> spreads(some.size(), 0);
    if (comparison.not_real.empty()) {
      CLEAVE_ASSIGN_OR_RETURN(first, InterpretReal(graphs_.BodyOverReals(),
                                                   RealsOf(chosen, low), low));
      CLEAVE_ASSIGN_OR_RETURN(
          second,
          InterpretReal(graphs_.BodyOverReals(), RealsOf(chosen, high), high));
      CLEAVE_ASSIGN_OR_RETURN(spreads, Spreads(chosen, *first, some, places));
    }
    for (size_t s = 0; s < some.size() && GoesOn(comparison); ++s) {
      const Suspect& suspect = some[s];
      const Real exact = first ? second[suspect.result].reals[places[s]]
                               : Real(suspect.body, low);
      const double error = UlpError(exact, suspect.got, suspect.dtype);
      double bound = tolerance_.ulp + spreads[s];
      if (tolerance_.absolute > 0 && IsFinite(exact)) {
        const double units =
            UlpsOf(Real(tolerance_.absolute, 64), exact, suspect.dtype);
        bound += std::min(units, std::numeric_limits<double>::max());
      }
      if (!(error <= bound)) {
        if (first &&
            !Settled((*first)[suspect.result].reals[places[s]], exact)) {
          ++comparison.undecided;
          continue;
        }
        const double rounded = exact.RoundTo(suspect.dtype);
        HostFailure failure;
        failure.kind = KindOf(rounded, suspect.got);
        failure.result = suspect.result;
        failure.element = suspect.element;
        failure.what = absl::StrCat(
            graphs_.body.outputs()[suspect.result].name, "[", suspect.element,
            "] of the host kernel, in ", DTypeName(suspect.dtype));
        failure.expected =
            absl::StrCat(FloatToString(rounded, suspect.dtype),
                         ", over the reals ", exact.ToString(30));
        failure.got = FloatToString(suspect.got, suspect.dtype);
        failure.ulp = error;
        failure.bound = bound;
        // The search goes on from there.
        if (failure.kind == HostFailureKind::kInaccurate && bound > 0) {
          comparison.largest.emplace_back(error / bound, suspect.element);
        }
        comparison.Add(std::move(failure));
        continue;
      }
      ++comparison.samples;
      if (error > comparison.worst_ulp || comparison.worst_element < 0) {
        comparison.worst_ulp = error;
        comparison.worst_element = suspect.element;
      }
      if (bound == 0) continue;
      comparison.worst_part = std::max(comparison.worst_part, error / bound);
      comparison.largest.emplace_back(error / bound, suspect.element);
    }
  }
  return absl::OkStatus();
}

}  // namespace cleave
