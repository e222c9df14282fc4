#include "tools/reference/math_box.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "testing/report/html.h"

namespace cleave::internal {
namespace {

constexpr char kNoBreakSpace[] = "\u00A0";
constexpr char kThinSpace[] = "<mspace width=\"0.17em\"/>";
constexpr char kPoint[] = "\u22C5";
constexpr char kInvisibleTimes[] = "\u2062";

// A cell that is set to the left: MathML Core has no attribute for it.
constexpr char kToTheLeft[] = "style=\"text-align: left\"";

MathBox Joined(std::string content, const MathBox& left, const MathBox& right) {
  MathBox box;
  box.content = std::move(content);
  box.row = true;
  box.first = left.first;
  box.last = right.last;
  box.opening = right.opening;
  box.size = left.size + right.size + 1;
  box.tall = left.tall || right.tall;
  return box;
}

// Whether a number or a word beside another formula would run into it.
bool WantsPoint(Edge left, Edge right) {
  return right == Edge::kDigit || right == Edge::kWord || left == Edge::kWord ||
         (left == Edge::kDigit && right == Edge::kFraction);
}

}  // namespace

std::string MathBox::Element() const {
  return row ? cleave::Element("mrow", content) : content;
}

MathBox Symbol(std::string element, int size) {
  MathBox box;
  box.content = std::move(element);
  box.size = size;
  return box;
}

MathBox NumberBox(absl::string_view text) {
  MathBox box = Symbol(TextElement("mn", text));
  box.first = box.last = Edge::kDigit;
  return box;
}

MathBox NameBox(absl::string_view text) {
  MathBox box = Symbol(TextElement("mi", text));
  // A letter beyond ASCII is Greek, or infinity.
  const bool letter =
      text.size() == 1 || (!text.empty() && (text[0] & 0x80) != 0);
  box.first = box.last = letter ? Edge::kLetter : Edge::kWord;
  return box;
}

std::string Operator(absl::string_view text, absl::string_view attributes) {
  return TextElement("mo", text, attributes);
}

std::string Words(absl::string_view text) {
  return TextElement("mtext",
                     absl::StrReplaceAll(text, {{" ", kNoBreakSpace}}));
}

MathBox RuleTextBox(absl::string_view text) {
  std::vector<std::vector<MathBox>> rows;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    rows.push_back({Symbol(
        TextElement("mtext", absl::StrReplaceAll(line, {{" ", kNoBreakSpace}}),
                    "class=\"mono\""),
        static_cast<int>(line.size()))});
  }
  MathBox box = rows.size() == 1 ? rows[0][0] : TableBox(rows, /*brace=*/false);
  box.binding = Binding::kLoosest;
  box.first = box.last = Edge::kWord;
  return box;
}

MathBox Row(std::vector<MathBox> boxes) {
  if (boxes.size() == 1) return std::move(boxes[0]);
  MathBox row;
  row.row = true;
  row.size = 0;
  for (const MathBox& box : boxes) {
    row.content += box.Element();
    row.size += box.size;
    row.tall = row.tall || box.tall;
  }
  if (boxes.empty()) return row;
  row.first = boxes.front().first;
  row.last = boxes.back().last;
  row.opening = boxes.back().opening;
  return row;
}

MathBox CommaRow(std::vector<MathBox> boxes) {
  std::vector<MathBox> parts;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const bool last = i + 1 == boxes.size();
    // `a, else b` has a comma of its own.
    parts.push_back(
        Operand(std::move(boxes[i]),
                boxes.size() > 1 ? Binding::kDefinition : Binding::kLoosest,
                last ? Opening::kClosed : Opening::kComma));
    if (!last) parts.push_back(Symbol(Operator(","), 0));
  }
  return Row(std::move(parts));
}

MathBox Fenced(const MathBox& box, absl::string_view left,
               absl::string_view right) {
  // Fonts space fences that could grow wider.
  const char* const grows = box.tall ? "" : "stretchy=\"false\"";
  MathBox fenced;
  fenced.row = true;
  fenced.content = absl::StrCat(Operator(left, grows), box.Element(),
                                Operator(right, grows));
  fenced.size = box.size + 2;
  fenced.tall = box.tall;
  return fenced;
}

MathBox Operand(MathBox box, Binding least, Opening followed) {
  const bool swallows = followed != Opening::kClosed && box.opening >= followed;
  if (box.binding < least || swallows) return Fenced(box);
  return box;
}

MathBox InfixBox(MathBox left, std::string op, MathBox right, Binding binding) {
  const auto tighter = static_cast<Binding>(static_cast<int>(binding) + 1);
  Binding least_left = tighter;
  Binding least_right = tighter;
  Opening followed = Opening::kTerm;
  switch (binding) {
    case Binding::kDefinition:
      // `y = (a < b)`, but `y = a, else b`.
      least_right = right.binding == Binding::kLoosest ? Binding::kLoosest
                                                       : Binding::kRange;
      break;
    case Binding::kOr:
    case Binding::kAnd:
    case Binding::kConcat:
      least_left = binding;
      break;
    case Binding::kSum:
      // Behind its sign no second sign.
      least_left = binding;
      least_right = Binding::kProduct;
      break;
    case Binding::kMod:
      least_left = Binding::kProduct;
      least_right = Binding::kFactor;
      followed = Opening::kFactor;
      break;
    default:
      // A comparison of comparisons is none.
      break;
  }
  left = Operand(std::move(left), least_left, followed);
  right = Operand(std::move(right), least_right);
  // A sum of many is one row, not rows within rows.
  const std::string start =
      left.binding == binding ? left.content : left.Element();
  MathBox box = Joined(absl::StrCat(start, op, right.Element()), left, right);
  box.binding = binding;
  return box;
}

