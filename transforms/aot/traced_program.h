// TracedProgram: a C++ function on trees of tensors as a graph of values, and
// beside the graph: which inputs are written, and which outputs are views of
// others. Functionalization, in AOTAutograd's words; the storage model is
// stated in engine/eager/view.h.
//
//   [](Tensor x) { x += 1; return x[{0}]; }
//
//   graph (x0) -> (y = slice(x0 + 1), x0.updated = x0 + 1)
//   x0 is written with x0.updated after the run; y is x0's view [0]

#ifndef CLEAVE_TRANSFORMS_AOT_TRACED_PROGRAM_H_
#define CLEAVE_TRANSFORMS_AOT_TRACED_PROGRAM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/eager/tensor.h"
#include "engine/eager/tree.h"
#include "engine/eager/view.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "ops/dim.h"
#include "ops/infer_type.h"
#include "ops/tensor_type.h"

namespace cleave::aot {

using functional::Tree;
using functional::TreeFunction;
using functional::TreeShape;
using functional::View;

// How an output of a function shares its storage.
enum class OutputKind {
  // A storage of its own, or one that the caller cannot reach otherwise.
  kNonAlias,
  // An input as it stands, or a view of an input (of a captured tensor, too).
  kIsInput,
  kAliasOfInput,
  // Views of one storage that the function made: the first of them brings its
  // whole value along, as a further output; where an output is that whole
  // value, it does.
  kAliasOfIntermediateSaveAsOutput,
  kAliasOfIntermediate,
  kAliasOfIntermediateBaseIsUserOutput,
};
absl::string_view OutputKindName(OutputKind kind);

// How the function's writes to a leaf of the arguments reach the caller.
enum class MutationKind {
  kNotMutated,
  // The graph takes the input's whole storage and gives its new value.
  kInGraph,
  // The graph gives the leaf's new value; it is written through the leaf's view
  // after the run.
  kOutOfGraph,
};
absl::string_view MutationKindName(MutationKind kind);

struct TracedInput {
  // The leaf of the arguments that it is; of storages that several leaves share
  // the first of these; -1 for a captured tensor.
  int leaf = -1;
  // It stands for the leaf's whole storage.
  bool is_base = false;
  functional::Tensor captured;
  // The output with its value after the run; -1 where it is not written.
  int updated = -1;
};

struct TracedOutput {
  OutputKind kind = OutputKind::kNonAlias;
  // The output with its value; -1 for an alias in inference, whose value is its
  // base's.
  int value = -1;
  // The base of an alias, by one of these; the others are -1. base_leaf: the
  // leaf of the arguments whose storage it sees. base_captured: the input that
  // is captured. base_output: the output with the base's value.
  int base_leaf = -1;
  int base_captured = -1;
  int base_output = -1;
  View view;
};

struct TracedProgram {
  Graph graph;
  std::vector<TracedInput> inputs;      // per input of the graph
  std::vector<int> leaf_inputs;         // per leaf of the arguments
  std::vector<MutationKind> mutations;  // per leaf of the arguments
  TreeShape arguments = TreeShape::Leaf();
  TreeShape results = TreeShape::Leaf();
  std::vector<TracedOutput> outputs;  // per leaf of the results

  bool IsMutated() const;
  // A line for each leaf of the arguments and the results: what it is.
  std::string ToString() const;
};

struct TraceOptions {
  // Whether cotangents may be asked for: then the value of each result is an
  // output.
  bool differentiated = false;
  // AotOptions::disable_functionalization.
  bool refuse_writes = false;
  // Written leaves that are views are given as their storages.
  bool write_in_graph = false;
};

// Calls `fn` once or twice, on tensors of `types` (per leaf) that share
// storages as `leaves` do. The function's own mistakes, with their places among
// the leaves; InvalidArgument for a leaf that is no tensor, a result that is a
// number, and a write that is refused.
absl::StatusOr<TracedProgram> TraceProgram(
    const TreeFunction& fn, const TreeShape& arguments,
    absl::Span<const functional::Tensor> leaves,
    const std::vector<TensorType>& types, std::shared_ptr<const RuleSet> rules,
    const TraceOptions& options);

// The first mistake that a leaf of the arguments carries, with its place;
// InvalidArgument for one that is a number.
absl::Status CheckArguments(const TreeShape& arguments,
                            absl::Span<const functional::Tensor> leaves);

// Per leaf: the first leaf that shares its storage, which may be itself.
std::vector<int> FirstOfStorage(absl::Span<const functional::Tensor> leaves);
// Whether that is `first`. `slots` is scratch, which later calls need not make.
bool SharesStorageAs(absl::Span<const functional::Tensor> leaves,
                     absl::Span<const int> first, std::vector<int>* slots);

// Names for the leaves of a tree: "x"; "x0", "x1.weight".
std::vector<std::string> LeafNames(const TreeShape& shape,
                                   absl::string_view name);

// The number that an extent has in the call that is traced: constants as they
// are; under `dynamic`, where extents are symbols, the call's own number, which
// becomes a guard of the trace. InvalidArgument for an extent that the trace
// does not know.
absl::StatusOr<int64_t> SizeOf(const Dim& extent);

// The numbers that SizeOf reads: the extents of the call that is being traced
// on this thread.
class SizeHints {
 public:
  explicit SizeHints(std::map<std::string, int64_t> values);
  SizeHints(const SizeHints&) = delete;
  SizeHints& operator=(const SizeHints&) = delete;
  ~SizeHints();
  // The answers of SizeOf, as guards.
  const std::vector<ShapeGuard>& guards() const { return guards_; }

 private:
  friend absl::StatusOr<int64_t> SizeOf(const Dim& extent);
  std::map<std::string, int64_t> values_;
  std::vector<ShapeGuard> guards_;
  SizeHints* const outer_;
};

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_TRACED_PROGRAM_H_
