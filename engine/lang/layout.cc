#include "engine/lang/layout.h"

#include <algorithm>
#include <utility>

namespace cleave::internal {
namespace {

int Add(int a, int b) { return std::min(kNoWidth, a + b); }

DocPtr Finish(Doc doc, int width) {
  for (const DocPtr& part : doc.parts) doc.size += part->size;
  for (const std::vector<StatementDoc>& body : doc.bodies) {
    for (const StatementDoc& statement : body) {
      doc.size += statement.doc->size;
    }
  }
  doc.width = std::min(kNoWidth, width);
  return std::make_shared<const Doc>(std::move(doc));
}

// The columns up to the first place where the line may be broken.
int LeadWidth(const Doc& doc) {
  switch (doc.kind) {
    case DocKind::kText:
      return doc.width;
    case DocKind::kList:
    case DocKind::kRecord:
      return doc.parts.empty() ? doc.width : TextWidth(doc.text);
    default:
      return doc.parts.empty() ? doc.width : LeadWidth(*doc.parts[0]);
  }
}

bool MayBeFlat(const std::vector<StatementDoc>& body) {
  return body.size() == 1 && body[0].comments.empty();
}

}  // namespace

int TextWidth(absl::string_view text) {
  int width = 0;
  for (char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++width;
  }
  return width;
}

DocPtr TextDoc(std::string text) {
  Doc doc;
  const int width = TextWidth(text);
  doc.text = std::move(text);
  return Finish(std::move(doc), width);
}

DocPtr ConcatDoc(std::vector<DocPtr> parts) {
  Doc doc;
  doc.kind = DocKind::kConcat;
  int width = 0;
  for (const DocPtr& part : parts) width = Add(width, part->width);
  doc.parts = std::move(parts);
  return Finish(std::move(doc), width);
}

DocPtr ListDoc(std::string open, std::vector<DocPtr> parts, std::string close,
               bool open_breaks, int hang) {
  Doc doc;
  doc.kind = DocKind::kList;
  int width = TextWidth(open) + TextWidth(close);
  for (size_t i = 0; i < parts.size(); ++i) {
    width = Add(width, parts[i]->width + (i > 0 ? 2 : 0));
  }
  doc.text = std::move(open);
  doc.close = std::move(close);
  doc.parts = std::move(parts);
  doc.open_breaks = open_breaks;
  doc.hang = hang;
  return Finish(std::move(doc), width);
}

DocPtr RecordDoc(std::vector<DocPtr> parts) {
  Doc doc = *ListDoc("(", std::move(parts), ")");
  doc.kind = DocKind::kRecord;
  return std::make_shared<const Doc>(std::move(doc));
}

DocPtr ChainDoc(std::vector<DocPtr> parts, std::vector<std::string> leads) {
  Doc doc;
  doc.kind = DocKind::kChain;
  int width = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    width = Add(width, parts[i]->width);
    if (i > 0) width = Add(width, TextWidth(leads[i]) + 2);
  }
  doc.parts = std::move(parts);
  doc.leads = std::move(leads);
  return Finish(std::move(doc), width);
}

DocPtr IfDoc(std::vector<DocPtr> parts) {
  Doc doc;
  doc.kind = DocKind::kIf;
  int width = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    width = Add(width, parts[i]->width);
    if (i % 2 == 1) {
      width += 6;  // " then "
    } else if (i + 1 == parts.size()) {
      width += 6;  // " else "
    } else {
      width += i == 0 ? 3 : 9;  // "if ", " else if "
    }
  }
  doc.parts = std::move(parts);
  return Finish(std::move(doc), width);
}

DocPtr EquationDoc(DocPtr left, DocPtr value) {
  Doc doc;
  doc.kind = DocKind::kEquation;
  const int width = Add(left->width, value->width + 3);
  doc.parts = {std::move(left), std::move(value)};
  return Finish(std::move(doc), width);
}

DocPtr BlockDoc(DocPtr head, std::vector<std::vector<StatementDoc>> bodies) {
  Doc doc;
  doc.kind = DocKind::kBlock;
  int width = head->width;
  for (size_t i = 0; i < bodies.size(); ++i) {
    // " { e }", " else { e }"
    width = MayBeFlat(bodies[i])
                ? Add(width, bodies[i][0].doc->width + (i == 0 ? 5 : 10))
                : kNoWidth;
  }
  doc.parts = {std::move(head)};
  doc.bodies = std::move(bodies);
  return Finish(std::move(doc), width);
}

void LayoutWriter::Put(absl::string_view text) {
  if (out_ != nullptr) {
    out_->append(text.data(), text.size());
  } else {
    --budget_;
  }
  column_ += TextWidth(text);
}

void LayoutWriter::Newline(int indent) {
  overflow_ += std::max(0, column_ - limit_);
  ++lines_;
  if (out_ != nullptr) {
    out_->push_back('\n');
    out_->append(indent, ' ');
  }
  column_ = indent_ = line_indent_ = indent;
}