MathBox ProductBox(MathBox left, MathBox right, bool point) {
  left = Operand(std::move(left), Binding::kMinus, Opening::kFactor);
  right = Operand(std::move(right), Binding::kFactor);
  const std::string times =
      WantsPoint(left.last, right.first)
          ? Operator(kPoint)
          : Operator(kInvisibleTimes, "rspace=\"0.17em\"");
  const std::string start =
      left.binding == Binding::kProduct ? left.content : left.Element();
  MathBox box =
      Joined(absl::StrCat(start, times, right.Element()), left, right);
  box.binding = std::min(left.binding, Binding::kProduct);
  return box;
}

MathBox FractionBox(const MathBox& left, const MathBox& right) {
  MathBox box =
      Symbol(Element("mfrac", absl::StrCat(left.Element(), right.Element())),
             left.size + right.size);
  box.binding = Binding::kFactor;
  box.first = box.last = Edge::kFraction;
  box.tall = true;
  return box;
}

MathBox SlashBox(MathBox left, MathBox right) {
  left = Operand(std::move(left), Binding::kMinus, Opening::kFactor);
  right = Operand(std::move(right), Binding::kFactor);
  MathBox box =
      Joined(absl::StrCat(
                 left.Element(),
                 Operator("/", "lspace=\"0\" rspace=\"0\" stretchy=\"false\""),
                 right.Element()),
             left, right);
  box.binding = std::min(left.binding, Binding::kProduct);
  return box;
}

MathBox PowerBox(MathBox base, const MathBox& exponent) {
  const Edge first = base.first;
  const int size = base.size + exponent.size;
  const bool tall = base.tall;
  MathBox box;
  if (!base.index.empty()) {
    box = Symbol(Element("msubsup", absl::StrCat(base.base, base.index,
                                                 exponent.Element())),
                 size);
  } else {
    const bool fenced = base.binding < Binding::kAtom;
    base = Operand(std::move(base), Binding::kAtom);
    box = Symbol(
        Element("msup", absl::StrCat(base.Element(), exponent.Element())),
        size);
    box.first = fenced ? Edge::kOther : first;
  }
  if (!base.index.empty()) box.first = first;
  box.binding = Binding::kFactor;
  box.tall = tall;
  return box;
}

MathBox IndexBox(MathBox base, const MathBox& index) {
  base = Operand(std::move(base), Binding::kCall);
  if (!base.index.empty()) base = Fenced(base);
  MathBox box;
  box.first = base.first;
  box.base = base.Element();
  box.index = index.Element();
  box.content = Element("msub", absl::StrCat(box.base, box.index));
  box.size = base.size + index.size;
  box.tall = base.tall;
  return box;
}

MathBox BigBox(absl::string_view op, const MathBox& under, MathBox body) {
  body = Operand(std::move(body), Binding::kProduct);
  // A name has no space of its own behind it.
  const bool word = absl::StartsWith(op, "<mi");
  MathBox box;
  box.row = true;
  box.content =
      absl::StrCat(Element("munder", absl::StrCat(op, under.Element())),
                   word ? kThinSpace : "", body.Element());
  box.size = under.size + body.size + 1;
  box.tall = true;
  box.binding = Binding::kFactor;
  box.opening = std::max(body.opening, Opening::kFactor);
  return box;
}

MathBox TableBox(const std::vector<std::vector<MathBox>>& rows, bool brace) {
  MathBox table;
  table.size = 0;
  std::string html;
  for (const std::vector<MathBox>& row : rows) {
    std::string cells;
    for (const MathBox& cell : row) {
      absl::StrAppend(&cells, Element("mtd", cell.Element(), kToTheLeft));
      table.size += cell.size;
    }
    absl::StrAppend(&html, Element("mtr", cells));
  }
  table.content = Element("mtable", html, "displaystyle=\"true\"");
  if (brace) {
    table.content = absl::StrCat(Operator("{"), table.content);
    table.row = true;
  }
  table.binding = Binding::kFactor;
  table.tall = true;
  table.opening = rows.size() > 1 ? Opening::kTerm : Opening::kComma;
  return table;
}

MathBox StackBox(const std::vector<MathBox>& rows) {
  if (rows.size() == 1) return rows[0];
  std::string html;
  int size = 0;
  for (const MathBox& row : rows) {
    absl::StrAppend(&html,
                    Element("mtr", Element("mtd", row.Element(),
                                           "style=\"padding: 0.1em 0\"")));
    size += row.size;
  }
  return Symbol(Element("mtable", html), size);
}

}  // namespace cleave::internal
