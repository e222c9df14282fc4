#include "tools/reference/reference_article.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/lang/declaration_text.h"
#include "testing/report/html.h"
#include "testing/report/rule_parts.h"
#include "tools/reference/formula.h"
#include "tools/reference/function_plot.h"

namespace cleave {
namespace {

// The item without what follows its signature: `claims` keeps what is said of
// its results, else the dtypes.
Item Head(const Item& item, bool claims) {
  Item head = item;
  head.spec = nullptr;
  head.laws.clear();
  head.body = nullptr;
  head.lets.clear();
  head.let_clauses.clear();
  head.mutates.clear();
  head.compute_acc = false;
  head.errors.clear();
  if (claims) {
    head.where.clear();
    return head;
  }
  head.domains.clear();
  head.specials.clear();
  head.approximations.clear();
  head.accuracies.clear();
  return head;
}

std::string SignatureText(const Item& item) {
  return DeclarationText(Head(item, /*claims=*/false));
}

// The clauses of that kind in a declaration: "accuracy T within 2 ulp".
std::vector<std::string> Clauses(absl::string_view text,
                                 absl::string_view kind) {
  std::vector<std::string> clauses;
  bool inside = false;
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const bool continues = absl::StartsWith(line, "    ");
    if (!continues) inside = absl::StartsWith(line, absl::StrCat("  ", kind));
    if (!inside) continue;
    if (continues) {
      absl::StrAppend(&clauses.back(), "\n", line.substr(2));
    } else {
      clauses.emplace_back(line.substr(2));
    }
  }
  return clauses;
}

std::string ClauseList(absl::string_view text, absl::string_view kind,
                       absl::string_view title) {
  const std::vector<std::string> clauses = Clauses(text, kind);
  if (clauses.empty()) return "";
  return absl::StrCat(TextElement("h4", title),
                      CodeBlock(absl::StrJoin(clauses, "\n")));
}

// One row of what was measured; empty where it was not.
std::string MeasuredRow(const OpReport& report, Layer layer,
                        absl::string_view what) {
  const auto it = report.layers.find(layer);
  if (it == report.layers.end() || it->second.kind != VerdictKind::kAgrees ||
      it->second.samples == 0) {
    return "";
  }
  const Verdict& verdict = it->second;
  const auto number = [](const std::string& text) {
    return TextElement("td", text, "class=\"number\"");
  };
  return Element(
      "tr",
      absl::StrCat(TextElement("th", what, "scope=\"row\""),
                   number(absl::StrFormat("%.3g", verdict.worst_ulp)),
                   number(absl::StrFormat("%.2g", verdict.worst_part)),
                   number(GroupedDigits(verdict.samples)),
                   TextElement("td", verdict.worst_at, "class=\"mono\"")));
}

std::string Accuracy(absl::string_view claims, const OpReport* report) {
  std::string html = ClauseList(claims, "approximates", "Cut off");
  absl::StrAppend(&html, ClauseList(claims, "accuracy", "Accuracy, claimed"));
  if (report == nullptr) return html;
  const std::string rows =
      absl::StrCat(MeasuredRow(*report, Layer::kRounding, "values"),
                   MeasuredRow(*report, Layer::kTransforms, "derivatives"));
  if (rows.empty()) return html;
  std::string head = TextElement("th", "", "scope=\"col\"");
  for (const char* title : {"Largest error, ULP", "Of its bound", "Samples"}) {
    absl::StrAppend(&head,
                    TextElement("th", title, "scope=\"col\" class=\"number\""));
  }
  absl::StrAppend(&head, TextElement("th", "At", "scope=\"col\""));
  return absl::StrCat(html, TextElement("h4", "Accuracy, measured"),
                      ScrollingTable(head, rows));
}

template <typename Names>
std::string Links(const Names& names, const ArticleContext& context) {
  return absl::StrJoin(names, ", ",
                       [&](std::string* out, const std::string& name) {
                         out->append(context.link(name));
                       });
}

std::string Hosts(absl::string_view op, const ArticleContext& context) {
  const HostUse* const use = context.hosts.Of(op);
  if (use == nullptr) return "";
  std::string html;
  if (!use->names.empty()) {
    absl::StrAppend(&html, TextElement("h4", "Names in frameworks"),
                    Element("p", Links(use->names, context)));
  }
  if (!use->callers.empty()) {
    absl::StrAppend(
        &html,
        Details(absl::StrCat("Called by ", use->callers.size(),
                             use->callers.size() == 1 ? " op of a framework"
                                                      : " ops of frameworks"),
                Element("p", Links(use->callers, context))));
  }
  return html;
}

// Links to the ops that a host's op calls.
std::string StandsFor(const Item& item, const ArticleContext& context) {
  std::vector<std::string> ops;
  for (const std::string& callee : CalleesOf(item)) {
    const Item* const found = context.rules.Find(callee);
    if (found != nullptr && found->kind == ItemKind::kOp) ops.push_back(callee);
  }
  if (ops.empty()) return "";
  return Element("p", absl::StrCat("In terms of ", Links(ops, context), "."),
                 "class=\"muted\"");
}

std::string Header(absl::string_view op, const Item& item,
                   const RuleSet& rules) {
  const Source& source = rules.SourceOf(item);
  const std::string place = absl::StrCat(
      source.name(), ":", source.PositionOf(item.range.begin).line);
  return ArticleHeader(op, place);
}

}  // namespace

std::string ReferenceArticle(absl::string_view op,
                             const ArticleContext& context) {
  const RuleSet& rules = context.rules;
  const Item& item = *rules.Find(op);
  std::string html =
      absl::StrCat(Header(op, item, rules), DocParagraph(item.docs));
  std::string texts = CodeBlock(DeclarationText(item));
  for (const Item* other : rules.Overrides(op)) {
    absl::StrAppend(
        &texts,
        TextElement("p", absl::StrCat("Overridden in ",
                                      rules.SourceOf(*other).name(), ":")),
        CodeBlock(DeclarationText(*other)));
  }
  if (item.kind != ItemKind::kOp) {
    absl::StrAppend(&html, texts, StandsFor(item, context));
  } else {
    const std::string formula = SpecFormula(item);
    if (!formula.empty()) {
      absl::StrAppend(
          &html, Element("div", formula, "class=\"formula\" tabindex=\"0\""));
    }
    const std::string claims = DeclarationText(Head(item, /*claims=*/true));
    const OpReport* const measured =
        context.measured ? context.measured(op) : nullptr;
    absl::StrAppend(
        &html, FunctionPlot(op, rules), TextElement("h4", "Signature"),
        CodeBlock(SignatureText(item)), ClauseList(claims, "domain", "Domain"),
        ClauseList(claims, "special", "Special values"),
        Accuracy(claims, measured), Hosts(op, context), Details("Rule", texts),
        Details("Derived rules", DerivedRuleTexts(op, rules)));
  }
  return Element("article", html,
                 absl::StrCat("id=\"", AnchorId("op", op), "\""));
}

}  // namespace cleave
