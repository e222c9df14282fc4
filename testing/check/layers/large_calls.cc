#include "testing/check/layers/large_calls.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "testing/check/layers/call_types.h"
#include "testing/check/layers/prepare_call.h"
#include "testing/check/layers/taken_branches.h"
#include "testing/check/reference/work.h"
#include "testing/check/samples/large_axes.h"
#include "testing/check/samples/signature_sampler.h"

namespace cleave {
namespace {

struct ExtentRow {
  std::vector<int64_t> extents;  // ascending
  double max_work;               // of a call with one of them
};

const std::vector<ExtentRow>& ExtentRows() {
  static const auto& rows = *new std::vector<ExtentRow>{
      {{6, 7, 8, 9, 15, 16, 17, 31, 32, 33}, 5e4},
      {{63, 64, 65, 127, 128, 129, 255, 256, 257}, 7e5},
      {{511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097},
       3e5}};
  return rows;
}

// The work of a call at the longest extent: more where places are computed or
// carried along.
constexpr double kLongestWork = 1.2e6;
constexpr double kLongestWorkOfPlaces = 4e6;
// Draws for one extent: the op may reject some. Further ones have other sizes
// that are as large, at first all.
constexpr int kDraws = 4;
constexpr int kDrawsTogether = 28;
// Calls after one that the op refused, each of which moves a name by which it
// did: one of six heads that divide no others is not drawn by luck.
constexpr int kMovesOfDraw = 8;
// Calls that are tried for one, two for each extent: where they are refused or
// too dear, further ones have shorter extents.
constexpr int kAttempts = 6;

// Calls of a size that the rule compares with: how many are drawn for an axis,
// and the work of one that takes a branch, where the reference computes over
// the reals, and where laws alone are evaluated.
constexpr int kDrawsOfBranch = 3;
constexpr double kWorkOfBranchOverReals = 4e6;
constexpr double kWorkOfBranch = 4e7;

// Calls in which all sizes are a little larger, the draws for them, most of
// which an op may refuse, and the work of one.
constexpr int kMiddleCalls = 6;
constexpr int kMiddleDraws = 48;
constexpr double kMiddleWork = 3e5;

// Values depend on places, or are carried along an axis.
bool HasPlaces(const Graph& graph) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(Value{id});
    if (!IsPrimitive(node.op)) continue;
    const Primitive primitive = ToPrimitive(node.op);
    if (primitive == Primitive::kIota || primitive == Primitive::kLinearScan ||
        primitive == Primitive::kScan) {
      return true;
    }
  }
  return false;
}

class LargeCalls {
 public:
  explicit LargeCalls(const OpContext& context)
      : context_(context),
        sampler_(*context.item, context.seed + 11),
        moves_(context, sampler_) {
    sampler_.FixSizes(context.sizes);
    for (DType dtype : {DType::kF32, DType::kF16, DType::kF64, DType::kBF16}) {
      // The tolerance of a law grows with the extent: in few digits it is
      // larger than any mistake.
      if (!context.item->laws.empty() && SignificandBits(dtype) < 24) continue;
      Consider(dtype);
    }
    if (dtypes_.empty()) {
      for (DType dtype : sampler_.DTypes()) Consider(dtype);
    }
  }

  void Make(const std::vector<PreparedCall>& small) {
    std::vector<LargeAxis> axes = LargeAxesOf(*context_.item);
    axes.erase(std::remove_if(axes.begin(), axes.end(),
                              [&](const LargeAxis& axis) {
                                return context_.sizes.count(axis.name) != 0;
                              }),
               axes.end());
    for (const LargeAxis& axis : axes) {
      // Other calls draw several extents at once, and may miss some.
      for (int64_t extent = 1; extent <= kAllExtents; ++extent) {
        if (context_.Expired()) return;
        auto call = Draw(axis, extent, NextDType());
        if (call) calls_.push_back(*std::move(call));
      }
      for (const ExtentRow& row : ExtentRows()) {
        if (context_.Expired()) return;
        AddOneOf(axis, row, 0);
      }
      // As many sizes as large are soon too dear: then of fewer elements each.
      if (!AddOneOf(axis, ExtentRows()[1], kDraws)) {
        AddOneOf(axis, ExtentRows()[0], kDraws);
      }
    }
    if (HasIntLists()) AddMiddle();
    AddLongest(axes);
    AddForBranches(axes, small);
  }

