#include "engine/runtime/scan_loop.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/ir/loop_operands.h"
#include "engine/runtime/thread_pool.h"
#include "ops/budget.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/status_macros.h"

namespace cleave::internal_kernel {
namespace {

int64_t Bytes(const ArrayView& array) {
  int64_t bytes = ByteSize(array.dtype);
  for (const int64_t extent : array.shape) bytes *= extent;
  return bytes;
}

// An array of slices along axis 0.
struct Slices {
  // The array of one; the data is that of slice 0.
  ArrayView first;
  int64_t bytes = 0;  // of one

  explicit Slices(const ArrayView& array) : first(array) {
    first.shape.remove_prefix(1);
    bytes = Bytes(first);
  }
  void* At(int64_t index) const {
    return static_cast<std::byte*>(first.data) + index * bytes;
  }
};

// The bytes of slices, and the time of the rounds that are left, from which on
// it pays to call other threads.
constexpr int64_t kLeastSharedBytes = int64_t{256} << 10;
constexpr std::chrono::microseconds kLeastSharedTime(200);

// Rounds that do not read each other, [0, length), by `rounds(begin, end,
// options)` on any threads at once. `bytes`: of all their slices. The error is
// that of the first round that fails.
absl::Status RunApart(
    int64_t length, int64_t bytes, const KernelCallOptions& call,
    absl::FunctionRef<absl::Status(int64_t, int64_t, const RunOptions&)>
        rounds) {
  RunOptions options;
  options.call = call;
  ThreadPool& pool = call.pool == nullptr ? DefaultThreadPool() : *call.pool;
  if (call.serial || pool.threads() == 1) return rounds(0, length, options);
  int64_t first = 0;
  if (bytes < kLeastSharedBytes) {
    // The first tells how long the others take.
    const auto start = std::chrono::steady_clock::now();
    CLEAVE_RETURN_IF_ERROR(rounds(0, 1, options));
    first = 1;
    if ((std::chrono::steady_clock::now() - start) * (length - 1) <
        kLeastSharedTime) {
      return rounds(first, length, options);
    }
  }
  // Few rounds do not keep all threads busy: these join in their loops.
  constexpr int64_t kRoundsPerThread = 4;
  options.call.serial = length - first >= kRoundsPerThread * pool.threads();
  const Limits limits = CurrentLimits();
  std::mutex mutex;
  int64_t failed = length;  // the least round that did, guarded by mutex
  absl::Status status;      // its own, likewise
  pool.ParallelFor(length - first, [&](int64_t begin, int64_t end) {
    const BudgetScope scope(limits);  // of threads that have none
    for (int64_t round = first + begin; round < first + end; ++round) {
      absl::Status result = rounds(round, round + 1, options);
      if (result.ok()) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      if (round < failed) {
        failed = round;
        status = std::move(result);
      }
      return;
    }
  });
  return status;
}

}  // namespace

std::optional<ScanLoop> ScanLoop::Make(const Graph& step) {
  std::optional<ControlStep> control =
      ControlStep::Make(step, Primitive::kScan);
  if (!control.has_value()) return std::nullopt;
  ScanLoop loop;
  loop.control_ = *std::move(control);
  return loop;
}

const Graph& ScanLoop::BodyOf(const Graph& step) const {
  return *step.attributes(control_.node()).Get("body").AsRegion().graph;
}

absl::Status ScanLoop::Run(const Graph& step, const Kernel& body,
                           absl::Span<const Tensor> inputs,
                           absl::Span<const ArrayView> outputs,
                           const DimValues& dims,
                           const KernelCallOptions& call) const {
  CLEAVE_ASSIGN_OR_RETURN(const Attributes attributes,
                          EvaluateDims(step.attributes(control_.node()), dims));
  const int64_t length = attributes.GetInt("length");
  const bool reverse = attributes.GetBool("reverse");
  std::vector<Tensor> moved;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<ArrayView> operands,
                          control_.Operands(inputs, dims, &moved));
  const LoopOperands loop = LoopOperands::Of(attributes, operands.size());
  const std::vector<int>& results = control_.results();

