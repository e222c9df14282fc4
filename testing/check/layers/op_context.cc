#include "testing/check/layers/op_context.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/interpreter.h"
#include "testing/check/layers/large_calls.h"
#include "testing/check/layers/read_example.h"
#include "testing/check/samples/large_axes.h"
#include "testing/check/samples/pair_cover.h"
#include "testing/check/samples/sample_counts.h"
#include "testing/check/samples/shrink.h"
#include "testing/check/samples/signature_sampler.h"

namespace cleave {
namespace {

// Errors that a call may meet and that no rule is wrong for.
bool IsRejection(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument;
}

void AddProblem(PreparedCalls& prepared, const absl::Status& status) {
  // Other samples would most likely come to the same end, each in its time.
  prepared.exceeded |= absl::IsResourceExhausted(status);
  const std::string message(status.message());
  if (std::find(prepared.problems.begin(), prepared.problems.end(), message) ==
      prepared.problems.end()) {
    prepared.problems.push_back(message);
  }
}

// Patterns of all calls together.
constexpr int kDerivativeSamples = 40;
// Extents that are tried for one combination of attributes.
constexpr int kDrawsOfRow = 8;
// Calls that are drawn for a dtype until one has elements.
constexpr int kDrawsOfTurn = 4;

// Operands are made for every pattern and copied for derivatives.
constexpr int64_t kMaxSampleElements = 1 << 24;

// In double: declared extents may be of any size.
double ElementCount(const SampledCall& call) {
  double count = 0;
  for (const TensorType& type : call.OperandTypes()) {
    double size = 1;
    for (const Dim& dim : type.shape) {
      size *= static_cast<double>(dim.Value().value_or(1));
    }
    count += size;
  }
  return count;
}

// Adds `call` if the op takes it. Whether it did.
bool Prepare(const OpContext& context, SampledCall call, bool defaults,
             PreparedCalls& prepared) {
  call.points = context.points;
  absl::StatusOr<Graph> graph = MakeCallGraph(context.rules(), call);
  if (!graph.ok()) {
    if (IsRejection(graph.status())) {
      ++prepared.rejected;
    } else {
      AddProblem(prepared, graph.status());
    }
    return false;
  }
  if (HasNegativeExtent(*graph)) {
    ++prepared.rejected;
    return false;
  }
  if (ElementCount(call) > static_cast<double>(kMaxSampleElements)) {
    AddProblem(prepared, absl::ResourceExhaustedError(absl::StrCat(
                             "the operands of a sample have more than ",
                             kMaxSampleElements, " elements")));
    return false;
  }
  absl::StatusOr<CallGraphs> graphs = MakeCallGraphs(context.rules(), call);
  if (!graphs.ok()) {
    AddProblem(prepared, graphs.status());
    return false;
  }
  TellInts(*graphs, call);
  // An error of a clause is reported where the spec is compared.
  Domain domain =
      Domain::Make(*context.clauses, call, graphs->body).value_or(Domain());
  prepared.calls.push_back(
      {std::move(call), *std::move(graphs), defaults, std::move(domain)});
  return true;
}

bool Has(const PreparedCall& call, DType dtype) {
  const std::vector<TensorType> types = call.call.OperandTypes();
  return std::any_of(types.begin(), types.end(), [&](const TensorType& type) {
    return type.dtype == dtype;
  });
}

// Whether a call in `dtype` has a result with elements.
bool HadTurn(const PreparedCalls& prepared, DType dtype) {
  const auto has_elements = [](const TensorType& type) {
    return std::none_of(type.shape.begin(), type.shape.end(),
                        [](const Dim& dim) { return dim.Value() == 0; });
  };
  return std::any_of(
      prepared.calls.begin(), prepared.calls.end(),
      [&](const PreparedCall& call) {
        const Graph& graph = call.graphs.call;
        return Has(call, dtype) &&
               std::any_of(graph.outputs().begin(), graph.outputs().end(),
                           [&](const NamedValue& output) {
                             return has_elements(graph.type(output.value));
                           });
      });
}

// The same call with other extents: equal ones stay equal.
SampledCall WithOtherExtents(SampledCall call, SignatureSampler& sampler) {
  std::map<int64_t, int64_t> extents;
  for (SampledInput& input : call.inputs) {
    for (auto& type : input.types) {
      if (!type) continue;
      for (Dim& dim : type->shape) {
        const int64_t extent = dim.Value().value_or(1);
        const auto it = extents.emplace(extent, sampler.DrawExtent()).first;
        dim = Dim(it->second);
      }
    }
  }
  return call;
}

std::vector<DType> WantedDTypes(const OpContext& context,
                                const SignatureSampler& sampler) {
  std::vector<DType> dtypes = sampler.DTypes();
  dtypes.erase(std::remove_if(dtypes.begin(), dtypes.end(),
                              [&](DType d) { return !context.Wants(d); }),
               dtypes.end());
  return dtypes;
}

// Attributes that are tried for those at which an op computes each element by
// itself, and how many such are taken.
constexpr int kSingleElementTrials = 24;
constexpr size_t kSingleElementRows = 3;

// Whether the op is elementwise in a call at [n], and takes it.
enum class AtPoints { kNot, kRejected, kTaken };

AtPoints AddAtPoints(const OpContext& context, SignatureSampler& sampler,
                     const DrawOptions& options, PreparedCalls& prepared) {
  absl::StatusOr<SampledCall> call = sampler.Draw(options);
  if (!call.ok()) {
    return IsRejection(call.status()) ? AtPoints::kRejected : AtPoints::kNot;
  }
  for (const TensorType& type : call->OperandTypes()) {
    // Sizes of the signature's own stay numbers.
    if (type.shape != *options.shape) return AtPoints::kNot;
  }
  const bool taken = Prepare(context, *std::move(call),
                             sampler.IsDefaults(*options.row), prepared);
  if (prepared.exceeded) return AtPoints::kNot;
  if (!taken) return AtPoints::kRejected;
  if (IsElementwise(prepared.calls.back().graphs.body)) return AtPoints::kTaken;
  prepared.calls.pop_back();
  return AtPoints::kNot;
}

// Calls at the shape [n], if the op is elementwise there: each combination of
// attributes in each dtype.
bool PrepareElementwise(const OpContext& context, SignatureSampler& sampler,
                        PreparedCalls& prepared) {
  const Shape shape = {Dim::Variable("n")};
  DrawOptions options;
  options.shape = shape;
  options.vary_attributes = false;
  const std::vector<DType> dtypes = WantedDTypes(context, sampler);
  if (dtypes.empty()) return false;
  PairCover cover(sampler.FactorSizes());
  std::vector<std::vector<int>> rows;
  const auto add = [&](const std::vector<int>& row) {
    options.row = row;
    return AddAtPoints(context, sampler, options, prepared);
  };
  for (DType dtype : dtypes) {
    options.dtype = dtype;
    if (rows.empty()) {
      while (static_cast<int>(rows.size()) < kMaxCombinations) {
        const auto row = cover.Next(sampler.random());
        if (!row) break;
        const AtPoints taken = add(*row);
        if (taken == AtPoints::kNot) return false;
        if (taken == AtPoints::kTaken) {
          cover.Accept(*row);
          rows.push_back(*row);
        } else {
          cover.Reject(*row);
        }
      }
      continue;
    }
    for (const std::vector<int>& row : rows) {
      if (add(row) == AtPoints::kNot) return false;
    }
  }
  prepared.combinations = cover.ToString();
  return !prepared.calls.empty();
}

// The dtypes of the calls of a structured op, in turn: what attributes mean is
// the same in all of them, and derivatives are sharpest in f64.
std::vector<DType> FloatsInTurn(const std::vector<DType>& dtypes) {
  std::vector<DType> turn;
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kF64,
                      DType::kBF16, DType::kF32}) {
    if (std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end()) {
      turn.push_back(dtype);
    }
  }
  return turn;
}

}  // namespace

