// The examples: programs of a page each, to read, and to run by
// `cleave example NAME`. Their functions are declared in rule files beside
// them.
//
//   for (const Example& example : Examples()) {
//     absl::Status status = example.run(context, std::cout);
//   }

#ifndef CLEAVE_TOOLS_EXAMPLES_EXAMPLES_H_
#define CLEAVE_TOOLS_EXAMPLES_EXAMPLES_H_

#include <ostream>
#include <vector>

#include "absl/status/status.h"
#include "tools/examples/example_context.h"

namespace cleave {

// Runs the example and prints what it shows. The output is the same in each run
// but for times, and for last digits where the kernels are other ones.
#define CLEAVE_EXAMPLE(function, name, what) \
  absl::Status function(const ExampleContext& context, std::ostream& out);
#include "tools/examples/examples.def"
#undef CLEAVE_EXAMPLE

struct Example {
  const char* name;
  const char* what;  // one line
  absl::Status (*run)(const ExampleContext& context, std::ostream& out);
};

// In the order of examples.def.
const std::vector<Example>& Examples();

}  // namespace cleave

#endif  // CLEAVE_TOOLS_EXAMPLES_EXAMPLES_H_
