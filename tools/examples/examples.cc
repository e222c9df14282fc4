#include "tools/examples/examples.h"

namespace cleave {

const std::vector<Example>& Examples() {
  static const auto& examples = *new std::vector<Example>{
#define CLEAVE_EXAMPLE(function, name, what) {name, what, function},
#include "tools/examples/examples.def"
#undef CLEAVE_EXAMPLE
  };
  return examples;
}

}  // namespace cleave
