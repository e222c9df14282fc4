#include "tools/reference/function_plot.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/ir/graph.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/status_macros.h"
#include "ops/tensor.h"
#include "testing/report/html.h"
#include "testing/report/plot_parts.h"
#include "transforms/jvp/jvp.h"

namespace cleave {
namespace {

constexpr int kPoints = 801;
// Inputs from -6 to 6 are drawn, where there are values.
constexpr double kReach = 6;

// Units of the drawing.
constexpr double kLeft = 44;
constexpr double kRight = 524;
constexpr double kTop = 10;
constexpr double kBottom = 250;
constexpr double kWidth = kRight + 16;
constexpr double kHeight = kBottom + 24;

struct Range {
  double low = 0;
  double high = 0;
};

// An axis: numbers to units.
struct Scale {
  Range numbers;
  double from = 0;
  double to = 0;

  double At(double number) const {
    const double part = (number - numbers.low) / (numbers.high - numbers.low);
    return from + part * (to - from);
  }
};

// The call of the op on one tensor of f64; nullopt where it is no elementwise
// function of that.
std::optional<Graph> CallOnOne(absl::string_view op, const RuleSet& rules) {
  const Item* item = rules.Find(op);
  if (item == nullptr || item->inputs.size() != 1) return std::nullopt;
  GraphBuilder builder(rules.context());
  const Value x = builder.Input("x", {DType::kF64, {Dim(kPoints)}});
  const auto results = rules.Call(builder, op, {{"", x}}, {});
  if (!results.ok() || results->size() != 1 || !results->front().has_value()) {
    return std::nullopt;
  }
  const Value y = *results->front();
  const bool same = builder.type(y) == builder.type(x);
  Graph graph = *std::move(builder).Build({{"y", y}});
  const absl::StatusOr<bool> elementwise = rules.IsElementwise(graph, y);
  if (!same || !elementwise.ok() || !*elementwise) return std::nullopt;
  return graph;
}

Tensor PointsOf(const Range& range) {
  Tensor points(DType::kF64, {kPoints});
  for (int i = 0; i < kPoints; ++i) {
    const double part = static_cast<double>(i) / (kPoints - 1);
    points.SetDouble(i, range.low + part * (range.high - range.low));
  }
  return points;
}

// The last result of a graph of primitives.
absl::StatusOr<std::vector<double>> Values(const Graph& graph,
                                           const std::vector<Tensor>& inputs) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                          Interpret(graph, inputs));
  std::vector<double> values(kPoints);
  for (int i = 0; i < kPoints; ++i) values[i] = results.back().GetDouble(i);
  return values;
}

absl::StatusOr<std::vector<double>> Slopes(const Graph& call,
                                           const RuleSet& rules,
                                           const Tensor& points) {
  CLEAVE_ASSIGN_OR_RETURN(const JvpResult derived, Jvp(call, {true}, rules));
  CLEAVE_ASSIGN_OR_RETURN(const Graph graph, Expand(derived.graph, rules));
  Tensor ones(DType::kF64, {kPoints});
  for (int i = 0; i < kPoints; ++i) ones.SetDouble(i, 1);
  return Values(graph, {points, ones});
}

// Where there are finite values; nullopt where there are few.
std::optional<Range> FiniteRange(const Tensor& points,
                                 const std::vector<double>& values) {
  int first = kPoints;
  int last = -1;
  for (int i = 0; i < kPoints; ++i) {
    if (!std::isfinite(values[i])) continue;
    first = std::min(first, i);
    last = i;
  }
  if (last - first < 8) return std::nullopt;
  return Range{points.GetDouble(first), points.GetDouble(last)};
}

// From the least to the largest value, but for what few of them reach.
Range ValueRange(const std::vector<const std::vector<double>*>& curves) {
  std::vector<double> finite;
  for (const std::vector<double>* curve : curves) {
    for (const double y : *curve) {
      if (std::isfinite(y)) finite.push_back(y);
    }
  }
  if (finite.empty()) return {-1, 1};
  std::sort(finite.begin(), finite.end());
  const auto part = [&](double p) {
    return finite[static_cast<size_t>(p * (finite.size() - 1))];
  };
  Range range = {finite.front(), finite.back()};
  if (range.high - range.low > 2 * kReach) {
    range = {std::max(range.low, -kReach), std::min(range.high, kReach)};
    const auto inside = std::count_if(
        finite.begin(), finite.end(),
        [&](double y) { return y >= range.low && y <= range.high; });
    if (inside * 4 < static_cast<int64_t>(finite.size())) {
      range = {part(0.05), part(0.95)};
    }
  }
  const double margin = range.high > range.low
                            ? 0.06 * (range.high - range.low)
                            : std::max(1.0, std::abs(range.low));
  return {range.low - margin, range.high + margin};
}

