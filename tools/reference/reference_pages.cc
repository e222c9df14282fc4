#include "tools/reference/reference_pages.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "ops/budget.h"
#include "testing/report/html.h"
#include "testing/report/style.h"
#include "tools/reference/host_uses.h"
#include "tools/reference/reference_article.h"
#include "tools/reference/reference_style.h"

namespace cleave {
namespace {

constexpr char kIndex[] = "index.html";

// The ops of the core, which have formulas, before those of hosts.
struct CoreFirst {
  bool operator()(const std::string& a, const std::string& b) const {
    const auto key = [](const std::string& page) {
      const bool host =
          absl::StartsWith(page, "aten.") || absl::StartsWith(page, "onnx.");
      return std::pair<bool, absl::string_view>(host, page);
    };
    return key(a) < key(b);
  }
};

// The ops of each page, in the order of their file.
using Pages = std::map<std::string, std::vector<std::string>, CoreFirst>;

// "rules/core/loss.rules" is "core.loss": a name that is one of a file, and
// that no other path has.
std::string PageOf(absl::string_view path) {
  const size_t shipped = path.rfind("rules/");
  if (shipped != absl::string_view::npos) path.remove_prefix(shipped + 6);
  absl::ConsumePrefix(&path, "./");
  absl::ConsumeSuffix(&path, ".rules");
  absl::ConsumeSuffix(&path, ".json");
  const std::string name =
      absl::StrReplaceAll(AnchorId("", path).substr(1), {{"-2f", "."}});
  // The page of all ops has that name.
  return name == "index" ? "index.rules" : name;
}

class Reference {
 public:
  Reference(const RuleSet& rules, const ReferenceOptions& options)
      : rules_(rules), options_(options), hosts_(options.sources) {
    const std::set<std::string> wanted(options.ops.begin(), options.ops.end());
    std::map<std::string, std::vector<std::pair<int, std::string>>> found;
    for (const ItemKind kind :
         {ItemKind::kOp, ItemKind::kAten, ItemKind::kOnnx}) {
      for (const std::string& name : rules.Names(kind)) {
        if (!wanted.empty() && wanted.count(name) == 0) continue;
        const Item& item = *rules.Find(name);
        const std::string page = PageOf(rules.SourceOf(item).name());
        page_of_[name] = page;
        found[page].emplace_back(item.range.begin, name);
      }
    }
    for (auto& [page, ops] : found) {
      std::sort(ops.begin(), ops.end());
      for (auto& [place, name] : ops) pages_[page].push_back(name);
    }
  }

  std::vector<ReferencePage> Make() {
    std::vector<ReferencePage> made = {{kIndex, Index()}};
    for (const auto& [page, ops] : pages_) {
      if (!PollBudget().ok()) break;
      if (options_.progress) {
        options_.progress(page, made.size() - 1, pages_.size());
      }
      made.push_back({page + ".html", PageFor(page, ops)});
    }
    return made;
  }

 private:
  static std::string Page(absl::string_view title, const std::string& body) {
    return HtmlPage(title, absl::StrCat(kReportStyle, kReferenceStyle), body);
  }

  std::string Link(absl::string_view op) const {
    const auto it = page_of_.find(std::string(op));
    if (it == page_of_.end()) return TextElement("code", op);
    return Element("a", TextElement("code", op),
                   absl::StrCat("href=\"", it->second, ".html#",
                                AnchorId("op", op), "\""));
  }

  // The comment of an op, or of the one that it is a call of.
  std::string Doc(const Item& item) const {
    if (item.docs.empty()) {
      const Expr* const call = CallThatIsTheResult(item);
      const Item* const callee =
          call == nullptr ? nullptr : rules_.Find(call->text);
      if (callee != nullptr) return absl::StrJoin(callee->docs, " ");
    }
    return absl::StrJoin(item.docs, " ");
  }

  // The text that a search looks through: the name, and the first words of the
  // comment.
  std::string Entry(const std::string& op) const {
    const std::string doc = Doc(*rules_.Find(op));
    const std::string first = doc.substr(0, doc.find(". "));
    return Element("li",
                   absl::StrCat(Link(op), first.empty() ? "" : " ",
                                TextElement("span", first, "class=\"muted\"")));
  }

  std::string Index() const {
    size_t count = 0;
    for (const auto& [page, ops] : pages_) count += ops.size();
    std::string html = absl::StrCat(
        "<header>", TextElement("h1", "Operators"),
        TextElement(
            "p",
            absl::StrCat(count, " operators in ", pages_.size(),
                         " rule files: those of the core, and PyTorch's "
                         "and ONNX's in terms of these."),
            "class=\"muted\""),
        "</header>\n", kSearchBox);
    for (const auto& [page, ops] : pages_) {
      std::string entries;
      for (const std::string& op : ops) absl::StrAppend(&entries, Entry(op));
      absl::StrAppend(
          &html, "<section>\n",
          Element("h2", Element("a", EscapeHtml(page),
                                absl::StrCat("href=\"", page, ".html\""))),
          Element("ul", entries, "class=\"ops\""), "\n</section>\n");
    }
    absl::StrAppend(&html, kSearchScript);
    return Page("Operators", html);
  }

  std::string PageFor(const std::string& page,
                      const std::vector<std::string>& ops) const {
    const ArticleContext context = {
        rules_, hosts_, options_.measured,
        [this](absl::string_view op) { return Link(op); }};
    std::string entries;
    std::string articles;
    for (const std::string& op : ops) {
      absl::StrAppend(&entries, Element("li", Link(op)));
      absl::StrAppend(&articles, ReferenceArticle(op, context), "\n");
    }
    return Page(page, absl::StrCat("<header>",
                                   Element("p", Element("a", "All operators",
                                                        "href=\"index.html\"")),
                                   TextElement("h1", page), "</header>\n",
                                   Element("nav", Element("ul", entries)), "\n",
                                   Element("main", articles)));
  }

  const RuleSet& rules_;
  const ReferenceOptions& options_;
  const HostUses hosts_;
  std::map<std::string, std::string> page_of_;  // an op's
  Pages pages_;
};

}  // namespace

std::vector<ReferencePage> ReferencePages(const RuleSet& rules,
                                          const ReferenceOptions& options) {
  return Reference(rules, options).Make();
}

}  // namespace cleave
