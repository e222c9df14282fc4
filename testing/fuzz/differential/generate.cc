#include "testing/fuzz/differential/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "testing/fuzz/differential/expression_maker.h"
#include "testing/fuzz/differential/random.h"

namespace cleave::fuzz {
namespace {

using absl::StrCat;

constexpr int kPoints = 5;
// Elements that one input may have: the interpreter is slow.
constexpr int64_t kMaxElements = 4000;

class Generator {
 public:
  explicit Generator(uint64_t seed)
      : random_(seed), style_(AnyStyle()), maker_(style_, random_) {}

  FuzzCase Make() {
    MakeInputs();
    std::vector<std::string> lines;
    const int64_t lets = random_.Between(0, 4);
    for (int64_t i = 0; i < lets; ++i) lines.push_back(Statement());
    const std::string result = Results();
    std::string text =
        StrCat("language 1\n\nfn f(", absl::StrJoin(heads_, ", "), ") -> ",
               types_, "\n{\n");
    for (const std::string& line : lines)
      absl::StrAppend(&text, "  ", line, "\n");
    absl::StrAppend(&text, "  ", result, "\n}\n");
    FuzzCase one;
    one.rules = text;
    for (int i = 0; i < kPoints; ++i) one.points.push_back(MakePoint(i));
    return one;
  }

 private:
  static const std::vector<DType>& Integers() {
    static const auto* const all = new std::vector<DType>{
        DType::kI8, DType::kI16, DType::kI32, DType::kI64,
        DType::kU8, DType::kU16, DType::kU32, DType::kU64};
    return *all;
  }

  Style AnyStyle() {
    Style style;
    switch (random_.Between(0, 6)) {
      case 0:
      case 1:
        style.dtype = random_.Pick(Integers());
        break;
      case 6:
        style.dtype = random_.OneIn(2) ? DType::kC64 : DType::kC128;
        style.smooth = true;
        break;
      case 2:
      case 3:  // exact numbers, which no order of sums changes
        style.dtype = random_.Pick<DType>(
            {DType::kF16, DType::kBF16, DType::kF32, DType::kF64});
        break;
      case 4:
        style.dtype = random_.Pick<DType>(
            {DType::kF16, DType::kBF16, DType::kF32, DType::kF64});
        style.rounded = true;
        break;
      default:
        style.dtype = random_.OneIn(2) ? DType::kF32 : DType::kF64;
        style.rounded = true;
        style.smooth = true;
    }
    return style;
  }

  std::string Type(DType dtype, const std::vector<std::string>& shape) {
    return StrCat(DTypeName(dtype), "[", absl::StrJoin(shape, ", "), "]");
  }

  void AddInput(const std::string& name, DType dtype,
                const std::vector<std::string>& shape) {
    maker_.arrays().push_back({name, dtype, shape});
    inputs_.push_back(maker_.arrays().back());
    heads_.push_back(StrCat(name, ": ", Type(dtype, shape)));
  }

  void MakeInputs() {
    const std::vector<std::string> variables = {"n", "m", "k"};
    const int64_t count = random_.Between(1, 3);
    for (int64_t i = 0; i < count; ++i) {
      std::vector<std::string> shape;
      const int64_t rank = random_.Between(i == 0 ? 1 : 0, 3);
      for (int64_t d = 0; d < rank; ++d) {
        // A variable must stand alone on some axis.
        if (random_.OneIn(5) && (i > 0 || d > 0)) {
          // One at most is large: nothing makes it smaller.
          const bool small =
              std::any_of(shape.begin(), shape.end(),
                          [](const std::string& e) { return e.size() > 1; });
          shape.push_back(StrCat(
              small ? random_.Between(0, 5)
                    : random_.Pick<int64_t>({0, 1, 2, 3, 4, 5, 7, 31, 33})));
        } else {
          shape.push_back(random_.Pick(variables));
        }
      }
      AddInput(std::string(1, "xyz"[i]), style_.dtype, shape);
    }
    if (!random_.OneIn(3)) {
      AddInput("p", DType::kI64, {random_.Pick(variables)});
    }
    if (random_.OneIn(3)) {
      AddInput("c", DType::kBool, {random_.Pick(variables)});
    }
    for (const Array& input : inputs_) {
      for (const std::string& extent : input.shape) {
        auto& sizes = maker_.sizes();
        if (std::find(variables.begin(), variables.end(), extent) !=
                variables.end() &&
            std::find(sizes.begin(), sizes.end(), extent) == sizes.end()) {
          sizes.push_back(extent);
        }
      }
    }
  }

