#include "engine/eager/session.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/eager/session_impl.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/simplify.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave::functional {
namespace {

thread_local Session* current_session = nullptr;

int64_t Nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// All that a kernel depends on. Ids are those of the one context that the
// session's graphs have, and nodes stand in the order of their making.
std::string StructureOf(const Graph& graph) {
  std::string key;
  const auto append = [&key](uint32_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(Value{id});
    append(node.op);
    append(node.attributes);
    append(node.type);
    append(node.operand_count);
    for (const Value operand : graph.operands(Value{id})) append(operand.id);
  }
  append(UINT32_MAX);
  for (const NamedValue& output : graph.outputs()) append(output.value.id);
  for (const ShapeGuard& guard : graph.guards()) {
    absl::StrAppend(&key, guard.lhs.ToString(), " ", static_cast<int>(guard.op),
                    " ", guard.rhs.ToString(), ";");
  }
  return key;
}

// The graph with the inputs that its outputs need, and the values of those:
// what was read for a tensor that is gone, or for an op that failed, is not
// part of the structure.
Graph WithoutIdleInputs(Graph graph, const std::vector<cleave::Tensor>& values,
                        std::vector<cleave::Tensor>* kept) {
  std::vector<bool> needed(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    for (const Value operand : graph.operands(Value{id})) {
      needed[operand.id] = true;
    }
  }
  for (const NamedValue& output : graph.outputs()) {
    needed[output.value.id] = true;
  }
  GraphBuilder builder(graph.context());
  std::vector<Value> copies(graph.size());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value input = graph.inputs()[i].value;
    if (!needed[input.id]) continue;
    copies[input.id] =
        builder.Input(absl::StrCat("x", kept->size()), graph.type(input));
    kept->push_back(values[i]);
  }
  if (kept->size() == values.size()) return graph;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(Value{id});
    if (node.op == ToOpId(Primitive::kInput)) continue;
    std::vector<Value> operands;
    for (const Value operand : graph.operands(Value{id})) {
      operands.push_back(copies[operand.id]);
    }
    copies[id] = builder.AddTyped(node.op, node.attributes, node.type, operands,
                                  node.provenance);
  }
  for (const ShapeGuard& guard : graph.guards()) builder.AddGuard(guard);
  std::vector<NamedValue> outputs;
  for (const NamedValue& output : graph.outputs()) {
    outputs.push_back({output.name, copies[output.value.id]});
  }
  return std::move(builder).Build(std::move(outputs));
}

}  // namespace

std::string SessionStatistics::ToString() const {
  return absl::StrCat(ops, " ops in ", graphs_run, " graphs (", graphs_compiled,
                      " compiled, ", cache_hits, " known): ", kernels_run,
                      " kernels and ", reference_kernels_run,
                      " reference kernels for ", fused_ops, " primitives, ",
                      bytes_read, " bytes read, ", bytes_written,
                      " bytes written, ", early_runs, " early runs");
}

Session::Session(std::shared_ptr<const RuleSet> rules, SessionOptions options)
    : impl_(std::make_shared<Impl>(std::move(rules), options)) {}

Session::~Session() {
  CLEAVE_CHECK(current_session != this) << "a session ends within its scope";
}

const std::shared_ptr<const RuleSet>& Session::rules() const {
  return impl_->rules;
}

EagerMode Session::eager_mode() const { return impl_->mode; }

absl::Status Session::SetEagerMode(EagerMode mode) {
  impl_->mode = mode;
  return impl_->accumulates() ? absl::OkStatus() : impl_->RunCurrent();
}

absl::Status Session::Run() { return impl_->RunCurrent(); }

const SessionStatistics& Session::statistics() const {
  return impl_->statistics;
}

void Session::ResetStatistics() { impl_->statistics = {}; }

const RunReport& Session::last_report() const { return impl_->last_report; }

int64_t Session::cached_graphs() const {
  return static_cast<int64_t>(impl_->entries.size());
}

SessionScope::SessionScope(Session& session)
    : session_(&session), outer_(current_session) {
  current_session = session_;
}

SessionScope::~SessionScope() {
  CLEAVE_CHECK(current_session == session_)
      << "session scopes must end in reverse order";
  current_session = outer_;
}

Session* CurrentSession() { return current_session; }

absl::Status SetEagerMode(EagerMode mode) {
  if (current_session == nullptr) {
    return absl::FailedPreconditionError(
        "there is no session on this thread: open a SessionScope");
  }
  return current_session->SetEagerMode(mode);
}

const std::shared_ptr<EagerGraph>& Session::Impl::current() {
  if (current_ == nullptr) {
    current_ = std::make_shared<EagerGraph>(shared_from_this());
  }
  return current_;
}

absl::Status Session::Impl::RunCurrent() {
  if (current_ == nullptr) return absl::OkStatus();
  return Run(*current_);
}

absl::Status Session::Impl::Run(EagerGraph& graph) {
  const std::shared_ptr<EagerGraph> alive =
      std::static_pointer_cast<EagerGraph>(graph.shared_from_this());
  if (current_ == alive) current_ = nullptr;
  const absl::Status status = RunGraph(graph);
  if (status.ok()) return status;
  for (const std::weak_ptr<Storage>& waiting : graph.waiting_) {
    const std::shared_ptr<Storage> storage = waiting.lock();
    if (storage != nullptr && storage->recorder == alive) {
      storage->Fail(status);
    }
  }
  return status;
}

