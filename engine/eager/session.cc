#include "engine/eager/session.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/eager/session_impl.h"
#include "engine/eager/tensor_access.h"
#include "engine/ir/graph_key.h"
#include "engine/rewrite/in_primitives.h"
#include "ops/status_macros.h"

namespace cleave::functional {
namespace {

int64_t Nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The part of the graph that `outputs` need; `kept` gets its inputs.
Graph ConeOf(const Graph& graph, const std::vector<NamedValue>& outputs,
             const std::vector<cleave::Tensor>& inputs,
             std::vector<cleave::Tensor>* kept) {
  std::vector<bool> needed(graph.size());
  for (const NamedValue& output : outputs) needed[output.value.id] = true;
  for (uint32_t id = static_cast<uint32_t>(graph.size()); id-- > 0;) {
    if (!needed[id]) continue;
    for (const Value operand : graph.operands(Value{id})) {
      needed[operand.id] = true;
    }
  }
  GraphBuilder builder(graph.context());
  std::vector<Value> copies(graph.size());
  std::set<std::string> variables;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value input = graph.inputs()[i].value;
    if (!needed[input.id]) continue;
    copies[input.id] =
        builder.Input(absl::StrCat("x", kept->size()), graph.type(input));
    kept->push_back(inputs[i]);
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(Value{id});
    if (!needed[id] || node.op == ToOpId(Primitive::kInput)) continue;
    std::vector<Value> operands;
    for (const Value operand : graph.operands(Value{id})) {
      operands.push_back(copies[operand.id]);
    }
    copies[id] = builder.AddTyped(node.op, node.attributes, node.type, operands,
                                  node.provenance);
    for (const TensorType& type : graph.types(Value{id})) {
      for (const Dim& extent : type.shape) {
        if (!extent.IsConstant()) variables.merge(extent.Variables());
      }
    }
  }
  // A guard on sizes that are not found here is of a node that is not.
  for (const ShapeGuard& guard : graph.guards()) {
    std::set<std::string> names = guard.lhs.Variables();
    names.merge(guard.rhs.Variables());
    if (std::includes(variables.begin(), variables.end(), names.begin(),
                      names.end())) {
      builder.AddGuard(guard);
    }
  }
  std::vector<NamedValue> results;
  for (const NamedValue& output : outputs) {
    results.push_back({output.name, copies[output.value.id]});
  }
  return *std::move(builder).Build(std::move(results));
}

// Whether an input has no reader: it was read for a tensor that is gone, or for
// an op that failed. An idle input is no part of a graph's structure.
bool HasIdleInputs(const Graph& graph) {
  std::vector<bool> needed(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    for (const Value operand : graph.operands(Value{id})) {
      needed[operand.id] = true;
    }
  }
  for (const NamedValue& output : graph.outputs()) {
    needed[output.value.id] = true;
  }
  return std::any_of(
      graph.inputs().begin(), graph.inputs().end(),
      [&](const NamedValue& input) { return !needed[input.value.id]; });
}

}  // namespace

std::string SessionStatistics::ToString() const {
  return absl::StrCat(
      ops, " ops in ", graphs_run, " graphs (", graphs_compiled, " compiled, ",
      cache_hits, " known): ", kernels_run, " kernels and ",
      reference_kernels_run, " reference kernels",
      host_kernels_run == 0
          ? ""
          : absl::StrCat(" and ", host_kernels_run, " of the host"),
      " for ", fused_ops, " primitives, ", bytes_read, " bytes read, ",
      bytes_written, " bytes written, ", early_runs, " early runs");
}

Session::Session(std::shared_ptr<const RuleSet> rules, SessionOptions options)
    : impl_(std::make_shared<Impl>(std::move(rules), std::move(options))) {}

Session::~Session() { impl_->ended = true; }

const std::shared_ptr<const RuleSet>& Session::rules() const {
  return impl_->rules;
}

EagerMode Session::eager_mode() const { return impl_->mode; }

absl::Status Session::SetEagerMode(EagerMode mode) {
  impl_->mode = mode;
  return impl_->accumulates() ? absl::OkStatus() : impl_->RunCurrent();
}

absl::Status Session::Run() { return impl_->RunAndTell(); }

const SessionStatistics& Session::statistics() const {
  return impl_->statistics;
}

void Session::ResetStatistics() { impl_->statistics = {}; }

const RunReport& Session::last_report() const { return *impl_->last_report; }

int64_t Session::cached_graphs() const {
  return static_cast<int64_t>(impl_->entries.size());
}

struct SessionScope::Entry {
  Session* session = nullptr;
  std::weak_ptr<Session::Impl> impl;
  std::atomic<bool> ended = false;
};