void LayoutWriter::Flat(const Doc& doc) {
  switch (doc.kind) {
    case DocKind::kText:
      Put(doc.text);
      return;
    case DocKind::kConcat:
      for (const DocPtr& part : doc.parts) Flat(*part);
      return;
    case DocKind::kList:
    case DocKind::kRecord:
      Put(doc.text);
      for (size_t i = 0; i < doc.parts.size(); ++i) {
        if (i > 0) Put(", ");
        Flat(*doc.parts[i]);
      }
      Put(doc.close);
      return;
    case DocKind::kChain:
      for (size_t i = 0; i < doc.parts.size(); ++i) {
        if (i > 0) {
          Put(" ");
          Put(doc.leads[i]);
          Put(" ");
        }
        Flat(*doc.parts[i]);
      }
      return;
    case DocKind::kIf:
      for (size_t i = 0; i < doc.parts.size(); ++i) {
        if (i % 2 == 1) {
          Put(" then ");
        } else if (i + 1 == doc.parts.size()) {
          Put(" else ");
        } else {
          Put(i == 0 ? "if " : " else if ");
        }
        Flat(*doc.parts[i]);
      }
      return;
    case DocKind::kEquation:
      Flat(*doc.parts[0]);
      Put(" = ");
      Flat(*doc.parts[1]);
      return;
    case DocKind::kBlock:
      Flat(*doc.parts[0]);
      for (size_t i = 0; i < doc.bodies.size(); ++i) {
        Put(i == 0 ? " { " : " else { ");
        Flat(*doc.bodies[i][0].doc);
        Put(" }");
      }
      return;
  }
}

// The cost of `function`, measured with a copy of this writer that writes
// nothing.
template <typename Function>
LayoutWriter::Cost LayoutWriter::Measure(int trail, Function function) {
  LayoutWriter writer = *this;
  writer.out_ = nullptr;
  writer.lines_ = 0;
  writer.overflow_ = 0;
  function(&writer);
  budget_ = writer.budget_;
  return {
      writer.overflow_ + std::max(0, writer.column_ + trail - writer.limit_),
      writer.lines_};
}

void LayoutWriter::Lay(const Doc& doc, int indent, int trail) {
  if (out_ == nullptr && budget_ <= 0) return;
  if (doc.width < kNoWidth && Fits(doc.width + trail)) {
    Flat(doc);
    return;
  }
  switch (doc.kind) {
    case DocKind::kText:
      Put(doc.text);
      return;
    case DocKind::kConcat:
      LayConcat(doc, indent, trail);
      return;
    case DocKind::kList:
      LayList(doc, trail);
      return;
    case DocKind::kRecord:
      LayRecord(doc, trail);
      return;
    case DocKind::kChain:
      LayChain(doc, indent, trail);
      return;
    case DocKind::kIf:
      LayIf(doc, indent, trail);
      return;
    case DocKind::kEquation:
      LayEquation(doc, indent, trail);
      return;
    case DocKind::kBlock:
      LayBlock(doc, indent);
      return;
  }
}

void LayoutWriter::LayConcat(const Doc& doc, int indent, int trail) {
  std::vector<int> rest(doc.parts.size() + 1, trail);
  for (size_t i = doc.parts.size(); i-- > 0;) {
    rest[i] = Add(rest[i + 1], doc.parts[i]->width);
  }
  for (size_t i = 0; i < doc.parts.size(); ++i) {
    // The text behind a part stays on the part's line, if a line can hold it.
    int follows = rest[i + 1];
    if (i + 1 < doc.parts.size() && indent + follows > limit_) {
      follows = LeadWidth(*doc.parts[i + 1]);
    }
    Lay(*doc.parts[i], indent, follows);
  }
}

void LayoutWriter::LayList(const Doc& doc, int trail) {
  const int inner = indent_ + doc.hang;
  bool break_open = false;
  if (doc.open_breaks && !doc.parts.empty() && budget_ > 0) {
    const Cost filled = Measure(trail, [&](LayoutWriter* writer) {
      writer->LayElements(doc, trail, inner, false);
    });
    const Cost broken = Measure(trail, [&](LayoutWriter* writer) {
      writer->LayElements(doc, trail, inner, true);
    });
    const int first = doc.parts[0]->width +
                      (doc.parts.size() > 1 ? 1 : TextWidth(doc.close) + trail);
    const bool first_fits = Fits(TextWidth(doc.text) + first);
    if (filled.overflow != broken.overflow) {
      break_open = broken.overflow < filled.overflow;
    } else if (filled.lines != broken.lines) {
      break_open = broken.lines < filled.lines;
    } else {
      break_open = !first_fits;
    }
  }
  LayElements(doc, trail, inner, break_open);
}

