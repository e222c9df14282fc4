// AotLog: what happened to a function on its way to compiled graphs, phase by
// phase, as a file that programs read and `cleave replay` runs again.

#ifndef CLEAVE_TRANSFORMS_AOT_AOT_LOG_H_
#define CLEAVE_TRANSFORMS_AOT_AOT_LOG_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"

namespace cleave::aot {

struct AotPhase {
  // "trace", "replace", "joint", "decompose", "forward", "backward",
  // "inference" (with graphs); "partition", "compile forward", .. (times).
  std::string name;
  std::string graph;  // its text; empty for phases that make none
  int64_t nodes = 0;
  double milliseconds = 0;
};

// In the place of an op's name: a C++ function, which no log can hold.
inline constexpr char kByFunction[] = "(function)";

// One trace of a function.
struct AotTrace {
  // Why it was traced: "first call", or why no earlier trace serves.
  std::string why;
  std::vector<bool> active;
  int num_params_buffers = 0;
  bool recompute_loops = false;
  bool expand = false;
  // Outputs of the traced function, and what the forward graph saves.
  int outputs = 0;
  int saved = 0;
  // Ops decomposed by their own bodies, and kept from it.
  std::vector<std::string> decomposed;
  std::vector<std::string> preserved;
  // Op, and the op whose body takes its place, or kByFunction.
  std::vector<std::pair<std::string, std::string>> replaced;
  std::vector<AotPhase> phases;
};

struct AotLog {
  std::vector<AotTrace> traces;

  // Ends with a newline.
  std::string ToJson() const;
  // InvalidArgument for text that ToJson did not write, with the place.
  static absl::StatusOr<AotLog> FromJson(absl::string_view text);
};

// Adds phases to a trace, each with the time since the one before; printing
// graphs is in none of them. With a null trace it does nothing.
class PhaseClock {
 public:
  explicit PhaseClock(AotTrace* log);
  void Phase(absl::string_view name, const Graph* graph = nullptr);

 private:
  AotTrace* const log_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_AOT_LOG_H_
