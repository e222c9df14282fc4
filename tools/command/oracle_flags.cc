#include "tools/command/oracle_flags.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/status_macros.h"
#include "tools/oracle/oracle.h"

namespace cleave {
namespace {

struct OracleFlag {
  std::string op;  // "" for the op that --op names
  std::string library;
  std::string symbol;
};

// "softplus=./libmyop.so:my_softplus"; InvalidArgument where it is none.
absl::StatusOr<OracleFlag> ParseOracle(const std::string& text) {
  OracleFlag flag;
  std::string rest = text;
  const size_t equals = text.find('=');
  const size_t slash = text.find('/');
  // A path may have the sign, too.
  if (equals != std::string::npos && equals < slash) {
    flag.op = text.substr(0, equals);
    rest = text.substr(equals + 1);
  }
  const size_t colon = rest.rfind(':');
  if (colon != std::string::npos) {
    flag.library = rest.substr(0, colon);
    flag.symbol = rest.substr(colon + 1);
  }
  if (flag.library.empty() || flag.symbol.empty() ||
      (equals == 0 && flag.op.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        text, " is no oracle as in softplus=./libmyop.so:my_softplus"));
  }
  return flag;
}

bool IsGlob(const std::string& ops) {
  return ops.find_first_of("*?") != std::string::npos;
}

}  // namespace

void AddOracleFlags(Verb& verb, OracleFlags& flags) {
  verb.Add("--oracle", flags.oracles,
           "[OP=]LIBRARY:SYMBOL: hold this function of a shared library to the "
           "body of the op, value by value, and check nothing else; may be "
           "repeated. Its type is cleave_host_function of cleave.h")
      .Check([](const std::string& text) {
        return std::string(ParseOracle(text).status().message());
      });
  verb.Add("--oracle-seconds", flags.seconds,
           "How long one call of an oracle may take")
      .Positive()
      .ShowDefault();
  verb.Add("--oracle-ulp", flags.tolerance.ulp,
           "How far an oracle's result may be off, beside what it moves where "
           "an input moves by as many units in its last place")
      .Between(0, 1e18)
      .ShowDefault();
}

absl::Status ApplyOracles(const OracleFlags& flags, CheckOptions& options) {
  if (flags.oracles.empty()) {
    if (options.layers.count(Layer::kHostKernel) == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the layer `host` compares an oracle: --oracle names one");
  }
  for (const std::string& text : flags.oracles) {
    CLEAVE_ASSIGN_OR_RETURN(OracleFlag flag, ParseOracle(text));
    if (flag.op.empty()) flag.op = options.ops;
    if (IsGlob(flag.op)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--oracle ", text,
                       " is for which op? --op OP, or "
                       "--oracle OP=",
                       text));
    }
    if (options.host_kernels.Has(flag.op)) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", flag.op, "` has two oracles"));
    }
    OracleOptions oracle;
    oracle.library = flag.library;
    oracle.symbol = flag.symbol;
    oracle.seconds = flags.seconds;
    CLEAVE_ASSIGN_OR_RETURN(HostFunction function, StartOracle(oracle));
    options.host_kernels.Set(flag.op, std::move(function));
    options.host_replays[flag.op] = absl::StrCat(
        " --oracle ", flag.op, "=", flag.library, ":", flag.symbol);
  }
  options.host_tolerance = flags.tolerance;
  options.host_tolerance.input_ulp = flags.tolerance.ulp;
  if (options.layers.empty()) options.layers = {Layer::kHostKernel};
  return absl::OkStatus();
}

}  // namespace cleave
