// Session::Impl and EagerGraph: the kernels that a session keeps, and the graph
// that eager ops accumulate in. Internal to engine/eager.

#ifndef CLEAVE_ENGINE_EAGER_SESSION_IMPL_H_
#define CLEAVE_ENGINE_EAGER_SESSION_IMPL_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/eager/call_key.h"
#include "engine/eager/session.h"
#include "engine/eager/storage.h"
#include "engine/eager/tensor.h"
#include "engine/eager/view.h"
#include "engine/ir/graph.h"
#include "engine/runtime/kernel.h"
#include "ops/tensor.h"

namespace cleave::functional {

class EagerGraph;

class Session::Impl : public std::enable_shared_from_this<Session::Impl> {
 public:
  Impl(std::shared_ptr<const RuleSet> rules, SessionOptions options)
      : rules(std::move(rules)),
        options(std::move(options)),
        mode(this->options.mode) {}

  bool accumulates() const {
    return mode == EagerMode::kLazy || atomic_depth > 0;
  }
  // The graph that ops go to.
  const std::shared_ptr<EagerGraph>& current();
  // Runs `graph`; every storage that waits for it gets its value or status.
  absl::Status Run(EagerGraph& graph);
  absl::Status RunCurrent();
  // The same, and the first in-place operator that was refused since the last
  // time, if there is nothing worse to tell.
  absl::Status RunAndTell();
  // Ops go to another graph from here on, if they go to this one.
  void Drop(const EagerGraph& graph) {
    if (current_.get() == &graph) current_ = nullptr;
  }

  const std::shared_ptr<const RuleSet> rules;
  const SessionOptions options;
  EagerMode mode;
  int atomic_depth = 0;
  bool ended = false;
  absl::Status refused;  // the first in-place operator that wrote nothing
  SessionStatistics statistics;
  // The report of a known call has the times of the run that made it known.
  std::shared_ptr<const RunReport> last_report = std::make_shared<RunReport>();

  struct Entry {
    std::string key;
    std::shared_ptr<const Kernel> kernel;
  };
  // The most recently used first, and by key.
  std::list<Entry> entries;
  absl::flat_hash_map<std::string, std::list<Entry>::iterator> entry_of;

  // A call that is known by its key (call_key.h) runs its kernel at once:
  // values, statistics and errors are those of its graph. Nullopt for one that
  // is not known.
  using Results = std::vector<std::optional<Tensor>>;
  std::optional<absl::StatusOr<Results>> RunKnown(const std::string& key,
                                                  const CallStorages& storages);
  // Makes the call known that has just run, if it was an op alone.
  void Remember(const std::string& key, const CallStorages& storages,
                const Results& results);

 private:
  // The last run, if it was one op whose results have sizes that do not depend
  // on values.
  struct LastRun {
    std::vector<uint64_t> inputs;  // ids of their storages
    std::vector<const Storage*> storages;
    std::vector<int> outputs;  // per storage
  };
  // The kernel's tensors as those of a call.
  struct KnownCall {
    struct Result {
      int output = 0;
      View view;
    };
    std::weak_ptr<const Kernel> kernel;  // gone with its entry
    std::list<Entry>::iterator entry;    // while the kernel is there
    std::vector<int> inputs;             // places among the call's storages
    std::vector<std::optional<Result>> results;
    std::shared_ptr<const RunReport> report;
  };

  void Count(const RunReport& report);

  // A storage that waits, and the node that is to be its value.
  struct Wanted {
    std::shared_ptr<Storage> storage;
    Value node;
    absl::Status status;  // of the last try
  };

  absl::StatusOr<std::shared_ptr<const Kernel>> KernelFor(const Graph& graph);
  // Compiles and runs; the storages get their values if that goes well.
  absl::Status RunNodes(const Graph& graph,
                        const std::vector<cleave::Tensor>& inputs,
                        absl::Span<const Wanted> wanted,
                        const std::vector<int>& output_of);
  // Gives values to those that do not depend on what fails: halves are tried,
  // and halves of those that fail. The others have a status then.
  void RunParts(const Graph& graph, const std::vector<cleave::Tensor>& inputs,
                absl::Span<Wanted> wanted);
  absl::Status RunPart(const Graph& graph,
                       const std::vector<cleave::Tensor>& inputs,
                       absl::Span<Wanted> wanted);

  std::shared_ptr<EagerGraph> current_;
  std::optional<LastRun> last_run_;
  absl::flat_hash_map<std::string, KnownCall> known_calls_;
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
  void Refused(const absl::Status& status) override;

 private:
  friend class Session::Impl;

  // Null once the session has ended.
  std::shared_ptr<Session::Impl> session() const;

  const std::weak_ptr<Session::Impl> session_;
  int64_t ops_ = 0;
  std::vector<cleave::Tensor> inputs_;
  std::vector<uint64_t> input_ids_;  // of their storages
  // The inputs: by the storage's id, and its version.
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, Value> known_;
  std::vector<std::weak_ptr<Storage>> waiting_;
};

struct SessionAccess {
  // The session of the innermost scope of this thread, if neither has ended.
  static std::shared_ptr<Session::Impl> Current();
  static const std::shared_ptr<Session::Impl>& ImplOf(const Session& session) {
    return session.impl_;
  }
};

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_SESSION_IMPL_H_
