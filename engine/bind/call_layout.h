// CallLayout: which operand of a call each declared input is. A node of a graph
// keeps it as the attribute kLayout (engine/ir/call_attributes.h), which is
// written and read here alone.
//
//   op stack(xs[i]: T[S..], bias: T[]?, n: i64[] static)
//
//   stack([a, none, b], n: 2)   inputs = {{list, {0, -1, 1}}, {{-1}}, {}}
//                               kLayout = [[true, false, true], false]

#ifndef CLEAVE_ENGINE_BIND_CALL_LAYOUT_H_
#define CLEAVE_ENGINE_BIND_CALL_LAYOUT_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/bind/library.h"
#include "ops/static_value.h"

namespace cleave {

struct CallLayout {
  struct Input {
    bool list = false;  // it is variadic
    // Its places among the operands; -1: absent. None of a `static` input.
    std::vector<int> operands;

    bool is_static() const { return !list && operands.empty(); }
    // Not of a list.
    bool absent() const { return !list && !is_static() && operands[0] < 0; }
  };
  std::vector<Input> inputs;  // as declared

  // The layout that the attributes of a node say. InvalidArgument where it is
  // none of a call of `callable` on so many operands.
  static absl::StatusOr<CallLayout> Of(const Callable& callable,
                                       const Attributes& attributes,
                                       size_t operands);

  // The value of kLayout; nullopt where every input is there and none is
  // variadic: then it is left out.
  std::optional<StaticValue> ToAttribute() const;

  // Per operand, the place of its input among `inputs`.
  std::vector<size_t> InputsOfOperands() const;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_BIND_CALL_LAYOUT_H_