  // Where nobody reads a result, or a carry that is not the last, it lies here.
  std::vector<Tensor> own;
  const auto make = [&](const ArrayView& like) -> absl::StatusOr<ArrayView> {
    CLEAVE_ASSIGN_OR_RETURN(
        Tensor tensor, Tensor::CreateUninitialized(
                           like.dtype, {like.shape.begin(), like.shape.end()}));
    own.push_back(std::move(tensor));
    ArrayView view = like;
    view.data = own.back().mutable_data();
    return view;
  };
  // Two arrays for each carry; the last round writes the first.
  std::vector<std::array<ArrayView, 2>> carries;
  for (int i = 0; i < loop.carries; ++i) {
    const ArrayView& start = operands[loop.consts + i];
    std::array<ArrayView, 2> pair;
    if (results[i] >= 0) {
      pair[0] = outputs[results[i]];
    } else {
      CLEAVE_ASSIGN_OR_RETURN(pair[0], make(start));
    }
    if (length == 0) {
      const int64_t bytes = Bytes(start);
      if (bytes > 0) std::memcpy(pair[0].data, start.data, bytes);
    } else if (length > 1) {
      CLEAVE_ASSIGN_OR_RETURN(pair[1], make(start));
    }
    carries.push_back(pair);
  }
  if (length == 0) return absl::OkStatus();
  std::vector<Slices> read;
  for (int i = loop.first_slice(); i < loop.count(); ++i) {
    read.emplace_back(operands[i]);
  }
  std::vector<Slices> stacked;
  std::vector<std::vector<int64_t>> shapes(results.size());
  for (size_t i = loop.carries; i < results.size(); ++i) {
    if (results[i] >= 0) {
      stacked.emplace_back(outputs[results[i]]);
      continue;
    }
    // One slice is written again in each round.
    const TensorType& type = step.types(control_.node())[i];
    CLEAVE_ASSIGN_OR_RETURN(shapes[i], EvaluateShape(type.shape, dims));
    shapes[i][0] = 1;
    ArrayView one;
    one.dtype = type.dtype;
    one.shape = shapes[i];
    CLEAVE_ASSIGN_OR_RETURN(one, make(one));
    stacked.emplace_back(one);
    stacked.back().bytes = 0;
  }

  std::vector<ArrayView> from(operands.begin(),
                              operands.begin() + loop.first_slice());
  for (const Slices& slices : read) from.push_back(slices.first);
  std::vector<ArrayView> to;
  for (const auto& pair : carries) to.push_back(pair[0]);
  for (const Slices& slices : stacked) to.push_back(slices.first);
  const auto move_to = [&](int64_t index, std::vector<ArrayView>& sources,
                           std::vector<ArrayView>& targets) {
    for (size_t i = 0; i < read.size(); ++i) {
      sources[loop.first_slice() + i].data = read[i].At(index);
    }
    for (size_t i = 0; i < stacked.size(); ++i) {
      targets[loop.carries + i].data = stacked[i].At(index);
    }
  };
  if (loop.carries == 0 && own.empty()) {
    CLEAVE_RETURN_IF_ERROR(ChargeBudget(BudgetKind::kLoopSteps, length));
    int64_t bytes = 0;
    for (const Slices& slices : read) bytes += length * slices.bytes;
    for (const Slices& slices : stacked) bytes += length * slices.bytes;
    return RunApart(
        length, bytes, call,
        [&](int64_t begin, int64_t end, const RunOptions& options) {
          std::vector<ArrayView> sources = from;
          std::vector<ArrayView> targets = to;
          for (int64_t index = begin; index < end; ++index) {
            CLEAVE_RETURN_IF_ERROR(PollBudget());
            move_to(index, sources, targets);
            CLEAVE_RETURN_IF_ERROR(body.RunViews(sources, targets, options));
          }
          return absl::OkStatus();
        });
  }
  RunOptions options;
  options.call = call;
  for (int64_t round = 0; round < length; ++round) {
    CLEAVE_RETURN_IF_ERROR(ChargeBudget(BudgetKind::kLoopSteps));
    const int64_t written = (length - 1 - round) % 2;
    for (int i = 0; i < loop.carries; ++i) {
      if (round > 0) from[loop.consts + i] = carries[i][1 - written];
      to[i].data = carries[i][written].data;
    }
    move_to(reverse ? length - 1 - round : round, from, to);
    CLEAVE_RETURN_IF_ERROR(body.RunViews(from, to, options));
  }
  return absl::OkStatus();
}

}  // namespace cleave::internal_kernel
