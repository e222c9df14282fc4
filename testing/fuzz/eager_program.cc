#include "testing/fuzz/eager_program.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/eager/atomic.h"
#include "engine/eager/call.h"
#include "engine/eager/dim_scope.h"
#include "engine/eager/functional_testing.h"
#include "engine/eager/lift.h"
#include "engine/eager/session.h"
#include "engine/eager/tensor.h"
#include "engine/eager/trace_scope.h"
#include "engine/eager/tree.h"
#include "engine/ir/trace.h"
#include "ops/budget.h"
#include "ops/dim.h"
#include "ops/exact.h"
#include "ops/tensor.h"
#include "testing/fuzz/eager_model.h"
#include "testing/fuzz/wild.h"

namespace cleave::functional {
namespace {

constexpr int kStepsOfProgram = 12;

// A tensor and what it is to be.
struct Held {
  Tensor tensor;
  ModelTensor model;
};

class Program : private Wild {
 public:
  explicit Program(uint64_t seed) : Wild(seed) {}

  void Run() {
    SessionOptions options;
    options.cache = &TestKernelCache();
    options.mode = Chance(4) ? EagerMode::kLazy : EagerMode::kImmediate;
    Session session(SharedRules(), options);
    session_ = &session;
    const SessionScope scope(session);
    for (int i = 0; i < 3; ++i) AddNew();
    for (int step = 0; step < kStepsOfProgram; ++step) {
      if (!Chance(4)) {
        Step();
        continue;
      }
      AtomicScope atomic;
      in_atomic_ = true;
      for (int i = 0; i < 3; ++i) Step();
      in_atomic_ = false;
      atomic.End().IgnoreError();
      if (options.mode == EagerMode::kImmediate) SettleAll();
    }
    session.Run().IgnoreError();
    SettleAll();
    CheckAll();
  }

 private:
  // ---- tensors with models
  void AddNew() {
    const DType dtype = Chance(3) ? DType::kI64 : DType::kF32;
    const Extents shape = SmallShape();
    ModelValue value;
    std::vector<double> numbers;
    for (int64_t i = CountOf(shape); i > 0; --i) numbers.push_back(SmallInt());
    value.numbers = numbers;
    Held held{cleave::Tensor::FromDoubles(dtype, shape, numbers),
              ModelTensor::Make(dtype, shape, std::move(value))};
    held_.push_back(std::move(held));
  }

  // Keeps a result, or sees that it is the mistake that the model says.
  void Add(const Tensor& tensor, const std::optional<ModelTensor>& model,
           absl::string_view what) {
    if (!model.has_value()) {
      EXPECT_FALSE(tensor.valid())
          << what << " gives " << tensor.type().ToString();
      EXPECT_FALSE(tensor.status().ok()) << what;
      EXPECT_FALSE(tensor.extent(0).valid()) << what;
      EXPECT_FALSE(tensor.Concrete().ok()) << what;
      return;
    }
    const bool fails = model->storage->now().fails;
    if (fails && AtOnce()) {
      EXPECT_FALSE(tensor.valid()) << what;
      return;
    }
    ASSERT_TRUE(tensor.valid()) << what << ": " << tensor.status();
    EXPECT_EQ(tensor.dtype(), model->dtype) << what;
    EXPECT_EQ(tensor.shape(), Shape(model->shape.begin(), model->shape.end()))
        << what;
    if (held_.size() < 12) {
      held_.push_back({tensor, *model});
    } else if (!fails) {
      held_[static_cast<size_t>(Pick(12))] = {tensor, *model};
    }
  }

  bool AtOnce() const {
    return !in_atomic_ && session_->eager_mode() == EagerMode::kImmediate;
  }

  Held& Some() {
    return held_[static_cast<size_t>(Pick(static_cast<int64_t>(held_.size())))];
  }