std::string OpContext::Replay() const {
  return absl::StrCat("cleave check ", rules().SourceOf(*shown).name(),
                      " --op '",
                      item->kind == ItemKind::kJvp       ? "jvp "
                      : item->kind == ItemKind::kRewrite ? "rewrite "
                                                         : "",
                      item->name, "' --seed ", run_seed);
}

std::string PlaceIn(const RuleSet& rules, const Item& item, uint32_t begin) {
  const Source& source = rules.SourceOf(item);
  return absl::StrCat(source.name(), ":", source.PositionOf(begin).line);
}

std::string OpContext::Place() const {
  return PlaceIn(rules(), *shown, shown->range.begin);
}

std::string OpContext::Place(const Graph& body, int result) const {
  const ProvenanceId id = body.node(body.outputs()[result].value).provenance;
  if (id == 0) return Place();
  const Provenance& provenance = rules().context()->provenance(id);
  // No file has the derivatives that are built in.
  if (provenance.file.empty()) {
    return absl::StrCat(Place(), " (", provenance.rule, ")");
  }
  return absl::StrCat(provenance.file, ":", provenance.line, " (",
                      provenance.rule, ")");
}

Verdict NotTransformed(const OpContext& context, const SampledCall& call,
                       const std::string& what, const absl::Status& status) {
  const std::string message(status.message());
  if (status.code() == absl::StatusCode::kUnimplemented) {
    return Verdict::NotChecked(message);
  }
  // No sample is part of a graph that is made.
  if (!IsRejection(status) && !IsBadSample(status)) {
    return Verdict::Inconclusive(
        absl::StrCat(what, " of ", call.ToString(), ": ", message));
  }
  Counterexample example;
  example.call = call.ToString();
  example.what = absl::StrCat(what, " of an accepted call");
  example.expected = "a graph";
  example.got = message;
  example.place = context.Place();
  example.replay = context.Replay();
  return Verdict::Disagrees(std::move(example));
}

