#include "ops/budget.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace cleave {
namespace {

constexpr size_t kStackBytes = size_t{16} << 20;
// The stack that one level and the functions that it calls may take before the
// next level asks again.
constexpr size_t kStackMargin = size_t{160} << 10;
// Parsing takes one and a half megabytes where nesting is at its limit.
constexpr size_t kAmpleBytes = size_t{4} << 20;
constexpr int kPollsPerClock = 64;
constexpr size_t kShownFrames = 4;

struct KindWords {
  const char* what;
  const char* field;
  const char* flag;
};
constexpr KindWords kWords[kNumBudgetKinds] = {
    {"steps of loops", "loop_steps", "--max-steps"},
    {"expressions of rules", "expressions", "--max-expressions"},
    {"compiled bodies", "bodies", "--max-bodies"},
    {"nodes", "nodes", "--max-nodes"},
};

int64_t LimitOf(const Limits& limits, BudgetKind kind) {
  switch (kind) {
    case BudgetKind::kLoopSteps:
      return limits.loop_steps;
    case BudgetKind::kExpressions:
      return limits.expressions;
    case BudgetKind::kBodies:
      return limits.bodies;
    case BudgetKind::kNodes:
      return limits.nodes;
  }
  return 0;
}

using Bytes = std::atomic<int64_t>;

struct Budget {
  Limits limits;
  bool counts_calls = true;  // false: kDefaults
  int64_t counts[kNumBudgetKinds] = {};
  std::shared_ptr<Bytes> tensor_bytes;
  int polls = 0;
  absl::Status exceeded;  // from then on
};

// The state of a chain of calls; a new stack goes on with that of the old one.
struct State {
  Budget* budget = nullptr;
  int depth = 0;
  std::vector<std::string> frames;
};

State& OwnState() {
  thread_local State state;
  return state;
}

thread_local State* entered_state = nullptr;  // on a new stack

State& CurrentState() {
  return entered_state != nullptr ? *entered_state : OwnState();
}

// Approximate: a number takes its fields, its digits and what the allocator
// adds.
std::atomic<int64_t> real_bytes{0};
constexpr int64_t kRealOverhead = 64;

// A thread's bytes that it has not added to `real_bytes` yet: threads that each
// make and drop numbers would wait for one another at every one.
class UncountedReals {
 public:
  UncountedReals() = default;
  ~UncountedReals() { real_bytes += bytes_; }
  void Add(int64_t bytes) {
    bytes_ += bytes;
    if (bytes_ > -kMost && bytes_ < kMost) return;
    real_bytes += bytes_;
    bytes_ = 0;
  }

 private:
  static constexpr int64_t kMost = 64 << 10;

  int64_t bytes_ = 0;
};

absl::Status Exceeded(const State& state, int64_t limit, absl::string_view what,
                      absl::string_view field, absl::string_view flag) {
  std::string chain;
  for (size_t i = 0; i < std::min(kShownFrames, state.frames.size()); ++i) {
    absl::StrAppend(&chain, i == 0 ? " in `" : " -> `", state.frames[i], "`");
  }
  if (state.frames.size() > kShownFrames) {
    absl::StrAppend(&chain, " -> .. (", state.frames.size() - kShownFrames,
                    " more)");
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the call takes more than ", limit, " ", what, chain,
                   "; Limits::", field, " (", flag, ") allows more"));
}

absl::Status Ended(Budget& budget) {
  if (!budget.exceeded.ok()) return budget.exceeded;
  if (budget.limits.cancelled != nullptr &&
      budget.limits.cancelled->load(std::memory_order_relaxed)) {
    return absl::CancelledError("interrupted");
  }
  if (budget.limits.deadline.has_value() &&
      ++budget.polls % kPollsPerClock == 0 &&
      std::chrono::steady_clock::now() > *budget.limits.deadline) {
    // The next one asks the clock again, too.
    budget.polls = kPollsPerClock - 1;
    return absl::DeadlineExceededError("its time was up");
  }
  return absl::OkStatus();
}

}  // namespace

int64_t DefaultTensorBytes() {
  static const int64_t bytes = [] {
    int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
                     static_cast<int64_t>(sysconf(_SC_PAGESIZE));
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      memory = std::min<int64_t>(memory, static_cast<int64_t>(limit.rlim_cur));
    }
    return memory / 2;
  }();
  return bytes;
}

struct BudgetScope::Opened {
  Budget budget;
  Budget* before = nullptr;
};

BudgetScope::BudgetScope(const Limits& limits, Mode mode) {
  State& state = CurrentState();
  const bool joins = mode == Mode::kJoin && state.budget != nullptr;
  if (joins && state.budget->counts_calls) return;
  opened_ = std::make_unique<Opened>();
  opened_->before = state.budget;
  Budget& budget = opened_->budget;
  budget.limits = joins ? state.budget->limits : limits;
  budget.counts_calls = mode != Mode::kDefaults;
  if (state.budget == nullptr || mode == Mode::kDetached) {
    budget.tensor_bytes = std::make_shared<Bytes>(0);
  } else {
    const Limits& around = state.budget->limits;
    if (limits.cancelled == nullptr) {
      budget.limits.cancelled = around.cancelled;
    }
    if (around.deadline.has_value() &&
        (!limits.deadline.has_value() || *around.deadline < *limits.deadline)) {
      budget.limits.deadline = around.deadline;
    }
    budget.tensor_bytes = state.budget->tensor_bytes;
  }
  state.budget = &budget;
}

