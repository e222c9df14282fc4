#include "engine/eager/tensor.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/eager/call.h"
#include "engine/eager/call_key.h"
#include "engine/eager/dim_scope.h"
#include "engine/eager/session_impl.h"
#include "engine/eager/storage.h"
#include "engine/eager/tensor_access.h"
#include "engine/eager/trace_scope.h"
#include "ops/budget.h"
#include "ops/checked_dim.h"
#include "ops/infer_type.h"
#include "ops/reference/reference.h"
#include "ops/status_macros.h"

namespace cleave::functional {
namespace {

absl::StatusOr<std::vector<int>> NormalAxes(const std::vector<int>& axes,
                                            int rank) {
  std::vector<int> normal;
  for (const int axis : axes) {
    if (axis < -rank || axis >= rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no axis ", axis, " of ", rank));
    }
    normal.push_back(axis < 0 ? axis + rank : axis);
  }
  return normal;
}

// `shape` with what is left in the place of a -1.
absl::StatusOr<Shape> WithInferredExtent(const TensorType& type, Shape shape) {
  const auto open = std::find(shape.begin(), shape.end(), Dim(-1));
  if (open == shape.end()) return shape;
  *open = Dim(1);
  if (std::find(shape.begin(), shape.end(), Dim(-1)) != shape.end()) {
    return absl::InvalidArgumentError(
        "one extent at most may be -1 in a reshape");
  }
  CLEAVE_ASSIGN_OR_RETURN(const Dim all, NumElements(type.shape));
  CLEAVE_ASSIGN_OR_RETURN(const Dim others, NumElements(shape));
  if (Compare(others, CompareOp::kGe, 1) != Truth::kTrue) {
    return absl::InvalidArgumentError(
        absl::StrCat("no extent follows for -1: the others have ",
                     others.ToString(), " elements, which may be none"));
  }
  CLEAVE_ASSIGN_OR_RETURN(*open, Dim::CheckedFloorDiv(all, others));
  return shape;
}

}  // namespace

Tensor::Tensor() {
  static const auto* const nothing = new absl::Status(
      absl::InvalidArgumentError("a tensor that nothing was given"));
  status_ = *nothing;
}

Tensor::Tensor(cleave::Tensor value) {
  if (!value.valid()) {
    status_ = value.status();
    return;
  }
  storage_ = std::make_shared<Storage>();
  storage_->SetValue(std::move(value));
  view_ = storage_->whole;
}

Tensor::Tensor(cleave::Tensor value, const View& whole) {
  if (!value.valid() || !whole.IsIdentity() || !HasType(value, whole.type())) {
    *this = Tensor(std::move(value));
    return;
  }
  storage_ = std::make_shared<Storage>();
  storage_->whole = whole;
  storage_->value = std::move(value);
  view_ = whole;
}

Tensor::Tensor(Exact number) : number_(std::move(number)) {}
Tensor::Tensor(Dim number) {
  if (number.valid()) {
    number_ = std::move(number);
  } else {
    status_ = number.status();
  }
}

Tensor Tensor::Invalid(absl::Status status) {
  Tensor x;
  x.status_ = status.ok()
                  ? absl::InvalidArgumentError("a mistake is made of OK")
                  : std::move(status);
  return x;
}

const absl::Status& Tensor::status() const {
  return status_.ok() && storage_ != nullptr ? storage_->status : status_;
}

const TensorType& Tensor::type() const {
  static const auto* const none = new TensorType();
  return valid() ? view_.type() : *none;
}

Dim Tensor::extent(int axis) const {
  if (!status().ok()) return Dim::Invalid(status());
  if (!valid()) {
    return Dim::Invalid(
        absl::InvalidArgumentError("a number has no axes and no extents"));
  }
  const int r = rank();
  if (axis < -r || axis >= r) {
    return Dim::Invalid(absl::OutOfRangeError(
        absl::StrCat("there is no axis ", axis, " of ", type().ToString())));
  }
  return shape()[axis < 0 ? axis + r : axis];
}

uint64_t Tensor::version() const {
  return storage_ == nullptr ? 0 : storage_->version;
}

const cleave::Tensor* Tensor::Known() const {
  if (storage_ == nullptr || !storage_->value.has_value() || !status_.ok() ||
      !storage_->status.ok() || !view_.IsIdentity() ||
      !HasType(*storage_->value, view_.type())) {
    return nullptr;
  }
  return &*storage_->value;
}

bool Tensor::IsTraced() const {
  return storage_ != nullptr && storage_->recorder != nullptr &&
         storage_->recorder->is_trace();
}

bool Tensor::IsPending() const {
  return storage_ != nullptr && storage_->recorder != nullptr &&
         !storage_->recorder->is_trace();
}

Tensor Tensor::Base() const {
  if (!status().ok()) return *this;
  if (!valid()) {
    return Invalid(absl::InvalidArgumentError("a number has no storage"));
  }
  return TensorAccess::Make(storage_);
}

Tensor Tensor::WithView(View view) const {
  if (!status().ok()) return *this;
  if (storage_ == nullptr || view.base() != storage_->type()) {
    return Invalid(absl::InvalidArgumentError(absl::StrCat(
        "a view of ", view.base().ToString(), " does not fit ", ToString())));
  }
  Tensor x = *this;
  x.view_ = std::move(view);
  x.write_status_ = absl::OkStatus();
  return x;
}

Tensor Tensor::Seen(absl::StatusOr<View> view) const {
  if (!view.ok()) {
    if (const std::shared_ptr<Recorder> trace = CurrentTrace()) {
      trace->Mistake(view.status());
    }
    return Invalid(view.status());
  }
  return WithView(*std::move(view));
}

// Views of numbers are mistakes, those of mistakes the same mistakes.
#define CLEAVE_RETURN_UNLESS_TENSOR()                            \
  do {                                                           \
    if (!status().ok()) return *this;                            \
    if (!valid()) {                                              \
      return Invalid(                                            \
          absl::InvalidArgumentError("a number has no elements " \
                                     "to view"));                \
    }                                                            \
  } while (false)

Tensor Tensor::Transpose(const std::vector<int>& axes) const {
  CLEAVE_RETURN_UNLESS_TENSOR();
  const absl::StatusOr<std::vector<int>> normal = NormalAxes(axes, rank());
  if (!normal.ok()) return Seen(normal.status());
  return Seen(view_.Transpose(*normal));
}

Tensor Tensor::Transpose() const {
  CLEAVE_RETURN_UNLESS_TENSOR();
  std::vector<int> axes;
  for (int axis = rank(); axis-- > 0;) axes.push_back(axis);
  return Transpose(axes);
}

Tensor Tensor::Reshape(const Shape& shape) const {
  CLEAVE_RETURN_UNLESS_TENSOR();
  absl::StatusOr<Shape> resolved = ResolveShape(shape);
  if (resolved.ok()) {
    resolved = WithInferredExtent(type(), *std::move(resolved));
  }
  if (!resolved.ok()) return Seen(resolved.status());
  return Seen(view_.Reshape(*resolved));
}

Tensor Tensor::Slice(const std::vector<Dim>& start,
                     const std::vector<Dim>& size,
                     const std::vector<int64_t>& stride) const {
  CLEAVE_RETURN_UNLESS_TENSOR();
  const absl::StatusOr<Shape> starts = ResolveShape(start);
  if (!starts.ok()) return Seen(starts.status());
  const absl::StatusOr<Shape> sizes = ResolveShape(size);
  if (!sizes.ok()) return Seen(sizes.status());
  return Seen(view_.Slice(*starts, *sizes, stride));
}

Tensor Tensor::Reverse(const std::vector<int>& axes) const {
  CLEAVE_RETURN_UNLESS_TENSOR();
  const absl::StatusOr<std::vector<int>> normal = NormalAxes(axes, rank());
  if (!normal.ok()) return Seen(normal.status());
  return Seen(view_.Reverse(*normal));
}

Tensor Tensor::BroadcastTo(const Shape& shape) const {
  CLEAVE_RETURN_UNLESS_TENSOR();
  const absl::StatusOr<Shape> resolved = ResolveShape(shape);
  if (!resolved.ok()) return Seen(resolved.status());
  return Seen(view_.BroadcastTo(*resolved));
}

#undef CLEAVE_RETURN_UNLESS_TENSOR

absl::Status Tensor::Write(
    absl::FunctionRef<absl::StatusOr<Value>(Recorder&)> make) {
  CLEAVE_RETURN_IF_ERROR(status());
  if (!valid()) return absl::InvalidArgumentError("a number cannot be written");
  CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<Recorder> recorder,
                          CurrentRecorder());
  const absl::Status written = [&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(recorder->CheckWrite(*storage_));
    CLEAVE_ASSIGN_OR_RETURN(const cleave::Value value, make(*recorder));
    cleave::Value base = value;
    if (!view_.IsIdentity()) {
      CLEAVE_ASSIGN_OR_RETURN(const cleave::Value old,
                              recorder->Read(storage_));
      CLEAVE_ASSIGN_OR_RETURN(
          base, WriteView(recorder->builder(), old, view_, value));
    }
    if (!recorder->is_trace()) storage_->Remember(recorder.get());
    ++storage_->version;
    storage_->SetNode(recorder, base, recorder->builder().type(base));
    recorder->Written(storage_);
    return recorder->Done();
  }();
  if (!written.ok()) recorder->Mistake(written);
  return written;
}