std::optional<Verdict> NotEvaluated(const OpContext& context,
                                    const PreparedCall& prepared,
                                    const std::string& what,
                                    absl::Span<const Tensor> inputs,
                                    const absl::Status& status) {
  if (!Interpret(prepared.graphs.body, inputs).ok()) return std::nullopt;
  Counterexample example;
  example.call = prepared.call.ToString();
  example.inputs = DescribeInputs(prepared.call.OperandNames(), inputs);
  example.what = absl::StrCat(what, " where the op has a value");
  example.expected = "a value";
  example.got = std::string(status.message());
  example.place = context.Place();
  example.replay = context.Replay();
  return Verdict::Disagrees(std::move(example));
}

void AddErrors(const PreparedCall& call, absl::Span<const Tensor> inputs,
               absl::Span<const double> errors,
               std::optional<ErrorProfile>& profile) {
  if (!call.default_attributes || inputs.size() != 1 || errors.empty()) return;
  const DType dtype = inputs[0].dtype();
  if (!IsFloat(dtype)) return;
  ErrorProfile* const added =
      ProfileFor(profile, dtype, call.call.OperandNames()[0]);
  if (added == nullptr) return;
  for (size_t i = 0; i < errors.size(); ++i) {
    added->Add(inputs[0].GetDouble(static_cast<int64_t>(i)), errors[i]);
  }
}

DType MainDType(const SampledCall& call) {
  const std::vector<TensorType> types = call.OperandTypes();
  for (const TensorType& type : types) {
    if (IsFloat(type.dtype)) return type.dtype;
  }
  return types.empty() ? DType::kF32 : types.front().dtype;
}

PreparedCalls PrepareCalls(const OpContext& context,
                           const PreparedCalls& concrete) {
  PreparedCalls prepared;
  SignatureSampler sampler(*context.item, context.seed);
  sampler.FixSizes(context.sizes);
  prepared.elementwise = PrepareElementwise(context, sampler, prepared);
  if (prepared.elementwise) return prepared;
  prepared = concrete;
  return prepared;
}

PreparedCalls PrepareSingleElements(const OpContext& context) {
  PreparedCalls prepared;
  prepared.elementwise = true;
  SignatureSampler sampler(*context.item, context.seed + 15);
  sampler.FixSizes(context.sizes);
  DrawOptions options;
  options.shape = Shape{Dim::Variable("n")};
  options.vary_attributes = false;
  const std::vector<DType> dtypes = WantedDTypes(context, sampler);
  if (dtypes.empty()) return prepared;
  PairCover cover(sampler.FactorSizes());
  std::vector<std::vector<int>> rows;
  const auto add = [&](DType dtype, const std::vector<int>& row) {
    options.dtype = dtype;
    options.row = row;
    return AddAtPoints(context, sampler, options, prepared) == AtPoints::kTaken;
  };
  for (int trial = 0; trial < kSingleElementTrials; ++trial) {
    if (rows.size() == kSingleElementRows) break;
    const auto row = cover.Next(sampler.random());
    if (!row) break;
    if (add(dtypes.front(), *row)) {
      cover.Accept(*row);
      rows.push_back(*row);
    } else {
      cover.Reject(*row);
    }
  }
  for (size_t d = 1; d < dtypes.size(); ++d) {
    for (const std::vector<int>& row : rows) add(dtypes[d], row);
  }
  return prepared;
}

