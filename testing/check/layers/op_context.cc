#include "testing/check/layers/op_context.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/interpreter.h"
#include "testing/check/layers/large_calls.h"
#include "testing/check/layers/prepare_call.h"
#include "testing/check/samples/pair_cover.h"
#include "testing/check/samples/sample_counts.h"
#include "testing/check/samples/shrink.h"
#include "testing/check/samples/signature_sampler.h"

namespace cleave {
namespace {

// Patterns of all calls together.
constexpr int kDerivativeSamples = 40;
// Attributes that are tried for those at which an op computes each element by
// itself, and how many such are taken.
constexpr int kSingleElementTrials = 24;
constexpr size_t kSingleElementRows = 3;

// Calls that are tried for one of them, as RowMoves says.
constexpr int kMovesAtPoints = 8;

// Whether the op is elementwise in a call at [n], and takes it.
enum class AtPoints { kNot, kRejected, kTaken };

// The choices at factors that are not `kept` may move, in the row of `options`.
AtPoints AddAtPoints(const OpContext& context, SignatureSampler& sampler,
                     const std::vector<int>& kept, DrawOptions& options,
                     PairCover* cover, PreparedCalls& prepared) {
  RowMoves moves(context, sampler);
  options.redrawn.reset();
  for (int move = 0; move < kMovesAtPoints; ++move) {
    absl::StatusOr<SampledCall> call = sampler.Draw(options);
    if (!call.ok()) {
      return IsRejection(call.status()) ? AtPoints::kRejected : AtPoints::kNot;
    }
    for (const TensorType& type : call->OperandTypes()) {
      // Sizes of the signature's own stay numbers.
      if (type.shape != *options.shape) return AtPoints::kNot;
    }
    absl::Status refusal;
    if (Prepare(context, *std::move(call), sampler.IsDefaults(*options.row),
                prepared, &refusal)) {
      if (IsElementwise(prepared.calls.back().graphs.body)) {
        return AtPoints::kTaken;
      }
      prepared.calls.pop_back();
      return AtPoints::kNot;
    }
    if (prepared.exceeded) return AtPoints::kNot;
    if (moves.Next(refusal, kept, options, cover) != AfterRefusal::kMoved) {
      break;
    }
  }
  return AtPoints::kRejected;
}

std::vector<int> AllOf(const std::vector<int>& row) {
  std::vector<int> factors(row.size());
  std::iota(factors.begin(), factors.end(), 0);
  return factors;
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
  const auto add = [&](const std::vector<int>& row,
                       const std::vector<int>& kept) {
    options.row = row;
    return AddAtPoints(context, sampler, kept, options, &cover, prepared);
  };
  for (DType dtype : dtypes) {
    options.dtype = dtype;
    if (rows.empty()) {
      while (static_cast<int>(rows.size()) < kMaxCombinations) {
        const auto row = cover.Next(sampler.random());
        if (!row) break;
        const AtPoints taken = add(*row, cover.Kept());
        if (taken == AtPoints::kNot) return false;
        if (taken == AtPoints::kTaken) {
          cover.Accept(*options.row);
          rows.push_back(*options.row);
        } else {
          cover.Reject(*row);
        }
      }
      continue;
    }
    for (const std::vector<int>& row : rows) {
      if (add(row, AllOf(row)) == AtPoints::kNot) return false;
    }
  }
  prepared.SetCover(cover);
  return !prepared.calls.empty();
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

int64_t LargestExtent(const SampledCall& call) {
  int64_t largest = 0;
  for (const TensorType& type : call.OperandTypes()) {
    for (const Dim& dim : type.shape) {
      largest = std::max(largest, dim.Value().value_or(0));
    }
  }
  return largest;
}

void PreparedCalls::SetCover(const PairCover& cover) {
  combinations = cover.ToString();
  // Without rows the calls are those of the examples.
  if (cover.rows() > 0 && cover.covered() < cover.pairs()) {
    absl::StrAppend(&combinations, kOtherPairs);
    if (cover.rows() >= kMaxCombinations) {
      absl::StrAppend(&combinations, "no more combinations are sampled");
    } else {
      absl::StrAppend(&combinations, "the op rejected ", rejected, " calls");
    }
  }
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
  const auto add = [&](DType dtype, const std::vector<int>& row,
                       const std::vector<int>& kept) {
    options.dtype = dtype;
    options.row = row;
    return AddAtPoints(context, sampler, kept, options, &cover, prepared) ==
           AtPoints::kTaken;
  };
  for (int trial = 0; trial < kSingleElementTrials; ++trial) {
    if (rows.size() == kSingleElementRows) break;
    const auto row = cover.Next(sampler.random());
    if (!row) break;
    if (add(dtypes.front(), *row, cover.Kept())) {
      cover.Accept(*options.row);
      rows.push_back(*options.row);
    } else {
      cover.Reject(*row);
    }
  }
  for (size_t d = 1; d < dtypes.size(); ++d) {
    for (const std::vector<int>& row : rows) add(dtypes[d], row, AllOf(row));
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
    PrepareLargeCalls(context, prepared);
  }
}

bool HasSquareMatrices(const SampledCall& call) {
  const std::vector<TensorType> types = call.OperandTypes();
  return std::any_of(types.begin(), types.end(), [](const TensorType& type) {
    return IsFloat(type.dtype) && HasSquareMatrices(type);
  });
}

bool HasFloatResult(const PreparedCalls& calls) {
  const auto has = [](const PreparedCall& call) {
    const Graph& body = call.graphs.body;
    return std::any_of(body.outputs().begin(), body.outputs().end(),
                       [&](const NamedValue& output) {
                         return IsFloat(body.type(output.value).dtype);
                       });
  };
  return std::any_of(calls.calls.begin(), calls.calls.end(), has);
}

Verdict EnoughWithinDomain(const OpContext& context, Verdict verdict) {
  const bool compared_nothing =
      verdict.kind == VerdictKind::kNotChecked && verdict.why.empty();
  if (context.item->domains.empty()) {
    if (!compared_nothing) return verdict;
    return Verdict::Inconclusive("nothing was compared");
  }
  const bool settled = verdict.kind != VerdictKind::kAgrees &&
                       verdict.kind != VerdictKind::kNotIndependent;
  if ((settled && !compared_nothing) || verdict.samples >= kMinWithinDomain) {
    return verdict;
  }
  return Verdict::Inconclusive(absl::StrCat(
      "only ", verdict.samples,
      " of the sampled elements lie within the `domain` clause, and ",
      kMinWithinDomain, " are needed"));
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

}  // namespace cleave
