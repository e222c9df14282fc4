#include "engine/eager/call_key.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>

#include "absl/status/statusor.h"
#include "engine/eager/dim_scope.h"
#include "engine/eager/tensor.h"
#include "engine/eager/tensor_access.h"
#include "ops/exact.h"

namespace cleave::functional {
namespace {

// Each part is of a known length, or begins with it: no two calls are written
// alike. The functions return false for what has no key.
class KeyWriter {
 public:
  KeyWriter(std::string* key, CallStorages* storages)
      : key_(*key), storages_(*storages) {
    key_.clear();
    storages_.clear();
  }

  template <typename T>
  void Put(T value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void PutText(absl::string_view text) {
    Put(static_cast<uint32_t>(text.size()));
    key_.append(text.data(), text.size());
  }

  bool PutExact(const Exact& number) {
    const std::optional<int64_t> integer = number.ToInt64();
    if (integer.has_value() && !number.IsNegativeZero()) {
      Put('i');
      Put(*integer);
      return true;
    }
    // Where the double is all of it.
    const double value = number.ToDouble();
    if (!number.IsFinite() || Exact::FromDouble(value) != number) return false;
    Put('d');
    Put(value);
    return true;
  }

  bool PutDim(const Dim& dim) {
    std::optional<int64_t> value = dim.Value();
    if (!value.has_value()) {
      const absl::StatusOr<int64_t> bound = EvaluateDim(dim);
      if (!bound.ok()) return false;
      value = *bound;
    }
    Put(*value);
    return true;
  }

  bool PutValue(const StaticValue& value) {
    Put(static_cast<char>(value.kind()));
    switch (value.kind()) {
      case StaticValue::Kind::kNone:
        return true;
      case StaticValue::Kind::kBool:
        Put(value.AsBool());
        return true;
      case StaticValue::Kind::kInt:
        return PutDim(value.AsDim());
      case StaticValue::Kind::kReal:
        return PutExact(value.AsReal());
      case StaticValue::Kind::kString:
        PutText(value.AsString());
        return true;
      case StaticValue::Kind::kDType:
        Put(value.AsDType());
        return true;
      case StaticValue::Kind::kList:
        Put(static_cast<uint32_t>(value.AsList().size()));
        return std::all_of(
            value.AsList().begin(), value.AsList().end(),
            [this](const StaticValue& element) { return PutValue(element); });
      case StaticValue::Kind::kRecord:
      case StaticValue::Kind::kRegion:
        return false;
    }
    return false;
  }

  bool PutTensor(const Tensor& x) {
    if (!x.status().ok()) return false;
    if (x.is_number()) {
      Put('n');
      const absl::StatusOr<Exact> number = TensorAccess::NumberOf(x);
      return number.ok() && PutExact(*number);
    }
    const Storage* const storage = TensorAccess::StorageOf(x).get();
    if (storage == nullptr || !storage->value.has_value() || x.IsView()) {
      return false;
    }
    const cleave::Tensor& value = *storage->value;
    const Shape& shape = x.view().type().shape;
    if (x.view().type().dtype != value.dtype() ||
        shape.size() != value.shape().size()) {
      return false;
    }
    Put('t');
    Put(value.dtype());
    Put(static_cast<uint32_t>(shape.size()));
    for (size_t d = 0; d < shape.size(); ++d) {
      // A handle from before its size was known.
      if (shape[d].Value() != value.shape()[d]) return false;
      Put(value.shape()[d]);
    }
    const auto first = std::find(storages_.begin(), storages_.end(), storage);
    Put(static_cast<uint32_t>(first - storages_.begin()));
    storages_.push_back(storage);
    return true;
  }

  bool PutArgument(const CallArgument& argument) {
    Put(static_cast<char>(argument.value.index()));
    if (const auto* x = std::get_if<Tensor>(&argument.value)) {
      return PutTensor(*x);
    }
    if (const auto* xs = std::get_if<CallArgument::List>(&argument.value)) {
      Put(static_cast<uint32_t>(xs->size()));
      return std::all_of(xs->begin(), xs->end(),
                         [this](const std::optional<Tensor>& x) {
                           Put(x.has_value());
                           return !x.has_value() || PutTensor(*x);
                         });
    }
    if (const auto* value = std::get_if<StaticValue>(&argument.value)) {
      return PutValue(*value);
    }
    return true;
  }

 private:
  std::string& key_;
  CallStorages& storages_;
};

}  // namespace

bool MakeCallKey(absl::string_view op,
                 const std::vector<CallArgument>& arguments,
                 const Attributes& attributes, std::string* key,
                 CallStorages* storages) {
  KeyWriter writer(key, storages);
  writer.PutText(op);
  writer.Put(static_cast<uint32_t>(arguments.size()));
  for (const CallArgument& argument : arguments) {
    if (!writer.PutArgument(argument)) return false;
  }
  for (const auto& [name, value] : attributes.values()) {
    writer.PutText(name);
    if (!writer.PutValue(value)) return false;
  }
  return true;
}

}  // namespace cleave::functional
