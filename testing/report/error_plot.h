// ErrorPlot: the profile of an error as a drawing in a page.

#ifndef CLEAVE_TESTING_REPORT_ERROR_PLOT_H_
#define CLEAVE_TESTING_REPORT_ERROR_PLOT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "testing/check/layers/error_profile.h"

namespace cleave {

// A <figure> with a caption, which begins with `what` ("Error of the value"),
// and an inline SVG: the largest error in each part of the line of inputs, the
// largest of all marked. The scale is linear up to 64 ULP, logarithmic beyond.
// Colours are those of the page's style sheet. Empty for a profile without
// samples.
std::string ErrorPlot(const ErrorProfile& profile, absl::string_view what);

}  // namespace cleave

#endif  // CLEAVE_TESTING_REPORT_ERROR_PLOT_H_