  const std::optional<Verdict>& refused() const { return refused_; }

  std::vector<PreparedCall> Sorted() && {
    std::stable_sort(calls_.begin(), calls_.end(),
                     [](const PreparedCall& a, const PreparedCall& b) {
                       return WorkOf(a.graphs) < WorkOf(b.graphs);
                     });
    return std::move(calls_);
  }

 private:
  void Consider(DType dtype) {
    const std::vector<DType> all = sampler_.DTypes();
    if (std::find(all.begin(), all.end(), dtype) != all.end() &&
        context_.Wants(dtype)) {
      dtypes_.push_back(dtype);
    }
  }

  // `call` with its graphs if the op takes it; else `refusal` says why not,
  // where an error of the op does.
  std::optional<PreparedCall> Prepared(SampledCall call,
                                       const DrawOptions& options,
                                       absl::Status& refusal) {
    const absl::StatusOr<Graph> graph = MakeCallGraph(context_.rules(), call);
    if (!graph.ok() || HasNegativeExtent(*graph)) {
      refusal = graph.status();
      return std::nullopt;
    }
    absl::StatusOr<CallGraphs> graphs = MakeCallGraphs(context_.rules(), call);
    if (!graphs.ok()) {
      if (!refused_) {
        refused_ = RefusedByBody(context_, call,
                                 options.large ? options.large->extent : 0,
                                 *graph, graphs.status());
      }
      return std::nullopt;
    }
    TellInts(*graphs, call);
    Domain domain =
        Domain::Make(*context_.clauses, call, graphs->body).value_or(Domain());
    return PreparedCall{std::move(call), *std::move(graphs),
                        sampler_.IsDefaults(*options.row), std::move(domain)};
  }

  // A call with that extent, of any work, from that draw on.
  std::optional<PreparedCall> Draw(LargeAxis axis, int64_t extent,
                                   std::optional<DType> dtype, int first = 0) {
    axis.extent = extent;
    DrawOptions options;
    options.large = axis;
    options.nonempty = true;
    options.dtype = dtype;
    for (int draw = first; draw < kDraws + kDrawsTogether; ++draw) {
      options.large_chance = draw < kDraws ? 0 : draw == kDraws ? 1 : 0.5;
      options.row = RowOf(draw);
      if (auto prepared = DrawAccepted(options)) return prepared;
    }
    return std::nullopt;
  }

  // The defaults every other time.
  std::vector<int> RowOf(int draw) {
    std::vector<int> row;
    for (int size : sampler_.FactorSizes()) {
      row.push_back(
          draw % 2 == 0 ? 0 : static_cast<int>(sampler_.random()() % size));
    }
    return row;
  }

  // A call with `options.row`, or one that the op takes in its place.
  std::optional<PreparedCall> DrawAccepted(DrawOptions options) {
    options.redrawn.reset();
    for (int move = 0; move < kMovesOfDraw; ++move) {
      absl::StatusOr<SampledCall> call = sampler_.Draw(options);
      if (!call.ok()) break;
      absl::Status refusal;
      if (auto prepared = Prepared(*std::move(call), options, refusal)) {
        return prepared;
      }
      if (moves_.Next(refusal, {}, options, nullptr) != AfterRefusal::kMoved) {
        break;
      }
    }
    return std::nullopt;
  }

  // The dtypes in turn.
  std::optional<DType> NextDType() {
    if (dtypes_.empty()) return std::nullopt;
    return dtypes_[calls_.size() % dtypes_.size()];
  }

