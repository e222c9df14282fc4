// DimScope: numbers for the dimension variables of C++ code.
//
//   Dim n = Dim::Variable("n");
//   DimScope scope;
//   CLEAVE_RETURN_IF_ERROR(scope.Bind(x, {n, n + 1}));  // x is f32[3, 4]
//   Tensor head = x[{{0, n - 1}}];                      // rows 0 and 1
//   Tensor flat = x.Reshape({n * (n + 1)});
//   Tensor mean = Sum(x) / n;                           // a size as a number
//
// A function that takes shapes, sizes, slice bounds or attributes takes Dims,
// and looks their variables up when it is called. A Dim means the same here as
// in a rule file: exact integers, floor division, rounded once where it meets a
// float. In eager code all variables must have values. Under a trace a variable
// may be bound to an extent of the trace, or stand for itself.

#ifndef CLEAVE_ENGINE_EAGER_DIM_SCOPE_H_
#define CLEAVE_ENGINE_EAGER_DIM_SCOPE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/dim.h"
#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave::functional {

class Tensor;
struct DimMatch;

// A scope of this thread, from its construction to its destruction, in whatever
// order scopes end. Names that are not bound here are looked up in the scope
// around it.
class DimScope {
 public:
  DimScope();
  ~DimScope();
  DimScope(const DimScope&) = delete;
  DimScope& operator=(const DimScope&) = delete;

  // A tensor has the declared shape: variables that it determines are bound,
  // all else is checked. InvalidArgument where it does not hold, naming the
  // expression and both values, or where a variable cannot be solved for.
  // `what` names the tensor in messages.
  absl::Status Bind(const Tensor& tensor, const Shape& declared,
                    absl::string_view what = "the tensor");
  // The same for several tensors at once, in any order of dependence: `what`
  // is "argument 0" and so on.
  absl::Status BindAll(const std::vector<Tensor>& tensors,
                       const std::vector<Shape>& declared);
  // The same for a shape.
  absl::Status BindShape(const Shape& shape, const Shape& declared,
                         absl::string_view what);
  // Binds one variable. InvalidArgument for a name that no variable has, and
  // for a value that is negative, invalid, or another one than before.
  absl::Status Set(absl::string_view variable, const Dim& value);

  // `a op b` must hold at what is bound. FailedPrecondition with both
  // expressions and their values; InvalidArgument where that cannot be told.
  absl::Status Require(const Dim& a, CompareOp op, const Dim& b) const;

 private:
  friend absl::StatusOr<Dim> ResolveDim(const Dim& dim);
  friend std::map<std::string, Dim> BoundDims();
  struct State;

  absl::Status BindEquations(std::vector<DimMatch> equations);
  // The scopes of this thread, the innermost last, which has not ended.
  static std::vector<std::shared_ptr<State>>& Scopes();

  const std::shared_ptr<State> state_;
};

// All variables that are bound on this thread, the innermost first.
std::map<std::string, Dim> BoundDims();

// `dim` at what is bound. Variables without a value stay under a trace;
// elsewhere they are FailedPrecondition, naming expression and variable.
absl::StatusOr<Dim> ResolveDim(const Dim& dim);
absl::StatusOr<Shape> ResolveShape(const Shape& shape);
// The dims among the values; regions stay as they are.
absl::StatusOr<StaticValue> ResolveValue(const StaticValue& value);
absl::StatusOr<Attributes> ResolveAttributes(const Attributes& attributes);
// A number: an unbound variable is an error under a trace, too.
absl::StatusOr<int64_t> EvaluateDim(const Dim& dim);

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_DIM_SCOPE_H_
