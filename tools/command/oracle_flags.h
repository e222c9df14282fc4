// The flags of `check` that name functions of a user's library as oracles.

#ifndef CLEAVE_TOOLS_COMMAND_ORACLE_FLAGS_H_
#define CLEAVE_TOOLS_COMMAND_ORACLE_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "testing/check/check.h"
#include "tools/command/command_line.h"

namespace cleave {

struct OracleFlags {
  std::vector<std::string> oracles;  // "softplus=libmyop.so:my_softplus"
  double seconds = 10;
  HostTolerance tolerance;
};

// `flags` outlives the parsing.
void AddOracleFlags(Verb& verb, OracleFlags& flags);

// Starts the oracles, and has `options` compare them: where no layers are asked
// for, in the layer `host` alone. A flag without an op is for the one that
// `options.ops` names. NotFound, InvalidArgument.
absl::Status ApplyOracles(const OracleFlags& flags, CheckOptions& options);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_ORACLE_FLAGS_H_
