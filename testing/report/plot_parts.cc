#include "testing/report/plot_parts.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "testing/report/html.h"

namespace cleave {

std::string PlotPlace(double at) { return absl::StrFormat("%.4g", at); }

std::string PlotLine(absl::string_view kind, double x1, double y1, double x2,
                     double y2) {
  return absl::StrCat("<path class=\"", kind, "\" d=\"M", PlotPlace(x1), " ",
                      PlotPlace(y1), "L", PlotPlace(x2), " ", PlotPlace(y2),
                      "\"/>");
}

std::string PlotLabel(double x, double y, absl::string_view anchor,
                      absl::string_view text) {
  return TextElement("text", text,
                     absl::StrCat("x=\"", PlotPlace(x), "\" y=\"", PlotPlace(y),
                                  "\" text-anchor=\"", anchor, "\""));
}

double TickStep(double wanted) {
  double step = std::pow(10, std::floor(std::log10(wanted)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (step < wanted) step *= factor;
  }
  return step;
}

std::string PlotDrawing(double width, double height, absl::string_view svg) {
  return Element("svg", svg,
                 absl::StrCat("role=\"img\" viewBox=\"0 0 ", width, " ", height,
                              "\" xmlns=\"http://www.w3.org/2000/svg\""));
}

}  // namespace cleave