  ModelIndex RandomIndex() {
    ModelIndex index;
    const int64_t kind = Pick(8);
    index.kind = kind == 0   ? ModelIndex::Kind::kEllipsis
                 : kind == 1 ? ModelIndex::Kind::kNewAxis
                 : kind < 5  ? ModelIndex::Kind::kElement
                             : ModelIndex::Kind::kSlice;
    index.element = Chance(20) ? WildInt() : Pick(5) - 2;
    if (Chance(2)) index.start = Chance(9) ? WildInt() : SmallInt();
    if (Chance(2)) index.stop = Chance(9) ? WildInt() : SmallInt();
    if (Chance(3)) index.step = SmallInt();
    return index;
  }

  void DoView() {
    const Held held = Some();
    switch (Pick(5)) {
      case 0: {
        Extents shape = SmallShape();
        if (Chance(3)) shape = {static_cast<int64_t>(held.model.places.size())};
        if (Chance(3)) shape.push_back(-1);
        return Add(held.tensor.Reshape(Shape(shape.begin(), shape.end())),
                   Reshape(held.model, shape), "reshape");
      }
      case 1: {
        std::vector<int> axes;
        for (int64_t i = Pick(4); i > 0; --i) axes.push_back(SmallInt());
        if (Chance(2)) {
          axes.clear();
          for (size_t d = held.model.shape.size(); d-- > 0;) {
            axes.push_back(static_cast<int>(d));
          }
        }
        return Add(held.tensor.Transpose(axes), Transpose(held.model, axes),
                   "transpose");
      }
      case 2: {
        std::vector<int> axes;
        for (int64_t i = Pick(3); i > 0; --i) axes.push_back(SmallInt());
        return Add(held.tensor.Reverse(axes), Reverse(held.model, axes),
                   "reverse");
      }
      case 3: {
        Extents shape = SmallShape();
        if (Chance(2)) {
          shape = held.model.shape;
          shape.insert(shape.begin(), 2);
        }
        return Add(held.tensor.BroadcastTo(Shape(shape.begin(), shape.end())),
                   BroadcastTo(held.model, shape), "broadcast");
      }
      default: {
        std::vector<ModelIndex> indices;
        std::vector<Index> given;
        for (int64_t i = Pick(4); i > 0; --i) {
          indices.push_back(RandomIndex());
          given.push_back(indices.back().ToIndex());
        }
        return Add(held.tensor.At(given), At(held.model, indices), "index");
      }
    }
  }

  void DoOp() {
    const Held a = Some(), b = Some();
    const char op = "+-*"[Pick(3)];
    const Tensor result = op == '+'   ? a.tensor + b.tensor
                          : op == '-' ? a.tensor - b.tensor
                                      : a.tensor * b.tensor;
    Add(result, Combine(op, a.model, b.model), std::string(1, op));
  }

  // x[[i, ..]] along the first axis: one that is out of range fails when it
  // runs.
  void DoGather() {
    const Held x = Some();
    if (x.model.shape.empty()) return;
    const int64_t n = x.model.shape[0];
    std::vector<int64_t> at;
    for (int64_t i = 1 + Pick(2); i > 0; --i) {
      at.push_back(Chance(4) || n == 0 ? Pick(9) - 4 : Pick(n));
    }
    ModelValue value;
    const ModelValue from = x.model.Read();
    value.fails = from.fails;
    value.may_pass = from.may_pass;
    const int64_t row = n == 0 ? 0 : CountOf(x.model.shape) / n;
    Extents shape = x.model.shape;
    shape[0] = static_cast<int64_t>(at.size());
    value.numbers.assign(static_cast<size_t>(CountOf(shape)), 0);
    for (size_t i = 0; i < at.size(); ++i) {
      const int64_t place = at[i] < 0 ? at[i] + n : at[i];
      if (place < 0 || place >= n) {
        // Rows without elements read nothing.
        value.fails |= CountOf(shape) > 0;
        continue;
      }
      for (int64_t j = 0; j < row; ++j) {
        value.numbers[i * static_cast<size_t>(row) + static_cast<size_t>(j)] =
            from.numbers[static_cast<size_t>(place * row + j)];
      }
    }
    const Tensor index = cleave::Tensor::FromInts(
        DType::kI64, {static_cast<int64_t>(at.size())}, at);
    if (n == 0 || CountOf(shape) == 0) {
      x.tensor.At({index}).ToString();
      SettleAll();  // Text wants values: what waited has run.
      return;
    }
    Add(x.tensor.At({index}),
        ModelTensor::Make(x.model.dtype, shape, std::move(value)), "gather");
  }

