#include "testing/conformance/case_rounding.h"

#include <random>
#include <utility>
#include <variant>

namespace cleave {
namespace {

CaseValue ChangeValue(CaseValue value, ChangeTensor change) {
  if (auto* ref = std::get_if<CaseValue::TensorRef>(&value.value)) {
    ref->tensor = change(ref->tensor);
  } else if (auto* list = std::get_if<CaseValue::List>(&value.value)) {
    for (CaseValue& element : *list) {
      element = ChangeValue(std::move(element), change);
    }
  }
  return value;
}

}  // namespace

Tensor RoundTensor(const Tensor& tensor, DType rounded, DType kept) {
  if (!IsFloat(tensor.dtype())) return tensor;
  Tensor result(kept, tensor.shape());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    result.SetDouble(i, RoundToDType(tensor.GetDouble(i), rounded));
  }
  return result;
}

Tensor MoveTensor(const Tensor& tensor, double unit, uint64_t seed) {
  if (!IsFloat(tensor.dtype())) return tensor;
  Tensor result(tensor.dtype(), tensor.shape());
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double value = tensor.GetDouble(i);
    result.SetDouble(i, value + (random() % 2 == 0 ? unit : -unit) * value);
  }
  return result;
}

CaseArguments ChangeArguments(CaseArguments arguments, ChangeTensor change) {
  for (auto& [name, value] : arguments) {
    value = ChangeValue(std::move(value), change);
  }
  return arguments;
}

CaseSection ChangeSection(CaseSection section, ChangeTensor change) {
  section.arguments = ChangeArguments(std::move(section.arguments), change);
  for (CaseArguments& tangents : section.tangents) {
    tangents = ChangeArguments(std::move(tangents), change);
  }
  for (std::optional<CaseValue::TensorRef>& cotangent : section.cotangents) {
    if (cotangent) cotangent->tensor = change(cotangent->tensor);
  }
  return section;
}

}  // namespace cleave