namespace {

// The innermost last. Scopes that have ended are dropped when they are met.
thread_local std::vector<std::shared_ptr<SessionScope::Entry>> scopes;

const SessionScope::Entry* InnermostScope() {
  while (!scopes.empty() &&
         scopes.back()->ended.load(std::memory_order_acquire)) {
    scopes.pop_back();
  }
  return scopes.empty() ? nullptr : scopes.back().get();
}

absl::Status NoSession(const SessionScope::Entry* scope) {
  return absl::FailedPreconditionError(
      scope == nullptr
          ? "there is no session on this thread: open a SessionScope"
          : "the session of the innermost SessionScope has ended");
}

}  // namespace

SessionScope::SessionScope(Session& session)
    : entry_(std::make_shared<Entry>()) {
  entry_->session = &session;
  entry_->impl = SessionAccess::ImplOf(session);
  InnermostScope();
  scopes.push_back(entry_);
}

SessionScope::~SessionScope() {
  entry_->ended.store(true, std::memory_order_release);
}

Session* CurrentSession() {
  const SessionScope::Entry* const scope = InnermostScope();
  if (scope == nullptr) return nullptr;
  const std::shared_ptr<Session::Impl> impl = scope->impl.lock();
  return impl != nullptr && !impl->ended ? scope->session : nullptr;
}

absl::Status SetEagerMode(EagerMode mode) {
  Session* const session = CurrentSession();
  if (session == nullptr) return NoSession(InnermostScope());
  return session->SetEagerMode(mode);
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

absl::Status Session::Impl::RunAndTell() {
  const absl::Status status = RunCurrent();
  const absl::Status told = std::exchange(refused, absl::OkStatus());
  return status.ok() ? told : status;
}

absl::Status Session::Impl::Run(EagerGraph& graph) {
  const std::shared_ptr<EagerGraph> alive =
      std::static_pointer_cast<EagerGraph>(graph.shared_from_this());
  if (current_ == alive) current_ = nullptr;
  // One output for each node that a storage has for its value.
  std::vector<Wanted> wanted;
  std::vector<int> output_of;
  std::vector<NamedValue> outputs;
  absl::flat_hash_map<Value, int> index_of;
  absl::flat_hash_set<const Storage*> seen;
  for (const std::weak_ptr<Storage>& waiting : graph.waiting_) {
    std::shared_ptr<Storage> storage = waiting.lock();
    if (storage == nullptr || storage->recorder != alive) continue;
    // One that was written after it came to be waits once.
    if (graph.waiting_.size() > 1 && !seen.insert(storage.get()).second) {
      continue;
    }
    const auto [at, is_new] =
        index_of.emplace(storage->node, static_cast<int>(outputs.size()));
    if (is_new) {
      outputs.push_back({absl::StrCat("y", outputs.size()), storage->node});
    }
    output_of.push_back(at->second);
    const Value node = storage->node;
    wanted.push_back({std::move(storage), node, absl::OkStatus()});
  }
  last_run_.reset();
  if (outputs.empty()) return absl::OkStatus();
  // Several ops may fail on their own: what they were is kept for that.
  std::optional<Graph> all;
  if (graph.ops_ > 1) all = graph.builder_.graph();
  std::vector<cleave::Tensor> inputs = graph.inputs_;
  CLEAVE_ASSIGN_OR_RETURN(Graph whole,
                          std::move(graph.builder_).Build(std::move(outputs)));
  if (HasIdleInputs(whole)) {
    inputs.clear();
    whole = ConeOf(whole, whole.outputs(), graph.inputs_, &inputs);
  } else if (graph.ops_ == 1) {
    // A size that values decide is known only when the op has run.
    const bool sizes_known =
        std::all_of(wanted.begin(), wanted.end(), [](const Wanted& one) {
          const Shape& shape = one.storage->type().shape;
          return std::all_of(shape.begin(), shape.end(),
                             [](const Dim& dim) { return dim.IsConstant(); });
        });
    if (sizes_known) {
      last_run_ = LastRun{graph.input_ids_, {}, output_of};
      for (const Wanted& one : wanted) {
        last_run_->storages.push_back(one.storage.get());
      }
    }
  }
  const absl::Status status = RunNodes(whole, inputs, wanted, output_of);
  if (status.ok()) return status;
  last_run_.reset();
  if (!all.has_value()) {
    for (const Wanted& one : wanted) one.storage->Restore(status);
    return status;
  }
  RunParts(*all, graph.inputs_, absl::MakeSpan(wanted));
  absl::Status first;
  for (Wanted& one : wanted) {
    // The storage goes back to the value before its last write, or to the one
    // before that.
    while (!one.status.ok() && one.storage->undo != nullptr &&
           !one.storage->undo->nodes.empty()) {
      if (first.ok()) first = one.status;
      one.node = one.storage->undo->nodes.back();
      one.storage->undo->nodes.pop_back();
      one.status = RunPart(*all, graph.inputs_, absl::MakeSpan(&one, 1));
    }
    if (one.status.ok()) continue;
    if (first.ok()) first = one.status;
    one.storage->Restore(one.status);
  }
  return first;
}

absl::Status Session::Impl::RunNodes(const Graph& graph,
                                     const std::vector<cleave::Tensor>& inputs,
                                     absl::Span<const Wanted> wanted,
                                     const std::vector<int>& output_of) {
  CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<const Kernel> kernel,
                          KernelFor(graph));
  auto report = std::make_shared<RunReport>();
  last_report = report;
  RunOptions run;
  run.report = report.get();
  const int64_t begin = Nanoseconds();
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<cleave::Tensor> results,
                          kernel->Run(inputs, run));
  statistics.run_nanoseconds += Nanoseconds() - begin;
  Count(*report);
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i].storage->SetValue(results[output_of[i]]);
  }
  return absl::OkStatus();
}

