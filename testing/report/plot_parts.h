// Parts of drawings (SVG) with axes: places, lines, labels, steps of ticks, the
// figure around them.

#ifndef CLEAVE_TESTING_REPORT_PLOT_PARTS_H_
#define CLEAVE_TESTING_REPORT_PLOT_PARTS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace cleave {

// A place on a drawing, to a tenth of a unit.
std::string PlotPlace(double at);

// A line of a class of the style sheet: "grid".
std::string PlotLine(absl::string_view kind, double x1, double y1, double x2,
                     double y2);

// Text at a place: `anchor` is "start", "middle" or "end".
std::string PlotLabel(double x, double y, absl::string_view anchor,
                      absl::string_view text);

// The least of 1, 2, 5, 10, .. times a power of ten that is at least `wanted`,
// a positive number.
double TickStep(double wanted);

// The <svg> element of a drawing of that size, which a page scales.
std::string PlotDrawing(double width, double height, absl::string_view svg);

}  // namespace cleave

#endif  // CLEAVE_TESTING_REPORT_PLOT_PARTS_H_
