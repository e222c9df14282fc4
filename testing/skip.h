// Tests that need what a machine may not have.
//
//   if (mount(..) != 0) CLEAVE_SKIP(kMayNotMount);
//
// `tools/test` prints how many were skipped.

#ifndef CLEAVE_TESTING_SKIP_H_
#define CLEAVE_TESTING_SKIP_H_

#include "gtest/gtest.h"

namespace cleave {

enum class SkipReason {
#define CLEAVE_SKIP_REASON(enumerator, text) enumerator,
#include "testing/skip_reason.def"
#undef CLEAVE_SKIP_REASON
};

inline const char* SkipReasonText(SkipReason reason) {
  switch (reason) {
#define CLEAVE_SKIP_REASON(enumerator, text) \
  case SkipReason::enumerator:               \
    return text;
#include "testing/skip_reason.def"
#undef CLEAVE_SKIP_REASON
  }
  return "";
}

}  // namespace cleave

// Ends the test, which counts as skipped, with a reason of skip_reason.def.
#define CLEAVE_SKIP(enumerator) \
  GTEST_SKIP() << ::cleave::SkipReasonText(::cleave::SkipReason::enumerator)

#endif  // CLEAVE_TESTING_SKIP_H_