void AddLargeCalls(const OpContext& context, const PreparedCalls& concrete,
                   PreparedCalls& prepared) {
  if (prepared.elementwise) {
    PreparedCalls shaped = concrete;
    SignatureSampler sampler(*context.item, context.seed + 12);
    for (const Shape& shape : {Shape{}, Shape{Dim(5)}, Shape{Dim(2), Dim(3)}}) {
      DrawOptions options;
      options.shape = shape;
      options.vary_attributes = false;
      absl::StatusOr<SampledCall> call = sampler.Draw(options);
      if (call.ok()) Prepare(context, *std::move(call), true, shaped);
    }
    prepared.large = std::move(shaped.calls);
  } else if (!prepared.calls.empty()) {
    prepared.large = PrepareLargeCalls(context);
  }
}

std::optional<std::vector<Tensor>> TensorsWithin(const PreparedCall& call,
                                                 Pattern pattern,
                                                 ValueSampler& sampler) {
  // A domain may exclude a pattern: equal numbers have no inverse.
  constexpr int kDrawsOfPattern = 6;
  return call.domain.FirstWithin([&](int drawn) {
    return sampler.Tensors(
        call.call, drawn < kDrawsOfPattern ? pattern : Pattern::kNormal);
  });
}

std::vector<Pattern> DerivativePatterns(const PreparedCalls& calls,
                                        int number) {
  const int all = static_cast<int>(std::size(kDerivativePatterns));
  const int size = std::max(static_cast<int>(calls.calls.size()), 1);
  const int count = std::clamp(kDerivativeSamples / size, 2, all);
  std::vector<Pattern> patterns;
  for (int i = 0; i < count; ++i) {
    patterns.push_back(kDerivativePatterns[(number * count + i) % all]);
  }
  return patterns;
}

std::vector<std::string> SampleNotes(const PreparedCalls& calls) {
  std::vector<std::string> notes;
  if (!calls.combinations.empty()) {
    notes.push_back(absl::StrCat("attributes: ", calls.combinations));
  }
  if (calls.elementwise) return notes;
  std::set<int64_t> extents;
  for (const auto* list : {&calls.calls, &calls.large}) {
    for (const PreparedCall& call : *list) {
      for (const TensorType& type : call.call.OperandTypes()) {
        for (const Dim& dim : type.shape) {
          if (dim.Value()) extents.insert(*dim.Value());
        }
      }
    }
  }
  if (!extents.empty()) {
    notes.push_back(absl::StrCat("extents ", absl::StrJoin(extents, " ")));
  }
  return notes;
}

namespace {

// The call with another dtype in place of f32, which the numbers of examples
// are written in.
SampledCall InDType(SampledCall call, DType dtype) {
  for (SampledInput& input : call.inputs) {
    for (std::optional<TensorType>& type : input.types) {
      if (type && type->dtype == DType::kF32) type->dtype = dtype;
    }
  }
  return call;
}

}  // namespace

