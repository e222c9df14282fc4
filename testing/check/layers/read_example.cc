#include "testing/check/layers/read_example.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ops/exact.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// The most that a tensor has which an example fills.
constexpr int64_t kMostElements = 1 << 20;

absl::Status Misread(const Expr& expr) {
  return NotSupported("`", PrintExpr(expr), "` as a value of an example");
}

absl::StatusOr<StaticValue> ReadStatic(const Expr& expr,
                                       const std::string& type) {
  if (expr.kind == ExprKind::kList) {
    StaticValue::List list;
    for (const ExprPtr& child : expr.children) {
      CLEAVE_ASSIGN_OR_RETURN(StaticValue value, ReadStatic(*child, type));
      list.push_back(std::move(value));
    }
    return StaticValue(std::move(list));
  }
  if (expr.kind == ExprKind::kString) return StaticValue(expr.text);
  if (expr.kind == ExprKind::kName) {
    if (expr.text == "true" || expr.text == "false") {
      return StaticValue(expr.text == "true");
    }
    if (type == "enum") return StaticValue(expr.text);
    if (type == "dtype") {
      CLEAVE_ASSIGN_OR_RETURN(const DType dtype, ParseDType(expr.text));
      return StaticValue(dtype);
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const Exact number, ReadNumber(expr));
  if (type == "real" || type == "scalar") return StaticValue(number);
  const auto whole = number.ToInt64();
  if (!whole) return Misread(expr);
  return StaticValue(*whole);
}

// [2, 0, 3].
absl::StatusOr<std::vector<int64_t>> ReadShape(const Expr& expr) {
  if (expr.kind != ExprKind::kList) return Misread(expr);
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (const ExprPtr& extent : expr.children) {
    CLEAVE_ASSIGN_OR_RETURN(const Exact number, ReadNumber(*extent));
    const std::optional<int64_t> whole = number.ToInt64();
    if (!whole || *whole < 0 || *whole > kMostElements) return Misread(expr);
    shape.push_back(*whole);
    if (*whole > 0) count *= *whole;
    if (count > kMostElements) {
      return absl::ResourceExhaustedError(
          absl::StrCat("`", PrintExpr(expr), "` has more than ", kMostElements,
                       " elements, which is the limit of an example"));
    }
  }
  return shape;
}

// The elements of nested lists, row by row, and their shape; `depth` is that of
// `expr`.
absl::Status ReadElements(const Expr& expr, size_t depth,
                          std::vector<int64_t>& shape,
                          std::vector<const Expr*>& elements) {
  if (expr.kind != ExprKind::kList) {
    if (depth != shape.size()) return Misread(expr);
    elements.push_back(&expr);
    return absl::OkStatus();
  }
  const auto size = static_cast<int64_t>(expr.children.size());
  if (depth == shape.size()) {
    if (!elements.empty()) return Misread(expr);
    shape.push_back(size);
  }
  if (shape[depth] != size) return Misread(expr);
  for (const ExprPtr& child : expr.children) {
    CLEAVE_RETURN_IF_ERROR(ReadElements(*child, depth + 1, shape, elements));
  }
  return absl::OkStatus();
}

// The dtype that a value is written in.
absl::StatusOr<std::optional<DType>> DTypeOf(const Expr& expr) {
  if (expr.kind != ExprKind::kCall || expr.named.empty()) return std::nullopt;
  const bool is_one = expr.named.size() == 1 && expr.named[0].name == "dtype";
  if (!is_one || expr.named[0].value->kind != ExprKind::kName) {
    return Misread(expr);
  }
  return ParseDType(expr.named[0].value->text);
}

// The inputs of a primitive have no types.
std::vector<InputDecl> InputsOf(const Item& op) {
  if (op.kind != ItemKind::kJvp) return op.inputs;
  std::vector<InputDecl> inputs;
  for (const std::string& name : op.parameters) {
    inputs.emplace_back().name = name;
  }
  return inputs;
}

}  // namespace

