#include "engine/lang/precedence.h"

#include "absl/container/flat_hash_map.h"

namespace cleave::internal {

int BinaryPrecedence(absl::string_view text) {
  static const auto* table = new absl::flat_hash_map<absl::string_view, int>{
      {"??", kPrecedenceCoalesce},   {"or", kPrecedenceOr},
      {"and", kPrecedenceAnd},       {"==", kPrecedenceComparison},
      {"!=", kPrecedenceComparison}, {"<", kPrecedenceComparison},
      {"<=", kPrecedenceComparison}, {">", kPrecedenceComparison},
      {">=", kPrecedenceComparison}, {"in", kPrecedenceComparison},
      {"is", kPrecedenceComparison}, {"..", kPrecedenceRange},
      {"++", kPrecedenceConcat},     {"+", kPrecedenceSum},
      {"-", kPrecedenceSum},         {"*", kPrecedenceProduct},
      {"/", kPrecedenceProduct},     {"//", kPrecedenceProduct},
      {"%", kPrecedenceProduct},     {"@", kPrecedenceProduct},
      {"^", kPrecedencePower}};
  const auto found = table->find(text);
  return found == table->end() ? -1 : found->second;
}

bool IsReservedWord(absl::string_view text) {
  return text == "if" || text == "then" || text == "else" || text == "and" ||
         text == "or" || text == "not" || text == "in" || text == "is" ||
         text == "for" || text == "let";
}

bool IsReduction(absl::string_view text) {
  return text == "sum" || text == "prod" || text == "max" || text == "min" ||
         text == "argmax" || text == "argmin";
}

}  // namespace cleave::internal
