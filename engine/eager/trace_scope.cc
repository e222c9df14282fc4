#include "engine/eager/trace_scope.h"

#include <atomic>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/eager/storage.h"
#include "engine/eager/tensor_access.h"
#include "ops/status_macros.h"

namespace cleave::functional {

// Outlives its scope in the storages that refer to it, but records no more.
class TraceState : public Recorder {
 public:
  TraceState(std::shared_ptr<Context> context,
             std::shared_ptr<const RuleSet> rules,
             std::shared_ptr<TraceState> outer)
      : Recorder(std::move(context), std::move(rules)),
        outer_(std::move(outer)) {}

  bool is_trace() const override { return true; }
  bool accumulates() const override { return true; }
  absl::Status CheckOpen() const override {
    if (open_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "the trace is finished: its scope must end before other ops");
  }

  absl::StatusOr<Value> Read(const std::shared_ptr<Storage>& storage) override {
    CLEAVE_RETURN_IF_ERROR(storage->status);
    if (!open_) return Ended();
    if (storage->recorder.get() == this) return storage->node;
    const auto found = captured_of_.find(storage.get());
    if (found != captured_of_.end()) return found->second;
    if (storage->recorder != nullptr && storage->recorder->is_trace()) {
      CLEAVE_RETURN_IF_ERROR(CheckOuter(*storage));
    }
    std::string name = absl::StrCat("captured", captured_.size());
    while (!names_.insert(name).second) name += "_";
    const Value value = builder_.Input(name, storage->type());
    captured_of_.emplace(storage.get(), value);
    captured_.push_back({TensorAccess::Make(storage), value});
    return value;
  }

  absl::Status CheckWrite(const Storage& storage) const override {
    if (!open_) return Ended();
    if (storage.recorder.get() == this) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "a tensor from outside of a trace cannot be written under it: give it "
        "to the traced function as an argument, or write a Clone()");
  }

  void Written(const std::shared_ptr<Storage>&) override {}
  absl::Status Done() override { return absl::OkStatus(); }
  absl::Status Realize() override {
    if (!open_) return Ended();
    return absl::FailedPreconditionError(
        "a traced tensor has a type and no value: it has one when the graph "
        "runs");
  }
  void Mistake(const absl::Status& status) override {
    if (status_.ok()) status_ = status;
  }
  void Refused(const absl::Status& status) override { Mistake(status); }

  static absl::Status Ended() {
    return absl::FailedPreconditionError(
        "a tensor of a trace is used outside of it: its value is known in the "
        "traced graph only");
  }

  // False for a name that an input has already.
  bool TakeName(absl::string_view name) {
    return names_.insert(std::string(name)).second;
  }

  bool IsCaptured(const Storage* storage) const {
    return captured_of_.contains(storage);
  }
  const std::vector<TraceScope::Captured>& captured() const {
    return captured_;
  }
  const absl::Status& status() const { return status_; }
  const std::shared_ptr<TraceState>& outer() const { return outer_; }
  bool open() const { return open_; }
  void Close() { open_ = false; }
  // Whether the scope is gone.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  void End() {
    Close();
    ended_.store(true, std::memory_order_release);
  }
  bool Has(Value node) const {
    return node.id < builder_.graph().size() &&
           builder_.graph().types(node).size() == 1;
  }
  absl::StatusOr<Graph> Finish(std::vector<NamedValue> outputs) {
    if (!open_) return Ended();
    open_ = false;
    CLEAVE_RETURN_IF_ERROR(status_);
    for (const NamedValue& output : outputs) {
      if (Has(output.value)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "the output ", output.name, " is no tensor of the trace"));
    }
    const std::shared_ptr<Context> context = builder_.context();
    CLEAVE_ASSIGN_OR_RETURN(Graph graph,
                            std::move(builder_).Build(std::move(outputs)));
    builder_ = GraphBuilder(context);
    return graph;
  }

 private:
  // The storage must be that of a trace around this one.
  absl::Status CheckOuter(const Storage& storage) const {
    for (const TraceState* state = outer_.get(); state != nullptr;
         state = state->outer_.get()) {
      if (storage.recorder.get() == state && state->open_) {
        return absl::OkStatus();
      }
    }
    return Ended();
  }

  const std::shared_ptr<TraceState> outer_;
  bool open_ = true;
  std::atomic<bool> ended_ = false;
  absl::Status status_;
  std::vector<TraceScope::Captured> captured_;
  absl::flat_hash_set<std::string> names_;  // of inputs
  // Storages live on in captured_.
  absl::flat_hash_map<const Storage*, Value> captured_of_;
};

