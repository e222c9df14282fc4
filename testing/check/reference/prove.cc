#include "testing/check/reference/prove.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "engine/ir/interval_interpreter.h"

namespace cleave {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The known bits of a narrow enclosure: its bounds may have two units in the
// last place.
constexpr double kNarrow = 64;
// Beyond these exponents every dtype has one unit.
constexpr int kLeastExponent = -1100;
constexpr int kGreatestExponent = 1100;
// Numbers that agree in so many bits are one: constants of a rule have 320.
constexpr double kOneNumber = 240;

// "undecided: why" without the place in the graph.
std::string WhyNot(const absl::Status& status) {
  const std::string message(status.message());
  const size_t at = message.find("undecided: ");
  return at == std::string::npos
             ? message
             : message.substr(at + std::string("undecided: ").size());
}

Real BoundOf(mpfr_srcptr bound) {
  Real real(static_cast<int>(mpfr_get_prec(bound)));
  mpfr_set(real.get(), bound, MPFR_RNDN);
  return real;
}

bool IsTiny(mpfr_srcptr x) {
  return mpfr_zero_p(x) ||
         (mpfr_regular_p(x) && mpfr_get_exp(x) < kLeastExponent);
}

bool IsHuge(mpfr_srcptr x) {
  return mpfr_inf_p(x) ||
         (mpfr_regular_p(x) && mpfr_get_exp(x) > kGreatestExponent);
}

// The least and the largest error over an enclosure, or why it says nothing.
struct Errors {
  double least = 0;
  double most = 0;
};
std::optional<Errors> ErrorsOver(const RealInterval& interval,
                                 const ErrorAt& error, double got,
                                 std::string& why) {
  if (interval.undecided() != nullptr) {
    why = interval.undecided();
    return std::nullopt;
  }
  const Real low = BoundOf(interval.low());
  const double at_low = error(low);
  if (interval.IsNaN()) return Errors{at_low, at_low};
  const bool narrow = interval.KnownBits() >= kNarrow ||
                      (IsTiny(interval.low()) && IsTiny(interval.high())) ||
                      (IsHuge(interval.low()) && IsHuge(interval.high()) &&
                       mpfr_sgn(interval.low()) == mpfr_sgn(interval.high()));
  if (!narrow) {
    why = "an enclosure is too wide";
    return std::nullopt;
  }
  const double at_high = error(BoundOf(interval.high()));
  Errors errors{std::min(at_low, at_high), std::max(at_low, at_high)};
  if (!std::isnan(got) && mpfr_cmp_d(interval.low(), got) <= 0 &&
      mpfr_cmp_d(interval.high(), got) >= 0) {
    errors.least = 0;
  }
  return errors;
}

// Runs `decide(errors)` at each precision until it decides.
template <typename Decide>
Proved AtRisingPrecision(const EncloseAt& enclose,
                         absl::Span<const int> precisions, int result,
                         int64_t element, const ErrorAt& error, double got,
                         Decide decide) {
  Proved proved;
  for (const int bits : precisions) {
    const auto enclosed = enclose(bits);
    if (!enclosed.ok()) {
      proved.why = WhyNot(enclosed.status());
      if (!IsUndecided(enclosed.status())) return proved;
      continue;
    }
    const auto errors = ErrorsOver((*enclosed)[result].intervals[element],
                                   error, got, proved.why);
    if (!errors.has_value()) continue;
    proved.proof = decide(*errors);
    proved.error = errors->most;
    if (proved.proof != Proof::kOpen) {
      proved.why.clear();
      proved.enclosure = (*enclosed)[result].intervals[element].ToString(30);
      return proved;
    }
    proved.why = "an enclosure is too wide";
  }
  return proved;
}

bool AreDisjoint(const RealInterval& a, const RealInterval& b) {
  if (a.IsNaN() || b.IsNaN()) return a.IsNaN() != b.IsNaN();
  return mpfr_less_p(a.high(), b.low()) || mpfr_less_p(b.high(), a.low());
}

// Both are so narrow that all of their numbers agree, since they overlap.
bool AreOne(const RealInterval& a, const RealInterval& b) {
  if (a.IsNaN() && b.IsNaN()) return true;
  const auto narrow = [](const RealInterval& x) {
    return x.KnownBits() >= kOneNumber || (IsTiny(x.low()) && IsTiny(x.high()));
  };
  return narrow(a) && narrow(b);
}

// Whether all numbers of `a` and of `b` differ by at most the part `allowed` of
// the former, or all by more. Every bound is rounded to the side of kOpen.
Proof DifferBy(const RealInterval& a, const RealInterval& b, double allowed,
               int bits) {
  Real up(bits);
  Real down(bits);
  // The greatest difference, and the least one.
  mpfr_sub(up.get(), a.high(), b.low(), MPFR_RNDU);
  mpfr_sub(down.get(), b.high(), a.low(), MPFR_RNDU);
  const Real greatest = mpfr_cmp(up.get(), down.get()) < 0 ? down : up;
  mpfr_sub(up.get(), a.low(), b.high(), MPFR_RNDD);
  mpfr_sub(down.get(), b.low(), a.high(), MPFR_RNDD);
  const Real least = mpfr_cmp(up.get(), down.get()) < 0 ? down : up;
  // The sizes of `a`.
  const bool low_is_smaller = mpfr_cmpabs(a.low(), a.high()) < 0;
  Real smallest(bits);
  Real largest(bits);
  mpfr_abs(smallest.get(), low_is_smaller ? a.low() : a.high(), MPFR_RNDD);
  mpfr_abs(largest.get(), low_is_smaller ? a.high() : a.low(), MPFR_RNDU);
  if (mpfr_sgn(a.low()) * mpfr_sgn(a.high()) <= 0) {
    mpfr_set_zero(smallest.get(), 1);
  }
  mpfr_mul_d(smallest.get(), smallest.get(), allowed, MPFR_RNDD);
  mpfr_mul_d(largest.get(), largest.get(), allowed, MPFR_RNDU);
  if (mpfr_lessequal_p(greatest.get(), smallest.get())) return Proof::kAgrees;
  return mpfr_greater_p(least.get(), largest.get()) ? Proof::kDiffers
                                                    : Proof::kOpen;
}

}  // namespace

