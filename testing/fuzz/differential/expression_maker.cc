#include "testing/fuzz/differential/expression_maker.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cleave::fuzz {

using absl::StrCat;

std::string ExpressionMaker::Fresh(const std::string& stem) {
  return StrCat(stem, ++names_);
}

std::string ExpressionMaker::AnySize() {
  switch (random_.Between(0, 9)) {
    case 0:
      return StrCat(random_.Between(1, 5));
    case 1:
      return StrCat(random_.Pick(sizes_), " + 1");
    case 2:
      return StrCat("2 * ", random_.Pick(sizes_));
    case 3:
      return StrCat(random_.Pick(sizes_), " // 2");
    default:
      return random_.Pick(sizes_);
  }
}

ExpressionMaker::Index ExpressionMaker::Bind(const std::string& extent) {
  scope_.push_back({Fresh("i"), extent});
  return scope_.back();
}

std::string ExpressionMaker::Binder(const Index& index) {
  return StrCat(index.name, " < ", index.extent);
}

std::string ExpressionMaker::IndexOf(const std::string& extent) {
  std::vector<std::string> fitting;
  for (const Index& index : scope_) {
    if (index.extent == extent) fitting.push_back(index.name);
  }
  return fitting.empty() ? "" : random_.Pick(fitting);
}

const Array* ExpressionMaker::AnyArray(DType dtype) {
  std::vector<const Array*> fitting;
  for (const Array& array : arrays_) {
    if (array.dtype == dtype) fitting.push_back(&array);
  }
  return fitting.empty() ? nullptr : random_.Pick(fitting);
}

std::string ExpressionMaker::Literal() {
  if (IsFloat(style_.dtype) && random_.OneIn(3)) {
    return random_.Pick<std::string>({"0.5", "1.5", "0.25", "(-0.5)"});
  }
  if (IsInt(style_.dtype) && random_.OneIn(12)) {
    // At the ends of the range.
    const int bits = 8 * ByteSize(style_.dtype) - (IsUnsigned() ? 0 : 1);
    if (bits < 63 && random_.OneIn(2)) {
      return StrCat((int64_t{1} << bits) - 1);
    }
    if (bits < 63 && !IsUnsigned())
      return StrCat("(-", int64_t{1} << bits, ")");
  }
  const int64_t value = random_.Between(IsUnsigned() ? 0 : -3, 4);
  return value < 0 ? StrCat("(", value, ")") : StrCat(value);
}

std::string ExpressionMaker::Read(const Array& array, int depth,
                                  const std::string& otherwise) {
  if (array.shape.empty()) return array.name;
  std::vector<std::string> at;
  bool plain = true;
  for (const std::string& extent : array.shape) {
    const std::string index = IndexOf(extent);
    if (!index.empty() && !random_.OneIn(4)) {
      at.push_back(index);
    } else {
      at.push_back(Whole(depth - 1));
      plain = false;
    }
  }
  const std::string read =
      StrCat(array.name, "[", absl::StrJoin(at, ", "), "]");
  // Without a value in its place a read out of range is an error.
  if (plain || random_.OneIn(40)) return read;
  return StrCat("(", read, " ?? ", otherwise, ")");
}

std::string ExpressionMaker::Whole(int depth) {
  const auto leaf = [&]() -> std::string {
    if (!scope_.empty() && !random_.OneIn(4)) return random_.Pick(scope_).name;
    if (random_.OneIn(3)) return random_.Pick(sizes_);
    return StrCat(random_.Between(0, 4));
  };
  if (depth <= 0) return leaf();
  switch (random_.Between(0, 11)) {
    case 0:
    case 1:
      return StrCat("(", Whole(depth - 1), " + ", Whole(depth - 1), ")");
    case 2:
      return StrCat("(", Whole(depth - 1), " - ", Whole(depth - 1), ")");
    case 3:
      return StrCat("(", random_.Between(2, 3), " * ", Whole(depth - 1), ")");
    case 4:
      return StrCat("(", Whole(depth - 1), " // ", random_.Between(1, 3), ")");
    case 5:
      return StrCat("(", Whole(depth - 1), " % ", random_.Between(1, 4), ")");
    case 6:
      return StrCat("(", random_.Pick(sizes_), " - 1 - ", leaf(), ")");
    case 7:
    case 8:
      if (const Array* places = AnyArray(DType::kI64)) {
        return Read(*places, depth - 1, StrCat(random_.Between(-1, 3)));
      }
      return leaf();
    case 9:
      return random_.OneIn(3) ? StrCat("(", leaf(), " * ", leaf(), ")")
                              : leaf();
    default:
      return leaf();
  }
}