PreparedCalls PrepareConcreteCalls(const OpContext& context) {
  PreparedCalls prepared;
  SignatureSampler sampler(*context.item, context.seed + 1);
  sampler.FixSizes(context.sizes);
  // The calls of the examples, as they stand, in f64, and with other extents:
  // for attributes whose values no sampler knows (the equation of einsum).
  std::vector<ExampleCall> examples;
  for (const Item* example :
       ExamplesOf(context.item->name, context.rules().examples())) {
    // Examples of derivatives stand for a point each.
    if (example->left->kind == ExprKind::kTransformCall) continue;
    absl::StatusOr<ExampleCall> read = ReadExample(*context.item, *example);
    if (read.ok()) examples.push_back(*std::move(read));
  }
  for (const ExampleCall& example : examples) {
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      if (prepared.exceeded) break;
      SampledCall call = InDType(example.call, dtype);
      SampledCall resized = WithOtherExtents(call, sampler);
      Prepare(context, std::move(call), false, prepared);
      Prepare(context, std::move(resized), false, prepared);
    }
  }
  // Each other dtype once, by its own draws: those behind do not move.
  SignatureSampler others(*context.item, context.seed + 21);
  others.FixSizes(context.sizes);
  size_t next = 0;
  for (const DType dtype : sampler.DTypes()) {
    if (examples.empty() || prepared.exceeded) break;
    if (dtype == DType::kF32 || dtype == DType::kF64) continue;
    SampledCall call = InDType(examples[next++ % examples.size()].call, dtype);
    Prepare(context, WithOtherExtents(call, others), false, prepared);
  }
  DrawOptions options;
  const std::vector<DType> dtypes = WantedDTypes(context, sampler);
  std::vector<DType> turn = FloatsInTurn(dtypes);
  if (turn.empty()) turn = dtypes;
  const bool has_sizes = LargeAxesOf(*context.item).size() > 1;
  int trials = 0;
  const auto ended = [&] {
    return trials >= kMaxSignatureTrials || prepared.exceeded ||
           context.Expired();
  };
  // Whether the op takes `row` at some extents. Nullopt: it is not sampled.
  const auto add = [&](const std::vector<int>& row,
                       int draws) -> std::optional<bool> {
    options.row = row;
    options.distinct = prepared.calls.size() % 2 == 1;
    options.vary_attributes =
        !sampler.IsDefaults(row) || prepared.calls.size() > 2;
    for (int draw = 0; draw < draws && !ended(); ++draw) {
      ++trials;
      // Some are square: there a transposed read has the right shape.
      options.alike =
          draw >= draws / 2 || (has_sizes && prepared.calls.size() % 4 == 2);
      absl::StatusOr<SampledCall> call = sampler.Draw(options);
      if (!call.ok()) {
        if (IsRejection(call.status())) continue;
        AddProblem(prepared, call.status());
        return std::nullopt;
      }
      if (Prepare(context, *std::move(call), sampler.IsDefaults(row),
                  prepared)) {
        return true;
      }
    }
    return false;
  };
  PairCover cover(sampler.FactorSizes());
  std::vector<std::vector<int>> rows;
  bool sampled = true;
  while (sampled && !ended() &&
         static_cast<int>(rows.size()) < kMaxCombinations) {
    const auto row = cover.Next(sampler.random());
    if (!row) break;
    if (!turn.empty()) {
      options.dtype = turn[rows.size() % turn.size()];
    }
    const auto taken = add(*row, kDrawsOfRow);
    sampled = taken.has_value();
    if (taken.value_or(false)) {
      cover.Accept(*row);
      rows.push_back(*row);
    } else {
      cover.Reject(*row);
    }
  }
  prepared.combinations = cover.ToString();
  // More of them, until there are enough and each dtype had its turn. The rows
  // that were rejected above take no trials from those that were accepted.
  trials = 0;
  for (size_t next = 0; sampled && !rows.empty() && !ended(); ++next) {
    if (next >= dtypes.size() &&
        static_cast<int>(prepared.calls.size()) >= kWantedSignatures) {
      break;
    }
    if (!dtypes.empty()) options.dtype = dtypes[next % dtypes.size()];
    if (next >= dtypes.size()) {
      sampled = add(rows[next % rows.size()], kDrawsOfRow).has_value();
      continue;
    }
    // A call without elements shows nothing of its dtype.
    for (int draw = 0; sampled && draw < kDrawsOfTurn && !ended() &&
                       !HadTurn(prepared, *options.dtype);
         ++draw) {
      sampled = add(rows[(next + draw) % rows.size()], kDrawsOfRow).has_value();
    }
  }
  // The first to fail is then a small one.
  std::stable_sort(prepared.calls.begin(), prepared.calls.end(),
                   [](const PreparedCall& a, const PreparedCall& b) {
                     return ElementCount(a.call) < ElementCount(b.call);
                   });
  return prepared;
}

void AddCallsInEachDType(const OpContext& context, PreparedCalls& prepared) {
  constexpr int kCalls = 6;
  constexpr int kTrials = 48;
  SignatureSampler sampler(*context.item, context.seed + 23);
  sampler.FixSizes(context.sizes);
  DrawOptions options;
  options.nonempty = true;
  for (const DType dtype : WantedDTypes(context, sampler)) {
    options.dtype = dtype;
    int taken = 0;
    for (int trial = 0; trial < kTrials && taken < kCalls; ++trial) {
      if (prepared.exceeded || context.Expired()) return;
      options.distinct = trial % 2 == 0;
      absl::StatusOr<SampledCall> call = sampler.Draw(options);
      taken += call.ok() && Prepare(context, *std::move(call), false, prepared);
    }
  }
}

}  // namespace cleave
