#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "testing/check/layers/op_context.h"
#include "testing/check/layers/prepare_call.h"
#include "testing/check/layers/read_example.h"
#include "testing/check/layers/taken_branches.h"
#include "testing/check/samples/large_axes.h"
#include "testing/check/samples/sample_counts.h"

namespace cleave {
namespace {

// Extents that are tried for one combination of attributes.
constexpr int kDrawsOfRow = 8;
// Calls that are tried after one of them, each of which moves a name by which
// the op refused the one before.
constexpr int kMovesOfDraw = 8;
// Calls that are drawn for a dtype until one has elements.
constexpr int kDrawsOfTurn = 4;

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

// Whether an input of the call is of the dtype that InDType replaces.
bool HasF32(const SampledCall& call) {
  for (const SampledInput& input : call.inputs) {
    for (const std::optional<TensorType>& type : input.types) {
      if (type && type->dtype == DType::kF32) return true;
    }
  }
  return false;
}

// All rows of choices where there are few, in any order, else some.
std::vector<std::vector<int>> RowsOfChoices(const std::vector<int>& sizes,
                                            std::mt19937_64& random) {
  constexpr int64_t kMostRows = 128;
  int64_t count = 1;
  for (const int size : sizes) count = std::min(count * size, kMostRows + 1);
  std::vector<std::vector<int>> rows(std::min(count, kMostRows));
  for (size_t i = 0; i < rows.size(); ++i) {
    uint64_t rest = count <= kMostRows ? i : random();
    for (const int size : sizes) {
      rows[i].push_back(static_cast<int>(rest % size));
      rest /= size;
    }
  }
  std::shuffle(rows.begin(), rows.end(), random);
  return rows;
}

// Adds calls that take branches of the rule which no call before takes: three
// attributes together may decide on one.
void AddForBranches(const OpContext& context, SignatureSampler& sampler,
                    RowMoves& moves, PreparedCalls& prepared) {
  // Draws for one row: some extents are too many elements.
  constexpr int kDraws = 3;
  if (prepared.calls.empty()) return;
  TakenBranches taken(context.rules(), *context.item);
  for (const PreparedCall& call : prepared.calls) {
    // Most rules have few conditions, or none.
    if (taken.IsComplete()) return;
    taken.Add(call.call).IgnoreError();
  }
  std::vector<DType> dtypes = FloatsInTurn(WantedDTypes(context, sampler));
  if (dtypes.empty()) dtypes = WantedDTypes(context, sampler);
  DrawOptions options;
  options.nonempty = true;
  int trial = 0;
  for (std::vector<int>& row :
       RowsOfChoices(sampler.FactorSizes(), sampler.random())) {
    options.row = std::move(row);
    options.redrawn.reset();
    // Along axes of one element much is the same.
    options.alike = trial % 2 == 1;
    options.distinct = !options.alike;
    if (!dtypes.empty()) options.dtype = dtypes[trial % dtypes.size()];
    ++trial;
    for (int draw = 0; draw < kDraws; ++draw) {
      if (taken.IsComplete() || prepared.exceeded || context.Expired()) return;
      absl::StatusOr<SampledCall> call = sampler.Draw(options);
      if (!call.ok()) continue;
      const absl::StatusOr<bool> adds = taken.Add(*call);
      if (adds.value_or(false)) {
        Prepare(context, *std::move(call), false, prepared);
      }
      if (adds.ok()) break;
      if (moves.Next(adds.status(), {}, options, nullptr) !=
          AfterRefusal::kMoved) {
        break;
      }
    }
  }
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
  size_t next_example = 0;
  for (const DType dtype : sampler.DTypes()) {
    if (examples.empty() || prepared.exceeded) break;
    if (dtype == DType::kF32 || dtype == DType::kF64) continue;
    const ExampleCall& example = examples[next_example++ % examples.size()];
    SampledCall call = InDType(example.call, dtype);
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
  PairCover cover(sampler.FactorSizes());
  RowMoves moves(context, sampler);
  // Whether the op takes `row` at some extents; the choices at factors that are
  // not `kept` may move. Nullopt: it is not sampled.
  const auto add = [&](std::vector<int>& row,
                       const std::vector<int>& kept) -> std::optional<bool> {
    options.distinct = prepared.calls.size() % 2 == 1;
    options.vary_attributes =
        !sampler.IsDefaults(row) || prepared.calls.size() > 2;
    for (int draw = 0; draw < kDrawsOfRow; ++draw) {
      options.row = row;
      options.redrawn.reset();
      // Some are square: there a transposed read has the right shape.
      options.alike = draw >= kDrawsOfRow / 2 ||
                      (has_sizes && prepared.calls.size() % 4 == 2);
      for (int move = 0; move < kMovesOfDraw && !ended(); ++move) {
        ++trials;
        absl::StatusOr<SampledCall> call = sampler.Draw(options);
        if (!call.ok()) {
          if (IsRejection(call.status())) break;
          AddProblem(prepared, call.status());
          return std::nullopt;
        }
        absl::Status refusal;
        if (Prepare(context, *std::move(call), sampler.IsDefaults(*options.row),
                    prepared, &refusal)) {
          row = *options.row;
          return true;
        }
        const AfterRefusal next = moves.Next(refusal, kept, options, &cover);
        if (next == AfterRefusal::kForbidden) return false;
        if (next == AfterRefusal::kAnew) break;
      }
      if (ended()) break;
    }
    return false;
  };
  std::vector<std::vector<int>> rows;
  bool sampled = true;
  while (sampled && !ended() &&
         static_cast<int>(rows.size()) < kMaxCombinations) {
    const auto row = cover.Next(sampler.random());
    if (!row) break;
    if (!turn.empty()) {
      options.dtype = turn[rows.size() % turn.size()];
    }
    std::vector<int> met = *row;
    const auto taken = add(met, cover.Kept());
    sampled = taken.has_value();
    if (taken.value_or(false)) {
      cover.Accept(met);
      rows.push_back(std::move(met));
    } else {
      cover.Reject(*row);
    }
  }
  prepared.SetCover(cover);
  // The rows that were accepted, with no choice moved.
  std::vector<int> all(sampler.FactorSizes().size());
  std::iota(all.begin(), all.end(), 0);
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
      sampled = add(rows[next % rows.size()], all).has_value();
      continue;
    }
    // A call without elements shows nothing of its dtype.
    for (int draw = 0; sampled && draw < kDrawsOfTurn && !ended() &&
                       !HadTurn(prepared, *options.dtype);
         ++draw) {
      sampled = add(rows[(next + draw) % rows.size()], all).has_value();
    }
  }
  // Each other dtype at two examples as they stand, too: its turn may have been
  // a call of ranks or attributes at which little is computed.
  std::vector<const SampledCall*> of_floats;
  for (const ExampleCall& example : examples) {
    if (HasF32(example.call)) of_floats.push_back(&example.call);
  }
  size_t first_example = 0;
  for (const DType dtype : sampler.DTypes()) {
    if (dtype == DType::kF32 || dtype == DType::kF64) continue;
    for (size_t i = 0; i < std::min<size_t>(of_floats.size(), 2); ++i) {
      if (prepared.exceeded) break;
      const size_t at = (first_example + i) % of_floats.size();
      Prepare(context, InDType(*of_floats[at], dtype), false, prepared);
    }
    ++first_example;
  }
  AddForBranches(context, sampler, moves, prepared);
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
