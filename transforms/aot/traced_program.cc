#include "transforms/aot/traced_program.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/eager/trace_scope.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave::aot {
namespace {

using functional::TraceScope;

thread_local SizeHints* innermost_hints = nullptr;

// A path of LeafPaths without its brackets: "0.weight".
std::string Plain(absl::string_view path) {
  std::string plain;
  for (const char c : path) {
    if (c == '[' || c == '.') {
      if (!plain.empty()) plain.push_back('.');
    } else if (c != ']' && c != '"') {
      plain.push_back(c);
    }
  }
  return plain;
}

// One attempt to trace.
class Attempt {
 public:
  Attempt(const TreeShape& arguments,
          absl::Span<const functional::Tensor> leaves,
          const std::vector<TensorType>& types,
          std::shared_ptr<const RuleSet> rules, const TraceOptions& options)
      : leaves_(leaves),
        types_(types),
        options_(options),
        names_(LeafNames(arguments, "x")),
        first_(FirstOfStorage(leaves)),
        trace_(std::move(rules)) {
    program_.arguments = arguments;
  }

  // Leaves whose storages are given as a whole (by their first leaf).
  absl::Status MakeInputs(const std::set<int>& bases) {
    std::map<int, functional::Tensor> storages;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const int first = first_[i];
      if (bases.count(first) == 0) {
        program_.leaf_inputs.push_back(Add(i, names_[i], types_[i], false));
        given_.push_back(inputs_.back());
        continue;
      }
      auto it = storages.find(first);
      if (it == storages.end()) {
        const int input = Add(i, absl::StrCat(names_[i], ".base"),
                              leaves_[i].Base().type(), true);
        it = storages.emplace(first, inputs_.back()).first;
        base_inputs_[first] = input;
      }
      program_.leaf_inputs.push_back(base_inputs_[first]);
      given_.push_back(it->second.WithView(leaves_[i].view()));
    }
    return absl::OkStatus();
  }

  absl::Status Call(const TreeFunction& fn) {
    CLEAVE_ASSIGN_OR_RETURN(const Tree arguments,
                            functional::Unflatten(program_.arguments, given_));
    CLEAVE_ASSIGN_OR_RETURN(const Tree results, fn(arguments));
    CLEAVE_RETURN_IF_ERROR(trace_.status());
    program_.results = functional::ShapeOf(results);
    results_ = functional::Flatten(results);
    return absl::OkStatus();
  }

