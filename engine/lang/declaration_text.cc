#include "engine/lang/declaration_text.h"

namespace cleave {

std::string DeclarationText(const Item& item) {
  RuleFile file;
  file.entries.emplace_back().item = item;
  file.entries.back().item->docs.clear();
  const std::string text = PrintRuleFile(file);
  // Behind the line `language 1` and the blank one.
  return text.substr(text.find("\n\n") + 2);
}

}  // namespace cleave