  std::vector<std::string> AnyShape(int64_t most) {
    std::vector<std::string> shape;
    const int64_t rank = random_.Between(0, most);
    for (int64_t d = 0; d < rank; ++d) shape.push_back(maker_.AnySize());
    return shape;
  }

  // "name[i < n, j < m] = element" for an array that it adds.
  std::string Equation(const std::string& name, Array* made) {
    const std::vector<std::string> shape = AnyShape(2);
    std::vector<std::string> binders;
    const size_t before = maker_.scope().size();
    for (const std::string& extent : shape) {
      binders.push_back(ExpressionMaker::Binder(maker_.Bind(extent)));
    }
    DType dtype = style_.dtype;
    std::string element;
    switch (random_.Between(0, 7)) {
      case 0:
        dtype = DType::kBool;
        element = maker_.Condition(2);
        break;
      case 1:
        dtype = DType::kI64;
        element = StrCat("convert(", maker_.Whole(2), ", dtype: i64)");
        break;
      default:
        element = maker_.Number(static_cast<int>(random_.Between(1, 3)));
    }
    maker_.scope().resize(before);
    *made = {name, dtype, shape};
    if (shape.empty()) return StrCat(name, " = ", element);
    return StrCat(name, "[", absl::StrJoin(binders, ", "), "] = ", element);
  }

  std::string Statement() {
    std::vector<Array> arrays;
    for (const Array& array : maker_.arrays()) {
      if (array.dtype == style_.dtype && !array.shape.empty()) {
        arrays.push_back(array);
      }
    }
    const std::string name = maker_.Fresh("v");
    Array made = {name, style_.dtype, {}};
    std::string text;
    if (!arrays.empty() && random_.OneIn(2)) {
      const Array x = random_.Pick(arrays);
      made.shape = x.shape;
      text = StrCat(name, " = ",
                    random_.OneIn(5) ? Region(x, made) : WholeArray(x, made));
    } else {
      text = Equation(name, &made);
    }
    maker_.arrays().push_back(made);
    return StrCat("let ", text);
  }

  std::string AnyAxes(const Array& x, std::vector<bool>& chosen) {
    chosen.assign(x.shape.size(), false);
    std::vector<std::string> axes;
    for (size_t d = 0; d < x.shape.size(); ++d) {
      if (random_.OneIn(2)) continue;
      chosen[d] = true;
      axes.push_back(StrCat(d));
    }
    if (axes.empty()) {
      chosen[0] = true;
      axes.push_back("0");
    }
    return StrCat("[", absl::StrJoin(axes, ", "), "]");
  }

  std::string Reduce(const Array& x, Array& made) {
    std::string op =
        random_.Pick<std::string>({"reduce_sum", "reduce_prod", "reduce_max",
                                   "reduce_min", "argmax", "argmin"});
    if (style_.smooth) op = "reduce_sum";
    if (op[0] == 'a') made.dtype = DType::kI64;
    std::vector<bool> chosen;
    const std::string axes = AnyAxes(x, chosen);
    const bool keep = random_.OneIn(2);
    made.shape.clear();
    for (size_t d = 0; d < chosen.size(); ++d) {
      if (!chosen[d]) made.shape.push_back(x.shape[d]);
      if (chosen[d] && keep) made.shape.push_back("1");
    }
    return StrCat(op, "(", x.name, ", axes: ", axes,
                  ", keepdims: ", keep ? "true" : "false", ")");
  }