  // Whether a call with an extent of `row` was added.
  bool AddOneOf(const LargeAxis& axis, const ExtentRow& row, int first_draw) {
    int64_t place =
        static_cast<int64_t>(sampler_.random()() % row.extents.size());
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      auto call = Draw(axis, row.extents[place], NextDType(), first_draw);
      if (call && WorkOf(call->graphs) <= row.max_work) {
        calls_.push_back(*std::move(call));
        return true;
      }
      // The sizes beside it may have been the reason, or this one is.
      if (attempt % 2 == 1) place = std::max<int64_t>(0, place - 3);
    }
    return false;
  }

  void AddLongest(const std::vector<LargeAxis>& axes) {
    const auto f16 = std::find(dtypes_.begin(), dtypes_.end(), DType::kF16);
    const std::optional<DType> dtype = f16 != dtypes_.end() ? DType::kF16
                                       : dtypes_.empty()
                                           ? std::optional<DType>()
                                           : dtypes_.front();
    for (const LargeAxis& axis : axes) {
      if (context_.Expired()) return;
      auto call = Draw(axis, kLongestExtent, dtype);
      if (!call) continue;
      const bool places = HasPlaces(call->graphs.body) ||
                          (call->graphs.spec && HasPlaces(*call->graphs.spec));
      if (WorkOf(call->graphs) >
          (places ? kLongestWorkOfPlaces : kLongestWork)) {
        continue;
      }
      calls_.push_back(*std::move(call));
      return;
    }
  }

  // A list of integers: a kernel, its strides or its padding.
  bool HasIntLists() const {
    const std::vector<AttributeDecl>& attributes = context_.item->attributes;
    return std::any_of(
        attributes.begin(), attributes.end(),
        [](const AttributeDecl& a) { return a.list && a.type == "int"; });
  }

  void AddMiddle() {
    DrawOptions options;
    options.middle = true;
    int taken = 0;
    for (int draw = 0; draw < kMiddleDraws && taken < kMiddleCalls; ++draw) {
      if (context_.Expired()) return;
      options.dtype = NextDType();
      options.row = RowOf(draw);
      auto call = DrawAccepted(options);
      if (!call || WorkOf(call->graphs) > kMiddleWork) continue;
      calls_.push_back(*std::move(call));
      ++taken;
    }
  }

  // Calls at sizes that the rule compares with, which alone take a branch.
  void AddForBranches(const std::vector<LargeAxis>& axes,
                      const std::vector<PreparedCall>& small) {
    const std::vector<int64_t> thresholds =
        ComparedSizes(context_.rules(), *context_.item);
    if (thresholds.empty()) return;
    TakenBranches taken(context_.rules(), *context_.item);
    for (const PreparedCall& call : small) taken.Add(call.call).IgnoreError();
    for (const PreparedCall& call : calls_) taken.Add(call.call).IgnoreError();
    for (const int64_t threshold : thresholds) {
      for (const LargeAxis& axis : axes) {
        for (int draw = 0; draw < kDrawsOfBranch; ++draw) {
          if (context_.Expired()) return;
          // All other sizes as large, then some.
          auto call = Draw(axis, threshold + 1, NextDType(), kDraws + draw);
          if (!call) break;
          const double most =
              call->graphs.spec ? kWorkOfBranchOverReals : kWorkOfBranch;
          if (WorkOf(call->graphs) > most) continue;
          if (!taken.Add(call->call).value_or(false)) continue;
          call->is_dear = true;
          calls_.push_back(*std::move(call));
        }
      }
    }
  }

  const OpContext& context_;
  SignatureSampler sampler_;
  RowMoves moves_;
  std::vector<DType> dtypes_;
  std::vector<PreparedCall> calls_;
  std::optional<Verdict> refused_;
};

}  // namespace

void PrepareLargeCalls(const OpContext& context, PreparedCalls& prepared) {
  LargeCalls large(context);
  large.Make(prepared.calls);
  prepared.refused = large.refused();
  prepared.large = std::move(large).Sorted();
}

}  // namespace cleave
