#include "engine/lang/source.h"

#include <algorithm>
#include <utility>

namespace cleave {

Source::Source(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)) {
  line_starts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(static_cast<uint32_t>(i + 1));
  }
}

Source::Position Source::PositionOf(uint32_t offset) const {
  offset = std::min<uint32_t>(offset, static_cast<uint32_t>(text_.size()));
  auto next =
      std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  Position position;
  position.line = static_cast<int>(next - line_starts_.begin());
  for (uint32_t i = *(next - 1); i < offset; ++i) {
    // A UTF-8 continuation byte is part of the code point before it.
    if ((static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80) {
      ++position.column;
    }
  }
  return position;
}

absl::string_view Source::Line(int line) const {
  if (line < 1 || line > static_cast<int>(line_starts_.size())) return "";
  const size_t begin = line_starts_[line - 1];
  size_t end = line < static_cast<int>(line_starts_.size())
                   ? line_starts_[line] - 1
                   : text_.size();
  if (end > begin && text_[end - 1] == '\r') --end;
  return absl::string_view(text_).substr(begin, end - begin);
}

}  // namespace cleave
