#include "engine/rules/place_by_line.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace cleave {

void PlaceByLine(const Source& source, Diagnostic* d) {
  const std::string prefix = absl::StrCat(source.name(), ":");
  absl::string_view rest = d->message;
  if (!absl::ConsumePrefix(&rest, prefix)) return;
  const auto number = [&]() -> std::optional<int> {
    const size_t colon = rest.find(':');
    int value = 0;
    if (colon == absl::string_view::npos ||
        !absl::SimpleAtoi(rest.substr(0, colon), &value)) {
      return std::nullopt;
    }
    rest.remove_prefix(colon + 1);
    return value;
  };
  const std::optional<int> line = number();
  if (!line) return;
  const std::optional<int> column = number();
  absl::ConsumePrefix(&rest, " ");
  d->message = std::string(rest);
  const std::string& text = source.text();
  size_t begin = 0;
  for (int l = 1; l < *line; ++l) begin = text.find('\n', begin) + 1;
  const size_t end = std::min(text.find('\n', begin), text.size());
  if (column) begin += *column - 1;
  while (begin < end && text[begin] == ' ') ++begin;
  d->range = {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

}  // namespace cleave
