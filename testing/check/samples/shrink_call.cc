#include "testing/check/samples/shrink_call.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace cleave {
namespace {

// The first elements along each axis.
Tensor Cropped(const Tensor& tensor, const std::vector<int64_t>& shape) {
  Tensor cropped(tensor.dtype(), shape);
  if (cropped.size() == 0) return cropped;
  const size_t width = tensor.byte_size() / tensor.size();
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t to = 0; to < cropped.size(); ++to) {
    int64_t from = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      from = from * tensor.shape()[d] + index[d];
    }
    std::memcpy(cropped.mutable_data() + to * width,
                tensor.data() + from * width, width);
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) {
      index[d] = 0;
    }
  }
  return cropped;
}

// Replaces the shapes of the operands, in their order. Inputs of as many axes
// are cropped.
CallInputs WithShapes(const CallInputs& failing,
                      const std::vector<std::vector<int64_t>>& shapes) {
  CallInputs smaller;
  smaller.call = failing.call;
  size_t k = 0;
  for (SampledInput& input : smaller.call.inputs) {
    for (auto& type : input.types) {
      if (!type) continue;
      type->shape.clear();
      for (int64_t extent : shapes[k]) type->shape.push_back(Dim(extent));
      ++k;
    }
  }
  for (k = 0; k < shapes.size(); ++k) {
    smaller.inputs.push_back(Cropped(
        failing.inputs[k], shapes[k].size() == failing.inputs[k].shape().size()
                               ? shapes[k]
                               : failing.inputs[k].shape()));
  }
  return smaller;
}

std::vector<std::vector<int64_t>> ShapesOf(const CallInputs& call) {
  std::vector<std::vector<int64_t>> shapes;
  for (const Tensor& input : call.inputs) shapes.push_back(input.shape());
  return shapes;
}

// An attribute that is a list, or one value, with `change` made to each number.
template <typename Change>
std::optional<StaticValue> Changed(const StaticValue& value, Change change) {
  if (value.kind() == StaticValue::Kind::kList) {
    StaticValue::List list;
    for (const StaticValue& element : value.AsList()) {
      auto changed = Changed(element, change);
      if (changed) list.push_back(*std::move(changed));
    }
    return StaticValue(std::move(list));
  }
  return change(value);
}

std::optional<int64_t> NumberOf(const StaticValue& value) {
  if (value.kind() == StaticValue::Kind::kInt) return value.AsDim().Value();
  return std::nullopt;
}

// Without axis `axis` of the operands of rank `rank`; nullopt where it has
// another extent than 1.
std::optional<CallInputs> WithoutAxis(const Item& item,
                                      const CallInputs& failing, size_t rank,
                                      int64_t axis) {
  std::vector<std::vector<int64_t>> shapes = ShapesOf(failing);
  for (std::vector<int64_t>& shape : shapes) {
    if (shape.size() != rank) continue;
    if (shape[axis] != 1) return std::nullopt;
    shape.erase(shape.begin() + axis);
  }
  CallInputs smaller = WithShapes(failing, shapes);
  for (size_t k = 0; k < shapes.size(); ++k) {
    if (shapes[k].size() == smaller.inputs[k].shape().size()) continue;
    Tensor reshaped(smaller.inputs[k].dtype(), shapes[k]);
    if (reshaped.byte_size() > 0) {
      std::memcpy(reshaped.mutable_data(), smaller.inputs[k].data(),
                  reshaped.byte_size());
    }
    smaller.inputs[k] = std::move(reshaped);
  }
  for (const AttributeDecl& attribute : item.attributes) {
    if (attribute.type != "axis" && attribute.type != "axes") continue;
    const StaticValue* value = smaller.call.attributes.Find(attribute.name);
    if (value == nullptr) continue;
    const bool list = attribute.type == "axes";
    const auto changed = Changed(
        *value, [&](const StaticValue& value) -> std::optional<StaticValue> {
          const auto number = NumberOf(value);
          if (number && list && *number == axis) return std::nullopt;
          if (number && *number > axis) return StaticValue(*number - 1);
          return value;
        });
    if (changed) smaller.call.attributes.Set(attribute.name, *changed);
  }
  return smaller;
}

}  // namespace

SampledCall WithExtents(const Item& item, SampledCall call,
                        const std::map<int64_t, int64_t>& extents) {
  const auto replaced = [&](const Dim& dim) {
    const auto it = extents.find(dim.Value().value_or(-1));
    return it == extents.end() ? dim : Dim(it->second);
  };
  for (SampledInput& input : call.inputs) {
    for (auto& type : input.types) {
      if (!type) continue;
      for (Dim& dim : type->shape) dim = replaced(dim);
    }
  }
  for (const AttributeDecl& attribute : item.attributes) {
    if (attribute.type != "dim") continue;
    const StaticValue* value = call.attributes.Find(attribute.name);
    if (value == nullptr) continue;
    const auto changed = Changed(*value, [&](const StaticValue& one) {
      return std::make_optional(one.kind() == StaticValue::Kind::kInt
                                    ? StaticValue(replaced(one.AsDim()))
                                    : one);
    });
    if (changed) call.attributes.Set(attribute.name, *changed);
  }
  return call;
}

CallInputs ShrinkCall(const Item& item, CallInputs failing,
                      const std::function<bool(const CallInputs&)>& fails,
                      int trials) {
  const auto takes = [&](CallInputs smaller) {
    if (trials-- <= 0 || !fails(smaller)) return false;
    failing = std::move(smaller);
    return true;
  };
  for (bool changed = true; changed && trials > 0;) {
    changed = false;
    std::set<int64_t> extents;
    size_t rank = 0;
    for (const std::vector<int64_t>& shape : ShapesOf(failing)) {
      extents.insert(shape.begin(), shape.end());
      rank = std::max(rank, shape.size());
    }
    for (const int64_t extent : extents) {
      for (const int64_t smaller :
           {int64_t{1}, int64_t{2}, extent / 2, extent - 1}) {
        if (smaller <= 0 || smaller >= extent) continue;
        std::vector<std::vector<int64_t>> shapes = ShapesOf(failing);
        for (std::vector<int64_t>& shape : shapes) {
          std::replace(shape.begin(), shape.end(), extent, smaller);
        }
        CallInputs trial = WithShapes(failing, shapes);
        trial.call = WithExtents(item, failing.call, {{extent, smaller}});
        if (takes(std::move(trial))) {
          changed = true;
          break;
        }
      }
    }
    // Extents that are equal by chance may be smaller one by one.
    for (size_t axis = 0; axis < rank; ++axis) {
      std::vector<std::vector<int64_t>> shapes = ShapesOf(failing);
      bool longer = false;
      for (std::vector<int64_t>& shape : shapes) {
        if (shape.size() != rank || shape[axis] <= 1) continue;
        shape[axis] = 1;
        longer = true;
      }
      if (longer && takes(WithShapes(failing, shapes))) changed = true;
    }
    for (size_t axis = 0; axis < rank; ++axis) {
      auto smaller =
          WithoutAxis(item, failing, rank, static_cast<int64_t>(axis));
      if (smaller && takes(*std::move(smaller))) {
        changed = true;
        break;
      }
    }
  }
  return failing;
}

}  // namespace cleave