void Session::Impl::Count(const RunReport& report) {
  ++statistics.graphs_run;
  for (const StepReport& step : report.steps) {
    ++(step.kind == "reference" ? statistics.reference_kernels_run
       : step.kind == "host"    ? statistics.host_kernels_run
                                : statistics.kernels_run);
    statistics.fused_ops += static_cast<int64_t>(step.ops.size());
    statistics.bytes_read += step.bytes_read;
    statistics.bytes_written += step.bytes_written;
  }
}

void Session::Impl::Remember(const std::string& key,
                             const CallStorages& storages,
                             const Results& results) {
  if (!last_run_.has_value() || entries.empty()) return;
  KnownCall call;
  call.entry = entries.begin();
  call.kernel = call.entry->kernel;
  call.report = last_report;
  for (const uint64_t id : last_run_->inputs) {
    const auto at = std::find_if(
        storages.begin(), storages.end(),
        [id](const Storage* storage) { return storage->id == id; });
    if (at == storages.end()) return;
    call.inputs.push_back(static_cast<int>(at - storages.begin()));
  }
  const std::vector<const Storage*>& ran = last_run_->storages;
  for (const std::optional<Tensor>& result : results) {
    call.results.push_back(std::nullopt);
    if (!result.has_value()) continue;
    const auto at = std::find(ran.begin(), ran.end(),
                              TensorAccess::StorageOf(*result).get());
    if (at == ran.end() || result->IsView()) return;
    call.results.back() = {last_run_->outputs[at - ran.begin()],
                           result->view()};
  }
  if (static_cast<int64_t>(known_calls_.size()) >= options.max_graphs) {
    known_calls_.clear();
  }
  known_calls_[key] = std::move(call);
}

std::optional<absl::StatusOr<Session::Impl::Results>> Session::Impl::RunKnown(
    const std::string& key, const CallStorages& storages) {
  const auto found = known_calls_.find(key);
  if (found == known_calls_.end()) return std::nullopt;
  const KnownCall& call = found->second;
  const std::shared_ptr<const Kernel> kernel = call.kernel.lock();
  if (kernel == nullptr) {
    known_calls_.erase(found);
    return std::nullopt;
  }
  entries.splice(entries.begin(), entries, call.entry);
  ++statistics.ops;
  ++statistics.cache_hits;
  absl::InlinedVector<cleave::Tensor, 4> inputs;
  for (const int place : call.inputs) inputs.push_back(*storages[place]->value);
  last_report = call.report;
  const int64_t begin = Nanoseconds();
  absl::StatusOr<std::vector<cleave::Tensor>> values = kernel->Run(inputs);
  if (!values.ok()) return values.status();
  statistics.run_nanoseconds += Nanoseconds() - begin;
  Count(*call.report);
  Results results;
  results.reserve(call.results.size());
  for (const std::optional<KnownCall::Result>& result : call.results) {
    results.push_back(result.has_value()
                          ? std::make_optional<Tensor>(
                                (*values)[result->output], result->view)
                          : std::nullopt);
  }
  return results;
}

absl::Status Session::Impl::RunPart(const Graph& graph,
                                    const std::vector<cleave::Tensor>& inputs,
                                    absl::Span<Wanted> wanted) {
  std::vector<NamedValue> outputs;
  std::vector<int> output_of;
  for (const Wanted& one : wanted) {
    output_of.push_back(static_cast<int>(outputs.size()));
    outputs.push_back({absl::StrCat("y", outputs.size()), one.node});
  }
  std::vector<cleave::Tensor> needed;
  const Graph part = ConeOf(graph, outputs, inputs, &needed);
  const absl::Status status = RunNodes(part, needed, wanted, output_of);
  for (Wanted& one : wanted) one.status = status;
  return status;
}

