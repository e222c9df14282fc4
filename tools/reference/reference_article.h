// ReferenceArticle: the part of the reference that is about one op.

#ifndef CLEAVE_TOOLS_REFERENCE_REFERENCE_ARTICLE_H_
#define CLEAVE_TOOLS_REFERENCE_REFERENCE_ARTICLE_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"
#include "testing/check/check.h"
#include "tools/reference/host_uses.h"

namespace cleave {

struct ArticleContext {
  const RuleSet& rules;
  const HostUses& hosts;
  // The last verdicts of the checker on an op; null where none are known.
  std::function<const OpReport*(absl::string_view op)> measured;
  // A link to the article of an op, as HTML; its name alone where it has none.
  std::function<std::string(absl::string_view op)> link;
};

// An <article> with the anchor of the op (AnchorId("op", name)). An op of the
// core has its comment, formula, drawing, signature, accuracy, the names that
// hosts know it by, its text, and what transforms derive from it. A host's op
// has its comment, its text, and links to what it stands for.
std::string ReferenceArticle(absl::string_view op,
                             const ArticleContext& context);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_REFERENCE_REFERENCE_ARTICLE_H_
