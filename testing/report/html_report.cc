#include "testing/report/html_report.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "testing/report/html.h"
#include "testing/report/rule_article.h"
#include "testing/report/style.h"

namespace cleave {
namespace {

constexpr VerdictKind kKinds[] = {
    VerdictKind::kAgrees, VerdictKind::kDisagrees, VerdictKind::kInconclusive,
    VerdictKind::kNotIndependent, VerdictKind::kNotChecked};

struct FileSum {
  std::string file;
  int lines = 0;
  int covered_lines = 0;
  int branches = 0;
  int covered_branches = 0;
  void Add(const RuleCoverage& item) {
    lines += item.lines;
    covered_lines += item.covered_lines;
    branches += item.branches;
    covered_branches += item.covered_branches;
  }
};

std::string Link(const std::string& id, absl::string_view text) {
  return TextElement("a", text, absl::StrCat("href=\"#", id, "\""));
}

// "rules/core/loss.rules" of "rules/core/loss.rules:12".
std::string FileOf(const std::string& place) {
  return place.substr(0, place.rfind(':'));
}

std::string Percent(int part, int all) {
  return all == 0 ? "" : absl::StrFormat("%.1f %%", 100.0 * part / all);
}

class ReportWriter {
 public:
  ReportWriter(const CheckReport& report, const RuleSet& rules)
      : report_(report), rules_(rules) {
    for (const OpReport& op : report.ops) {
      by_file_[FileOf(op.place)].push_back(&op);
    }
    for (const RuleCoverage& item : report.coverage) {
      if (files_.empty() || files_.back().file != item.file) {
        files_.emplace_back().file = item.file;
      }
      files_.back().Add(item);
      all_.Add(item);
      std::string op = item.item;
      if (absl::StartsWith(op, "override ")) op = op.substr(9);
      coverage_[op].push_back(&item);
    }
  }

  std::string Page() const {
    const std::string body = absl::StrCat(
        Element("header",
                absl::StrCat(TextElement("h1", "Rule check"),
                             TextElement("p", Sentence(), "class=\"muted\""))),
        Contents(),
        Element("main", absl::StrCat(Summary(), VerdictTable(), Coverage(),
                                     Articles())),
        TextElement("footer",
                    "cleave check. A verdict says what was compared on how "
                    "many samples: agreement is no proof where it is not "
                    "called one."));
    return HtmlPage(absl::StrCat("Rule check: ", Outcome()), kReportStyle,
                    body);
  }

 private:
  std::string Outcome() const {
    const int wrong = report_.Count(VerdictKind::kDisagrees);
    const size_t all = report_.ops.size();
    return wrong == 0 ? absl::StrCat(all, all == 1 ? " rule" : " rules",
                                     ", none refuted")
                      : absl::StrCat(wrong, " of ", all, " rules refuted");
  }

  std::string Sentence() const {
    double seconds = 0;
    for (const OpReport& op : report_.ops) seconds += op.seconds;
    return absl::StrCat(Outcome(), "; seed ", report_.seed, ", ",
                        absl::StrFormat("%.3g", seconds),
                        " seconds of checks.");
  }

  std::string Contents() const {
    std::string list =
        absl::StrCat(Element("li", Link("summary", "Summary")),
                     Element("li", Link("verdicts", "Verdicts")));
    if (!report_.coverage.empty()) {
      absl::StrAppend(&list, Element("li", Link("coverage", "Coverage")));
    }
    for (const auto& [file, ops] : by_file_) {
      absl::StrAppend(
          &list,
          Element("li", absl::StrCat(
                            Link(AnchorId("file", file), file),
                            TextElement("span", absl::StrCat(" ", ops.size()),
                                        "class=\"muted\""))));
    }
    return Element("nav", Element("ul", list), "aria-label=\"Contents\"");
  }

