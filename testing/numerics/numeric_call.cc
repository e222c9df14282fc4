#include "testing/numerics/numeric_call.h"

#include <string>
#include <utility>

#include "ops/dim.h"
#include "ops/exact.h"

namespace cleave {

std::vector<NumericCall> NumericCalls(Primitive primitive, DType dtype,
                                      const std::shared_ptr<Context>& context) {
  std::vector<std::vector<int64_t>> choices = {{}};
  if (primitive == Primitive::kPolygamma) choices = {{0}, {1}};
  std::vector<NumericCall> calls;
  for (const std::vector<int64_t>& numbers : choices) {
    GraphBuilder builder(context);
    const TensorType type = {dtype, {Dim::Variable("n")}};
    std::vector<Value> operands;
    NumericCall call;
    for (const int64_t number : numbers) {
      operands.push_back(builder.Constant(Exact(number), type));
      call.numbers.push_back(static_cast<double>(number));
    }
    for (char name = 'x';
         static_cast<int>(operands.size()) < OperandCount(primitive); ++name) {
      operands.push_back(builder.Input(std::string(1, name), type));
    }
    const Value result = builder.Apply(primitive, operands);
    call.graph = *std::move(builder).Build({{"result", result}});
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace cleave