  // Storages (by their first leaf) that must be given as a whole, because of
  // what was written.
  std::set<int> BasesNeeded() const {
    std::set<int> needed;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (!trace_.IsMutated(inputs_[program_.leaf_inputs[i]])) continue;
      const bool shared =
          std::count(first_.begin(), first_.end(), first_[i]) > 1;
      if (shared || (options_.write_in_graph && leaves_[i].IsView())) {
        needed.insert(first_[i]);
      }
    }
    return needed;
  }

  absl::StatusOr<TracedProgram> Finish() && {
    CLEAVE_RETURN_IF_ERROR(CheckResults());
    // Storages that are no input's: by the first result that sees each.
    std::vector<std::vector<size_t>> made;
    for (size_t i = 0; i < results_.size(); ++i) {
      program_.outputs.emplace_back();
      if (AliasOfInput(i)) continue;
      const auto same = std::find_if(
          made.begin(), made.end(), [&](const std::vector<size_t>& seen) {
            return results_[seen.front()].SharesStorage(results_[i]);
          });
      if (same == made.end()) {
        made.push_back({i});
      } else {
        same->push_back(i);
      }
    }
    const std::vector<std::string> names = LeafNames(program_.results, "y");
    for (const std::vector<size_t>& seen : made) DescribeMade(seen);
    for (size_t i = 0; i < results_.size(); ++i) {
      TracedOutput& output = program_.outputs[i];
      const bool alias = output.kind != OutputKind::kNonAlias;
      if (alias && !options_.differentiated) continue;
      CLEAVE_ASSIGN_OR_RETURN(const Value value, trace_.Read(results_[i]));
      output.value = AddOutput(names[i], value);
    }
    // Whole values of storages that only views of are results, or where the
    // result that is the whole is told by its number.
    for (const std::vector<size_t>& seen : made) {
      CLEAVE_RETURN_IF_ERROR(PlaceBase(seen, names));
    }
    CLEAVE_RETURN_IF_ERROR(AddUpdates());
    for (const TraceScope::Captured& captured : trace_.captured()) {
      TracedInput& input = program_.inputs.emplace_back();
      input.captured = captured.tensor;
    }
    CLEAVE_ASSIGN_OR_RETURN(program_.graph,
                            std::move(trace_).Finish(std::move(outputs_)));
    CLEAVE_CHECK(program_.graph.inputs().size() == program_.inputs.size());
    return std::move(program_);
  }

 private:
  int Add(size_t leaf, const std::string& name, const TensorType& type,
          bool is_base) {
    TracedInput& input = program_.inputs.emplace_back();
    input.leaf = static_cast<int>(leaf);
    input.is_base = is_base;
    inputs_.push_back(trace_.Input(name, type));
    return static_cast<int>(inputs_.size()) - 1;
  }

  int AddOutput(const std::string& name, Value value) {
    outputs_.push_back({name, value});
    return static_cast<int>(outputs_.size()) - 1;
  }

  absl::Status CheckResults() const {
    const std::vector<std::string> paths = program_.results.LeafPaths();
    for (size_t i = 0; i < results_.size(); ++i) {
      const functional::Tensor& result = results_[i];
      const std::string which =
          paths[i].empty() ? "the result" : absl::StrCat("result ", paths[i]);
      if (result.is_number()) {
        return absl::InvalidArgumentError(absl::StrCat(
            which, " is a number without a dtype: give it one by Full"));
      }
      if (!result.valid()) {
        return absl::Status(
            result.status().code(),
            absl::StrCat(which, ": ", result.status().message()));
      }
    }
    return absl::OkStatus();
  }

  // Whether result i sees the storage of an input or of a captured tensor;
  // describes it if so.
  bool AliasOfInput(size_t i) {
    TracedOutput& output = program_.outputs[i];
    const functional::Tensor& result = results_[i];
    output.view = result.view();
    for (size_t leaf = 0; leaf < given_.size(); ++leaf) {
      if (!given_[leaf].SharesStorage(result)) continue;
      output.base_leaf = static_cast<int>(leaf);
      output.kind = OutputKind::kAliasOfInput;
      if (given_[leaf].view() == result.view()) {
        output.kind = OutputKind::kIsInput;
        return true;  // this leaf itself, of those that share the storage
      }
    }
    if (output.base_leaf >= 0) return true;
    for (size_t c = 0; c < trace_.captured().size(); ++c) {
      if (!trace_.captured()[c].tensor.SharesStorage(result)) continue;
      output.base_captured = static_cast<int>(inputs_.size() + c);
      output.kind = OutputKind::kAliasOfInput;
      return true;
    }
    // A tensor from outside that no op met is captured by being a result.
    if (!trace_.Owns(result)) {
      if (!trace_.ReadBase(result).ok()) return false;
      return AliasOfInput(i);
    }
    return false;
  }

  // The kinds of results that see one storage that the function made.
  void DescribeMade(const std::vector<size_t>& seen) {
    if (seen.size() == 1) return;
    const auto whole = std::find_if(seen.begin(), seen.end(), [&](size_t i) {
      return !results_[i].IsView();
    });
    for (const size_t i : seen) {
      OutputKind& kind = program_.outputs[i].kind;
      if (whole != seen.end()) {
        if (i != *whole)
          kind = OutputKind::kAliasOfIntermediateBaseIsUserOutput;
      } else {
        kind = i == seen.front() ? OutputKind::kAliasOfIntermediateSaveAsOutput
                                 : OutputKind::kAliasOfIntermediate;
      }
    }
  }

  // Tells the results that see one storage which output its whole value is.
  absl::Status PlaceBase(const std::vector<size_t>& seen,
                         const std::vector<std::string>& names) {
    if (seen.size() == 1) return absl::OkStatus();
    const auto whole = std::find_if(seen.begin(), seen.end(), [&](size_t i) {
      return !results_[i].IsView();
    });
    int base = -1;
    if (whole != seen.end()) {
      base = program_.outputs[*whole].value;
    } else {
      CLEAVE_ASSIGN_OR_RETURN(const Value value,
                              trace_.ReadBase(results_[seen.front()]));
      base = AddOutput(absl::StrCat(names[seen.front()], ".base"), value);
    }
    for (const size_t i : seen) {
      if (program_.outputs[i].kind != OutputKind::kNonAlias) {
        program_.outputs[i].base_output = base;
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddUpdates() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!trace_.IsMutated(inputs_[i])) continue;
      const TracedInput& input = program_.inputs[i];
      if (options_.refuse_writes) {
        return absl::InvalidArgumentError(
            absl::StrCat("the function writes to ", names_[input.leaf],
                         ", and functionalization is disabled"));
      }
      CLEAVE_ASSIGN_OR_RETURN(const Value value, trace_.ReadBase(inputs_[i]));
      program_.inputs[i].updated =
          AddOutput(absl::StrCat(names_[input.leaf], ".updated"), value);
    }
    for (const int input : program_.leaf_inputs) {
      const TracedInput& from = program_.inputs[input];
      program_.mutations.push_back(from.updated < 0 ? MutationKind::kNotMutated
                                   : from.is_base   ? MutationKind::kInGraph
                                                  : MutationKind::kOutOfGraph);
    }
    return absl::OkStatus();
  }

  const absl::Span<const functional::Tensor> leaves_;
  const std::vector<TensorType>& types_;
  const TraceOptions& options_;
  const std::vector<std::string> names_;
  const std::vector<int> first_;
  TraceScope trace_;
  TracedProgram program_;
  std::vector<functional::Tensor> inputs_;  // per input of the graph
  std::vector<functional::Tensor> given_;   // per leaf of the arguments
  std::map<int, int> base_inputs_;
  std::vector<functional::Tensor> results_;  // per leaf of the results
  std::vector<NamedValue> outputs_;
};

}  // namespace

