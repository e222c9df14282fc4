// Source: one rule text and its name; SourceRange: bytes of it.

#ifndef CLEAVE_ENGINE_LANG_SOURCE_H_
#define CLEAVE_ENGINE_LANG_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cleave {

// Bytes [begin, end) of a source. For a rule read from JSON, positions are
// those of its canonical text, and `pointer` of a Diagnostic names the JSON
// node.
struct SourceRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

class Source {
 public:
  Source(std::string name, std::string text);
  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }

  // 1-based; columns count Unicode code points.
  struct Position {
    int line = 1;
    int column = 1;
  };
  Position PositionOf(uint32_t offset) const;
  // The text of a 1-based line, without its newline.
  absl::string_view Line(int line) const;

 private:
  std::string name_;
  std::string text_;
  std::vector<uint32_t> line_starts_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_LANG_SOURCE_H_