std::vector<double> TicksOf(const Range& range) {
  const double step = TickStep((range.high - range.low) / 6);
  std::vector<double> ticks;
  for (double i = std::ceil(range.low / step); i * step <= range.high; ++i) {
    ticks.push_back(i == 0 ? 0 : i * step);  // no -0
  }
  return ticks;
}

std::string Number(double tick) { return absl::StrFormat("%.4g", tick); }

// A path that begins anew behind a gap, an infinity, a leap over the whole
// drawing.
std::string Curve(const char* kind, const Tensor& points,
                  const std::vector<double>& values, const Scale& x,
                  const Scale& y) {
  const double height = y.numbers.high - y.numbers.low;
  std::string path;
  bool drawing = false;
  double before = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double value = values[i];
    // Beyond the edges by a little: a line that leaves is drawn to the edge.
    const bool visible = std::isfinite(value) &&
                         value > y.numbers.low - height &&
                         value < y.numbers.high + height;
    if (!visible || (drawing && std::abs(value - before) > height)) {
      drawing = false;
    }
    if (!visible) continue;
    absl::StrAppend(&path, drawing ? "L" : "M",
                    PlotPlace(x.At(points.GetDouble(i))), " ",
                    PlotPlace(y.At(value)));
    drawing = true;
    before = value;
  }
  return absl::StrCat("<path class=\"", kind, "\" d=\"", path, "\"/>");
}

std::string Axes(const Scale& x, const Scale& y) {
  std::string svg;
  for (const double tick : TicksOf(x.numbers)) {
    const double at = x.At(tick);
    absl::StrAppend(&svg, PlotLine("grid", at, kTop, at, kBottom),
                    PlotLabel(at, kBottom + 16, "middle", Number(tick)));
  }
  for (const double tick : TicksOf(y.numbers)) {
    const double at = y.At(tick);
    absl::StrAppend(&svg, PlotLine("grid", kLeft, at, kRight, at),
                    PlotLabel(kLeft - 6, at + 4, "end", Number(tick)));
  }
  const auto crosses = [](const Range& range) {
    return range.low < 0 && range.high > 0;
  };
  if (crosses(x.numbers)) {
    absl::StrAppend(&svg, PlotLine("axis", x.At(0), kTop, x.At(0), kBottom));
  }
  if (crosses(y.numbers)) {
    absl::StrAppend(&svg, PlotLine("axis", kLeft, y.At(0), kRight, y.At(0)));
  }
  return svg;
}

}  // namespace

std::string FunctionPlot(absl::string_view op, const RuleSet& rules) {
  const std::optional<Graph> call = CallOnOne(op, rules);
  if (!call.has_value()) return "";
  const absl::StatusOr<Graph> graph = Expand(*call, rules);
  if (!graph.ok()) return "";
  Range range = {-kReach, kReach};
  Tensor points = PointsOf(range);
  absl::StatusOr<std::vector<double>> values = Values(*graph, {points});
  if (!values.ok()) return "";
  const std::optional<Range> finite = FiniteRange(points, *values);
  if (!finite.has_value()) return "";
  if (finite->high - finite->low < 0.7 * (range.high - range.low)) {
    range = *finite;
    points = PointsOf(range);
    values = Values(*graph, {points});
    if (!values.ok()) return "";
  }
  const absl::StatusOr<std::vector<double>> slopes =
      Slopes(*call, rules, points);
  std::vector<const std::vector<double>*> curves = {&*values};
  if (slopes.ok()) curves.push_back(&*slopes);
  const Scale x = {range, kLeft, kRight};
  const Scale y = {ValueRange(curves), kBottom, kTop};
  const std::string caption =
      absl::StrCat(op, " with default attributes",
                   slopes.ok() ? ", and its derivative (dashed)" : "");
  std::string lines;
  if (slopes.ok()) lines = Curve("slope", points, *slopes, x, y);
  absl::StrAppend(&lines, Curve("value", points, *values, x, y));
  // A drawing of its own: nothing is seen outside.
  const std::string inside = absl::StrCat(
      "x=\"", kLeft, "\" y=\"", kTop, "\" width=\"", kRight - kLeft,
      "\" height=\"", kBottom - kTop, "\" viewBox=\"", kLeft, " ", kTop, " ",
      kRight - kLeft, " ", kBottom - kTop, "\"");
  const std::string svg = absl::StrCat(
      TextElement("title", caption), Axes(x, y), Element("svg", lines, inside));
  return Element("figure",
                 absl::StrCat(PlotDrawing(kWidth, kHeight, svg),
                              TextElement("figcaption", caption)),
                 "class=\"plot\"");
}

}  // namespace cleave