absl::string_view OutputKindName(OutputKind kind) {
  switch (kind) {
    case OutputKind::kNonAlias:
      return "a tensor of its own";
    case OutputKind::kIsInput:
      return "an input";
    case OutputKind::kAliasOfInput:
      return "a view of an input";
    case OutputKind::kAliasOfIntermediateSaveAsOutput:
      return "a view of an intermediate, saved as a further output";
    case OutputKind::kAliasOfIntermediate:
      return "a view of an intermediate";
    case OutputKind::kAliasOfIntermediateBaseIsUserOutput:
      return "a view of another result";
  }
  CLEAVE_CHECK(false) << "no such kind";
}

absl::string_view MutationKindName(MutationKind kind) {
  switch (kind) {
    case MutationKind::kNotMutated:
      return "read only";
    case MutationKind::kInGraph:
      return "written in the graph";
    case MutationKind::kOutOfGraph:
      return "written after the run";
  }
  CLEAVE_CHECK(false) << "no such kind";
}

bool TracedProgram::IsMutated() const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const TracedInput& i) { return i.updated >= 0; });
}

std::string TracedProgram::ToString() const {
  std::string out;
  const std::vector<std::string> in = LeafNames(arguments, "x");
  for (size_t i = 0; i < in.size(); ++i) {
    absl::StrAppend(&out, in[i], ": ", MutationKindName(mutations[i]), "\n");
  }
  const std::vector<std::string> names = LeafNames(results, "y");
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&out, names[i], ": ", OutputKindName(outputs[i].kind));
    if (outputs[i].base_leaf >= 0) {
      absl::StrAppend(&out, ", ", in[outputs[i].base_leaf]);
    }
    absl::StrAppend(&out, "\n");
  }
  return out;
}

std::vector<std::string> LeafNames(const TreeShape& shape,
                                   absl::string_view name) {
  std::vector<std::string> names;
  for (const std::string& path : shape.LeafPaths()) {
    names.push_back(absl::StrCat(name, Plain(path)));
  }
  return names;
}

