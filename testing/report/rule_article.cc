#include "testing/report/rule_article.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/lang/source.h"
#include "testing/report/error_plot.h"
#include "testing/report/html.h"
#include "testing/report/rule_parts.h"

namespace cleave {
namespace {

// The comparison of each layer, in a few words.
const char* LayerTitle(Layer layer) {
  switch (layer) {
    case Layer::kForm:
      return "form";
    case Layer::kTypes:
      return "types and shapes";
    case Layer::kReals:
      return "over the reals";
    case Layer::kRounding:
      return "rounding";
    case Layer::kEdges:
      return "special values";
    case Layer::kTransforms:
      return "vmap, jvp and vjp";
    case Layer::kKernels:
      return "compiled kernels";
    case Layer::kHostKernel:
      return "the host's function";
    case Layer::kExamples:
      return "and laws";
  }
  return "";
}

std::string NumberCell(const std::string& text) {
  return TextElement("td", text, "class=\"number\"");
}

std::string VerdictRow(Layer layer, const Verdict& verdict) {
  const bool measured = verdict.kind == VerdictKind::kAgrees;
  std::string kind(VerdictKindName(verdict.kind));
  if (measured && verdict.strength != Strength::kSampled) {
    absl::StrAppend(&kind, verdict.strength == Strength::kProved
                               ? ", proved"
                               : ", exhaustively");
  }
  std::string remarks;
  if (!verdict.why.empty()) {
    absl::StrAppend(&remarks, TextElement("div", verdict.why));
  }
  if (measured && verdict.worst_ulp > 0 && !verdict.worst_at.empty()) {
    absl::StrAppend(
        &remarks,
        TextElement("div", absl::StrCat("largest at ", verdict.worst_at)));
  }
  std::string notes;
  for (const std::string& note : verdict.notes) {
    absl::StrAppend(&notes, TextElement("li", note));
  }
  if (!notes.empty()) {
    absl::StrAppend(&remarks, Element("ul", notes, "class=\"notes\""));
  }
  const bool has_error = measured && verdict.worst_ulp > 0;
  return Element(
      "tr",
      absl::StrCat(
          Element("th",
                  absl::StrCat(EscapeHtml(LayerName(layer)), " ",
                               TextElement("span", LayerTitle(layer),
                                           "class=\"muted\"")),
                  "scope=\"row\""),
          TextElement(
              "td", kind,
              absl::StrCat("class=\"", VerdictClass(verdict.kind), "\"")),
          NumberCell(verdict.samples > 0 ? GroupedDigits(verdict.samples) : ""),
          NumberCell(has_error ? absl::StrFormat("%.3g", verdict.worst_ulp)
                               : ""),
          NumberCell(has_error && verdict.worst_part > 0
                         ? absl::StrFormat("%.2g", verdict.worst_part)
                         : ""),
          Element("td", remarks)));
}

std::string Verdicts(const OpReport& op) {
  std::string rows;
  for (const auto& [layer, verdict] : op.layers) {
    absl::StrAppend(&rows, VerdictRow(layer, verdict));
  }
  std::string head;
  for (const char* title : {"Layer", "Verdict"}) {
    absl::StrAppend(&head, TextElement("th", title, "scope=\"col\""));
  }
  for (const char* title : {"Samples", "Largest error, ULP", "Of its bound"}) {
    absl::StrAppend(&head,
                    TextElement("th", title, "scope=\"col\" class=\"number\""));
  }
  absl::StrAppend(&head, TextElement("th", "Remarks", "scope=\"col\""));
  return ScrollingTable(head, rows);
}

std::string CounterexampleBox(Layer layer, const Counterexample& example) {
  std::string rows;
  const auto row = [&](const char* label, const std::string& text) {
    if (text.empty()) return;
    absl::StrAppend(
        &rows,
        Element("tr", absl::StrCat(TextElement("th", label, "scope=\"row\""),
                                   TextElement("td", text, "class=\"mono\""))));
  };
  row("call", example.call);
  row("inputs", example.inputs);
  row("wrong", example.what);
  row("expected", example.expected);
  row("got", example.got);
  if (std::isfinite(example.ulp) && example.ulp > 0) {
    row("error",
        absl::StrFormat("%.4g ULP, allowed %.4g", example.ulp, example.bound));
  }
  row("rule", example.place);
  row("again", example.replay);
  return Element("div",
                 absl::StrCat(TextElement("h4", absl::StrCat(LayerName(layer),
                                                             " disagrees")),
                              Element("table", Element("tbody", rows))),
                 "class=\"counterexample\"");
}

std::string Plots(const ErrorProfiles& profiles) {
  std::string plots;
  if (profiles.value) {
    absl::StrAppend(&plots, ErrorPlot(*profiles.value, "Error of the value"));
  }
  if (profiles.slope) {
    absl::StrAppend(&plots,
                    ErrorPlot(*profiles.slope, "Error of the derivative"));
  }
  return plots.empty() ? "" : Element("div", plots, "class=\"plots\"");
}

std::string CoverageParagraph(
    const std::vector<const RuleCoverage*>& coverage) {
  std::string html;
  for (const RuleCoverage* item : coverage) {
    std::string text = absl::StrCat(
        coverage.size() > 1 ? absl::StrCat(item->item, ": ") : std::string(),
        item->covered_lines, " of ", item->lines, " lines");
    if (item->branches > 0) {
      absl::StrAppend(&text, " and ", item->covered_branches, " of ",
                      item->branches, " branches");
    }
    absl::StrAppend(&html,
                    TextElement("p", absl::StrCat(text,
                                                  " are reached by the "
                                                  "checked calls.")),
                    UncoveredList(*item));
  }
  return html;
}

// The text of an item; lines with something that no call reached are marked.
std::string ItemText(const Item& item, const RuleSet& rules,
                     const std::vector<const RuleCoverage*>& coverage) {
  std::set<int> missed;
  const Source& source = rules.SourceOf(item);
  for (const RuleCoverage* one : coverage) {
    for (const UncoveredArm& arm : one->uncovered) {
      // "rules/core/loss.rules:12:7"
      const std::vector<std::string> parts = absl::StrSplit(arm.place, ':');
      int line = 0;
      if (one->file == source.name() && parts.size() >= 3 &&
          absl::SimpleAtoi(parts[parts.size() - 2], &line)) {
        missed.insert(line);
      }
    }
  }
  std::string html;
  const int first = source.PositionOf(item.range.begin).line;
  const int last =
      source.PositionOf(std::max(item.range.begin, item.range.end - 1)).line;
  for (int line = first; line <= last; ++line) {
    const std::string text = EscapeHtml(source.Line(line));
    absl::StrAppend(&html,
                    missed.count(line) != 0 ? Element("mark", text) : text,
                    line < last ? "\n" : "");
  }
  return Element("pre", Element("code", html));
}

// Its items: the op's and its overrides.
std::vector<const Item*> ItemsOf(const std::string& op, const RuleSet& rules) {
  absl::string_view name = op;
  std::vector<const Item*> items;
  if (absl::ConsumePrefix(&name, "jvp ")) {
    items = {rules.FindDerivative(name)};
  } else if (absl::ConsumePrefix(&name, "rewrite ")) {
    items = {rules.FindRewrite(name)};
  } else {
    items = {rules.Find(name)};
    const std::vector<const Item*> overrides = rules.Overrides(name);
    items.insert(items.end(), overrides.begin(), overrides.end());
  }
  items.erase(std::remove(items.begin(), items.end(), nullptr), items.end());
  return items;
}

}  // namespace

std::string VerdictClass(VerdictKind kind) {
  return absl::StrReplaceAll(VerdictKindName(kind), {{" ", "-"}});
}

std::string UncoveredList(const RuleCoverage& coverage) {
  std::string html;
  for (const UncoveredArm& arm : coverage.uncovered) {
    absl::StrAppend(
        &html, Element("li", absl::StrCat(TextElement("code", arm.place), ": ",
                                          EscapeHtml(arm.what),
                                          arm.marked.empty()
                                              ? std::string()
                                              : CodeBlock(arm.marked))));
  }
  return html.empty() ? "" : Element("ul", html, "class=\"uncovered\"");
}

std::string RuleArticle(const OpReport& op,
                        const std::vector<const RuleCoverage*>& coverage,
                        const RuleSet& rules) {
  const std::vector<const Item*> items = ItemsOf(op.op, rules);
  std::string html = ArticleHeader(op.op, op.place);
  for (const Item* item : items) {
    absl::StrAppend(&html, DocParagraph(item->docs));
  }
  absl::StrAppend(&html, Verdicts(op));
  if (op.loose_claim) {
    absl::StrAppend(
        &html,
        TextElement("p",
                    "The claim of accuracy is loose: less than a quarter of "
                    "it is ever used.",
                    "class=\"loose\""));
  }
  for (const auto& [layer, verdict] : op.layers) {
    if (verdict.counterexample) {
      absl::StrAppend(&html, CounterexampleBox(layer, *verdict.counterexample));
    }
  }
  absl::StrAppend(&html, Plots(op.profiles), CoverageParagraph(coverage));
  std::string texts;
  for (const Item* item : items) {
    absl::StrAppend(&texts, ItemText(*item, rules, coverage));
  }
  absl::StrAppend(&html, Details("Rule", texts));
  if (!items.empty() && items[0]->kind == ItemKind::kOp) {
    absl::StrAppend(&html,
                    Details("Derived rules", DerivedRuleTexts(op.op, rules)));
  }
  return Element("article", html,
                 absl::StrCat("id=\"", AnchorId("op", op.op), "\""));
}

}  // namespace cleave