namespace {

// `value` as one of `type`: broadcast, and numbers given their dtype.
absl::StatusOr<Value> ReadAs(Recorder& recorder, const Tensor& value,
                             const TensorType& type) {
  CLEAVE_ASSIGN_OR_RETURN(const Value node,
                          TensorAccess::Read(recorder, value, type.dtype));
  const TensorType from = recorder.builder().type(node);
  if (from.dtype != type.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot assign ", from.ToString(), " to ", type.ToString(),
                     ": dtypes mix by Convert only"));
  }
  CLEAVE_ASSIGN_OR_RETURN(const View view, View(from).BroadcastTo(type.shape));
  return ReadView(recorder.builder(), node, view);
}

}  // namespace

absl::Status Tensor::Assign(const Tensor& value) {
  return Write([&](Recorder& recorder) {
    return ReadAs(recorder, value, view_.type());
  });
}

Tensor& Tensor::Update(absl::string_view op, const Tensor& value) {
  if (!status().ok()) return *this;
  if (!valid()) {
    return *this = Invalid(
               absl::InvalidArgumentError("a number cannot be written"));
  }
  // In eager code, an update like one before it needs no graph.
  std::string key;
  CallStorages storages;
  std::shared_ptr<Session::Impl> session;
  if (Known() != nullptr && value.Known() != nullptr &&
      view_.type() == value.view_.type() && !InTrace()) {
    session = SessionAccess::Current();
  }
  if (session != nullptr && !session->accumulates() &&
      MakeCallKey(absl::StrCat("in place ", op), {*this, value}, {}, &key,
                  &storages)) {
    if (const auto results = session->RunKnown(key, storages)) {
      write_status_ = results->status();
      if (results->ok()) {
        ++storage_->version;
        storage_->SetValue(*(**results)[0]->Known());
      } else if (session->refused.ok()) {
        session->refused = write_status_;
      }
      return *this;
    }
  } else {
    session = nullptr;
  }
  // One op: the value and the write are recorded before anything runs.
  const TensorType type = view_.type();
  const absl::Status status =
      Write([&](Recorder& recorder) -> absl::StatusOr<cleave::Value> {
        CLEAVE_ASSIGN_OR_RETURN(const cleave::Value old,
                                TensorAccess::Read(recorder, *this));
        CLEAVE_ASSIGN_OR_RETURN(const cleave::Value other,
                                ReadAs(recorder, value, type));
        return recorder.builder().Add(*FindPrimitive(op), {}, {old, other});
      });
  write_status_ = status;
  if (status.ok()) {
    if (session != nullptr) session->Remember(key, storages, {*this});
    return *this;
  }
  const absl::StatusOr<std::shared_ptr<Recorder>> recorder = CurrentRecorder();
  if (recorder.ok()) (*recorder)->Refused(status);
  return *this;
}

