// FunctionPlot: the graph of an op that goes element by element, as a drawing.

#ifndef CLEAVE_TOOLS_REFERENCE_FUNCTION_PLOT_H_
#define CLEAVE_TOOLS_REFERENCE_FUNCTION_PLOT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// A <figure> with the values of the op, in f64 and with default attributes, and
// its derivative: about 0, or where it has finite values. Empty for an op that
// is no elementwise function of one float tensor. Some milliseconds.
std::string FunctionPlot(absl::string_view op, const RuleSet& rules);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_REFERENCE_FUNCTION_PLOT_H_
