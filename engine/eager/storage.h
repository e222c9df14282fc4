// Storage and Recorder: the cell that holds a tensor's value, and the graph
// that ops are recorded in. Internal to engine/eager; view.h states the storage
// model.

#ifndef CLEAVE_ENGINE_EAGER_STORAGE_H_
#define CLEAVE_ENGINE_EAGER_STORAGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/eager/view.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave::functional {

class Recorder;

// A mutable cell. Its value is one of: concrete (`value`); a node of a recorder
// (`recorder` and `node`), which is a trace or an eager graph that has not run;
// a mistake (`status`).
struct Storage {
  Storage();

  const uint64_t id;  // of no other storage, also after this one is gone
  // All of it, as tensors see it, and with that its type. Extents are numbers,
  // except in a trace, and until an op has run whose result's size depends on
  // values.
  View whole;
  uint64_t version = 0;  // counts the writes
  absl::Status status;
  std::optional<cleave::Tensor> value;
  std::shared_ptr<Recorder> recorder;
  Value node;
  // The values of the storage before the writes that wait in an eager graph,
  // since that graph may fail. Null if there are none.
  struct Undo {
    std::optional<cleave::Tensor> value;  // before the graph
    std::vector<Value> nodes;             // of the graph; the last one last
  };
  std::unique_ptr<Undo> undo;

  const TensorType& type() const { return whole.type(); }

  void SetValue(cleave::Tensor tensor) {
    if (!HasType(tensor, type())) whole = View(tensor.type());
    value = std::move(tensor);
    recorder = nullptr;
    node = Value();
    undo = nullptr;
  }
  // Keeps what a write is about to replace. `where` records the write.
  void Remember(const Recorder* where) {
    if (undo == nullptr) undo = std::make_unique<Undo>();
    if (value.has_value()) {
      undo->value = value;
    } else if (recorder.get() == where) {
      undo->nodes.push_back(node);
    }
  }
  // The value before the graph that failed; `why` where there is none.
  void Restore(const absl::Status& why) {
    if (undo != nullptr && undo->value.has_value()) {
      SetValue(*std::move(undo->value));
    } else {
      Fail(why);
    }
  }
  void SetNode(std::shared_ptr<Recorder> where, Value at, TensorType of) {
    if (of != type()) whole = View(std::move(of));
    value.reset();
    recorder = std::move(where);
    node = at;
  }
  void Fail(absl::Status why) {
    value.reset();
    recorder = nullptr;
    node = Value();
    undo = nullptr;
    status = std::move(why);
  }
};

// A graph that ops add nodes to.
class Recorder : public std::enable_shared_from_this<Recorder> {
 public:
  virtual ~Recorder() = default;

  GraphBuilder& builder() { return builder_; }
  // Null in a trace of primitives alone.
  const RuleSet* rules() const { return rules_.get(); }
  const std::shared_ptr<const RuleSet>& shared_rules() const { return rules_; }
  // Counts the calls of ops: the number of this one, from 1.
  int64_t CountCall() { return ++calls_; }

  virtual bool is_trace() const = 0;
  // Whether ops wait here, rather than run one by one.
  virtual bool accumulates() const = 0;
  // Whether it takes nodes still.
  virtual absl::Status CheckOpen() const = 0;
  // The node with the storage's whole value.
  virtual absl::StatusOr<Value> Read(
      const std::shared_ptr<Storage>& storage) = 0;
  // Whether an op that is recorded here may write the storage.
  virtual absl::Status CheckWrite(const Storage& storage) const = 0;
  // `storage`, whose value is a node of this recorder, is new or was written.
  virtual void Written(const std::shared_ptr<Storage>& storage) = 0;
  // Called when an op was added, with all its results. Runs it, in eager mode.
  virtual absl::Status Done() = 0;
  // Gives the storages that wait for this recorder their values.
  virtual absl::Status Realize() = 0;
  // The first mistake is the recorder's to report, too.
  virtual void Mistake(const absl::Status& status) = 0;
  // An in-place operator, which returns no status, has written nothing.
  virtual void Refused(const absl::Status& status) = 0;

 protected:
  Recorder(std::shared_ptr<Context> context,
           std::shared_ptr<const RuleSet> rules)
      : rules_(std::move(rules)), builder_(std::move(context)) {}

 private:
  const std::shared_ptr<const RuleSet> rules_;
  int64_t calls_ = 0;

 protected:
  GraphBuilder builder_;
};

// Where ops go on this thread: the innermost trace, else the current session's
// graph. FailedPrecondition where there is neither.
absl::StatusOr<std::shared_ptr<Recorder>> CurrentRecorder();
// The innermost trace; null if there is none.
std::shared_ptr<Recorder> CurrentTrace();

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_STORAGE_H_
