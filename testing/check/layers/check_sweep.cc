#include "testing/check/layers/check_sweep.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "ops/check.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/compare/fast_comparer.h"
#include "testing/check/layers/compare_at.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/signature_sampler.h"

namespace cleave {
namespace {

constexpr char kPrefix[] = "sweep ";
// Points that are evaluated at a time.
constexpr int64_t kChunk = 4096;
// Writes the bits of points [begin, begin + size) to the operands: of one
// operand all bits in ascending order, of two those of the first in the upper
// half of the number.
void FillPoints(int64_t begin, std::vector<Tensor>& operands) {
  const int64_t size = operands[0].size();
  if (operands.size() == 1) {
    auto* const bits = reinterpret_cast<uint32_t*>(operands[0].mutable_data());
    for (int64_t i = 0; i < size; ++i) {
      bits[i] = static_cast<uint32_t>(begin + i);
    }
    return;
  }
  auto* const a = reinterpret_cast<uint16_t*>(operands[0].mutable_data());
  auto* const b = reinterpret_cast<uint16_t*>(operands[1].mutable_data());
  for (int64_t i = 0; i < size; ++i) {
    a[i] = static_cast<uint16_t>((begin + i) >> 16);
    b[i] = static_cast<uint16_t>(begin + i);
  }
}

// The call at [n] with the default attributes.
const PreparedCall* CallOf(const PreparedCalls& prepared, const Sweep& sweep) {
  for (const PreparedCall& call : prepared.calls) {
    const std::vector<TensorType> types = call.call.OperandTypes();
    if (call.default_attributes && call.graphs.spec &&
        static_cast<int>(types.size()) == sweep.operands &&
        std::all_of(types.begin(), types.end(), [&](const TensorType& type) {
          return type.dtype == sweep.dtype;
        })) {
      return &call;
    }
  }
  return nullptr;
}

}  // namespace

std::string Sweep::Name() const {
  return absl::StrFormat("%s%s %s %02d/%d", kPrefix, op, DTypeName(dtype), part,
                         parts);
}

std::string WholeSweep(absl::string_view name) {
  if (!absl::StartsWith(name, kPrefix)) return "";
  return std::string(name.substr(0, name.rfind(' ')));
}

std::string OpOfSweep(absl::string_view name) {
  const std::vector<std::string> words = absl::StrSplit(name, ' ');
  return words.size() < 2 || !absl::StartsWith(name, kPrefix) ? "" : words[1];
}

std::vector<Sweep> SweepsOf(const RuleSet& rules, const Item& item,
                            const std::set<DType>& dtypes) {
  std::vector<Sweep> sweeps;
  const size_t operands = item.inputs.size();
  if (item.kind != ItemKind::kOp || item.spec == nullptr || operands < 1 ||
      operands > 2 || rules.Lines(item.name, StatementKind::kResult).empty()) {
    return sweeps;
  }
  const auto calls = rules.SymbolicCalls(item.name);
  if (!calls.ok() || calls->empty()) return sweeps;
  for (const Graph& call : *calls) {
    for (uint32_t id = 0; id < call.size(); ++id) {
      if (IsPrimitive(call.node(Value{id}).op)) continue;
      if (!rules.IsElementwise(call, Value{id}).value_or(false)) return sweeps;
    }
  }
  for (const DType dtype : SignatureSampler(item, /*seed=*/0).DTypes()) {
    // The values of 16 bits of one operand are all in L3.
    if (operands == 1 ? dtype != DType::kF32
                      : !IsFloat(dtype) || ByteSize(dtype) != 2) {
      continue;
    }
    if (!dtypes.empty() && dtypes.count(dtype) == 0) continue;
    for (int part = 1; part <= kSweepParts; ++part) {
      sweeps.push_back({item.name, dtype, static_cast<int>(operands), part});
    }
  }
  return sweeps;
}

Verdict CheckSweep(OpContext context, const Sweep& sweep) {
  context.dtypes = {sweep.dtype};
  context.sizes.clear();
  const PreparedCalls prepared =
      PrepareCalls(context, PrepareConcreteCalls(context));
  const PreparedCall* const call = CallOf(prepared, sweep);
  if (call == nullptr) {
    return prepared.exceeded
               ? Verdict::Inconclusive(prepared.problems.back())
               : Verdict::NotChecked("no call has these operands alone");
  }
  const auto comparer =
      ValueComparer::Make(*context.clauses, call->call, call->graphs);
  if (!comparer.ok()) {
    return Verdict::Inconclusive(std::string(comparer.status().message()));
  }
  if (!comparer->elementwise()) return Verdict::NotChecked("not pointwise");
  const absl::StatusOr<FastComparer> fast =
      FastComparer::Make(*comparer, Gaps::kRefused);
  if (!fast.ok()) {
    return Verdict::NotChecked(std::string(fast.status().message()));
  }
  const int64_t size = kSweepPoints / sweep.parts;
  const int64_t begin = (sweep.part - 1) * size;
  Verdict verdict;
  verdict.kind = VerdictKind::kAgrees;
  verdict.strength = Strength::kExhaustive;
  CompareCounts counts;
  int64_t slow_points = 0;
  std::vector<Tensor> points;
  for (int i = 0; i < sweep.operands; ++i) {
    points.emplace_back(sweep.dtype, std::vector<int64_t>{kChunk});
  }
  const size_t results = comparer->body().outputs().size();
  for (int64_t at = begin; at < begin + size; at += kChunk) {
    if (context.Expired()) {
      Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
      break;
    }
    FillPoints(at, points);
    const std::vector<int64_t> slow =
        fast->Undecided(points, verdict.worst_part);
    const auto decided = static_cast<int64_t>((kChunk - slow.size()) * results);
    verdict.samples += decided;
    if (slow.empty()) continue;
    slow_points += static_cast<int64_t>(slow.size());
    const Strength strength = verdict.strength;
    if (!CompareAt(context, *comparer, SelectElements(points, slow), verdict,
                   counts)) {
      verdict.counterexample->replay = absl::StrCat(
          "cleave check ", context.rules().SourceOf(*context.shown).name(),
          " --tier full --op '", sweep.Name(), "' --seed ", context.run_seed);
      return verdict;
    }
    if (verdict.kind == VerdictKind::kAgrees) verdict.strength = strength;
  }
  counts.other_zeros = 0;  // those of the fast points are not counted
  if (verdict.kind == VerdictKind::kAgrees && counts.undecided > 0) {
    verdict.strength = Strength::kSampled;
  }
  AddCountNotes(counts, verdict);
  verdict.notes.push_back(absl::StrCat(
      slow_points, " of ", size, " points by 256 bits, the rest by intervals"));
  return verdict;
}

}  // namespace cleave
