// `example` items: numbers and tensors written in rule files, and the call that
// is made of them.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_READ_EXAMPLE_H_
#define CLEAVE_TESTING_CHECK_LAYERS_READ_EXAMPLE_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/lang/ast.h"
#include "ops/exact.h"
#include "ops/tensor.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

// A number, a negated one, inf, nan, or true and false as 1 and 0.
// Unimplemented for any other expression.
absl::StatusOr<Exact> ReadNumber(const Expr& expr);

// A tensor as it is written: nested lists, row by row, `full([2, 0], 1.0)` with
// one number for all of at most 2^20 elements, and either with a dtype, as in
// `convert([1.5], dtype: f64)` and `full([70000], 1.0, dtype: f64)`.
struct WrittenTensor {
  std::vector<int64_t> shape;
  std::vector<const Expr*> elements;  // of the expression
  std::optional<DType> dtype;
  bool is_fill = false;  // the second argument of `full` is each element
};
// Unimplemented where lists are ragged, and for any other expression;
// ResourceExhausted for more elements.
absl::StatusOr<WrittenTensor> ReadWritten(const Expr& expr);

// A tensor of `dtype`, or of that which is written, or of f32 where a number
// has a point, bool, else i64.
absl::StatusOr<Tensor> ReadTensor(const Expr& expr, std::optional<DType> dtype);

// The op or primitive of an example: f of `f(x)` and of `jvp f(x)(dx)`.
const std::string& OpOfExample(const Item& example);

// The examples of `op` among those of a rule set.
std::vector<const Item*> ExamplesOf(absl::string_view op,
                                    const std::vector<const Item*>& examples);

// The call that an example makes, with the values of its operands. `op` is the
// op's item, or the `jvp` item of a primitive.
struct ExampleCall {
  SampledCall call;
  std::vector<Tensor> operands;
};
absl::StatusOr<ExampleCall> ReadExample(const Item& op, const Item& example);

// One of the second arguments of `jvp f(..)(..)` or `vjp f(..)(..)`, by its
// name or, where it has none, its place among `names`; null where it is left
// out.
const Expr* SecondArgument(const Expr& transform,
                           const std::vector<std::string>& names, size_t index);

// A tensor of that type, whose extents are numbers; of floats one number stands
// for all elements.
absl::StatusOr<Tensor> ReadTensorOf(const Expr& expr, const TensorType& type);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_READ_EXAMPLE_H_
