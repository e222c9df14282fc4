// The picture of memory_pareto.h.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "ops/check.h"
#include "transforms/partition/memory_pareto.h"

namespace cleave::aot {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 440;
constexpr double kLeft = 80;
constexpr double kRight = 700;
constexpr double kTop = 50;
constexpr double kBottom = 380;
constexpr double kLabelWidth = 78;

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// An axis from 0 to at least the largest value, with four to nine ticks at
// multiples of 1, 2 or 5 times a power of ten.
struct Axis {
  explicit Axis(double largest) {
    if (!(largest > 0)) largest = 1;
    const double power = std::pow(10, std::floor(std::log10(largest / 4)));
    step = power;
    for (double factor : {2, 5, 10}) {
      if (largest / step > 9) step = factor * power;
    }
    end = step * std::ceil(largest / step);
  }
  double step;
  double end;
};

// The unit of bytes that makes `largest` a number from 1 to 1000 or so.
std::pair<double, absl::string_view> ByteUnit(double largest) {
  if (largest >= 1e9) return {1e9, "GB"};
  if (largest >= 1e6) return {1e6, "MB"};
  if (largest >= 1e3) return {1e3, "kB"};
  return {1, "bytes"};
}

class Picture {
 public:
  explicit Picture(absl::string_view title) {
    absl::StrAppendFormat(
        &text_,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
        "viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        kWidth, kHeight, kWidth, kHeight);
    Text((kLeft + kRight) / 2, 28, "middle", Escaped(title),
         " font-size=\"16\"");
  }

  void Line(double x1, double y1, double x2, double y2,
            absl::string_view stroke) {
    absl::StrAppendFormat(&text_,
                          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
                          "y2=\"%.1f\" stroke=\"%s\"/>\n",
                          x1, y1, x2, y2, stroke);
  }
  void Text(double x, double y, absl::string_view anchor,
            absl::string_view text, absl::string_view more = "") {
    absl::StrAppendFormat(
        &text_, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n",
        x, y, anchor, more, text);
  }
  void Add(absl::string_view text) { absl::StrAppend(&text_, text); }

  std::string Finish() && {
    absl::StrAppend(&text_, "</svg>\n");
    return std::move(text_);
  }

 private:
  std::string text_;
};

}  // namespace

std::string ParetoSvg(const std::vector<ParetoPoint>& points,
                      absl::string_view title) {
  CLEAVE_CHECK(!points.empty());
  double most_bytes = 0;
  double most_share = 0;
  for (const ParetoPoint& point : points) {
    most_bytes = std::max(most_bytes, point.saved_bytes);
    most_share = std::max(most_share, 100 * point.recomputed_share);
  }
  const auto [unit, unit_name] = ByteUnit(most_bytes);
  const Axis memory(most_bytes / unit);
  const Axis again(most_share);
  const auto x_of = [&, unit = unit](const ParetoPoint& point) {
    return kLeft + (kRight - kLeft) * point.saved_bytes / unit / memory.end;
  };
  const auto y_of = [&](const ParetoPoint& point) {
    return kBottom -
           (kBottom - kTop) * 100 * point.recomputed_share / again.end;
  };

  Picture picture(title);
  for (int i = 0; i * memory.step <= memory.end * 1.001; ++i) {
    const double value = i * memory.step;
    const double x = kLeft + (kRight - kLeft) * value / memory.end;
    picture.Line(x, kTop, x, kBottom, "#dddddd");
    picture.Text(x, kBottom + 18, "middle", absl::StrFormat("%g", value));
  }
  for (int i = 0; i * again.step <= again.end * 1.001; ++i) {
    const double value = i * again.step;
    const double y = kBottom - (kBottom - kTop) * value / again.end;
    picture.Line(kLeft, y, kRight, y, "#dddddd");
    picture.Text(kLeft - 8, y + 4, "end", absl::StrFormat("%g %%", value));
  }
  picture.Line(kLeft, kBottom, kRight, kBottom, "black");
  picture.Line(kLeft, kTop, kLeft, kBottom, "black");
  picture.Text((kLeft + kRight) / 2, kBottom + 42, "middle",
               absl::StrCat("memory held for the backward half, ", unit_name));
  picture.Text(20, (kTop + kBottom) / 2, "middle",
               "operations computed again, of all",
               absl::StrFormat(" transform=\"rotate(-90 20 %g)\"",
                               (kTop + kBottom) / 2));

  std::vector<const ParetoPoint*> optimal;
  for (const ParetoPoint& point : points) {
    if (point.is_optimal) optimal.push_back(&point);
  }
  std::stable_sort(optimal.begin(), optimal.end(),
                   [](const ParetoPoint* a, const ParetoPoint* b) {
                     return a->saved_bytes < b->saved_bytes;
                   });
  std::string line;
  for (const ParetoPoint* point : optimal) {
    absl::StrAppendFormat(&line, "%.1f,%.1f ", x_of(*point), y_of(*point));
  }
  picture.Add(
      absl::StrCat("<polyline fill=\"none\" stroke=\"#1f5fa8\" "
                   "stroke-width=\"2\" points=\"",
                   line, "\"/>\n"));
  double end_of_labels = 0;
  for (const ParetoPoint& point : points) {
    const double x = x_of(point);
    const double y = y_of(point);
    picture.Add(absl::StrFormat(
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\" "
        "stroke=\"#1f5fa8\"><title>budget %g</title></circle>\n",
        x, y, point.is_optimal ? "#1f5fa8" : "white", point.budget));
    // Labels stay apart, and within the picture.
    const bool is_left = x > kRight - kLabelWidth;
    const double begin = is_left ? x - kLabelWidth : x;
    if (begin < end_of_labels) continue;
    end_of_labels = begin + kLabelWidth;
    picture.Text(is_left ? x - 6 : x + 6, y - 8, is_left ? "end" : "start",
                 absl::StrFormat("budget %g", point.budget),
                 " font-size=\"11\" fill=\"#444444\"");
  }
  return std::move(picture).Finish();
}

}  // namespace cleave::aot
