#include "engine/lang/marked_line.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace cleave {
namespace {

// Lines longer than this are not shown with a caret.
constexpr size_t kMaxShownLine = 400;

bool IsContinuationByte(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

std::string MarkedLine(SourceRange range, const Source& source) {
  const Source::Position begin = source.PositionOf(range.begin);
  const absl::string_view line = source.Line(begin.line);
  if (line.size() > kMaxShownLine) return "";
  const Source::Position end =
      source.PositionOf(std::max(range.begin, range.end));
  int columns = 0;
  for (char c : line) columns += IsContinuationByte(c) ? 0 : 1;
  const int length =
      (end.line == begin.line ? end.column : columns + 1) - begin.column;
  return absl::StrCat("  ", line, "\n  ", std::string(begin.column - 1, ' '),
                      "^", std::string(std::max(length, 1) - 1, '~'), "\n");
}

}  // namespace cleave
