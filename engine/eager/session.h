// Session: the rules and kernels that eager ops run with, and when they run.
//
//   Session session(rules);
//   SessionScope scope(session);         // for this thread, until it ends
//   Tensor y = Softmax(x);               // runs now: one kernel
//   std::cout << session.statistics().ToString();
//
// An op is expanded by the rules and compiled, with the views that it reads and
// writes, once for each op, attributes and types; the kernel is found again by
// the structure of the graph, or, if its tensors are no views, by the call
// alone, without a graph. Kernels for other extents share their code
// (CompileOptions::generalize_extents).
//
// Where ops accumulate (atomic.h, or kLazy), the graph runs when a value is
// asked for, or an op's result has a size that depends on values; all tensors
// that are alive by then, and all writes, get their values in that run. If an
// op fails in it, a tensor that does not depend on that op gets its value as if
// the op had not been there: the graph runs again in parts, which costs that
// much. New tensors that depend on it carry the status; a storage that was
// written keeps its last value that does not depend on it, which may be the one
// from before the graph.
//
// A session and its tensors belong to one thread. Sessions on several threads
// may share rules and a kernel cache.

#ifndef CLEAVE_ENGINE_EAGER_SESSION_H_
#define CLEAVE_ENGINE_EAGER_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "engine/ir/host_kernel.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_cache.h"

namespace cleave::functional {

enum class EagerMode {
  kImmediate,  // each op runs at once
  kLazy,       // ops accumulate until a value is asked for
};

struct SessionOptions {
  // Null: DefaultKernelCache().
  KernelCache* cache = nullptr;
  Device device = Device::kCpu;
  // Graphs whose kernels are kept, the most recently used.
  int64_t max_graphs = 4096;
  EagerMode mode = EagerMode::kImmediate;
  // Ops that the host computes by functions of its own, on this session's
  // thread.
  HostKernels host_kernels;
};

struct SessionStatistics {
  int64_t ops = 0;                    // calls and writes recorded
  int64_t graphs_run = 0;             // graphs that ran, new or known
  int64_t graphs_compiled = 0;        // of these, not known by structure
  int64_t cache_hits = 0;             // known by structure
  int64_t kernels_run = 0;            // compiled kernels
  int64_t reference_kernels_run = 0;  // slow ones; last_report() says why
  int64_t host_kernels_run = 0;
  int64_t fused_ops = 0;  // primitives in all of them
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  // Runs that something within an AtomicScope asked for before its end.
  int64_t early_runs = 0;
  int64_t compile_nanoseconds = 0;
  int64_t run_nanoseconds = 0;
  std::string ToString() const;
};

class Session {
 public:
  explicit Session(std::shared_ptr<const RuleSet> rules,
                   SessionOptions options = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Tensors that wait for a run are FailedPrecondition from here on, as are ops
  // within its scopes.
  ~Session();

  const std::shared_ptr<const RuleSet>& rules() const;

  EagerMode eager_mode() const;
  // To kImmediate: runs what has accumulated, unless an AtomicScope is open.
  absl::Status SetEagerMode(EagerMode mode);
  // Runs what has accumulated. The first mistake of that run, or else of an
  // in-place operator (`w += x`) since the last Run, which wrote nothing.
  absl::Status Run();

  const SessionStatistics& statistics() const;
  void ResetStatistics();
  // The report of the last graph that ran, valid until the next one runs. If a
  // call ran as it had before, the times are those of its first run.
  const RunReport& last_report() const;
  // Graphs whose kernels are kept.
  int64_t cached_graphs() const;

  class Impl;

 private:
  friend struct SessionAccess;
  std::shared_ptr<Impl> impl_;
};

// Makes the session this thread's, for its lifetime. Scopes nest: the innermost
// that has not ended counts, in whatever order and on whatever thread they end.
// Where the session has ended before its scope, ops are FailedPrecondition.
class SessionScope {
 public:
  explicit SessionScope(Session& session);
  SessionScope(const SessionScope&) = delete;
  SessionScope& operator=(const SessionScope&) = delete;
  ~SessionScope();

  struct Entry;

 private:
  const std::shared_ptr<Entry> entry_;
};

// This thread's session; null if there is none, or if it has ended.
Session* CurrentSession();
// Sets the mode of this thread's session; FailedPrecondition if there is none.
absl::Status SetEagerMode(EagerMode mode);

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_SESSION_H_
