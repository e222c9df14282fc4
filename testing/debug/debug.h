// DebugGraph: the values of all nodes of a function beside exact ones, and the
// first node that is off.
//
//   absl::StatusOr<Graph> graph = InPrimitives(function, rules);
//   absl::StatusOr<DebugReport> report = DebugGraph(*graph, {x}, {});
//   report->ToString();
//
//     node  computed      exact             ulp       own    cond
//     %x    1e-05         9.9999997474e-06  0                       input
//     ..
//     %2    1.00001       1.00001           0.114     0.114  1      add(%1, %x)
//     %3    1.001353e-05  9.9999497477e-06  1.49e+04  0.125  1e+05  log(%2)
//
//     y is off by 1.49e+04 ulp: %3
//     first node that is off: %3 = log(%2)  // log1, log1.rules:3
//       ill-conditioned, condition number 1e+05: an error of 0.114 ulp in ..
//
// The derivative of a function is a graph like any other: debug what Jvp or Vjp
// gives.

#ifndef CLEAVE_TESTING_DEBUG_DEBUG_H_
#define CLEAVE_TESTING_DEBUG_DEBUG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"
#include "testing/debug/find_cause.h"
#include "testing/debug/node_values.h"

namespace cleave {

struct DebugOptions {
  // An output within so many ULP of its exact value is right.
  double ulp = 8;
  // And one within so much of it, as where the exact value is 0.
  double absolute = 0;
  // The output that is asked about; empty: all.
  std::string output;
  // Its element that is asked about; nullopt: the worst. Nodes of the output's
  // shape show this element, too.
  std::optional<std::vector<int64_t>> element;
  DebugProgress progress;
};

// A node at one element, its worst or the one that is asked about.
struct DebugRow {
  std::string name;       // "%3", "%x"
  std::string operation;  // "sub(%1, %2)"; empty for an input
  std::string type;       // "f32[3]"
  std::string rule;       // "softplus"; empty for what no rule says
  std::string file;
  int line = 0;
  // Nullopt where nothing is shown: a node without elements, or of several
  // results, which have rows of their own.
  std::optional<std::vector<int64_t>> index;
  std::string computed;
  std::string exact;
  // Nullopt where it is not known.
  std::optional<ElementError> error;
  // On the operands as they were computed: what the node adds.
  std::optional<ElementError> own;
  // The distance of the exact value on these operands from `exact`, in ULP: the
  // error that the node inherits.
  std::optional<double> inherited_ulp;
  std::optional<double> condition;
  // Why `exact` is a stand-in.
  std::string no_exact_value;
};

struct DebugReport;

struct DebugStep {
  size_t row = 0;
  std::vector<int64_t> index;
  ElementError error;
};

// Why an output is off.
struct DebugCause {
  Finding finding = Finding::kAccumulated;
  std::vector<DebugStep> path;  // from the output to the end of the search
  size_t first = 0;             // in the path: the first node that is off
  std::vector<size_t> jumps;    // those before it that multiply its error
  std::optional<double> condition;
  std::string
      message;  // one or two sentences: "its exact value, .., is beyond"
  // The step where the first node goes wrong, if it is a loop or a branch.
  std::string inside_name;  // "step 7 of %4's body"
  std::shared_ptr<const DebugReport> inside;
};

struct DebugOutput {
  std::string name;
  size_t row = 0;
  // Its worst element, or the one that is asked about; nullopt where its error
  // is not known.
  std::optional<DebugStep> worst;
  bool off = false;
  std::optional<DebugCause> cause;  // where it is off
};

struct DebugReport {
  std::vector<DebugRow> rows;  // in the order of the nodes
  std::vector<DebugOutput> outputs;
  double ulp = 0;  // those of DebugOptions
  double absolute = 0;
  int bits = 0;  // of the exact values
  // Whether the function is not what it means, and where, as CompareMeaning
  // found (meaning.h).
  bool differs = false;
  std::vector<std::string> notes;

  // Whether an output is off.
  bool off() const;
  // A line for each row, then what was found.
  std::string ToString() const;
  // For programs; infinite and NaN numbers are strings.
  std::string ToJson() const;
};

// `graph` is of primitives. InvalidArgument for inputs that do not fit, an
// output that is not there, an element that it does not have; else errors of
// Interpret. Memory and time are those of the graph over the reals, several
// times; they are bounded by ops/budget.h.
absl::StatusOr<DebugReport> DebugGraph(const Graph& graph,
                                       absl::Span<const Tensor> inputs,
                                       const DebugOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_TESTING_DEBUG_DEBUG_H_