  void DoWrite() {
    Held& x = Some();
    Held y = Some();
    std::optional<double> number;
    if (Chance(3)) {
      number = SmallInt();
      y.model = ModelTensor::Make(x.model.dtype, {}, {{*number}, false});
      y.tensor = Tensor(*number);
    }
    const char op = "=+-*"[Pick(4)];
    const uint64_t version = x.tensor.version();
    const bool written = Write(op, x.model, y.model, AtOnce());
    absl::Status status;
    switch (op) {
      case '=':
        status = x.tensor.Assign(y.tensor);
        break;
      case '+':
        x.tensor += y.tensor;
        break;
      case '-':
        x.tensor -= y.tensor;
        break;
      default:
        x.tensor *= y.tensor;
    }
    if (op != '=') status = x.tensor.write_status();
    EXPECT_EQ(status.ok(), written)
        << op << ": " << x.tensor.type().ToString() << ", "
        << y.tensor.ToString() << ": " << status;
    EXPECT_TRUE(x.tensor.valid()) << x.tensor.status();
    if (!written && !AtOnce()) {
      EXPECT_EQ(x.tensor.version(), version);
    }
  }

  // Calls that are wrong in all likelihood, on the same tensors: whatever comes
  // of them, the tensors stay as they are.
  Tensor WildCall() {
    static const std::vector<std::string> ops = {
        "add",       "neg",      "select",      "reduce_sum",
        "reshape",   "slice",    "pad",         "sort",
        "gather",    "scatter",  "iota",        "convert",
        "softmax",   "matmul",   "linear",      "where",
        "unique",    "concat",   "split",       "no_such_op",
        "extent",    "constant", "result",      "scan",
        "while",     "cond",     "dot_general", "random_bits",
        "transpose", "nonzero",  "layer_norm",  "concatenate",
        "argmax",    "conv",     "cumsum",      ""};
    static const std::vector<std::string> names = {
        "axis",   "axes",     "shape", "dtype",   "start", "size",
        "stride", "mode",     "batch", "value",   "index", "low",
        "high",   "keepdims", "",      "negative"};
    std::vector<CallArgument> arguments;
    for (int64_t i = Pick(4); i > 0; --i) {
      switch (Pick(8)) {
        case 0:
          arguments.push_back(std::nullopt);
          break;
        case 1:
          arguments.push_back(
              CallArgument::List{Some().tensor, std::nullopt, Some().tensor});
          break;
        case 2:
          arguments.push_back(WildValue());
          break;
        case 3:
          arguments.push_back(Tensor(WildInt()));
          break;
        case 4:
          arguments.push_back(Tensor(WildDim(2)));
          break;
        default:
          arguments.push_back(Some().tensor);
      }
    }
    Attributes attributes;
    for (int64_t i = Pick(4); i > 0; --i) {
      attributes.Set(OneOf(names), WildValue());
    }
    const std::string& op = OneOf(ops);
    switch (Pick(3)) {
      case 0:
        return CallOne(op, arguments, attributes);
      case 1:
        return CallMany(op, 3, arguments, attributes)[2];
      default: {
        const auto results = Call(op, arguments, attributes);
        if (!results.ok()) return Tensor::Invalid(results.status());
        for (const auto& result : *results) {
          if (result.has_value()) return *result;
        }
        return Tensor();
      }
    }
  }
  Tensor WildView() {
    const Tensor x = Some().tensor;
    switch (Pick(8)) {
      case 0:
        return x.Reshape(WildShape());
      case 1:
        return x.BroadcastTo(WildShape());
      case 2:
        return x.Slice(WildShape(), WildShape(), {WildInt(), WildInt()});
      case 3:
        return x.At({Index(WildDim(2)),
                     Index(WildDim(1), WildDim(1), WildInt()),
                     Index(Some().tensor)});
      case 4:
        return Zeros(AnyType(), {WildDim(1), Pick(3)});
      case 5:
        return Full(AnyType(), {Pick(3)}, Tensor(WildInt()));
      case 6:
        return Arange(WildDim(1) % 100);
      default:
        return Some().tensor.WithView(x.view());
    }
  }