BudgetScope::~BudgetScope() {
  if (opened_ != nullptr) CurrentState().budget = opened_->before;
}

Limits CurrentLimits() {
  const Budget* budget = CurrentState().budget;
  return budget == nullptr ? Limits() : budget->limits;
}

absl::Status PollBudget() {
  Budget* budget = CurrentState().budget;
  return budget == nullptr ? absl::OkStatus() : Ended(*budget);
}

bool BudgetEnded() { return !PollBudget().ok(); }

absl::Status ChargeBudget(BudgetKind kind, int64_t amount) {
  const State& state = CurrentState();
  if (state.budget == nullptr) return absl::OkStatus();
  Budget& budget = *state.budget;
  if (!budget.counts_calls) return Ended(budget);
  int64_t& count = budget.counts[static_cast<int>(kind)];
  const int64_t limit = LimitOf(budget.limits, kind);
  if (amount > limit - count && budget.exceeded.ok()) {
    const KindWords& words = kWords[static_cast<int>(kind)];
    budget.exceeded =
        Exceeded(state, limit, words.what, words.field, words.flag);
  }
  count += amount;
  return Ended(budget);
}

absl::Status CheckTensorBytes(int64_t bytes) {
  const State& state = CurrentState();
  if (state.budget == nullptr) return absl::OkStatus();
  const int64_t used = *state.budget->tensor_bytes + real_bytes;
  const int64_t limit = state.budget->limits.tensor_bytes;
  if (bytes <= limit - used) return absl::OkStatus();
  return Exceeded(state, limit,
                  absl::StrCat("bytes of tensors (", bytes, " are asked for, ",
                               used, " are in use)"),
                  "tensor_bytes", "--max-memory");
}

HeldBytes HoldTensorBytes(int64_t bytes) {
  const Budget* budget = CurrentState().budget;
  // The total outlives the scope: tensors are given back.
  return HeldBytes(budget == nullptr ? nullptr : budget->tensor_bytes, bytes);
}

void CountReals(int64_t count, int bits) {
  thread_local UncountedReals uncounted;
  uncounted.Add(count * (kRealOverhead + bits / 8));
}

BudgetFrame::BudgetFrame(absl::string_view name) {
  CurrentState().frames.emplace_back(name);
}

BudgetFrame::~BudgetFrame() { CurrentState().frames.pop_back(); }

namespace internal_budget {

Level::Level() { ++CurrentState().depth; }
Level::~Level() { --CurrentState().depth; }

absl::Status Level::status() const {
  const State& state = CurrentState();
  const int limit =
      state.budget == nullptr ? Limits().depth : state.budget->limits.depth;
  if (state.depth <= limit) return absl::OkStatus();
  return Exceeded(state, limit, "levels of depth", "depth", "--max-depth");
}

// Whether so much of this thread's stack is left.
bool HasStack(size_t bytes) {
  thread_local char* const lowest = [] {
    void* address = nullptr;
    size_t size = 0;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      pthread_attr_getstack(&attributes, &address, &size);
      pthread_attr_destroy(&attributes);
    }
    return static_cast<char*>(address);
  }();
  const char here = 0;
  return &here > lowest + bytes;
}

bool StackIsAmple() { return HasStack(kStackMargin); }

absl::Status OnNewStack(const std::function<void()>& function) {
  struct Call {
    const std::function<void()>& function;
    State& state;
  } call{function, CurrentState()};
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) {
    return absl::ResourceExhaustedError("no memory for another stack");
  }
  pthread_t thread;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  const int failed = pthread_create(
      &thread, &attributes,
      [](void* argument) -> void* {
        const Call& call = *static_cast<Call*>(argument);
        entered_state = &call.state;
        call.function();
        entered_state = nullptr;
        return nullptr;
      },
      &call);
  pthread_attr_destroy(&attributes);
  if (failed != 0) {
    return absl::ResourceExhaustedError("no memory for another stack");
  }
  pthread_join(thread, nullptr);
  return absl::OkStatus();
}

}  // namespace internal_budget

bool EndsCall(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status);
}

void CallMutex::lock() {
  const void* const call = &CurrentState();
  if (holder_.load(std::memory_order_relaxed) != call) {
    mutex_.lock();
    holder_.store(call, std::memory_order_relaxed);
  }
  ++depth_;
}

void CallMutex::unlock() {
  if (--depth_ > 0) return;
  holder_.store(nullptr, std::memory_order_relaxed);
  mutex_.unlock();
}

absl::Status OnAmpleStack(const std::function<void()>& function) {
  if (internal_budget::HasStack(kAmpleBytes)) {
    function();
    return absl::OkStatus();
  }
  return internal_budget::OnNewStack(function);
}

}  // namespace cleave
