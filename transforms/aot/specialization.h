// Specialization: one trace of an AotFunction and what it became; and the cache
// in which a call finds the one that serves it. Internal to transforms/aot.
//
//   SpecializationCache cache(/*dynamic=*/true, /*limit=*/128);
//   SpecializationCache::Found found = cache.Find(call);
//   if (found.specialization == nullptr) cache.Insert(Trace(call));

#ifndef CLEAVE_TRANSFORMS_AOT_SPECIALIZATION_H_
#define CLEAVE_TRANSFORMS_AOT_SPECIALIZATION_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/eager/tensor.h"
#include "engine/eager/tree.h"
#include "engine/eager/view.h"
#include "engine/ir/bind.h"
#include "ops/infer_type.h"
#include "ops/tensor_type.h"
#include "transforms/aot/aot_graph.h"
#include "transforms/aot/backward_state.h"
#include "transforms/aot/traced_program.h"

namespace cleave::aot {

// Which gradients a call asks for.
struct GradientRequest {
  // Per leaf of the arguments; null for all leaves of inexact dtypes.
  const std::vector<bool>* leaves = nullptr;
  bool none = false;  // whatever `leaves` is
};

// A call, as far as it decides which trace serves it. Refers to what the caller
// has.
struct CallSignature {
  CallSignature(const Tree& arguments,
                const std::vector<bool>& requires_gradient, bool traced,
                bool write_in_graph);

  // Whether the leaf's view is part of the signature: a whole storage may
  // become an input.
  bool ViewMatters(size_t leaf) const {
    return shared[leaf] || (write_in_graph && leaves[leaf].IsView());
  }

  const TreeShape& arguments;
  const std::vector<functional::Tensor>& leaves;
  const std::vector<bool>& requires_gradient;
  // Whether the call adds nodes to a trace around it.
  const bool traced;
  const bool write_in_graph;
  // Per leaf: the first leaf of its storage, and whether another one has it.
  const std::vector<int> first;
  std::vector<bool> shared;
};

// Numbers of symbols, by the symbol's number.
using Extents = absl::InlinedVector<int64_t, 8>;

struct Specialization {
  // A trace for the calls that have the structure of `call`, and its pattern of
  // shared storages.
  explicit Specialization(const CallSignature& call);

  // Takes the types that the call was traced at, whose extents are numbers and
  // the names of `symbols`.
  void SetTypes(std::vector<TensorType> traced_at,
                std::vector<std::string> names);

  // Whether it serves a call of concrete tensors outside of a trace, and then
  // the numbers of its symbols. False where only the call's signature can tell,
  // as for views. One pass over the leaves, which makes nothing of them.
  bool ServesAtOnce(const Tree& arguments, const GradientRequest& gradients,
                    Extents* extents) const;

  // The numbers of the symbols in a call with this signature; false where it
  // has other extents.
  bool ReadExtents(absl::Span<const functional::Tensor> leaves,
                   Extents* extents) const;
  // Why the call's extents do not fit, where ReadExtents is false.
  absl::Status Unfit(absl::Span<const functional::Tensor> leaves) const;
  // FailedPrecondition for a guard that does not hold. Guards on sizes that no
  // argument tells are checked where these are known.
  absl::Status CheckGuards(const Extents& extents) const;
  DimValues ValuesOf(const Extents& extents) const;

  // `value` as a tensor of its own: the n-th that a call of this trace makes.
  functional::Tensor NewTensor(size_t n, cleave::Tensor value) const;

  const bool traced;
  const std::vector<bool> requires_gradient;
  const std::vector<int> first;
  std::vector<View> views;  // of leaves whose view matters
  size_t hash = 0;
  int64_t number = 0;  // in the order of their making

  std::vector<TensorType> types;     // per leaf
  std::vector<std::string> symbols;  // s0, s1, ..
  std::vector<bool> active;          // per input of the graph
  std::vector<ShapeGuard> guards;
  TracedProgram program;
  bool is_mutated = false;  // the program's
  // Whether the results are the graph's outputs as they stand.
  bool returns_outputs = false;
  // Whether a view among the results has an extent with symbols.
  bool has_symbolic_views = false;
  std::shared_ptr<AotGraph> compiled;  // null where `traced`
  std::shared_ptr<const BackwardTrees> backward;

 private:
  // Whether it gives the gradients that are asked for, of leaves of its types.
  bool Gives(const GradientRequest& gradients) const;

  // Per leaf and axis: the number of the symbol that the extent is, or -1.
  std::vector<int> symbol_of_;
  // Per leaf and axis: the extent, or -1 - n for symbol n.
  std::vector<int64_t> wanted_;
  // Whether ServesAtOnce can tell for some call: no leaf's view matters.
  bool at_once_ = false;
  // Whether gradients are asked for as by default, and whether none is.
  bool default_gradients_ = false;
  bool no_gradients_ = false;
  // The views of the tensors that the last call made.
  mutable std::vector<View> made_views_;
  // Scratch of SharesStorageAs.
  mutable std::vector<int> storage_slots_;
  // The extents for which the guards were last seen to hold.
  mutable Extents admitted_;
  mutable bool any_admitted_ = false;
};

// The most recently used specializations, `limit` at most (at least 1).
class SpecializationCache {
 public:
  // `dynamic`: extents are no part of a call's signature, unless it is traced.
  SpecializationCache(bool dynamic, int64_t limit);

  struct Found {
    std::shared_ptr<const Specialization> specialization;  // or null
    Extents extents;
    std::string why;  // there is none
  };
  Found Find(const CallSignature& call);
  // The one that was found last; null if there is none yet.
  const std::shared_ptr<const Specialization>& last() const {
    static const std::shared_ptr<const Specialization> none;
    return entries_.empty() ? none : entries_.front();
  }
  void Insert(std::shared_ptr<Specialization> made, const CallSignature& call);

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  // In the order of their making.
  std::vector<std::shared_ptr<const Specialization>> InOrder() const;

 private:
  using Entries = std::list<std::shared_ptr<const Specialization>>;

  bool IsSymbolic(const CallSignature& call) const {
    return dynamic_ && !call.traced;
  }
  size_t HashOf(const CallSignature& call) const;
  // Whether everything but symbolic extents fits.
  bool Fits(const Specialization& one, const CallSignature& call) const;
  // Whether it serves the call; says why not, where the signature fits.
  bool Serves(const Specialization& one, const CallSignature& call,
              Found* found) const;

  const bool dynamic_;
  const int64_t limit_;
  int64_t made_ = 0;
  Entries entries_;  // the most recently used first
  absl::flat_hash_map<size_t, absl::InlinedVector<Entries::iterator, 1>>
      by_hash_;
};

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_SPECIALIZATION_H_
