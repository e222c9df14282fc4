// The parameter types of the functions of core_ops.h: attributes as C++ values.
// Internal, but for Number.

#ifndef CLEAVE_ENGINE_EAGER_OP_VALUES_H_
#define CLEAVE_ENGINE_EAGER_OP_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/eager/call.h"
#include "engine/eager/tensor.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/static_value.h"

namespace cleave::functional {

// A real or integer attribute: 0.1 is the double, Number("0.1") the decimal, a
// Dim a size.
class Number {
 public:
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Number(T number)  // NOLINT: numbers are Numbers.
      : value_(From(number)) {}
  Number(Exact number) : value_(std::move(number)) {}  // NOLINT
  Number(Dim size) : value_(std::move(size)) {}        // NOLINT
  // A text that is no decimal number makes a Number that every op refuses.
  explicit Number(const char* decimal);

  const StaticValue& value() const { return value_; }

 private:
  template <typename T>
  static StaticValue From(T number) {
    if constexpr (std::is_floating_point_v<T>) {
      return Exact::FromDouble(static_cast<double>(number));
    } else {
      if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(int64_t)) {
        if (number > static_cast<T>(INT64_MAX)) {
          return Dim::Invalid(absl::OutOfRangeError(
              "an integer attribute is at most 2^63 - 1"));
        }
      }
      return static_cast<int64_t>(number);
    }
  }

  StaticValue value_;
};

namespace internal_ops {

inline StaticValue ToStatic(const Dim& value) { return value; }
inline StaticValue ToStatic(const Number& value) { return value.value(); }
inline StaticValue ToStatic(bool value) { return value; }
inline StaticValue ToStatic(DType value) { return value; }
inline StaticValue ToStatic(absl::string_view value) {
  return std::string(value);
}
template <typename T>
StaticValue ToStatic(const std::vector<T>& values) {
  StaticValue::List list;
  for (const T& value : values) list.push_back(ToStatic(value));
  return list;
}

template <typename T>
void Set(absl::string_view name, const T& value, Attributes* attributes) {
  attributes->Set(name, ToStatic(value));
}
// An attribute that is not given is left to the rule's default.
template <typename T>
void Set(absl::string_view name, const std::optional<T>& value,
         Attributes* attributes) {
  if (value.has_value()) attributes->Set(name, ToStatic(*value));
}

// The results of an op that declares `count`, each of which carries the mistake
// where there was one. One that is absent in this call is nullopt.
std::vector<std::optional<Tensor>> CallAll(
    absl::string_view op, size_t count,
    const std::vector<CallArgument>& arguments, const Attributes& attributes);
// A result that is always there.
Tensor Always(std::optional<Tensor> result);

// The other way, for the table of all ops: arguments and attributes as the
// parameters of a function. CHECKs that attributes are of its kinds; an
// argument that is not makes a tensor that is a mistake.
class Taker {
 public:
  Taker(const std::vector<CallArgument>& arguments,
        const Attributes& attributes)
      : arguments_(arguments), attributes_(attributes) {}

  Tensor Input(size_t i) const;
  std::optional<Tensor> OptionalInput(size_t i) const;
  std::vector<std::optional<Tensor>> List(size_t i) const;
  std::vector<Tensor> FullList(size_t i) const;
  StaticValue Static(size_t i) const;

  template <typename T>
  T Get(absl::string_view name) const {
    return From<T>(attributes_.Get(name));
  }
  template <typename T>
  T Get(absl::string_view name, T otherwise) const {
    const StaticValue* value = attributes_.Find(name);
    return value == nullptr ? std::move(otherwise) : From<T>(*value);
  }

 private:
  template <typename T>
  struct IsVector : std::false_type {};
  template <typename T>
  struct IsVector<std::vector<T>> : std::true_type {};
  template <typename T>
  struct IsOptional : std::false_type {};
  template <typename T>
  struct IsOptional<std::optional<T>> : std::true_type {};

  template <typename T>
  static T From(const StaticValue& value) {
    if constexpr (IsOptional<T>::value) {
      return From<typename T::value_type>(value);
    } else if constexpr (IsVector<T>::value) {
      T values;
      for (const StaticValue& element : value.AsList()) {
        values.push_back(From<typename T::value_type>(element));
      }
      return values;
    } else if constexpr (std::is_same_v<T, bool>) {
      return value.AsBool();
    } else if constexpr (std::is_same_v<T, DType>) {
      return value.AsDType();
    } else if constexpr (std::is_same_v<T, absl::string_view>) {
      return value.AsString();
    } else if constexpr (std::is_same_v<T, Number>) {
      return value.kind() == StaticValue::Kind::kReal ? Number(value.AsReal())
                                                      : Number(value.AsDim());
    } else {
      return value.AsDim();
    }
  }

  const std::vector<CallArgument>& arguments_;
  const Attributes& attributes_;
};

}  // namespace internal_ops
}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_OP_VALUES_H_
