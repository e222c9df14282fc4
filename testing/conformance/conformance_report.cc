#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "testing/conformance/conformance.h"

namespace cleave {

std::string ConformanceJson(const ConformanceReport& report) {
  using nlohmann::json;
  const auto counts = [](const SectionCounts& c) {
    return json{{"passed", c.passed},
                {"failed", c.failed},
                {"unsupported", c.unsupported}};
  };
  json j = {{"ops", json::object()},
            {"totals", counts(report.totals)},
            {"failures", json::array()},
            {"as_interpreter", report.as_interpreter}};
  for (const auto& [op, sections] : report.ops) {
    for (const auto& [section, c] : sections) {
      j["ops"][op][section] = counts(c);
    }
  }
  for (const ConformanceFailure& failure : report.failures) {
    j["failures"].push_back({{"op", failure.op},
                             {"case", failure.id},
                             {"section", failure.section},
                             {"message", failure.message}});
  }
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string ConformanceLine(const ConformanceReport& report) {
  const SectionCounts& t = report.totals;
  return absl::StrCat("conformance: ", t.passed, " passed, ", t.failed,
                      " failed, ", t.unsupported, " unsupported of ",
                      t.passed + t.failed + t.unsupported);
}

}  // namespace cleave