absl::StatusOr<Exact> ReadNumber(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kUnary: {
      CLEAVE_ASSIGN_OR_RETURN(const Exact value, ReadNumber(*expr.children[0]));
      // -0.0 is the negative zero, the integer -0 is 0.
      const bool is_literal = expr.children[0]->kind == ExprKind::kNumber;
      if (is_literal && value == Exact(0)) {
        return Exact::Parse(absl::StrCat("-", expr.children[0]->text));
      }
      return -value;
    }
    case ExprKind::kNumber:
    case ExprKind::kName: {
      if (expr.text == "true") return Exact(1);
      if (expr.text == "false") return Exact(0);
      const auto value = Exact::Parse(expr.text);
      return value.ok() ? value : Misread(expr);
    }
    default:
      return Misread(expr);
  }
}

absl::StatusOr<WrittenTensor> ReadWritten(const Expr& expr) {
  WrittenTensor written;
  CLEAVE_ASSIGN_OR_RETURN(written.dtype, DTypeOf(expr));
  const auto is_call = [&expr](const char* name, size_t arguments) {
    return expr.kind == ExprKind::kCall && expr.text == name &&
           expr.children.size() == arguments;
  };
  if (is_call("full", 2)) {
    CLEAVE_ASSIGN_OR_RETURN(written.shape, ReadShape(*expr.children[0]));
    int64_t count = 1;
    for (const int64_t extent : written.shape) count *= extent;
    written.elements.assign(count, expr.children[1].get());
    written.is_fill = true;
    return written;
  }
  const bool is_convert = is_call("convert", 1) && written.dtype;
  CLEAVE_RETURN_IF_ERROR(ReadElements(is_convert ? *expr.children[0] : expr, 0,
                                      written.shape, written.elements));
  return written;
}

absl::StatusOr<Tensor> ReadTensor(const Expr& expr,
                                  std::optional<DType> dtype) {
  CLEAVE_ASSIGN_OR_RETURN(const WrittenTensor written, ReadWritten(expr));
  const auto& [shape, elements, own, is_fill] = written;
  if (own && dtype && *own != *dtype) return Misread(expr);
  if (own) dtype = own;
  std::vector<const Expr*> literals = elements;
  if (is_fill && elements.empty()) literals = {expr.children[1].get()};
  bool real = false;
  bool boolean = !literals.empty();
  for (const Expr* element : literals) {
    const Expr& literal =
        element->kind == ExprKind::kUnary ? *element->children[0] : *element;
    real |= literal.text == "inf" || literal.text == "nan" ||
            literal.text.find_first_of(".eE") != std::string::npos;
    boolean &= literal.text == "true" || literal.text == "false";
  }
  if (boolean) real = false;
  Tensor tensor(dtype     ? *dtype
                : boolean ? DType::kBool
                : real    ? DType::kF32
                          : DType::kI64,
                shape);
  for (size_t i = 0; i < elements.size(); ++i) {
    CLEAVE_ASSIGN_OR_RETURN(const Exact value, ReadNumber(*elements[i]));
    const bool negative_zero =
        elements[i]->kind == ExprKind::kUnary && value == Exact(0);
    if (IsFloat(tensor.dtype())) {
      tensor.SetDouble(i, negative_zero ? -0.0 : value.RoundTo(tensor.dtype()));
    } else {
      const auto whole = value.ToInt64();
      if (!whole) return Misread(*elements[i]);
      tensor.SetInt(i, *whole);
    }
  }
  return tensor;
}

const std::string& OpOfExample(const Item& example) {
  return example.left->kind == ExprKind::kTransformCall ? example.left->callee
                                                        : example.left->text;
}

std::vector<const Item*> ExamplesOf(absl::string_view op,
                                    const std::vector<const Item*>& examples) {
  std::vector<const Item*> found;
  for (const Item* example : examples) {
    if (example->left != nullptr && OpOfExample(*example) == op) {
      found.push_back(example);
    }
  }
  return found;
}