Tensor& Tensor::operator+=(const Tensor& value) { return Update("add", value); }
Tensor& Tensor::operator-=(const Tensor& value) { return Update("sub", value); }
Tensor& Tensor::operator*=(const Tensor& value) { return Update("mul", value); }
Tensor& Tensor::operator/=(const Tensor& value) { return Update("div", value); }

Tensor Tensor::Clone() const {
  if (!status().ok()) return *this;
  if (!valid()) {
    return Invalid(absl::InvalidArgumentError(
        "a number is no tensor: make it one with Full"));
  }
  if (CurrentTrace() == nullptr && storage_->value.has_value()) {
    absl::StatusOr<cleave::Tensor> value = CopyView(*storage_->value, view_);
    return value.ok() ? Tensor(*std::move(value)) : Invalid(value.status());
  }
  const absl::StatusOr<std::shared_ptr<Recorder>> recorder = CurrentRecorder();
  if (!recorder.ok()) return Invalid(recorder.status());
  const absl::StatusOr<cleave::Value> node =
      TensorAccess::Read(**recorder, *this);
  if (!node.ok()) {
    (*recorder)->Mistake(node.status());
    return Invalid(node.status());
  }
  Tensor result = TensorAccess::Make(**recorder, *node);
  const absl::Status done = (*recorder)->Done();
  return done.ok() ? result : Invalid(done);
}

