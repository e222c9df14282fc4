#include "engine/eager/op_values.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/check.h"

namespace cleave::functional {

Number::Number(const char* decimal) {
  absl::StatusOr<Exact> number = Exact::Parse(decimal);
  CLEAVE_CHECK(number.ok()) << number.status();
  value_ = *std::move(number);
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

Tensor Taker::Input(size_t i) const {
  return std::get<Tensor>(arguments_[i].value);
}

std::optional<Tensor> Taker::OptionalInput(size_t i) const {
  const auto* x = std::get_if<Tensor>(&arguments_[i].value);
  return x == nullptr ? std::nullopt : std::optional<Tensor>(*x);
}

std::vector<std::optional<Tensor>> Taker::List(size_t i) const {
  return std::get<CallArgument::List>(arguments_[i].value);
}

std::vector<Tensor> Taker::FullList(size_t i) const {
  std::vector<Tensor> list;
  for (const std::optional<Tensor>& x : List(i)) list.push_back(*x);
  return list;
}

StaticValue Taker::Static(size_t i) const {
  return std::get<StaticValue>(arguments_[i].value);
}

}  // namespace internal_ops
}  // namespace cleave::functional