absl::StatusOr<ExampleCall> ReadExample(const Item& op, const Item& example) {
  ExampleCall result;
  result.call.op = op.name;
  const Expr& call = *example.left;
  const std::vector<InputDecl> inputs = InputsOf(op);
  // Arguments by the name of the input or attribute.
  std::vector<std::pair<std::string, const Expr*>> arguments;
  if (call.children.size() > inputs.size()) return Misread(call);
  for (size_t i = 0; i < call.children.size(); ++i) {
    arguments.emplace_back(inputs[i].name, call.children[i].get());
  }
  for (const NamedExpr& named : call.named) {
    arguments.emplace_back(named.name, named.value.get());
  }
  const auto find = [&](const std::string& name) -> const Expr* {
    for (const auto& [argument, expr] : arguments) {
      if (argument == name) return expr;
    }
    return nullptr;
  };
  // A dtype that one input of a variable is written in is that of the others.
  std::map<std::string, DType> written;
  for (const InputDecl& input : inputs) {
    const Expr* expr = find(input.name);
    const Expr* type = input.type.dtype.get();
    if (expr == nullptr || type == nullptr) continue;
    std::vector<const Expr*> values = {expr};
    for (const ExprPtr& child : expr->children) values.push_back(child.get());
    for (const Expr* value : values) {
      CLEAVE_ASSIGN_OR_RETURN(const std::optional<DType> dtype,
                              DTypeOf(*value));
      if (dtype) written.emplace(PrintExpr(*type), *dtype);
    }
  }
  for (const InputDecl& input : inputs) {
    const Expr* expr = find(input.name);
    if (input.is_static) {
      if (expr == nullptr) continue;
      CLEAVE_ASSIGN_OR_RETURN(StaticValue value, ReadStatic(*expr, "int"));
      result.call.statics.Set(input.name, std::move(value));
      continue;
    }
    SampledInput sampled;
    sampled.name = input.name;
    sampled.variadic = !input.variadic_index.empty();
    std::optional<DType> fixed;
    if (input.type.dtype != nullptr &&
        input.type.dtype->kind == ExprKind::kName) {
      const auto dtype = ParseDType(input.type.dtype->text);
      if (dtype.ok()) fixed = *dtype;
    }
    sampled.is_index = fixed && IsInt(*fixed);
    std::optional<DType> alike;
    if (!fixed && input.type.dtype != nullptr) {
      const auto it = written.find(PrintExpr(*input.type.dtype));
      if (it != written.end()) alike = it->second;
    }
    std::vector<const Expr*> values;
    if (expr != nullptr && sampled.variadic) {
      for (const ExprPtr& child : expr->children) values.push_back(child.get());
    } else if (expr != nullptr) {
      values.push_back(expr);
    }
    for (const Expr* value : values) {
      if (value->kind == ExprKind::kName && value->text == "none") {
        sampled.types.push_back(std::nullopt);
        continue;
      }
      CLEAVE_ASSIGN_OR_RETURN(const std::optional<DType> own, DTypeOf(*value));
      CLEAVE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(*value, fixed ? fixed
                                                                : own ? own
                                                                      : alike));
      sampled.types.push_back(tensor.type());
      result.operands.push_back(std::move(tensor));
    }
    result.call.inputs.push_back(std::move(sampled));
  }
  for (const AttributeDecl& attribute : op.attributes) {
    const Expr* expr = find(attribute.name);
    if (expr == nullptr) continue;
    CLEAVE_ASSIGN_OR_RETURN(StaticValue value,
                            ReadStatic(*expr, attribute.type));
    result.call.attributes.Set(attribute.name, std::move(value));
  }
  return result;
}

const Expr* SecondArgument(const Expr& transform,
                           const std::vector<std::string>& names,
                           size_t index) {
  if (index < transform.seconds.size()) return transform.seconds[index].get();
  for (const NamedExpr& named : transform.named_seconds) {
    if (named.name == names[index]) return named.value.get();
  }
  return nullptr;
}

absl::StatusOr<Tensor> ReadTensorOf(const Expr& expr, const TensorType& type) {
  CLEAVE_ASSIGN_OR_RETURN(Tensor read, ReadTensor(expr, type.dtype));
  std::vector<int64_t> shape;
  for (const Dim& extent : type.shape) shape.push_back(*extent.Value());
  if (read.shape() == shape) return read;
  if (!read.shape().empty() || !IsFloat(type.dtype)) return Misread(expr);
  Tensor tensor(type.dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetDouble(i, read.GetDouble(0));
  }
  return tensor;
}

}  // namespace cleave
