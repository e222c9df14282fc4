// Limits: how much memory, depth and work one call may cause, and how it is
// told to end early. A rule file may come from anywhere: whatever it says, a
// call ends with an error that names the limit, never by exhausting the
// process.
//
//   std::atomic<bool> cancelled{false};  // set by another thread, or a signal
//   Limits limits;
//   limits.loop_steps = 1000;
//   limits.cancelled = &cancelled;
//   BudgetScope scope(limits);
//   absl::StatusOr<std::vector<Tensor>> y = Interpret(graph, inputs);
//   // ResourceExhausted: more than 1000 loop steps (Limits::loop_steps, ..)
//
// A scope holds for all that its thread calls within it, and what nested calls
// cause is counted together. Where none is open, the functions that callers
// have (LoadRules, Expand, Interpret, transforms, CheckRules, ..) open one with
// the defaults; elsewhere nothing is counted, but depth is bounded all the
// same.

#ifndef CLEAVE_OPS_BUDGET_H_
#define CLEAVE_OPS_BUDGET_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cleave {

// Half of the memory that this process may have: of the machine's, or of its
// limit on address space where that is less.
int64_t DefaultTensorBytes();

// The defaults are far above what real programs need.
struct Limits {
  // Bytes of tensors, of numbers over the reals, and of what kernels of the
  // interpreter keep beside them, alive at one time.
  int64_t tensor_bytes = DefaultTensorBytes();
  // Steps of scan, map and while in one evaluation, inner loops included.
  int64_t loop_steps = 10'000'000;
  // Expressions of rules that are elaborated: of all bodies that a call needs.
  int64_t expressions = 2'000'000;
  // Bodies, specs and overrides that are compiled, one for each signature.
  int64_t bodies = 10'000;
  // Nodes of graphs that are made.
  int64_t nodes = 4'000'000;
  // Levels of what stands within something else: expressions, calls of defs
  // and ops, terms. A level takes one to two kilobytes of a stack that grows.
  int depth = 20'000;
  // The call ends as Cancelled soon after it gets true. Null: never. Outlives
  // the call.
  const std::atomic<bool>* cancelled = nullptr;
  // The call ends as DeadlineExceeded soon after.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

// The kinds of work that are counted, in the order of the fields of Limits.
enum class BudgetKind { kLoopSteps, kExpressions, kBodies, kNodes };
inline constexpr int kNumBudgetKinds = 4;

// Opens a budget for this thread, or joins the one that is open.
class BudgetScope {
 public:
  enum class Mode {
    kJoin,   // the open one holds, if there is any
    kRenew,  // counts from zero; cancelled, deadline and the memory in use are
             // also those of the open one
    kDefaults,  // as kRenew, but nothing is counted in it: each scope that
                // would join it counts for itself
    kDetached,  // as where none is open: for what is made once and kept, and
                // must not depend on the call that happens to need it first
  };
  explicit BudgetScope(const Limits& limits = {}, Mode mode = Mode::kJoin);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  struct Opened;
  std::unique_ptr<Opened> opened_;  // null: joined
};

// The limits of the open scope; the defaults if there is none.
Limits CurrentLimits();

// Cancelled or DeadlineExceeded where the call is to end, and ResourceExhausted
// once something that is counted went beyond its limit. Some nanoseconds: every
// loop whose length depends on input asks once a round.
absl::Status PollBudget();
// The same for loops that cannot return an error: they stop, and their caller
// asks PollBudget.
bool BudgetEnded();

// The same for the innermost loops: most rounds cost an addition.
class BudgetPolls {
 public:
  bool Ended() {
    constexpr uint32_t kEvery = 256;
    if (++polls_ % kEvery == 0 && BudgetEnded()) ended_ = true;
    return ended_;
  }

 private:
  uint32_t polls_ = 0;
  bool ended_ = false;
};

// Whether it is an error of the call rather than of what it works on, so that
// another call may succeed: nothing is remembered of it.
bool EndsCall(const absl::Status& status);

// Counts; ResourceExhausted beyond the limit.
absl::Status ChargeBudget(BudgetKind kind, int64_t amount = 1);

// ResourceExhausted unless `bytes` more may be alive. Does not count them.
absl::Status CheckTensorBytes(int64_t bytes);
// Bytes of data that are counted for as long as this lives.
class HeldBytes {
 public:
  HeldBytes(std::shared_ptr<std::atomic<int64_t>> total, int64_t bytes)
      : total_(std::move(total)), bytes_(bytes) {
    if (total_ != nullptr) *total_ += bytes_;
  }
  HeldBytes(HeldBytes&&) = default;  // the source counts nothing any more
  HeldBytes& operator=(HeldBytes&&) = delete;
  ~HeldBytes() {
    if (total_ != nullptr) *total_ -= bytes_;
  }

 private:
  std::shared_ptr<std::atomic<int64_t>> total_;
  int64_t bytes_;
};

// Counts nothing if there is no open scope.
HeldBytes HoldTensorBytes(int64_t bytes);

// Numbers over the reals that are alive in this process count, too.
void CountReals(int64_t count, int bits);

// Names what is being worked on, so that an error of a limit says how it got
// there: `the body of `f` needs `g`, which needs ..`.
class BudgetFrame {
 public:
  explicit BudgetFrame(absl::string_view name);
  ~BudgetFrame();
  BudgetFrame(const BudgetFrame&) = delete;
  BudgetFrame& operator=(const BudgetFrame&) = delete;
};

namespace internal_budget {

class Level {
 public:
  Level();
  ~Level();
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  absl::Status status() const;
};

// Whether this thread's stack has room for some more calls.
bool StackIsAmple();
// Runs it on another stack, with the budget of this thread; ResourceExhausted
// where there is no memory for one.
absl::Status OnNewStack(const std::function<void()>& function);

}  // namespace internal_budget

// Runs it where the stack has room for recursion over a tree of limited height
// (some megabytes): here, or on a stack of its own. ResourceExhausted where
// there is no memory for one: then nothing is run.
absl::Status OnAmpleStack(const std::function<void()>& function);

// f() one level deeper: a recursion over input goes through it in each round.
// ResourceExhausted beyond Limits::depth. The stack is that of the caller as
// long as it lasts: a thread with a small one is as good as any.
//
//   absl::StatusOr<Value> Lower(const TermPtr& term) {
//     return Deeper([&] { return LowerNew(term); });
//   }
template <typename F>
auto Deeper(F&& f) -> decltype(f()) {
  const internal_budget::Level level;
  absl::Status status = level.status();
  if (!status.ok()) return status;
  if (internal_budget::StackIsAmple()) return f();
  std::optional<decltype(f())> result;
  status = internal_budget::OnNewStack([&] { result.emplace(f()); });
  if (!status.ok()) return status;
  return *std::move(result);
}

// A mutex that a call which holds it may lock again, also on the other stack
// that Deeper gave it; std::recursive_mutex would take that for another thread.
class CallMutex {
 public:
  void lock();
  void unlock();

 private:
  std::mutex mutex_;
  std::atomic<const void*> holder_{nullptr};
  int depth_ = 0;  // of the holder
};

}  // namespace cleave

#endif  // CLEAVE_OPS_BUDGET_H_
