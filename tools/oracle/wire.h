// The bytes between `cleave check` and the process that calls a function of the
// user's library. Both are one program on one machine: the order of bytes is
// its own.
//
//   the worker says that it is ready:    a reply without results
//   for each call:                       a call, then a reply

#ifndef CLEAVE_TOOLS_ORACLE_WIRE_H_
#define CLEAVE_TOOLS_ORACLE_WIRE_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave {

struct OracleCall {
  std::string op;
  std::string attributes;  // as Attributes prints them
  std::vector<Tensor> inputs;
  std::vector<TensorType> results;  // their extents are numbers
};

// The results, or why there are none.
using OracleReply = absl::StatusOr<std::vector<Tensor>>;

std::string Serialize(const OracleCall& call);
std::string Serialize(const OracleReply& reply);
// InvalidArgument where the bytes are none.
absl::StatusOr<OracleCall> ParseOracleCall(absl::string_view bytes);
absl::StatusOr<OracleReply> ParseOracleReply(absl::string_view bytes);

using OracleDeadline = std::optional<std::chrono::steady_clock::time_point>;

// A message with its length before it, through a socket. A reader that waits
// until `deadline` in vain has DeadlineExceeded. Unavailable where the other
// end is closed.
absl::Status WriteMessage(int descriptor, absl::string_view bytes);
absl::StatusOr<std::string> ReadMessage(int descriptor,
                                        OracleDeadline deadline = {});

}  // namespace cleave

#endif  // CLEAVE_TOOLS_ORACLE_WIRE_H_
