#include "engine/lang/json_rule.h"

#include <optional>
#include <utility>

#include "engine/lang/json_internal.h"
#include "ops/budget.h"
#include "ops/check.h"

namespace cleave {
namespace {

using internal::Json;

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The pointer of the first node in which the two differ, the order of members
// aside; nullopt if there is none.
std::optional<std::string> FirstDifference(const Json& a, const Json& b,
                                           const std::string& pointer) {
  if (a.is_object() != b.is_object() || a.is_array() != b.is_array()) {
    return pointer;
  }
  if (a.is_object()) {
    for (const auto& member : a.items()) {
      const std::string at = internal::PointerStep(pointer, member.key());
      const auto other = b.find(member.key());
      if (other == b.end()) return at;
      const auto difference = FirstDifference(member.value(), *other, at);
      if (difference.has_value()) return difference;
    }
    if (a.size() != b.size()) return pointer;
    return std::nullopt;
  }
  if (a.is_array()) {
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
      const auto difference =
          FirstDifference(a[i], b[i], absl::StrCat(pointer, "/", i));
      if (difference.has_value()) return difference;
    }
    if (a.size() != b.size()) return pointer;
    return std::nullopt;
  }
  if (a == b) return std::nullopt;
  return pointer;
}

// The pointer of the entry whose text holds `offset` of the printed file: of
// one that cannot be read, there are no ranges.
std::string EntryAt(const RuleFile& file, uint32_t offset) {
  RuleFile one;
  size_t end = PrintRuleFile(one).size();
  const size_t heading = end;
  for (size_t i = 0; i < file.entries.size(); ++i) {
    one.entries = {file.entries[i]};
    end += PrintRuleFile(one).size() - heading;
    if (offset < end) return absl::StrCat("/entries/", i);
  }
  return "/entries";
}

ParseResult ParseJson(const Source& source) {
  ParseResult result;
  const std::string& text = source.text();
  if (text.size() > kMaxSourceBytes) {
    result.diagnostics.push_back(
        {DiagnosticKind::kLimit,
         absl::StrCat("a file has at most ", kMaxSourceBytes, " bytes"),
         {0, 0},
         "split the file",
         ""});
    return result;
  }
  if (!internal::CheckJsonText(text, &result.diagnostics)) return result;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const RuleFile file = internal::FileOfJson(json, &result.diagnostics);
  if (!result.diagnostics.empty()) return result;
  // The text of the tree is read again. The parser gives the ranges, and finds
  // the mistakes that no single node shows: a record with names for some fields
  // only, an override before the result.
  const Source printed(source.name(), PrintRuleFile(file));
  ParseResult read = ParseRules(printed);
  if (!read.ok()) {
    for (Diagnostic& diagnostic : read.diagnostics) {
      diagnostic.pointer = JsonPointerOf(read.file, diagnostic.range);
      if (diagnostic.pointer.empty()) {
        diagnostic.pointer = EntryAt(file, diagnostic.range.begin);
      }
      diagnostic.help = absl::StrCat(
          "as text: ",
          printed.Line(printed.PositionOf(diagnostic.range.begin).line));
    }
    result.diagnostics = std::move(read.diagnostics);
    return result;
  }
  std::optional<std::string> difference =
      FirstDifference(json, internal::JsonOf(read.file), "");
  if (difference.has_value()) {
    if (difference->empty()) difference = "/";
    result.diagnostics.push_back({DiagnosticKind::kJson,
                                  "this node has no text of its own: it would "
                                  "be read back as another",
                                  {0, 0},
                                  "",
                                  *std::move(difference)});
    return result;
  }
  return read;
}

}  // namespace

std::string RulesToJson(const RuleFile& file) {
  std::string json;
  CLEAVE_CHECK_OK(OnAmpleStack([&] { json = Dump(internal::JsonOf(file)); }));
  return json;
}

ParseResult ParseJsonRules(const Source& source) {
  ParseResult result;
  const absl::Status status = OnAmpleStack([&] { result = ParseJson(source); });
  if (!status.ok()) {
    result.diagnostics.push_back({DiagnosticKind::kLimit,
                                  std::string(status.message()),
                                  {0, 0},
                                  "",
                                  ""});
  }
  return result;
}

}  // namespace cleave