namespace {

// The innermost trace whose scope is not gone; null if there is none.
std::shared_ptr<TraceState>& Innermost() {
  thread_local std::shared_ptr<TraceState> innermost;
  while (innermost != nullptr && innermost->ended()) {
    innermost = std::shared_ptr<TraceState>(innermost->outer());
  }
  return innermost;
}

}  // namespace

std::shared_ptr<Recorder> CurrentTrace() { return Innermost(); }

bool InTrace() { return Innermost() != nullptr; }

TraceScope::TraceScope(std::shared_ptr<const RuleSet> rules) {
  std::shared_ptr<Context> context =
      rules == nullptr ? nullptr : rules->context();
  Begin(std::move(context), std::move(rules));
}

TraceScope::TraceScope(std::shared_ptr<Context> context) {
  Begin(std::move(context), nullptr);
}

void TraceScope::Begin(std::shared_ptr<Context> context,
                       std::shared_ptr<const RuleSet> rules) {
  absl::Status status;
  if (context == nullptr) {
    status = absl::InvalidArgumentError("a trace was given no rules");
    context = std::make_shared<Context>();
  }
  std::shared_ptr<TraceState>& innermost = Innermost();
  state_ = std::make_shared<TraceState>(std::move(context), std::move(rules),
                                        innermost);
  if (!status.ok()) state_->Mistake(status);
  innermost = state_;
}

TraceScope::~TraceScope() {
  state_->End();
  Innermost();  // forgets it
}

GraphBuilder& TraceScope::builder() { return state_->builder(); }

Tensor TraceScope::Input(absl::string_view name, const TensorType& type) {
  absl::Status status = state_->CheckOpen();
  if (status.ok()) status = CheckDims(type.shape);
  for (const Dim& extent : type.shape) {
    if (!status.ok() || extent.Value().value_or(0) >= 0) continue;
    status = absl::InvalidArgumentError(absl::StrCat(
        "the input ", name, " has a negative extent: ", type.ToString()));
  }
  if (status.ok() && !state_->TakeName(name)) {
    status = absl::InvalidArgumentError(
        absl::StrCat("two inputs of a trace are named ", name));
  }
  if (status.ok()) return Wrap(builder().Input(name, type));
  state_->Mistake(status);
  return Tensor::Invalid(status);
}

Tensor TraceScope::Wrap(Value node) {
  absl::Status status = state_->CheckOpen();
  if (status.ok() && !state_->Has(node)) {
    status =
        absl::InvalidArgumentError("a node that is no tensor of the trace");
  }
  if (status.ok()) return TensorAccess::Make(*state_, node);
  state_->Mistake(status);
  return Tensor::Invalid(status);
}

absl::StatusOr<Value> TraceScope::Read(const Tensor& tensor) {
  return TensorAccess::Read(*state_, tensor);
}

absl::StatusOr<Value> TraceScope::ReadBase(const Tensor& tensor) {
  CLEAVE_RETURN_IF_ERROR(TensorAccess::Check(tensor));
  if (!tensor.valid()) {
    return absl::InvalidArgumentError("a number has no storage");
  }
  return state_->Read(TensorAccess::StorageOf(tensor));
}

bool TraceScope::Owns(const Tensor& tensor) const {
  const std::shared_ptr<Storage>& storage = TensorAccess::StorageOf(tensor);
  return storage != nullptr &&
         (storage->recorder == state_ || state_->IsCaptured(storage.get()));
}

bool TraceScope::IsCaptured(const Tensor& tensor) const {
  return state_->IsCaptured(TensorAccess::StorageOf(tensor).get());
}

bool TraceScope::IsMutated(const Tensor& tensor) const {
  const std::shared_ptr<Storage>& storage = TensorAccess::StorageOf(tensor);
  return storage != nullptr && storage->recorder == state_ &&
         storage->version > 0;
}

const std::vector<TraceScope::Captured>& TraceScope::captured() const {
  return state_->captured();
}

const absl::Status& TraceScope::status() const { return state_->status(); }

absl::StatusOr<Graph> TraceScope::Finish(std::vector<NamedValue> outputs) && {
  return state_->Finish(std::move(outputs));
}

}  // namespace cleave::functional
