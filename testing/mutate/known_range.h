// KnownRange: what is known of a number of a graph, wherever some conditions
// hold.
//
//   x > 0         low = 0, low_open, not a NaN
//   not (x > 0)   high = 0, may be a NaN

#ifndef CLEAVE_TESTING_MUTATE_KNOWN_RANGE_H_
#define CLEAVE_TESTING_MUTATE_KNOWN_RANGE_H_

#include <limits>
#include <optional>
#include <string>

#include "ops/dtype.h"
#include "ops/primitive.h"

namespace cleave {

// The numbers from low to high, without an end that is open; -0 is 0 here.
// Nothing is known of KnownRange(). Empty where conditions exclude each other.
struct KnownRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;
  bool may_be_nan = true;

  // A number that is no NaN, and one of which nothing is known; of an integer
  // it is known that it is no NaN.
  static KnownRange Of(double number);
  static KnownRange OfDType(DType dtype);
  static KnownRange AtLeast(double low, bool may_be_nan);
  // The range of max(a, b), or of min(a, b).
  static KnownRange Extremum(KnownRange a, KnownRange b, bool max);

  // Meet leaves the numbers of both ranges, Join those of either.
  void Meet(const KnownRange& other);
  void Join(const KnownRange& other);

  KnownRange Negated() const;
  // The range of |x|, and that of x where this one is of |x|.
  KnownRange Magnitude() const;
  KnownRange WhereMagnitudeIs() const;

  bool IsOneNumber() const;
  bool IsFinite() const;
  // One text for equal ranges.
  std::string Key() const;
};

// Whether `a comparison b` holds for all numbers of the ranges, or for none;
// nullopt otherwise.
std::optional<bool> Compared(Primitive comparison, const KnownRange& a,
                             const KnownRange& b);

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_KNOWN_RANGE_H_