void Session::Impl::RunParts(const Graph& graph,
                             const std::vector<cleave::Tensor>& inputs,
                             absl::Span<Wanted> wanted) {
  if (wanted.size() == 1) {
    RunPart(graph, inputs, wanted).IgnoreError();
    return;
  }
  const size_t half = wanted.size() / 2;
  for (const absl::Span<Wanted> part :
       {wanted.subspan(0, half), wanted.subspan(half)}) {
    if (!RunPart(graph, inputs, part).ok() && part.size() > 1) {
      RunParts(graph, inputs, part);
    }
  }
}

absl::StatusOr<std::shared_ptr<const Kernel>> Session::Impl::KernelFor(
    const Graph& graph) {
  std::string key = GraphKey(graph);
  const auto found = entry_of.find(key);
  if (found != entry_of.end()) {
    ++statistics.cache_hits;
    entries.splice(entries.begin(), entries, found->second);
    return found->second->kernel;
  }
  const int64_t begin = Nanoseconds();
  InPrimitivesOptions in_primitives;
  in_primitives.expand.preserve = options.host_kernels.Ops();
  CLEAVE_ASSIGN_OR_RETURN(const Graph primitives,
                          InPrimitives(graph, *rules, in_primitives));
  CompileOptions compile;
  compile.cache = options.cache;
  compile.device = options.device;
  compile.host_kernels = options.host_kernels;
  compile.generalize_extents = true;
  CLEAVE_ASSIGN_OR_RETURN(Kernel kernel, Compile(primitives, *rules, compile));
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
    // A storage of another session gets its value; one of a trace is an error
    // that says why.
    CLEAVE_RETURN_IF_ERROR(TensorAccess::Settle(*storage));
  }
  Value& known = known_[{storage->id, storage->version}];
  if (!known.valid()) {
    known = builder_.Input(absl::StrCat("x", inputs_.size()), storage->type());
    inputs_.push_back(*storage->value);
    input_ids_.push_back(storage->id);
  }
  return known;
}

absl::Status EagerGraph::CheckWrite(const Storage& storage) const {
  if (storage.recorder == nullptr || storage.recorder.get() == this) {
    return absl::OkStatus();
  }
  // A storage of a trace is an error that says so. A storage of another session
  // gets its value, and goes back to it if the write fails.
  CLEAVE_RETURN_IF_ERROR(storage.recorder->Realize());
  return storage.status;
}

std::shared_ptr<Session::Impl> EagerGraph::session() const {
  std::shared_ptr<Session::Impl> session = session_.lock();
  if (session != nullptr && session->ended) return nullptr;
  return session;
}

bool EagerGraph::accumulates() const {
  const std::shared_ptr<Session::Impl> session = this->session();
  return session != nullptr && session->accumulates();
}

absl::Status EagerGraph::Done() {
  const std::shared_ptr<Session::Impl> session = this->session();
  if (session == nullptr) return Realize();
  ++ops_;
  ++session->statistics.ops;
  return session->accumulates() ? absl::OkStatus() : session->Run(*this);
}

void EagerGraph::Mistake(const absl::Status&) {
  const std::shared_ptr<Session::Impl> session = this->session();
  if (session != nullptr && !session->accumulates()) session->Drop(*this);
}

void EagerGraph::Refused(const absl::Status& status) {
  const std::shared_ptr<Session::Impl> session = this->session();
  if (session != nullptr && session->refused.ok()) session->refused = status;
}

absl::Status EagerGraph::Realize() {
  const std::shared_ptr<Session::Impl> session = this->session();
  if (session == nullptr) {
    return absl::FailedPreconditionError(
        "the session of a tensor that waits for a run has ended");
  }
  if (session->atomic_depth > 0) ++session->statistics.early_runs;
  return session->Run(*this);
}

std::shared_ptr<Session::Impl> SessionAccess::Current() {
  const SessionScope::Entry* const scope = InnermostScope();
  if (scope == nullptr) return nullptr;
  std::shared_ptr<Session::Impl> impl = scope->impl.lock();
  return impl != nullptr && !impl->ended && impl->rules != nullptr ? impl
                                                                   : nullptr;
}

absl::StatusOr<std::shared_ptr<Recorder>> CurrentRecorder() {
  if (std::shared_ptr<Recorder> trace = CurrentTrace()) {
    CLEAVE_RETURN_IF_ERROR(trace->CheckOpen());
    return trace;
  }
  const SessionScope::Entry* const scope = InnermostScope();
  if (scope == nullptr) return NoSession(scope);
  const std::shared_ptr<Session::Impl> impl = scope->impl.lock();
  if (impl == nullptr || impl->ended) return NoSession(scope);
  if (impl->rules == nullptr) {
    return absl::FailedPreconditionError("the session was given no rules");
  }
  return std::shared_ptr<Recorder>(impl->current());
}

}  // namespace cleave::functional
