#include "engine/eager/op_values.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace cleave::functional {

Number::Number(const char* decimal) {
  absl::StatusOr<Exact> number =
      Exact::Parse(decimal == nullptr ? "" : decimal);
  value_ = number.ok() ? StaticValue(*std::move(number))
                       : StaticValue(Dim::Invalid(number.status()));
}

namespace internal_ops {

std::vector<std::optional<Tensor>> CallAll(
    absl::string_view op, size_t count,
    const std::vector<CallArgument>& arguments, const Attributes& attributes) {
  absl::StatusOr<std::vector<std::optional<Tensor>>> results =
      Call(op, arguments, attributes);
  absl::Status status = results.status();
  if (status.ok() && results->size() != count) {
    status = absl::FailedPreconditionError(
        absl::StrCat("`", op, "` of the rules in use has ", results->size(),
                     " results, not ", count));
  }
  if (status.ok()) return *std::move(results);
  return std::vector<std::optional<Tensor>>(count, Tensor::Invalid(status));
}

Tensor Always(std::optional<Tensor> result) {
  if (result.has_value()) return *std::move(result);
  return Tensor::Invalid(absl::FailedPreconditionError(
      "the op of the rules in use lacks a result"));
}

namespace {

Tensor NoTensor(size_t i) {
  return Tensor::Invalid(absl::InvalidArgumentError(
      absl::StrCat("argument ", i, " is no tensor")));
}

}  // namespace

Tensor Taker::Input(size_t i) const {
  const std::optional<Tensor> x = OptionalInput(i);
  return x.has_value() ? *x : NoTensor(i);
}

std::optional<Tensor> Taker::OptionalInput(size_t i) const {
  if (i >= arguments_.size()) return std::nullopt;
  const auto* x = std::get_if<Tensor>(&arguments_[i].value);
  return x == nullptr ? std::nullopt : std::optional<Tensor>(*x);
}

std::vector<std::optional<Tensor>> Taker::List(size_t i) const {
  const auto* xs = i < arguments_.size()
                       ? std::get_if<CallArgument::List>(&arguments_[i].value)
                       : nullptr;
  return xs == nullptr ? CallArgument::List{NoTensor(i)} : *xs;
}

std::vector<Tensor> Taker::FullList(size_t i) const {
  std::vector<Tensor> list;
  for (const std::optional<Tensor>& x : List(i)) {
    list.push_back(x.has_value() ? *x : NoTensor(i));
  }
  return list;
}

StaticValue Taker::Static(size_t i) const {
  const auto* value = i < arguments_.size()
                          ? std::get_if<StaticValue>(&arguments_[i].value)
                          : nullptr;
  return value == nullptr ? StaticValue() : *value;
}

}  // namespace internal_ops
}  // namespace cleave::functional