void LayoutWriter::LayElements(const Doc& doc, int trail, int inner,
                               bool break_open) {
  Put(doc.text);
  if (break_open) Newline(inner);
  // Operators of one element among several stand deeper than the elements.
  const int indent = inner + (doc.parts.size() > 1 ? 2 : 0);
  for (size_t i = 0; i < doc.parts.size(); ++i) {
    const Doc& part = *doc.parts[i];
    const bool last = i + 1 == doc.parts.size();
    const int follows = last ? TextWidth(doc.close) + trail : 1;
    if (i > 0) {
      bool stays = Fits(1 + part.width + follows);
      if (!stays && inner + part.width + follows > limit_ && budget_ > 0) {
        const Cost here = Measure(follows, [&](LayoutWriter* writer) {
          writer->Put(" ");
          writer->Lay(part, indent, follows);
        });
        const Cost below = Measure(follows, [&](LayoutWriter* writer) {
          writer->Newline(inner);
          writer->Lay(part, indent, follows);
        });
        stays = here.overflow < below.overflow ||
                (here.overflow == below.overflow && here.lines < below.lines);
      }
      if (stays) {
        Put(" ");
      } else {
        Newline(inner);
      }
    }
    Lay(part, indent, follows);
    if (!last) Put(",");
  }
  Put(doc.close);
}

void LayoutWriter::LayRecord(const Doc& doc, int trail) {
  Put(doc.text);
  const int column = column_;
  for (size_t i = 0; i < doc.parts.size(); ++i) {
    if (i > 0) Newline(column);
    indent_ = column;
    const bool last = i + 1 == doc.parts.size();
    Lay(*doc.parts[i], column + 2, last ? TextWidth(doc.close) + trail : 1);
    if (!last) Put(",");
  }
  Put(doc.close);
}

void LayoutWriter::LayChain(const Doc& doc, int indent, int trail) {
  for (size_t i = 0; i < doc.parts.size(); ++i) {
    const Doc& part = *doc.parts[i];
    const int follows = i + 1 == doc.parts.size() ? trail : 0;
    if (i > 0) {
      const std::string& lead = doc.leads[i];
      const int width = TextWidth(lead) + 1 + part.width + follows;
      bool stays = Fits(1 + width);
      if (!stays && indent + width > limit_ && budget_ > 0) {
        const Cost here = Measure(follows, [&](LayoutWriter* writer) {
          writer->Put(" ");
          writer->Put(lead);
          writer->Put(" ");
          writer->Lay(part, indent, follows);
        });
        const Cost below = Measure(follows, [&](LayoutWriter* writer) {
          writer->Newline(indent);
          writer->Put(lead);
          writer->Put(" ");
          writer->Lay(part, indent, follows);
        });
        stays = here.overflow < below.overflow ||
                (here.overflow == below.overflow && here.lines < below.lines);
      }
      if (stays) {
        Put(" ");
      } else {
        Newline(indent);
      }
      Put(lead);
      Put(" ");
    }
    Lay(part, indent, follows);
  }
}

void LayoutWriter::LayIf(const Doc& doc, int indent, int trail) {
  // At the start of a line `else` stands under `if`.
  const int branch = column_ == indent_ ? indent_ : indent;
  for (size_t i = 0; i < doc.parts.size(); ++i) {
    const bool last = i + 1 == doc.parts.size();
    const bool condition = i % 2 == 0 && !last;
    if (i % 2 == 1) {
      Put(" then ");
    } else {
      if (i > 0) Newline(branch);
      Put(!condition ? "else " : i == 0 ? "if " : "else if ");
    }
    Lay(*doc.parts[i], branch + 2, condition ? 5 : last ? trail : 0);
  }
}

void LayoutWriter::LayEquation(const Doc& doc, int indent, int trail) {
  Lay(*doc.parts[0], indent, 2);
  Put(" =");
  const Doc& value = *doc.parts[1];
  const int below = indent_ + 2;
  bool breaks = value.kind == DocKind::kIf && !Fits(1 + value.width + trail);
  if (!breaks && !Fits(1 + value.width + trail) && budget_ > 0) {
    const Cost here_cost = Measure(trail, [&](LayoutWriter* writer) {
      writer->Put(" ");
      writer->Lay(value, indent, trail);
    });
    const Cost below_cost = Measure(trail, [&](LayoutWriter* writer) {
      writer->Newline(below);
      writer->Lay(value, below + 2, trail);
    });
    breaks = below_cost.overflow < here_cost.overflow ||
             (below_cost.overflow == here_cost.overflow &&
              below_cost.lines < here_cost.lines);
  }
  if (breaks) {
    Newline(below);
    Lay(value, below + 2, trail);
  } else {
    Put(" ");
    Lay(value, indent, trail);
  }
}

void LayoutWriter::LayBlock(const Doc& doc, int indent) {
  Lay(*doc.parts[0], indent, 2);
  for (size_t i = 0; i < doc.bodies.size(); ++i) {
    Put(i == 0 ? " " : " else ");
    Block(doc.bodies[i]);
  }
}

void LayoutWriter::Block(const std::vector<StatementDoc>& statements) {
  const int base = line_indent_;
  Put("{");
  for (const StatementDoc& statement : statements) {
    for (const std::string& comment : statement.comments) {
      Newline(base + 2);
      Put(comment.empty() ? "//" : "// ");
      Put(comment);
    }
    Newline(base + 2);
    if (out_ != nullptr) SetBudget(*statement.doc);
    Lay(*statement.doc, base + 4);
  }
  Newline(base);
  Put("}");
}

}  // namespace cleave::internal