  std::string Summary() const {
    std::string numbers;
    const auto number = [&](absl::string_view title, const std::string& value,
                            absl::string_view style) {
      absl::StrAppend(
          &numbers,
          Element("div", absl::StrCat(TextElement("dt", title),
                                      TextElement("dd", value,
                                                  absl::StrCat("class=\"",
                                                               style, "\"")))));
    };
    int loose = 0;
    for (const OpReport& op : report_.ops) loose += op.loose_claim;
    number("rules checked", absl::StrCat(report_.ops.size()), "all");
    for (const VerdictKind kind :
         {VerdictKind::kDisagrees, VerdictKind::kInconclusive,
          VerdictKind::kNotIndependent}) {
      const int count = report_.Count(kind);
      number(
          kind == VerdictKind::kDisagrees ? "disagree" : VerdictKindName(kind),
          absl::StrCat(count), count == 0 ? "agrees" : VerdictClass(kind));
    }
    number("loose claims", absl::StrCat(loose),
           loose == 0 ? "agrees" : "loose");
    if (all_.lines > 0) {
      number("lines reached", Percent(all_.covered_lines, all_.lines), "all");
    }
    if (all_.branches > 0) {
      number("branches reached", Percent(all_.covered_branches, all_.branches),
             "all");
    }
    return Section("summary", "Summary",
                   absl::StrCat(Element("dl", numbers, "class=\"numbers\""),
                                Wrong(), LayerTable()));
  }

  // Links to what is not green.
  std::string Wrong() const {
    std::string list;
    for (const OpReport& op : report_.ops) {
      for (const VerdictKind kind :
           {VerdictKind::kDisagrees, VerdictKind::kInconclusive,
            VerdictKind::kNotIndependent}) {
        if (!op.Has(kind)) continue;
        absl::StrAppend(
            &list,
            Element("li",
                    absl::StrCat(
                        Link(AnchorId("op", op.op), op.op), " ",
                        TextElement("span", VerdictKindName(kind),
                                    absl::StrCat("class=\"", VerdictClass(kind),
                                                 "\"")))));
        break;
      }
    }
    return list.empty() ? "" : Element("ul", list, "class=\"files\"");
  }

  // How many rules have each verdict in each layer.
  std::string LayerTable() const {
    std::map<Layer, std::map<VerdictKind, int>> counts;
    for (const OpReport& op : report_.ops) {
      for (const auto& [layer, verdict] : op.layers) {
        ++counts[layer][verdict.kind];
      }
    }
    std::string head = TextElement("th", "Layer", "scope=\"col\"");
    for (const VerdictKind kind : kKinds) {
      absl::StrAppend(&head, TextElement("th", VerdictKindName(kind),
                                         "scope=\"col\" class=\"number\""));
    }
    std::string rows;
    for (const auto& [layer, kinds] : counts) {
      std::string row = TextElement("th", LayerName(layer), "scope=\"row\"");
      for (const VerdictKind kind : kKinds) {
        const auto it = kinds.find(kind);
        const int count = it == kinds.end() ? 0 : it->second;
        absl::StrAppend(
            &row, TextElement("td", absl::StrCat(count),
                              absl::StrCat("class=\"number ",
                                           count == 0 ? std::string("muted")
                                                      : VerdictClass(kind),
                                           "\"")));
      }
      absl::StrAppend(&rows, Element("tr", row));
    }
    return Table("Rules by layer and verdict", head, rows, "counts");
  }

  std::string VerdictTable() const {
    std::vector<Layer> layers;
    std::string head = TextElement("th", "Rule", "scope=\"col\"");
    for (int l = 0; l < kNumLayers; ++l) {
      const Layer layer = static_cast<Layer>(l);
      for (const OpReport& op : report_.ops) {
        if (op.layers.count(layer) == 0) continue;
        layers.push_back(layer);
        absl::StrAppend(&head,
                        TextElement("th", LayerName(layer), "scope=\"col\""));
        break;
      }
    }
    std::string rows;
    for (const OpReport& op : report_.ops) {
      std::string row =
          Element("th", Link(AnchorId("op", op.op), op.op), "scope=\"row\"");
      for (const Layer layer : layers) {
        const auto it = op.layers.find(layer);
        if (it == op.layers.end()) {
          absl::StrAppend(&row, Element("td", ""));
          continue;
        }
        const Verdict& verdict = it->second;
        std::string text(VerdictKindName(verdict.kind));
        if (verdict.kind == VerdictKind::kAgrees && verdict.worst_ulp > 0) {
          absl::StrAppend(&text,
                          absl::StrFormat(" %.3g ULP", verdict.worst_ulp));
        }
        absl::StrAppend(
            &row, TextElement("td", text,
                              absl::StrCat("class=\"",
                                           VerdictClass(verdict.kind), "\"")));
      }
      absl::StrAppend(&rows, Element("tr", row));
    }
    return Section("verdicts", "Verdicts",
                   Table("The verdict of each layer, with the largest error",
                         head, rows, "verdicts"));
  }