std::string ExpressionMaker::Condition(int depth) {
  const auto compared = [&](const std::string& a, const std::string& b) {
    const std::string op =
        random_.Pick<std::string>({"<", "<=", "==", "!=", ">", ">="});
    return StrCat("(", a, " ", op, " ", b, ")");
  };
  if (depth > 0) {
    switch (random_.Between(0, 7)) {
      case 0:
        return StrCat("(", Condition(depth - 1), " and ", Condition(depth - 1),
                      ")");
      case 1:
        return StrCat("(", Condition(depth - 1), " or ", Condition(depth - 1),
                      ")");
      case 2:
        return StrCat("(not ", Condition(depth - 1), ")");
      case 3:
        if (const Array* mask = AnyArray(DType::kBool)) {
          return Read(*mask, depth - 1, random_.OneIn(2) ? "true" : "false");
        }
        break;
      case 4:
      case 5:
        if (!style_.smooth) {
          return compared(Number(depth - 1), Number(depth - 1));
        }
        break;
      default:
        break;
    }
  }
  // Two numbers would be decided when the function is expanded.
  const std::string left =
      scope_.empty() ? random_.Pick(sizes_) : random_.Pick(scope_).name;
  return compared(left, Whole(depth - 1));
}

std::string ExpressionMaker::Number(int depth) {
  const auto leaf = [&]() -> std::string {
    const Array* array = AnyArray(style_.dtype);
    if (array != nullptr && !random_.OneIn(5)) {
      return Read(*array, depth > 0 ? 2 : 1, Literal());
    }
    return Literal();
  };
  if (depth <= 0) return leaf();
  switch (random_.Between(0, 9)) {
    case 0:
    case 1:
      return leaf();
    case 2:
      return StrCat("convert(", Whole(depth - 1),
                    ", dtype: ", DTypeName(style_.dtype), ")");
    case 3:
      return StrCat("select(", Condition(depth - 1), ", ", Number(depth - 1),
                    ", ", Number(depth - 1), ")");
    case 4:
    case 5:
      return Reduction(depth - 1);
    case 6:
    case 7:
      return IsFloat(style_.dtype)     ? FloatOperation(depth)
             : IsComplex(style_.dtype) ? ComplexOperation(depth)
                                       : IntegerOperation(depth);
    default:
      return Arithmetic(depth);
  }
}

std::string ExpressionMaker::Arithmetic(int depth) {
  const std::string a = Number(depth - 1);
  const std::string b = Number(depth - 1);
  switch (random_.Between(0, IsComplex(style_.dtype) ? 4 : 7)) {
    case 0:
    case 1:
      return StrCat("(", a, " + ", b, ")");
    case 2:
      return StrCat("(", a, " - ", b, ")");
    case 3:
    case 4:
      return StrCat("(", a, " * ", b, ")");
    case 5:
      return StrCat("max(", a, ", ", b, ")");
    case 6:
      return StrCat("min(", a, ", ", b, ")");
    default:
      return IsUnsigned() ? StrCat("(", a, " + 1)") : StrCat("(-", a, ")");
  }
}

std::string ExpressionMaker::IntegerOperation(int depth) {
  const std::string a = Number(depth - 1);
  const std::string small = StrCat(random_.Between(1, 7));
  switch (random_.Between(0, 11)) {
    case 0:
      return StrCat("(", a, " // ", small, ")");
    case 1:
      return StrCat("(", a, " % ", small, ")");
    case 2:
      return StrCat("rem(", a, ", ", small, ")");
    case 3:
      // Often an error: of kernels and interpreter alike.
      return StrCat("(", a, " // ", Number(depth - 1), ")");
    case 4:
      return StrCat("(", a, " % max(", Number(depth - 1), ", 1))");
    case 5:
      return StrCat("shift_left(", a, ", ", Number(depth - 1), ")");
    case 6:
      return StrCat("shift_right(", a, ", ", Number(depth - 1), ")");
    case 7:
      return StrCat("xor(", a, ", ", Number(depth - 1), ")");
    case 8:
      return StrCat("abs(", a, ")");
    case 9:
      return StrCat("sign(", a, ")");
    case 10:
      return StrCat("(", a, "^", random_.Between(2, 3), ")");
    default:
      return StrCat("rem(", a, ", max(", Number(depth - 1), ", 1))");
  }
}

