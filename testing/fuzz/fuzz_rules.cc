// The rule parser on any bytes: it reports or reads. A file that it reads
// prints to text that reads and prints the same, also by way of JSON.

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/lang/json_rule.h"
#include "engine/lang/parser.h"
#include "ops/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cleave::Source source(
      "fuzz", std::string(reinterpret_cast<const char*>(data), size));
  const cleave::ParseResult result = cleave::ParseRules(source);
  if (!result.ok()) {
    CLEAVE_CHECK(!cleave::Render(result.diagnostics, source).empty());
    return 0;
  }
  const cleave::Source printed("printed", cleave::PrintRuleFile(result.file));
  const cleave::ParseResult again = cleave::ParseRules(printed);
  CLEAVE_CHECK(again.ok());
  CLEAVE_CHECK(cleave::PrintRuleFile(again.file) == printed.text());
  const cleave::Source json("json", cleave::RulesToJson(result.file));
  CLEAVE_CHECK(cleave::RulesToJson(again.file) == json.text());
  const cleave::ParseResult twin = cleave::ParseJsonRules(json);
  CLEAVE_CHECK(twin.ok());
  CLEAVE_CHECK(cleave::PrintRuleFile(twin.file) == printed.text());
  return 0;
}
