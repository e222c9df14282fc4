// Layout: how `cleave fmt` breaks lines. A Doc says where a line may be broken;
// LayoutWriter chooses the breaks:
// - A Doc that fits on its line stays there.
// - A list is filled: an element that does not fit begins a new line, two
//   columns deeper than the line on which the list begins. Where that takes
//   fewer lines, the element begins on the old line and is itself broken, or
//   the line is broken after the opening bracket.
// - A chain of operators is filled in the same way, broken before operators.
// - Among layouts with equally few lines, the outermost break wins.
// - A record is broken into one field a line; a block into one statement a
//   line; `if` into one branch a line, after the `=` in front of it.

#ifndef CLEAVE_ENGINE_LANG_LAYOUT_H_
#define CLEAVE_ENGINE_LANG_LAYOUT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cleave::internal {

inline constexpr int kLineWidth = 100;
// Signatures keep a little margin; an item on a single line a little more.
inline constexpr int kSignatureWidth = 98;
inline constexpr int kOneLineItemWidth = 96;

struct Doc;
using DocPtr = std::shared_ptr<const Doc>;

enum class DocKind : uint8_t {
  kText,      // text
  kConcat,    // parts, nothing between
  kList,      // text, parts separated by commas, close
  kRecord,    // the same, one a line when it is broken
  kChain,     // parts[0], then leads[i] parts[i]
  kIf,        // condition, then, condition, then, .. [else]
  kEquation,  // parts[0] = parts[1]
  kBlock,     // parts[0] { bodies[0] } [else { bodies[1] }]
};

struct StatementDoc {
  std::vector<std::string> comments;
  DocPtr doc;
};

struct Doc {
  DocKind kind = DocKind::kText;
  std::string text;
  std::string close;
  std::vector<DocPtr> parts;
  std::vector<std::string> leads;
  std::vector<std::vector<StatementDoc>> bodies;
  bool open_breaks = true;  // kList: whether a line may end after `text`
  int hang = 2;             // kList: how much deeper its further lines are
  // On one line; kNoWidth if it needs several.
  int width = 0;
  int size = 1;  // the number of Docs in it
};

// More than any line, little enough to be added up.
inline constexpr int kNoWidth = 1 << 20;

// The number of columns of UTF-8 text.
int TextWidth(absl::string_view text);

DocPtr TextDoc(std::string text);
DocPtr ConcatDoc(std::vector<DocPtr> parts);
DocPtr ListDoc(std::string open, std::vector<DocPtr> parts, std::string close,
               bool open_breaks = true, int hang = 2);
DocPtr RecordDoc(std::vector<DocPtr> parts);
DocPtr ChainDoc(std::vector<DocPtr> parts, std::vector<std::string> leads);
DocPtr IfDoc(std::vector<DocPtr> parts);
DocPtr EquationDoc(DocPtr left, DocPtr value);
DocPtr BlockDoc(DocPtr head, std::vector<std::vector<StatementDoc>> bodies);

class LayoutWriter {
 public:
  explicit LayoutWriter(std::string* out) : out_(out) {}

  void Put(absl::string_view text);
  void Newline(int indent);
  void Flat(const Doc& doc);
  // Writes `doc` here. Lines that it breaks between brackets start at `indent`;
  // `trail` columns must follow it on its last line.
  void Lay(const Doc& doc, int indent, int trail = 0);
  // `{`, the statements, `}`.
  void Block(const std::vector<StatementDoc>& statements);

  bool Fits(int width) const { return column_ + width <= limit_; }
  int column() const { return column_; }
  void set_limit(int limit) { limit_ = limit; }
  // The column that further lines of this statement are indented against.
  void set_indent(int indent) { indent_ = indent; }
  // Allows the work that a statement or clause of this size may take. Beyond it
  // breaks are chosen without comparing, so that no text takes long.
  void SetBudget(const Doc& doc) { budget_ = kMinBudget + kBudget * doc.size; }

 private:
  static constexpr int64_t kMinBudget = 10000;
  static constexpr int64_t kBudget = 100;
  struct Cost {
    int overflow;
    int lines;
  };
  template <typename Function>
  Cost Measure(int trail, Function function);
  void LayConcat(const Doc& doc, int indent, int trail);
  void LayList(const Doc& doc, int trail);
  void LayElements(const Doc& doc, int trail, int inner, bool break_open);
  void LayRecord(const Doc& doc, int trail);
  void LayChain(const Doc& doc, int indent, int trail);
  void LayIf(const Doc& doc, int indent, int trail);
  void LayEquation(const Doc& doc, int indent, int trail);
  void LayBlock(const Doc& doc, int indent);

  std::string* out_;  // null while measuring
  int column_ = 0;
  int indent_ = 0;       // of the line, or what counts as that
  int line_indent_ = 0;  // of the line
  int lines_ = 0;
  int overflow_ = 0;
  int limit_ = kLineWidth;
  int64_t budget_ = kMinBudget;
};

}  // namespace cleave::internal

#endif  // CLEAVE_ENGINE_LANG_LAYOUT_H_
