// CLEAVE_CHECK: states a condition that holds if our own code is right.
//
//   CLEAVE_CHECK(index < shape.size()) << "rank " << shape.size();
//
// prints `ops/shape.cc:12: check failed: index < shape.size() rank 3` to stderr
// and aborts. A rule author's mistake is a Diagnostic and a caller's an
// absl::Status; neither is ever a check.

#ifndef CLEAVE_OPS_CHECK_H_
#define CLEAVE_OPS_CHECK_H_

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/status/status.h"

namespace cleave::internal_check {

// Collects a message; its destructor prints it and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition) {
    message_ << file << ":" << line << ": check failed: " << condition << " ";
  }
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;

  ABSL_ATTRIBUTE_NORETURN ~CheckFailure() {
    std::cerr << message_.str() << std::endl;
    std::abort();
  }

  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

// Turns the stream expression into void, so that both arms of ?: agree. `&`
// binds weaker than `<<` and stronger than `?:`.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace cleave::internal_check

// Aborts with the place, the condition and what is streamed into it, unless
// `condition` holds. Nothing that is streamed is evaluated if it does.
#define CLEAVE_CHECK(condition)                                      \
  ABSL_PREDICT_TRUE(condition)                                       \
  ? (void)0                                                          \
  : ::cleave::internal_check::Voidify() &                            \
          ::cleave::internal_check::CheckFailure(__FILE__, __LINE__, \
                                                 #condition)         \
              .stream()

// Aborts unless `expression`, an absl::Status, is OK.
#define CLEAVE_CHECK_OK(expression)                          \
  do {                                                       \
    const ::absl::Status cleave_check_status = (expression); \
    CLEAVE_CHECK(cleave_check_status.ok())                   \
        << #expression << ": " << cleave_check_status;       \
  } while (false)

#endif  // CLEAVE_OPS_CHECK_H_
