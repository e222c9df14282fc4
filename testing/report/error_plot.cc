#include "testing/report/error_plot.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "testing/check/samples/float_points.h"
#include "testing/report/html.h"
#include "testing/report/plot_parts.h"

namespace cleave {
namespace {

// Units of the drawing.
constexpr double kLeft = 44;
constexpr double kBinWidth = 2;
constexpr double kRight = kLeft + ErrorProfile::kBins * kBinWidth;
constexpr double kTop = 14;
constexpr double kBottom = 154;
constexpr double kWidth = kRight + 24;
constexpr double kHeight = kBottom + 26;

constexpr double kLargestLinear = 64;

// 0.01, 2.5, 1e+06: three digits.
std::string Short(double value) { return absl::StrFormat("%.3g", value); }

// The vertical axis.
class ErrorScale {
 public:
  explicit ErrorScale(const ErrorProfile& profile) {
    double largest = 0;
    for (const ErrorProfile::Bin& bin : profile.bins()) {
      if (bin.samples > 0 && std::isfinite(bin.worst_ulp)) {
        largest = std::max(largest, bin.worst_ulp);
      }
    }
    logarithmic_ = largest > kLargestLinear;
    if (logarithmic_) {
      top_ = std::pow(10, std::ceil(std::log10(largest)));
      for (double tick = 1; tick <= top_; tick *= 10) ticks_.push_back(tick);
      // A few of many.
      while (ticks_.size() > 5) {
        std::vector<double> fewer;
        for (size_t i = 0; i < ticks_.size(); i += 2) {
          fewer.push_back(ticks_[i]);
        }
        ticks_ = std::move(fewer);
      }
      return;
    }
    const double wanted = std::max(largest, 0.01) / 3;
    const double step = TickStep(wanted);
    top_ = step * std::max(1.0, std::ceil(largest / step - 1e-9));
    for (int i = 0; i * step <= top_ * 1.001; ++i) ticks_.push_back(i * step);
  }

  const std::vector<double>& ticks() const { return ticks_; }

  // Infinity is at the top; on a logarithmic scale all below 0.1 at the bottom.
  double At(double ulp) const {
    double part = std::isfinite(ulp) ? ulp / top_ : 1;
    if (logarithmic_ && std::isfinite(ulp)) {
      part = (std::log10(std::max(ulp, 0.1)) + 1) / (std::log10(top_) + 1);
    }
    return kBottom - std::clamp(part, 0.0, 1.0) * (kBottom - kTop);
  }

 private:
  bool logarithmic_ = false;
  double top_ = 1;
  std::vector<double> ticks_;
};

double BinLeft(int bin) { return kLeft + bin * kBinWidth; }

// Zero, one, and powers of ten half way between them and the ends.
std::vector<double> InputTicks(DType dtype) {
  const int64_t max = MaxOrdinal(dtype);
  std::vector<double> ticks = {0};
  for (const int quarter : {1, 2, 3}) {
    const double at = FromOrdinal(max / 4 * quarter, dtype);
    const double power = std::pow(10, std::round(std::log10(at)));
    ticks.push_back(power);
    ticks.push_back(-power);
  }
  return ticks;
}

// 0, -1, 1e19, 1e-19: powers of ten.
std::string TickText(double tick) {
  if (tick == 0 || std::abs(tick) == 1) return Short(tick);
  return absl::StrCat(tick < 0 ? "-1e" : "1e",
                      std::lround(std::log10(std::abs(tick))));
}

// The bins' errors as steps, a shape for each run of bins with samples.
std::string Steps(const ErrorProfile& profile, const ErrorScale& scale) {
  std::string path;
  bool inside = false;
  for (int i = 0; i < ErrorProfile::kBins; ++i) {
    const ErrorProfile::Bin& bin = profile.bins()[i];
    if (bin.samples == 0) {
      if (inside) absl::StrAppend(&path, "V", PlotPlace(kBottom), "Z");
      inside = false;
      continue;
    }
    if (!inside) {
      absl::StrAppend(&path, "M", PlotPlace(BinLeft(i)), " ",
                      PlotPlace(kBottom));
    }
    inside = true;
    absl::StrAppend(&path, "V", PlotPlace(scale.At(bin.worst_ulp)), "H",
                    PlotPlace(BinLeft(i + 1)));
  }
  if (inside) absl::StrAppend(&path, "V", PlotPlace(kBottom), "Z");
  return path;
}

}  // namespace

std::string ErrorPlot(const ErrorProfile& profile, absl::string_view what) {
  const ErrorProfile::Bin* worst = profile.Worst();
  if (worst == nullptr) return "";
  const ErrorScale scale(profile);
  const std::string caption = absl::StrCat(
      what, " in ULP of ", DTypeName(profile.dtype()), " at ",
      GroupedDigits(profile.samples()),
      " inputs, with default attributes; at most ", Short(worst->worst_ulp),
      worst->worst_ulp > 0
          ? absl::StrCat(", at ", profile.input(), " = ",
                         FloatToString(worst->worst_at, profile.dtype()))
          : std::string());
  std::string svg = TextElement("title", caption);
  for (const double tick : scale.ticks()) {
    const double y = scale.At(tick);
    absl::StrAppend(&svg, PlotLine("grid", kLeft, y, kRight, y),
                    PlotLabel(kLeft - 6, y + 4, "end", Short(tick)));
  }
  for (const double tick : InputTicks(profile.dtype())) {
    const double x = BinLeft(profile.BinOf(tick)) + kBinWidth / 2;
    absl::StrAppend(&svg, PlotLine("grid", x, kBottom, x, kBottom + 4),
                    PlotLabel(x, kBottom + 18, "middle", TickText(tick)));
  }
  absl::StrAppend(&svg, "<path class=\"errors\" d=\"", Steps(profile, scale),
                  "\"/>");
  if (worst->worst_ulp > 0) {
    absl::StrAppend(
        &svg, "<circle class=\"witness\" cx=\"",
        PlotPlace(BinLeft(profile.BinOf(worst->worst_at)) + kBinWidth / 2),
        "\" cy=\"", PlotPlace(scale.At(worst->worst_ulp)), "\" r=\"4\"/>");
  }
  return Element("figure",
                 absl::StrCat(TextElement("figcaption", caption),
                              PlotDrawing(kWidth, kHeight, svg)),
                 "class=\"plot\"");
}

}  // namespace cleave
