// Passes an error on to the caller, in functions that return absl::Status or
// absl::StatusOr.
//
//   absl::StatusOr<Graph> Load(absl::string_view text) {
//     CLEAVE_ASSIGN_OR_RETURN(RuleFile file, Parse(text));
//     CLEAVE_RETURN_IF_ERROR(Check(file));
//     return Compile(file);
//   }

#ifndef CLEAVE_OPS_STATUS_MACROS_H_
#define CLEAVE_OPS_STATUS_MACROS_H_

#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define CLEAVE_STATUS_MACROS_CONCAT_INNER(a, b) a##b
#define CLEAVE_STATUS_MACROS_CONCAT(a, b) \
  CLEAVE_STATUS_MACROS_CONCAT_INNER(a, b)

// Returns the value of `...`, an absl::Status, unless it is OK.
#define CLEAVE_RETURN_IF_ERROR(...)                \
  do {                                             \
    ::absl::Status cleave_status = (__VA_ARGS__);  \
    if (ABSL_PREDICT_FALSE(!cleave_status.ok())) { \
      return cleave_status;                        \
    }                                              \
  } while (false)

// Assigns the value of `...`, an absl::StatusOr, to `target`, which may be a
// declaration, or returns its error. A declared type that holds a comma needs
// an alias, or `auto`.
#define CLEAVE_ASSIGN_OR_RETURN(target, ...)                            \
  CLEAVE_ASSIGN_OR_RETURN_INNER(                                        \
      CLEAVE_STATUS_MACROS_CONCAT(cleave_status_or_, __LINE__), target, \
      __VA_ARGS__)

#define CLEAVE_ASSIGN_OR_RETURN_INNER(result, target, ...) \
  auto result = (__VA_ARGS__);                             \
  if (ABSL_PREDICT_FALSE(!result.ok())) {                  \
    return std::move(result).status();                     \
  }                                                        \
  target = *std::move(result)

#endif  // CLEAVE_OPS_STATUS_MACROS_H_