absl::Status Session::Impl::RunGraph(EagerGraph& graph) {
  // One output for each node that a storage has for its value.
  std::vector<std::shared_ptr<Storage>> storages;
  std::vector<int> output_of;
  std::vector<NamedValue> outputs;
  absl::flat_hash_map<Value, int> index_of;
  for (const std::weak_ptr<Storage>& waiting : graph.waiting_) {
    std::shared_ptr<Storage> storage = waiting.lock();
    if (storage == nullptr || storage->recorder.get() != &graph) continue;
    const auto [at, is_new] =
        index_of.emplace(storage->node, static_cast<int>(outputs.size()));
    if (is_new) {
      outputs.push_back({absl::StrCat("y", outputs.size()), storage->node});
    }
    output_of.push_back(at->second);
    storages.push_back(std::move(storage));
  }
  if (outputs.empty()) return absl::OkStatus();
  std::vector<cleave::Tensor> inputs;
  const Graph whole =
      WithoutIdleInputs(std::move(graph.builder_).Build(std::move(outputs)),
                        graph.inputs_, &inputs);
  CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<const Kernel> kernel,
                          KernelFor(whole));
  last_report = {};
  RunOptions run;
  run.report = &last_report;
  const int64_t begin = Nanoseconds();
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<cleave::Tensor> results,
                          kernel->Run(inputs, run));
  statistics.run_nanoseconds += Nanoseconds() - begin;
  ++statistics.graphs_run;
  for (const StepReport& step : last_report.steps) {
    // A step without a reason runs compiled code.
    ++(step.kind == "reference" ? statistics.reference_kernels_run
                                : statistics.kernels_run);
    statistics.fused_ops += static_cast<int64_t>(step.ops.size());
    statistics.bytes_read += step.bytes_read;
    statistics.bytes_written += step.bytes_written;
  }
  for (size_t i = 0; i < storages.size(); ++i) {
    storages[i]->SetValue(results[output_of[i]]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Kernel>> Session::Impl::KernelFor(
    const Graph& graph) {
  std::string key = StructureOf(graph);
  const auto found = entry_of.find(key);
  if (found != entry_of.end()) {
    ++statistics.cache_hits;
    entries.splice(entries.begin(), entries, found->second);
    return found->second->kernel;
  }
  const int64_t begin = Nanoseconds();
  CLEAVE_ASSIGN_OR_RETURN(const Graph expanded, Expand(graph, *rules));
  CompileOptions compile;
  compile.cache = options.cache;
  compile.device = options.device;
  compile.generalize_extents = true;
  CLEAVE_ASSIGN_OR_RETURN(Kernel kernel,
                          Compile(Simplify(expanded, *rules), *rules, compile));
  ++statistics.graphs_compiled;
  statistics.compile_nanoseconds += Nanoseconds() - begin;
  entries.push_front(
      {std::move(key), std::make_shared<const Kernel>(std::move(kernel))});
  entry_of.emplace(entries.front().key, entries.begin());
  if (static_cast<int64_t>(entries.size()) > options.max_graphs) {
    entry_of.erase(entries.back().key);
    std::shared_ptr<const Kernel> last = entries.back().kernel;
    entries.pop_back();
    if (entries.empty()) return last;
  }
  return entries.front().kernel;
}

absl::StatusOr<Value> EagerGraph::Read(
    const std::shared_ptr<Storage>& storage) {
  CLEAVE_RETURN_IF_ERROR(storage->status);
  if (storage->recorder.get() == this) return storage->node;
  if (storage->recorder != nullptr) {
    // Of another session, or of a trace, which says why not.
    CLEAVE_RETURN_IF_ERROR(storage->recorder->Realize());
    CLEAVE_RETURN_IF_ERROR(storage->status);
  }
  Value& known = known_[{storage->id, storage->version}];
  if (!known.valid()) {
    known = builder_.Input(absl::StrCat("x", inputs_.size()), storage->type);
    inputs_.push_back(*storage->value);
  }
  return known;
}

absl::Status EagerGraph::CheckWrite(const Storage& storage) const {
  if (storage.recorder != nullptr && storage.recorder->is_trace()) {
    return storage.recorder->Realize();  // says that it is of a trace
  }
  return absl::OkStatus();
}

bool EagerGraph::accumulates() const {
  const std::shared_ptr<Session::Impl> session = session_.lock();
  return session != nullptr && session->accumulates();
}

absl::Status EagerGraph::Done() {
  const std::shared_ptr<Session::Impl> session = session_.lock();
  if (session == nullptr) return Realize();
  ++session->statistics.ops;
  return session->accumulates() ? absl::OkStatus() : session->Run(*this);
}

void EagerGraph::Mistake(const absl::Status&) {
  const std::shared_ptr<Session::Impl> session = session_.lock();
  if (session != nullptr && !session->accumulates()) session->Drop(*this);
}

absl::Status EagerGraph::Realize() {
  const std::shared_ptr<Session::Impl> session = session_.lock();
  if (session == nullptr) {
    return absl::FailedPreconditionError(
        "the session of a tensor that waits for a run has ended");
  }
  if (session->atomic_depth > 0) ++session->statistics.early_runs;
  return session->Run(*this);
}

absl::StatusOr<std::shared_ptr<Recorder>> CurrentRecorder() {
  if (std::shared_ptr<Recorder> trace = CurrentTrace()) {
    CLEAVE_RETURN_IF_ERROR(trace->CheckOpen());
    return trace;
  }
  if (current_session == nullptr) {
    return absl::FailedPreconditionError(
        "there is no session on this thread: open a SessionScope");
  }
  return std::shared_ptr<Recorder>(
      SessionAccess::ImplOf(*current_session)->current());
}

}  // namespace cleave::functional
