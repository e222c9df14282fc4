#include "engine/bind/op_lines.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cleave {

std::string LineName(const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::kJvp:
      return absl::StrCat("the jvp of `", statement.equation.name, "`");
    case StatementKind::kVjp:
      return "the vjp";
    case StatementKind::kVmap: {
      std::set<std::string> batched;
      for (const Statement::OverrideInput& input : statement.inputs) {
        if (!input.unbatched)
          batched.insert(absl::StrCat("`", input.name, "`"));
      }
      return absl::StrCat("the vmap of ", absl::StrJoin(batched, ", "));
    }
    default:
      return "the body";
  }
}

std::vector<OpLine> LinesOf(const Callable& callable, StatementKind kind) {
  std::vector<OpLine> lines;
  const auto add = [&](const BodyPart& part, bool replaces) {
    if (part.item->body == nullptr) return;
    for (const Statement& statement : part.item->body->statements) {
      if (statement.kind != kind) continue;
      const auto same =
          std::find_if(lines.begin(), lines.end(), [&](const OpLine& line) {
            return LineName(*line.statement) == LineName(statement);
          });
      if (replaces && same != lines.end()) {
        *same = {&statement, part};
      } else {
        lines.push_back({&statement, part});
      }
    }
  };
  add({callable.item, callable.source}, false);
  for (const BodyPart& part : callable.overrides) add(part, true);
  return lines;
}

}  // namespace cleave