absl::StatusOr<cleave::Tensor> Tensor::Concrete() const {
  CLEAVE_RETURN_IF_ERROR(status());
  if (!valid()) {
    return absl::InvalidArgumentError(
        "a number has no dtype: make it a tensor with Full");
  }
  if (storage_->recorder != nullptr) {
    CLEAVE_RETURN_IF_ERROR(TensorAccess::Settle(*storage_));
  }
  return CopyView(*storage_->value, view_);
}

namespace {

absl::StatusOr<cleave::Tensor> OneElement(const Tensor& x) {
  CLEAVE_ASSIGN_OR_RETURN(cleave::Tensor value, x.Concrete());
  if (value.size() == 1) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("only a tensor of one element is a number: this is ",
                   x.type().ToString()));
}

}  // namespace

absl::StatusOr<double> Tensor::Item() const {
  CLEAVE_ASSIGN_OR_RETURN(const cleave::Tensor value, OneElement(*this));
  if (IsComplex(value.dtype()) || value.dtype() == DType::kKey) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an element of ", DTypeName(value.dtype()), " is no real number"));
  }
  return value.GetDouble(0);
}

absl::StatusOr<int64_t> Tensor::IntItem() const {
  CLEAVE_ASSIGN_OR_RETURN(const cleave::Tensor value, OneElement(*this));
  if (!IsInt(value.dtype()) && !IsBool(value.dtype())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an element of ", DTypeName(value.dtype()), " is no integer"));
  }
  return value.GetInt(0);
}

std::string Tensor::ToString() const {
  if (!status().ok()) return status().ToString();
  if (number_.has_value()) {
    if (const Exact* number = std::get_if<Exact>(&*number_)) {
      return number->ToString();
    }
    return std::get<Dim>(*number_).ToString();
  }
  if (IsTraced()) return absl::StrCat("traced ", type().ToString());
  const absl::StatusOr<cleave::Tensor> value = Concrete();
  return value.ok() ? value->ToString() : value.status().ToString();
}

Tensor operator+(const Tensor& a, const Tensor& b) {
  return CallOne("add", {a, b});
}
Tensor operator-(const Tensor& a, const Tensor& b) {
  return CallOne("sub", {a, b});
}
Tensor operator*(const Tensor& a, const Tensor& b) {
  return CallOne("mul", {a, b});
}
Tensor operator/(const Tensor& a, const Tensor& b) {
  return CallOne("div", {a, b});
}
Tensor operator%(const Tensor& a, const Tensor& b) {
  return CallOne("floor_mod", {a, b});
}
Tensor operator==(const Tensor& a, const Tensor& b) {
  return CallOne("eq", {a, b});
}
Tensor operator!=(const Tensor& a, const Tensor& b) {
  return CallOne("ne", {a, b});
}
Tensor operator<(const Tensor& a, const Tensor& b) {
  return CallOne("lt", {a, b});
}
Tensor operator<=(const Tensor& a, const Tensor& b) {
  return CallOne("le", {a, b});
}
Tensor operator>(const Tensor& a, const Tensor& b) {
  return CallOne("gt", {a, b});
}
Tensor operator>=(const Tensor& a, const Tensor& b) {
  return CallOne("ge", {a, b});
}
Tensor operator&(const Tensor& a, const Tensor& b) {
  return CallOne("and", {a, b});
}
Tensor operator|(const Tensor& a, const Tensor& b) {
  return CallOne("or", {a, b});
}
Tensor operator^(const Tensor& a, const Tensor& b) {
  return CallOne("xor", {a, b});
}
Tensor Tensor::operator-() const { return CallOne("neg", {*this}); }
Tensor Tensor::operator~() const { return CallOne("not", {*this}); }

namespace {

// A new tensor of a node that `make` adds under a trace, and of a concrete
// value that `fill` makes elsewhere.
template <typename Make, typename Fill>
Tensor Create(const Make& make, const Fill& fill) {
  const std::shared_ptr<Recorder> trace = CurrentTrace();
  if (trace == nullptr) {
    const BudgetScope budget;
    absl::StatusOr<cleave::Tensor> value = fill();
    return value.ok() ? Tensor(*std::move(value))
                      : Tensor::Invalid(value.status());
  }
  const absl::Status open = trace->CheckOpen();
  absl::StatusOr<Value> node =
      open.ok() ? make(*trace) : absl::StatusOr<Value>(open);
  if (node.ok()) return TensorAccess::Make(*trace, *node);
  trace->Mistake(node.status());
  return Tensor::Invalid(node.status());
}

absl::StatusOr<std::vector<int64_t>> Extents(const Shape& shape) {
  std::vector<int64_t> extents;
  for (const Dim& dim : shape) {
    CLEAVE_ASSIGN_OR_RETURN(const int64_t extent, EvaluateDim(dim));
    extents.push_back(extent);
  }
  return extents;
}

}  // namespace