  std::string Coverage() const {
    if (report_.coverage.empty()) return "";
    std::string head = TextElement("th", "File", "scope=\"col\"");
    for (const char* title : {"Lines", "", "Branches", ""}) {
      absl::StrAppend(
          &head,
          *title == '\0'
              ? Element("td", "")
              : TextElement("th", title, "scope=\"col\" class=\"number\""));
    }
    std::string rows;
    FileSum all = all_;
    all.file = "all";
    std::vector<FileSum> files = files_;
    if (files.size() > 1) files.push_back(all);
    for (const FileSum& file : files) {
      absl::StrAppend(
          &rows,
          Element("tr",
                  absl::StrCat(TextElement("th", file.file, "scope=\"row\""),
                               Share(file.covered_lines, file.lines),
                               Share(file.covered_branches, file.branches))));
    }
    // Ops show theirs themselves.
    std::string others;
    for (const RuleCoverage& item : report_.coverage) {
      if (absl::StartsWith(item.item, "def ") && !item.uncovered.empty()) {
        absl::StrAppend(&others, TextElement("h4", item.item),
                        UncoveredList(item));
      }
    }
    return Section(
        "coverage", "Coverage",
        absl::StrCat(
            TextElement("p",
                        "Lines and branches of the rules that the checked "
                        "calls reached. A branch is a way in which a "
                        "condition on dtypes, ranks, extents, attributes or "
                        "absent inputs is decided."),
            Table("Coverage of each file", head, rows, "counts"), others));
  }

  static std::string Share(int part, int all) {
    if (all == 0) {
      return absl::StrCat(TextElement("td", "none", "class=\"number muted\""),
                          Element("td", ""));
    }
    const std::string bar = Element(
        "span",
        Element("span", "",
                absl::StrFormat("style=\"width: %.1f%%\"", 100.0 * part / all)),
        "class=\"bar\" aria-hidden=\"true\"");
    return absl::StrCat(
        TextElement("td",
                    absl::StrCat(part, " of ", all, ", ", Percent(part, all)),
                    "class=\"number\""),
        Element("td", bar));
  }

  std::string Articles() const {
    std::string html;
    for (const auto& [file, ops] : by_file_) {
      std::string articles;
      for (const OpReport* op : ops) {
        const auto coverage = coverage_.find(op->op);
        absl::StrAppend(&articles,
                        RuleArticle(*op,
                                    coverage == coverage_.end()
                                        ? std::vector<const RuleCoverage*>()
                                        : coverage->second,
                                    rules_));
      }
      absl::StrAppend(&html, Section(AnchorId("file", file), file, articles));
    }
    return html;
  }

  static std::string Section(const std::string& id, absl::string_view title,
                             const std::string& html) {
    return Element("section", absl::StrCat(TextElement("h2", title), html),
                   absl::StrCat("id=\"", id, "\""));
  }

  static std::string Table(absl::string_view caption, const std::string& head,
                           const std::string& rows, absl::string_view style) {
    return ScrollingTable(head, rows, absl::StrCat("class=\"", style, "\""),
                          caption);
  }

  const CheckReport& report_;
  const RuleSet& rules_;
  // By the files' names, ops in the order of the report.
  std::map<std::string, std::vector<const OpReport*>> by_file_;
  std::vector<FileSum> files_;
  FileSum all_;
  std::map<std::string, std::vector<const RuleCoverage*>> coverage_;
};

}  // namespace

std::string HtmlReport(const CheckReport& report, const RuleSet& rules) {
  return ReportWriter(report, rules).Page();
}

}  // namespace cleave