std::string ExpressionMaker::FloatOperation(int depth) {
  const std::string a = Number(depth - 1);
  if (style_.rounded && !random_.OneIn(4)) {
    static const auto* const functions = new std::vector<std::string>{
        "sin(@)",         "cos(@)",          "tanh(@)",
        "sigmoid(@)",     "exp(-abs(@))",    "atan(@)",
        "erf(@)",         "log1p(abs(@))",   "sqrt(abs(@) + 1)",
        "expm1(-abs(@))", "rsqrt(@^2 + 1)",  "(1 / (1 + @^2))",
        "asinh(@)",       "log(abs(@) + 1)", "silu(@)",
        "softplus(@)",    "gelu(@)",         "(@ / 3)",
        "erfc(@)",        "cbrt(@ + 9)",     "tan(sin(@))"};
    std::string text = random_.Pick(*functions);
    const size_t at = text.find('@');
    return text.replace(at, 1, a);
  }
  if (style_.smooth) return StrCat("(", a, " * ", a, ")");
  switch (random_.Between(0, 6)) {
    case 0:
      return StrCat("floor(", a, ")");
    case 1:
      return StrCat("abs(", a, ")");
    case 2:
      return StrCat("sign(", a, ")");
    case 3:
      return StrCat("round_nearest_even(", a, ")");
    case 4:
      return StrCat("ceil(", a, ")");
    case 5:
      return StrCat("copysign(", a, ", ", Number(depth - 1), ")");
    default:
      return StrCat("relu(", a, ")");
  }
}

std::string ExpressionMaker::ComplexOperation(int depth) {
  std::string text = random_.Pick<std::string>(
      {"complex(real(@), -imag(@))", "complex(imag(@), real(@))", "(@ * @)",
       "(-@)", "(@ / 4)", "exp(@ / 4)", "sin(@ / 4)", "cos(@ / 4)",
       "complex(abs(@), imag(@))", "(1 / (@ + 9))"});
  const std::string a = Number(depth - 1);
  for (size_t at = 0; (at = text.find('@', at)) != std::string::npos;) {
    text.replace(at, 1, a);
    at += a.size();
  }
  return text;
}

// A form that has a lowering of its own is made as often as any other.
std::string ExpressionMaker::Reduction(int depth) {
  const size_t before = scope_.size();
  const std::string outer =
      scope_.empty() ? std::string() : random_.Pick(scope_).name;
  std::vector<std::string> binders;
  const int count = random_.OneIn(3) ? 2 : 1;
  for (int i = 0; i < count; ++i) {
    std::string extent = AnySize();
    if (!outer.empty() && random_.OneIn(3)) {
      for (const Index& index : scope_) {
        if (index.name == outer) extent = index.extent;
      }
    }
    binders.push_back(Binder(Bind(extent)));
  }
  const std::string inner = scope_.back().name;
  std::string kind = random_.Pick<std::string>(
      {"sum", "sum", "sum", "prod", "max", "min", "max", "argmax", "argmin"});
  if (style_.smooth && kind != "prod") kind = "sum";
  std::string element;
  std::string condition;
  switch (random_.Between(0, 5)) {
    case 0: {  // a contraction
      kind = "sum";
      element = StrCat(Number(0), " * ", Number(0));
      break;
    }
    case 1: {  // a scan
      if (outer.empty()) break;
      condition = random_.OneIn(2) ? StrCat(inner, " <= ", outer)
                                   : StrCat(outer, " < ", inner);
      break;
    }
    case 2: {  // a scatter
      const Array* places = AnyArray(DType::kI64);
      if (outer.empty() || places == nullptr) break;
      condition = StrCat(Read(*places, 1, "0"), " == ", outer);
      break;
    }
    case 3:
      condition = Condition(depth);
      break;
    case 4: {  // windows
      const Array* array = AnyArray(style_.dtype);
      if (outer.empty() || array == nullptr || array->shape.empty()) break;
      std::vector<std::string> at;
      for (const std::string& extent : array->shape) {
        const std::string index = IndexOf(extent);
        at.push_back(!index.empty() && random_.OneIn(2)
                         ? index
                         : StrCat(random_.Between(1, 2), " * ", outer, " + ",
                                  random_.Between(1, 2), " * ", inner, " - ",
                                  random_.Between(0, 2)));
      }
      element = StrCat("(", array->name, "[", absl::StrJoin(at, ", "), "] ?? ",
                       Literal(), ")");
      if (random_.OneIn(2)) element += StrCat(" * ", Number(0));
      break;
    }
    default:
      break;
  }
  if (!condition.empty() && random_.OneIn(4)) {
    condition += StrCat(" and ", Condition(depth));
  }
  if (element.empty()) element = Number(depth);
  scope_.resize(before);
  const std::string text = StrCat(
      kind, "[", absl::StrJoin(binders, ", "),
      condition.empty() ? "" : StrCat(" if ", condition), "](", element, ")");
  if (kind != "argmax" && kind != "argmin") return text;
  return StrCat("convert(", text, ", dtype: ", DTypeName(style_.dtype), ")");
}

}  // namespace cleave::fuzz