Tensor Full(DType dtype, const Shape& shape, const Tensor& number) {
  if (!number.is_number()) {
    return Tensor::Invalid(
        number.status().ok()
            ? absl::InvalidArgumentError("Full takes a number, not a tensor")
            : number.status());
  }
  return Create(
      [&](Recorder& recorder) -> absl::StatusOr<Value> {
        CLEAVE_ASSIGN_OR_RETURN(const Shape resolved, ResolveShape(shape));
        CLEAVE_ASSIGN_OR_RETURN(const Value scalar,
                                TensorAccess::Read(recorder, number, dtype));
        CLEAVE_ASSIGN_OR_RETURN(
            const View view, View(TensorType{dtype, {}}).BroadcastTo(resolved));
        return ReadView(recorder.builder(), scalar, view);
      },
      [&]() { return TensorAccess::Filled(dtype, shape, number); });
}

absl::Status TensorAccess::Settle(Storage& storage) {
  // If the graph fails, some storages may have their values all the same.
  const absl::Status realized = storage.recorder->Realize();
  CLEAVE_RETURN_IF_ERROR(storage.status);
  if (storage.value.has_value()) return absl::OkStatus();
  CLEAVE_RETURN_IF_ERROR(realized);
  return absl::InternalError("a graph ran and left a tensor without a value");
}

absl::StatusOr<Exact> TensorAccess::NumberOf(const Tensor& x) {
  if (const Exact* exact = std::get_if<Exact>(&*x.number_)) return *exact;
  CLEAVE_ASSIGN_OR_RETURN(const int64_t value,
                          EvaluateDim(std::get<Dim>(*x.number_)));
  return Exact(value);
}

absl::StatusOr<cleave::Tensor> TensorAccess::Filled(DType dtype,
                                                    const Shape& shape,
                                                    const Tensor& number) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> extents, Extents(shape));
  CLEAVE_ASSIGN_OR_RETURN(cleave::Tensor tensor,
                          cleave::Tensor::Create(dtype, extents));
  // The reference kernel rounds, and says what does not fit the dtype.
  CLEAVE_ASSIGN_OR_RETURN(const Exact exact, NumberOf(number));
  const Attributes attributes = ConstantAttributes(exact, dtype);
  CLEAVE_RETURN_IF_ERROR(
      InferType(Primitive::kConstant, attributes, {}).status());
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<cleave::Tensor> scalar,
                          EvalReference(Primitive::kConstant, attributes, {}));
  const size_t bytes = scalar[0].byte_size();
  // Zeros are there, and their memory is the system's until it is written.
  if (tensor.size() == 0 ||
      std::all_of(scalar[0].data(), scalar[0].data() + bytes,
                  [](std::byte byte) { return byte == std::byte{0}; })) {
    return tensor;
  }
  for (int64_t i = 0; i < tensor.size(); ++i) {
    std::copy_n(scalar[0].data(), bytes, tensor.mutable_data() + i * bytes);
  }
  return tensor;
}

Tensor Zeros(DType dtype, const Shape& shape) { return Full(dtype, shape, 0); }
Tensor Ones(DType dtype, const Shape& shape) { return Full(dtype, shape, 1); }

Tensor Arange(const Dim& count) {
  return Create(
      [&](Recorder& recorder) -> absl::StatusOr<Value> {
        CLEAVE_ASSIGN_OR_RETURN(const Dim size, ResolveDim(count));
        return recorder.builder().Add(Primitive::kIota, {{"size", size}}, {});
      },
      [&]() -> absl::StatusOr<cleave::Tensor> {
        CLEAVE_ASSIGN_OR_RETURN(const int64_t size, EvaluateDim(count));
        CLEAVE_ASSIGN_OR_RETURN(cleave::Tensor tensor,
                                cleave::Tensor::Create(DType::kI64, {size}));
        for (int64_t i = 0; i < size; ++i) tensor.SetInt(i, i);
        return tensor;
      });
}

}  // namespace cleave::functional
