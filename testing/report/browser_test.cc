// The page in a browser: it is laid out as it is meant to be, in light and in
// dark, also on a narrow screen.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "engine/files/process_testing.h"
#include "gtest/gtest.h"
#include "testing/check/check_testing.h"
#include "testing/report/browser_testing.h"
#include "testing/report/html_report.h"
#include "testing/skip.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

constexpr char kRules[] = R"(language 1

/// A name that is long, and a rule with a line that is.
op a_name_that_is_as_long_as_the_screen_of_a_telephone_is_wide_or_wider(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] + 1
  accuracy T within 1 ulp
{
  x + 2
}

/// Seldom one.
op seldom(x: T[n]) -> T[n]
  where T: float
  spec y[i] = 2 * x[i]
  accuracy T within 1 ulp
{
  if n == 4000 then 2 * x else x + x
}
)";

// A page that speaks of another one, in which no script is.
constexpr char kProbe[] = R"html(<!DOCTYPE html>
<body><iframe id="page" src="index.html" style="width:WIDTHpx;height:900px">
</iframe><script>
page.onload = () => {
  const d = page.contentDocument;
  for (const details of d.querySelectorAll("details")) details.open = true;
  for (const a of d.querySelectorAll("article")) {
    a.style.contentVisibility = "visible";
  }
  const hidden = [...d.querySelectorAll("svg, table, pre, h3")].filter(
      e => e.getBoundingClientRect().width == 0).length;
  document.body.dataset.found = [
    d.documentElement.scrollWidth - d.documentElement.clientWidth,
    d.querySelectorAll("article").length,
    d.querySelectorAll("svg").length, hidden,
    getComputedStyle(d.body).backgroundColor.replaceAll(" ", ""),
  ].join(" ");
};
</script></body>
)html";

class Browser {
 public:
  explicit Browser(const std::string& page) : folder_(NewFolder()) {
    EXPECT_OK(WriteFileAtomically(folder_ + "/index.html", page));
  }

  // "0 2 4 0 rgb(255,255,255)": how far the page reaches beyond a screen of
  // `width`, its articles, drawings, and elements without a width; the colour
  // behind all.
  std::vector<std::string> Look(int width, bool dark) {
    std::string probe = kProbe;
    probe.replace(probe.find("WIDTH"), 5, absl::StrCat(width));
    return FoundBy(probe, folder_, dark);
  }

 private:
  std::string folder_;
};

TEST(Browser, LaysThePageOut) {
  if (Chromium().empty()) CLEAVE_SKIP(kHasNoBrowser);
  const std::shared_ptr<const RuleSet> rules = LoadText("test.rules", kRules);
  ASSERT_NE(rules, nullptr);
  CheckOptions options;
  options.sources = {"test.rules"};
  options.coverage = true;
  options.error_profiles = true;
  Browser browser(HtmlReport(CheckedRules(rules, options), *rules));
  for (const bool dark : {false, true}) {
    for (const int width : {320, 1200}) {
      const std::vector<std::string> found = browser.Look(width, dark);
      ASSERT_EQ(found.size(), 5u);
      EXPECT_EQ(found[0], "0") << width;
      EXPECT_EQ(found[1], "2");
      // The pointwise op has the value's and the derivative's.
      EXPECT_EQ(found[2], "2");
      EXPECT_EQ(found[3], "0");
      EXPECT_EQ(found[4] == "rgb(255,255,255)", !dark) << found[4];
    }
  }
}

}  // namespace
}  // namespace cleave