Proved ProveError(const EncloseAt& enclose, absl::Span<const int> precisions,
                  int result, int64_t element, const ErrorAt& error, double got,
                  double bound) {
  // The bound of what is not finite may be NaN.
  const auto passes = [bound](double e) { return e == 0 || e <= bound; };
  return AtRisingPrecision(enclose, precisions, result, element, error, got,
                           [&](const Errors& errors) {
                             if (passes(errors.most)) return Proof::kAgrees;
                             return passes(errors.least) ? Proof::kOpen
                                                         : Proof::kDiffers;
                           });
}

Proved ProveEqual(const CallGraphs& graphs, absl::Span<const Tensor> inputs,
                  absl::Span<const int> precisions, int result, int64_t element,
                  double allowed) {
  Proved proved;
  for (const int bits : precisions) {
    std::vector<IntervalTensor> arguments;
    for (const Tensor& input : inputs) {
      arguments.push_back(IntervalTensor::FromTensor(input, bits));
    }
    const auto spec = InterpretInterval(*graphs.spec, arguments, bits);
    const auto body =
        InterpretInterval(graphs.BodyOverReals(), arguments, bits);
    const absl::Status& status = spec.ok() ? body.status() : spec.status();
    if (!status.ok()) {
      proved.why = WhyNot(status);
      if (!IsUndecided(status)) return proved;
      continue;
    }
    const IntervalTensor& a = (*spec)[result];
    const IntervalTensor& b = (*body)[result];
    if (!IsFloat(a.dtype)) {
      proved.why.clear();
      proved.proof = a.discrete.GetInt(element) == b.discrete.GetInt(element)
                         ? Proof::kAgrees
                         : Proof::kDiffers;
      return proved;
    }
    const RealInterval& p = a.intervals[element];
    const RealInterval& q = b.intervals[element];
    const char* const open =
        p.undecided() != nullptr ? p.undecided() : q.undecided();
    if (open != nullptr) {
      proved.why = open;
      continue;
    }
    if (allowed > 0 && !p.IsNaN() && !q.IsNaN()) {
      proved.proof = DifferBy(p, q, allowed, bits);
    } else {
      proved.proof = AreDisjoint(p, q) ? Proof::kDiffers
                     : AreOne(p, q)    ? Proof::kAgrees
                                       : Proof::kOpen;
    }
    if (proved.proof != Proof::kOpen) {
      proved.why.clear();
      return proved;
    }
    proved.why = "an enclosure is too wide";
  }
  return proved;
}

}  // namespace cleave