absl::Status CheckArguments(const TreeShape& arguments,
                            absl::Span<const functional::Tensor> leaves) {
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].valid()) continue;
    const std::string name = LeafNames(arguments, "x")[i];
    if (leaves[i].is_number()) {
      return absl::InvalidArgumentError(
          absl::StrCat("argument ", name, " is a number without a dtype"));
    }
    return absl::Status(
        leaves[i].status().code(),
        absl::StrCat("argument ", name, ": ", leaves[i].status().message()));
  }
  return absl::OkStatus();
}

namespace {

// Calls `visit` on each leaf's number and that of the first leaf of its
// storage, until it gives false.
template <typename Visit>
void VisitFirstOfStorage(absl::Span<const functional::Tensor> leaves,
                         std::vector<int>* slots, const Visit& visit) {
  if (leaves.size() <= 8) {
    for (size_t i = 0; i < leaves.size(); ++i) {
      size_t j = 0;
      while (j < i && !leaves[j].SharesStorage(leaves[i])) ++j;
      if (!visit(i, static_cast<int>(j))) return;
    }
    return;
  }
  // A table of leaves by the addresses of their storages, at most half full.
  size_t size = 32;
  while (size < 2 * leaves.size()) size *= 2;
  slots->assign(size, -1);
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto address = reinterpret_cast<uintptr_t>(leaves[i].storage_id());
    size_t at = (address >> 4) * 0x9E3779B97F4A7C15u >> 32;
    while (true) {
      int& slot = (*slots)[at & (size - 1)];
      if (slot < 0) slot = static_cast<int>(i);
      if (slot == static_cast<int>(i) ||
          leaves[slot].SharesStorage(leaves[i])) {
        if (!visit(i, slot)) return;
        break;
      }
      ++at;
    }
  }
}

}  // namespace

std::vector<int> FirstOfStorage(absl::Span<const functional::Tensor> leaves) {
  std::vector<int> first(leaves.size());
  std::vector<int> slots;
  VisitFirstOfStorage(leaves, &slots, [&first](size_t leaf, int found) {
    first[leaf] = found;
    return true;
  });
  return first;
}

bool SharesStorageAs(absl::Span<const functional::Tensor> leaves,
                     absl::Span<const int> first, std::vector<int>* slots) {
  if (leaves.size() != first.size()) return false;
  bool same = true;
  VisitFirstOfStorage(leaves, slots, [first, &same](size_t leaf, int found) {
    same = found == first[leaf];
    return same;
  });
  return same;
}

absl::StatusOr<TracedProgram> TraceProgram(
    const TreeFunction& fn, const TreeShape& arguments,
    absl::Span<const functional::Tensor> leaves,
    const std::vector<TensorType>& types, std::shared_ptr<const RuleSet> rules,
    const TraceOptions& options) {
  CLEAVE_RETURN_IF_ERROR(CheckArguments(arguments, leaves));
  // The writes of the function are known after its call. If they need whole
  // storages, it is called again with them.
  std::set<int> bases;
  while (true) {
    Attempt attempt(arguments, leaves, types, rules, options);
    CLEAVE_RETURN_IF_ERROR(attempt.MakeInputs(bases));
    CLEAVE_RETURN_IF_ERROR(attempt.Call(fn));
    const std::set<int> needed = attempt.BasesNeeded();
    if (std::includes(bases.begin(), bases.end(), needed.begin(),
                      needed.end())) {
      return std::move(attempt).Finish();
    }
    bases.insert(needed.begin(), needed.end());
  }
}

SizeHints::SizeHints(std::map<std::string, int64_t> values)
    : values_(std::move(values)), outer_(innermost_hints) {
  innermost_hints = this;
}

SizeHints::~SizeHints() { innermost_hints = outer_; }

absl::StatusOr<int64_t> SizeOf(const Dim& extent) {
  if (extent.Value().has_value()) return *extent.Value();
  if (innermost_hints == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the extent ", extent.ToString(), " has no number here"));
  }
  CLEAVE_ASSIGN_OR_RETURN(const int64_t value,
                          extent.Evaluate(innermost_hints->values_));
  innermost_hints->guards_.push_back(
      {extent, CompareOp::kEq, Dim(value), "the function asked for its size"});
  return value;
}

}  // namespace cleave::aot
