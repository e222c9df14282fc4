#include "testing/report/rule_parts.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "testing/report/html.h"
#include "transforms/report/derive_rule.h"
#include "transforms/report/transform.h"

namespace cleave {

std::string ArticleHeader(absl::string_view name, absl::string_view place) {
  return Element("header", absl::StrCat(TextElement("h3", name),
                                        TextElement("span", place,
                                                    "class=\"muted mono\"")));
}

std::string Details(absl::string_view title, const std::string& html) {
  return Element("details", absl::StrCat(TextElement("summary", title), html));
}

std::string DocParagraph(const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string html;
  bool code = false;
  for (absl::string_view part :
       absl::StrSplit(absl::StrJoin(lines, " "), '`')) {
    absl::StrAppend(&html, code ? TextElement("code", part) : EscapeHtml(part));
    code = !code;
  }
  return Element("p", html);
}

std::string DerivedRuleTexts(absl::string_view op, const RuleSet& rules) {
  std::string html;
  for (const Transform transform : kTransforms) {
    const absl::StatusOr<std::string> text = DeriveOpRule(
        op, transform,
        [&](const Graph& call) -> absl::StatusOr<std::vector<bool>> {
          std::vector<bool> chosen;
          for (const NamedValue& input : call.inputs()) {
            chosen.push_back(
                transform == Transform::kVmap ||
                InClass(call.type(input.value).dtype, DTypeClass::kInexact));
          }
          return chosen;
        },
        rules);
    const std::string title(TransformName(transform));
    if (text.ok()) {
      absl::StrAppend(&html, TextElement("h4", title), CodeBlock(*text));
    } else {
      absl::StrAppend(
          &html, TextElement("h4", title),
          TextElement(
              "p", absl::StrCat("None: ", std::string(text.status().message())),
              "class=\"muted\""));
    }
  }
  return html;
}

}  // namespace cleave