  Tensor WildLift() {
    const Shape shape = WildShape();
    const int64_t kind = Pick(8);
    const int axis = SmallInt();
    const auto fn = Lift([&](const TracedValue& x, const TracedValue& y) {
      switch (kind) {
        case 0:
          return trace::Reshape(x, shape);
        case 1:
          return trace::BroadcastTo(x, shape);
        case 2:
          return trace::LinearScan(x, y, x, axis, false);
        case 3:
          return trace::ReduceSum(x + y, {axis}, true);
        case 4:
          return trace::Select(x, y, 1);
        case 5:
          return trace::Sort(x, axis, false).values;
        case 6:
          return TracedValue();
        default:
          return x * y - 1;
      }
    });
    return fn(Some().tensor, Chance(3) ? Tensor(SmallInt()) : Some().tensor);
  }

  void WildTree() {
    std::vector<Tensor> leaves;
    for (int64_t i = Pick(4); i > 0; --i) leaves.push_back(Some().tensor);
    const Tree tree = ToTree(std::make_pair(
        leaves, std::map<std::string, Tensor>{{"a", Tensor(1)}}));
    std::vector<Tensor> other(static_cast<size_t>(Pick(6)), Tensor());
    const size_t count = other.size();
    EXPECT_EQ(Unflatten(ShapeOf(tree), std::move(other)).ok(),
              count == leaves.size() + 1);
    EXPECT_FALSE(FromTree<std::vector<Tensor>>(tree).ok());
    EXPECT_EQ((FromTree<std::pair<std::array<Tensor, 2>, Tree>>(tree)).ok(),
              leaves.size() == 2);
    const TreeFunction swap =
        ToTreeFunction([](const Tensor& x, const std::optional<Tensor>& y) {
          return std::make_pair(y, x + 1);
        });
    EXPECT_FALSE(swap(tree).ok());
    swap(ToTree(std::make_pair(Some().tensor, std::optional<Tensor>())))
        .IgnoreError();
  }

  // Whatever a call gives has a status or a value.
  void Look(const Tensor& tensor) {
    EXPECT_FALSE(tensor.valid() && !tensor.status().ok());
    tensor.ToString();
    tensor.Item().IgnoreError();
    tensor.extent(static_cast<int>(WildInt())).ToString();
    tensor.Clone().Base().storage_id();
    EXPECT_EQ(tensor.rank(), static_cast<int>(tensor.shape().size()));
  }

  void DoWild() {
    switch (Pick(7)) {
      case 0:
        return CheckDim();
      case 1:
        return CheckConcrete();
      case 2:
        return WildTree();
      case 3:
        return Look(WildView());
      case 4:
        return Look(WildLift());
      case 5:
        return WildScopes();
      default:
        return Look(WildCall());
    }
  }