  std::string Reshape(const Array& x, Array& made) {
    if (x.shape.size() == 1) {
      made.shape.insert(made.shape.begin() + random_.Between(0, 1), "1");
    } else {
      const size_t d = random_.Between(0, x.shape.size() - 2);
      made.shape[d] = StrCat("(", x.shape[d], ") * (", x.shape[d + 1], ")");
      made.shape.erase(made.shape.begin() + d + 1);
    }
    return StrCat("reshape(", x.name, ", shape: [",
                  absl::StrJoin(made.shape, ", "), "])");
  }

  // An operation on a whole array; `made` has its type.
  std::string WholeArray(const Array& x, Array& made) {
    const int rank = static_cast<int>(x.shape.size());
    const int64_t axis = random_.Between(0, rank - 1);
    const std::string reverse = random_.OneIn(3) ? ", reverse: true" : "";
    const bool is_float = IsFloat(style_.dtype);
    switch (random_.Between(0, style_.rounded ? 19 : 14)) {
      case 0:
        if (style_.smooth) break;
        return StrCat(random_.OneIn(2) ? "cumulative_max(" : "cumulative_min(",
                      x.name, ", axis: ", axis, reverse, ")");
      case 1: {
        if (IsComplex(style_.dtype)) break;
        const bool at = random_.OneIn(2);
        if (at) made.dtype = DType::kI64;
        return StrCat("sort(", x.name, ", axis: ", axis,
                      ", descending: ", random_.OneIn(2) ? "true" : "false",
                      ")", at ? ".indices" : ".values");
      }
      case 2:
        return StrCat("reverse(", x.name, ", axes: [", axis, "])");
      case 3: {
        std::vector<int> order(rank);
        for (int d = 0; d < rank; ++d) order[d] = d;
        for (int d = rank - 1; d > 0; --d) {
          std::swap(order[d], order[random_.Between(0, d)]);
        }
        for (int d = 0; d < rank; ++d) made.shape[d] = x.shape[order[d]];
        return StrCat("transpose(", x.name, ", axes: [",
                      absl::StrJoin(order, ", "), "])");
      }
      case 4:
        made.shape[axis] = StrCat("2 * (", x.shape[axis], ")");
        return StrCat("concatenate([", x.name, ", ",
                      random_.OneIn(2)
                          ? x.name
                          : StrCat("reverse(", x.name, ", axes: [", axis, "])"),
                      "], axis: ", axis, ")");
      case 5:
        return Reduce(x, made);
      case 6:
        return Reshape(x, made);
      case 7:
        return StrCat("linear_scan(", random_.OneIn(2) ? x.name : "1", ", ",
                      x.name, ", init: ", random_.Between(0, 2),
                      ", axis: ", axis, reverse, ")");
      case 8:
        return StrCat(random_.OneIn(2) ? "cumsum(" : "cumprod(", x.name,
                      ", axis: ", axis, ")");
      case 9:
        return StrCat("roll(", x.name, ", shifts: [", random_.Between(-3, 3),
                      "], axes: [", axis, "])");
      case 10:
        if (rank < 2) break;
        return StrCat("tril(", x.name, ", k: ", random_.Between(-2, 2), ")");
      case 11: {
        const int64_t before = random_.Between(0, 2);
        const int64_t after = random_.Between(0, 2);
        std::vector<int64_t> low(rank, 0), high(rank, 0);
        low[axis] = before;
        high[axis] = after;
        made.shape[axis] = StrCat("(", x.shape[axis], ") + ", before + after);
        return StrCat("pad(", x.name, ", before: [", absl::StrJoin(low, ", "),
                      "], after: [", absl::StrJoin(high, ", "), "])");
      }
      case 12:
        if (rank != 2) break;
        made.shape = {x.shape[0], x.shape[0]};
        return StrCat(x.name, " @ transpose(", x.name, ", axes: [1, 0])");
      case 13:
        if (style_.smooth) break;
        return StrCat("clamp(", x.name, ", -1, 2)");
      case 14:
        if (!is_float || style_.smooth) break;
        return StrCat(random_.Pick<std::string>(
                          {"relu6", "hardsigmoid", "softsign", "hardtanh",
                           "hardswish", "nan_to_num", "frac"}),
                      "(", x.name, ")");
      case 15:
        return StrCat(random_.OneIn(2) ? "softmax(" : "log_softmax(", x.name,
                      ", axis: ", axis, ")");
      case 16:
        made.shape.clear();
        return StrCat(random_.Pick<std::string>({"mean", "std", "vector_norm"}),
                      "(", x.name, ")");
      case 17:
        return StrCat("layer_norm(", x.name, ", N: [", x.shape.back(), "])");
      case 18:
        return StrCat("logcumsumexp(", x.name, ", axis: ", axis, ")");
      default:
        made.shape.erase(made.shape.begin() + axis);
        return StrCat("logsumexp(", x.name, ", axes: [", axis, "])");
    }
    return StrCat(x.name, " + ", x.name);
  }

