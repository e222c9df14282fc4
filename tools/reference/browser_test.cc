// The reference in a browser: laid out in light and in dark, on a narrow screen
// as well; its search box finds what it is asked for.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "engine/files/process_testing.h"
#include "gtest/gtest.h"
#include "testing/check/check_testing.h"
#include "testing/report/browser_testing.h"
#include "testing/skip.h"
#include "testing/status_matchers.h"
#include "tools/reference/reference_pages.h"

namespace cleave {
namespace {

constexpr char kRules[] = R"(language 1

/// Half of the error function's complement.
op tail(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = (1 - erf(x[s..] / sqrt(2))) / 2
  = erfc(x / sqrt(2)) / 2

/// Its mean over a name that is longer than a telephone is wide.
op mean_of_all_elements_of_a_vector_of_any_length_that_is_positive(x: T[n]) -> T[]
  where T: float
  spec y[] = sum[i](x[i]) / n
{
  y[] = sum[i](x[i]) / n
}
)";

// A page that looks at another one and uses its search box.
constexpr char kProbe[] = R"html(<!DOCTYPE html>
<body><iframe id="page" src="PAGE" style="width:WIDTHpx;height:900px">
</iframe><script>
page.onload = () => {
  const d = page.contentDocument;
  for (const details of d.querySelectorAll("details")) details.open = true;
  for (const a of d.querySelectorAll("article")) {
    a.style.contentVisibility = "visible";
  }
  const input = d.querySelector("input");
  if (input) {
    input.value = "COMPLEMENT half";
    input.dispatchEvent(new Event("input"));
  }
  const shown = e => e.getBoundingClientRect().width > 0;
  document.body.dataset.found = [
    d.documentElement.scrollWidth - d.documentElement.clientWidth,
    [...d.querySelectorAll("section li, article")].filter(shown).length,
    [...d.querySelectorAll("math")].filter(shown).length,
    [...d.querySelectorAll("figure svg path")].filter(shown).length > 4,
    getComputedStyle(d.body).backgroundColor.replaceAll(" ", ""),
  ].join(" ");
};
</script></body>
)html";

class ReferenceInBrowser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Chromium().empty()) CLEAVE_SKIP(kHasNoBrowser);
    const std::shared_ptr<const RuleSet> rules = LoadText("test.rules", kRules);
    ASSERT_NE(rules, nullptr);
    ReferenceOptions options;
    options.sources = {{"test.rules", kRules}};
    for (const ReferencePage& page : ReferencePages(*rules, options)) {
      ASSERT_OK(WriteFileAtomically(folder_ + "/" + page.name, page.html));
    }
  }

  // "0 1 2 true rgb(255,255,255)": how far the page reaches beyond a screen of
  // `width`; its ops, formulas and curves that are seen; the colour behind all.
  std::vector<std::string> Look(const std::string& page, int width, bool dark) {
    std::string probe = kProbe;
    probe.replace(probe.find("WIDTH"), 5, absl::StrCat(width));
    probe.replace(probe.find("PAGE"), 4, page);
    return FoundBy(probe, folder_, dark);
  }

  const std::string folder_ = NewFolder();
};

TEST_F(ReferenceInBrowser, LaysPagesOut) {
  for (const bool dark : {false, true}) {
    for (const int width : {320, 1200}) {
      const std::vector<std::string> found = Look("test.html", width, dark);
      ASSERT_EQ(found.size(), 5u);
      EXPECT_EQ(found[0], "0") << width;
      EXPECT_EQ(found[1], "2");
      EXPECT_EQ(found[2], "2");
      EXPECT_EQ(found[3], "true");
      EXPECT_EQ(found[4] == "rgb(255,255,255)", !dark) << found[4];
    }
  }
}

TEST_F(ReferenceInBrowser, SearchesNamesAndComments) {
  const std::vector<std::string> found = Look("index.html", 320, false);
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0], "0");
  EXPECT_EQ(found[1], "1");
}

}  // namespace
}  // namespace cleave
