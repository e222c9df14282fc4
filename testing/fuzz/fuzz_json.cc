// The JSON loader on any bytes: it reports or reads. A file that it reads is
// written and read back the same.

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/lang/json_rule.h"
#include "engine/lang/parser.h"
#include "ops/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cleave::Source source(
      "fuzz", std::string(reinterpret_cast<const char*>(data), size));
  const cleave::ParseResult result = cleave::ParseJsonRules(source);
  if (!result.ok()) {
    CLEAVE_CHECK(!cleave::Render(result.diagnostics, source).empty());
    return 0;
  }
  const cleave::Source json("json", cleave::RulesToJson(result.file));
  const cleave::ParseResult again = cleave::ParseJsonRules(json);
  CLEAVE_CHECK(again.ok());
  CLEAVE_CHECK(cleave::RulesToJson(again.file) == json.text());
  CLEAVE_CHECK(cleave::PrintRuleFile(again.file) ==
               cleave::PrintRuleFile(result.file));
  return 0;
}