  // A loop or a branch along x; `made` has the type of its value.
  std::string Region(const Array& x, Array& made) {
    const std::vector<std::string> row(x.shape.begin() + 1, x.shape.end());
    const std::string zeros =
        StrCat("zeros(shape: [", absl::StrJoin(row, ", "),
               "], dtype: ", DTypeName(style_.dtype), ")");
    const std::string h = maker_.Fresh("h");
    const std::string t = maker_.Fresh("t");
    const std::string step = random_.Pick<std::string>(
        {StrCat(h, " + ", t),
         IsComplex(style_.dtype) ? StrCat(h, " * ", t)
                                 : StrCat("max(", h, ", ", t, ")"),
         StrCat(h, " * 2 - ", t), StrCat(t, " - ", h)});
    switch (random_.Between(0, 4)) {
      case 0:
        made.shape = row;
        return StrCat("(scan(", h, " = ", zeros, ") over ", t, " in ", x.name,
                      " { (", h, " = ", step, ", o = ", h, ") }).", h);
      case 1:
        return StrCat("(scan(", h, " = ", zeros, ") over ", t, " in ", x.name,
                      " { (", h, " = ", step, ", o = ", step, ") }).o");
      case 2:
        return StrCat("map(", t, " in ", x.name, ") { ", t, " * ", t, " + 1 }");
      case 3: {
        const std::string total = StrCat("sum[s..](", x.name, "[s..])");
        return StrCat("cond(", total,
                      IsComplex(style_.dtype) ? " != 1) { " : " > 1) { ",
                      x.name, " + 1 } else { ", x.name, " * 2 }");
      }
      default: {
        const std::string i = maker_.Fresh("w");
        return StrCat("(while(", h, " = ", x.name, ", ", i,
                      " = convert(0, dtype: i64)) ", i, " < ",
                      random_.Between(0, 3), " max 4 { (", h, " = ", h, " + ",
                      h, ", ", i, " = ", i, " + 1) }).", h);
      }
    }
  }

  // The last statement; sets the types.
  std::string Results() {
    const int64_t count = random_.OneIn(2) ? 1 : random_.Between(2, 3);
    std::vector<std::string> fields;
    std::vector<std::string> types;
    for (int64_t i = 0; i < count; ++i) {
      const std::string name = count == 1 ? "y" : StrCat("y", i);
      Array made;
      std::string field;
      if (random_.OneIn(4)) {
        made = random_.Pick(maker_.arrays());
        field = StrCat(count == 1 ? "" : StrCat(name, " = "), made.name);
      } else {
        field = Equation(name, &made);
        if (count == 1 && made.shape.empty()) field = field.substr(4);
      }
      fields.push_back(field);
      types.push_back(StrCat(count == 1 ? "" : StrCat(name, ": "),
                             Type(made.dtype, made.shape)));
    }
    if (count == 1) {
      types_ = types[0];
      return fields[0];
    }
    types_ = StrCat("(", absl::StrJoin(types, ", "), ")");
    return StrCat("(", absl::StrJoin(fields, ", "), ")");
  }