  // Scopes that begin and end in any order. Under a trace the tensors are
  // captured, so that no write succeeds.
  void WildScopes() {
    std::vector<std::unique_ptr<SessionScope>> sessions;
    std::vector<std::unique_ptr<TraceScope>> traces;
    std::vector<std::unique_ptr<DimScope>> dims;
    std::vector<Tensor> traced;
    const auto drop = [&](auto* scopes) {
      if (!scopes->empty())
        scopes->erase(scopes->begin() +
                      Pick(static_cast<int64_t>(scopes->size())));
    };
    traces.push_back(std::make_unique<TraceScope>(SharedRules()));
    for (int i = 0; i < 12; ++i) {
      switch (Pick(9)) {
        case 0:
          sessions.push_back(std::make_unique<SessionScope>(*session_));
          break;
        case 1:
          traces.push_back(std::make_unique<TraceScope>(
              Chance(5) ? nullptr : SharedRules()));
          break;
        case 2:
          dims.push_back(std::make_unique<DimScope>());
          dims.back()->Set(Chance(3) ? "3x" : "n", WildDim(1)).IgnoreError();
          dims.back()->Bind(Some().tensor, WildShape()).IgnoreError();
          break;
        case 3:
          drop(&sessions);
          break;
        case 4:
          // The first one stays, so that what comes is under a trace.
          if (traces.size() > 1) {
            traces.erase(traces.begin() + 1 +
                         Pick(static_cast<int64_t>(traces.size()) - 1));
          }
          break;
        case 5:
          drop(&dims);
          break;
        case 6: {
          const size_t at =
              static_cast<size_t>(Pick(static_cast<int64_t>(traces.size())));
          traced.push_back(traces[at]->Input(absl::StrCat("x", Pick(3)),
                                             {AnyType(), WildShape()}));
          break;
        }
        case 7: {
          Tensor x = Some().tensor;
          x += Chance(2) ? Tensor(1) : Some().tensor;
          EXPECT_FALSE(x.write_status().ok());
          EXPECT_FALSE(x.Assign(3).ok());
          break;
        }
        default:
          if (!traced.empty() && Chance(2)) {
            Tensor x = OneOf(traced);
            x = x + Some().tensor;
            x += OneOf(traced);
            traced.push_back(x.Reshape({-1}));
          } else {
            const Tensor x = Chance(2) ? WildCall() : WildView();
            EXPECT_FALSE(x.valid() && !x.status().ok());
          }
      }
    }
    if (Chance(2) && !traced.empty()) {
      const auto node = traces[0]->Read(OneOf(traced));
      std::move(*traces[0])
          .Finish({{"y", node.ok() ? *node : Value{7}}})
          .IgnoreError();
    }
    traces.clear();
    for (const Tensor& x : traced) {
      EXPECT_FALSE(x.Concrete().ok());
      EXPECT_FALSE((x + 1).valid());
    }
  }

  void Step() {
    // Under an atomic scope that a wild call would run early, the model waits.
    const int64_t kind = Pick(AtOnce() ? 12 : 8);
    if (kind < 3) {
      DoView();
    } else if (kind < 4) {
      DoOp();
    } else if (kind < 5) {
      DoGather();
    } else if (kind < 7) {
      DoWrite();
    } else if (kind < 8) {
      AddNew();
    } else {
      DoWild();
    }
    if (AtOnce() && Chance(3)) CheckAll();
    DropLarge();
  }

  // Sums stay exact below 2^24.
  void DropLarge() {
    for (size_t i = 0; i < held_.size();) {
      bool large = held_.size() > 16;
      for (const double number : held_[i].model.storage->now().numbers) {
        large |= std::abs(number) > 1e4;
      }
      if (large) {
        held_.erase(held_.begin() + static_cast<int64_t>(i));
      } else {
        ++i;
      }
    }
    while (held_.size() < 2) AddNew();
  }

  // All ops that waited have run.
  void SettleAll() {
    for (size_t i = 0; i < held_.size();) {
      const Settled settled = Settle(*held_[i].model.storage);
      if (settled == Settled::kValue) {
        ++i;
        continue;
      }
      if (settled == Settled::kLost) {
        EXPECT_FALSE(held_[i].tensor.valid());
        EXPECT_FALSE(held_[i].tensor.Concrete().ok());
      }
      held_.erase(held_.begin() + static_cast<int64_t>(i));
    }
  }

  void CheckAll() {
    for (const Held& held : held_) {
      const absl::StatusOr<cleave::Tensor> value = held.tensor.Concrete();
      ASSERT_TRUE(value.ok()) << value.status();
      const ModelValue expected = held.model.Read();
      ASSERT_EQ(value->shape(), held.model.shape);
      for (int64_t i = 0; i < value->size(); ++i) {
        ASSERT_EQ(*value->DoubleAt(i), expected.numbers[static_cast<size_t>(i)])
            << "element " << i << " of " << value->ToString();
      }
    }
  }

  Session* session_ = nullptr;
  bool in_atomic_ = false;
  std::vector<Held> held_;
};

}  // namespace

void RunEagerProgram(uint64_t seed) {
  // A wild extent may fit the machine's memory: several would fill it.
  Limits limits;
  limits.tensor_bytes = int64_t{1} << 28;
  const BudgetScope budget(limits);
  Program(seed).Run();
}

}  // namespace cleave::functional
