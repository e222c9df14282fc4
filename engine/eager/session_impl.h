// The inside of a session. Internal to engine/eager.

#ifndef CLEAVE_ENGINE_EAGER_SESSION_IMPL_H_
#define CLEAVE_ENGINE_EAGER_SESSION_IMPL_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/eager/session.h"
#include "engine/eager/storage.h"
#include "engine/ir/graph.h"
#include "engine/runtime/kernel.h"
#include "ops/tensor.h"

namespace cleave::functional {

class EagerGraph;

class Session::Impl : public std::enable_shared_from_this<Session::Impl> {
 public:
  Impl(std::shared_ptr<const RuleSet> rules, SessionOptions options)
      : rules(std::move(rules)), options(options), mode(options.mode) {}

  bool accumulates() const {
    return mode == EagerMode::kLazy || atomic_depth > 0;
  }
  // The graph that ops go to.
  const std::shared_ptr<EagerGraph>& current();
  // Runs `graph`; every storage that waits for it gets its value or status.
  absl::Status Run(EagerGraph& graph);
  absl::Status RunCurrent();
  // Ops go to another graph from here on, if they go to this one.
  void Drop(const EagerGraph& graph) {
    if (current_.get() == &graph) current_ = nullptr;
  }

  const std::shared_ptr<const RuleSet> rules;
  const SessionOptions options;
  EagerMode mode;
  int atomic_depth = 0;
  SessionStatistics statistics;
  RunReport last_report;

  struct Entry {
    std::string key;
    std::shared_ptr<const Kernel> kernel;
  };
  // The most recently used first, and by key.
  std::list<Entry> entries;
  absl::flat_hash_map<std::string, std::list<Entry>::iterator> entry_of;

 private:
  absl::StatusOr<std::shared_ptr<const Kernel>> KernelFor(const Graph& graph);
  absl::Status RunGraph(EagerGraph& graph);

  std::shared_ptr<EagerGraph> current_;
};

// Ops that have not run. Closed once it was run.
class EagerGraph : public Recorder {
 public:
  explicit EagerGraph(const std::shared_ptr<Session::Impl>& session)
      : Recorder(session->rules->context(), session->rules),
        session_(session) {}

  bool is_trace() const override { return false; }
  bool accumulates() const override;
  absl::Status CheckOpen() const override { return absl::OkStatus(); }
  absl::StatusOr<Value> Read(const std::shared_ptr<Storage>& storage) override;
  absl::Status CheckWrite(const Storage& storage) const override;
  void Written(const std::shared_ptr<Storage>& storage) override {
    waiting_.push_back(storage);
  }
  absl::Status Done() override;
  absl::Status Realize() override;
  // Forgets what the op that failed has added, where no other op waits.
  void Mistake(const absl::Status& status) override;

 private:
  friend class Session::Impl;

  const std::weak_ptr<Session::Impl> session_;
  std::vector<cleave::Tensor> inputs_;
  // The inputs: by the storage's id, and its version.
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, Value> known_;
  std::vector<std::weak_ptr<Storage>> waiting_;
};

struct SessionAccess {
  static const std::shared_ptr<Session::Impl>& ImplOf(const Session& session) {
    return session.impl_;
  }
};

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_SESSION_IMPL_H_