  Tensor Values(DType dtype, const std::vector<int64_t>& shape, bool edges) {
    Tensor tensor(dtype, shape);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (dtype == DType::kBool) {
        tensor.SetInt(i, random_.Between(0, 1));
      } else if (dtype == DType::kI64 && style_.dtype != DType::kI64) {
        tensor.SetInt(i, edges && random_.OneIn(4)
                             ? random_.Pick<int64_t>(
                                   {std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max(),
                                    int64_t{1} << 31, int64_t{1} << 32, -1})
                             : random_.Between(-1, 6));
      } else if (IsInt(dtype)) {
        const int bits = 8 * ByteSize(dtype);
        const auto low = IsSigned(dtype) ? -(uint64_t{1} << (bits - 1)) : 0;
        uint64_t value = random_.Between(IsSigned(dtype) ? -3 : 0, 5);
        if (edges) {
          value = random_.Pick<uint64_t>({low, low - 1, 0, 1, value, value,
                                          IsSigned(dtype) ? ~uint64_t{0} : 2});
        }
        if (!IsSigned(dtype) && bits < 64) value &= (uint64_t{1} << bits) - 1;
        if (IsSigned(dtype) && value == low - 1) {
          value &= (uint64_t{1} << (bits - 1)) - 1;
        }
        tensor.SetInt(i, static_cast<int64_t>(value));
      } else if (IsComplex(dtype)) {
        const double real = FloatValue(dtype, edges);
        tensor.SetComplex(i, {real, FloatValue(dtype, edges)});
      } else {
        tensor.SetDouble(i, FloatValue(dtype, edges));
      }
    }
    return tensor;
  }

  double FloatValue(DType dtype, bool edges) {
    if (edges && random_.OneIn(4)) {
      const double inf = std::numeric_limits<double>::infinity();
      return random_.Pick<double>({inf, -inf, std::nan(""), 0.0, -0.0, 1e-310,
                                   1e-45, 6e-8, 65504, 3e38, 1e300, -1e300});
    }
    if (style_.smooth || (style_.rounded && random_.OneIn(2))) {
      return static_cast<double>(random_.Between(-2000000, 2000000)) / 1e6;
    }
    return static_cast<double>(random_.Between(-6, 6)) / 2;
  }

  Point MakePoint(int number) {
    std::map<std::string, int64_t> dims;
    while (true) {
      for (const char* name : {"n", "m", "k"}) {
        dims[name] = random_.Pick<int64_t>(
            number == 0 ? std::vector<int64_t>{2, 3, 5}
                        : std::vector<int64_t>{0, 1, 1, 2, 3, 4, 5, 7, 8, 13,
                                               31, 33, 65});
      }
      int64_t most = 0;
      for (const Array& input : inputs_) {
        int64_t elements = 1;
        for (const int64_t extent : ShapeOf(input, dims)) elements *= extent;
        most = std::max(most, elements);
      }
      int64_t volume = 1;
      for (const auto& [name, value] : dims)
        volume *= std::max<int64_t>(1, value);
      if (most <= kMaxElements && volume <= kMaxElements) break;
    }
    const bool edges =
        number % 3 == 2 && (!style_.smooth || IsComplex(style_.dtype));
    Point point;
    for (const Array& input : inputs_) {
      point.emplace_back(input.name,
                         Values(input.dtype, ShapeOf(input, dims), edges));
    }
    return point;
  }

  static std::vector<int64_t> ShapeOf(
      const Array& input, const std::map<std::string, int64_t>& dims) {
    std::vector<int64_t> shape;
    for (const std::string& extent : input.shape) {
      int64_t value = 0;
      if (!absl::SimpleAtoi(extent, &value)) value = dims.at(extent);
      shape.push_back(value);
    }
    return shape;
  }

  Random random_;
  const Style style_;
  ExpressionMaker maker_;
  std::vector<Array> inputs_;
  std::vector<std::string> heads_;
  std::string types_;
};

}  // namespace

FuzzCase Generate(uint64_t seed) { return Generator(seed).Make(); }

}  // namespace cleave::fuzz
