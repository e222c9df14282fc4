// The printer of items and files.

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/lang/lexer.h"
#include "engine/lang/precedence.h"
#include "engine/lang/print_internal.h"
#include "ops/budget.h"
#include "ops/check.h"

namespace cleave {
namespace internal {
namespace {

// How far a signature's further lines, and those of its results, are indented.
constexpr int kSignatureHang = 4;

// Whether `@` stands in `expr` outside brackets, where an axis attribute's
// would be read.
bool HasBareMatmul(const Expr& expr) {
  if (expr.kind != ExprKind::kBinary && expr.kind != ExprKind::kUnary &&
      expr.kind != ExprKind::kIf) {
    return false;
  }
  if (expr.text == "@") return true;
  for (const ExprPtr& child : expr.children) {
    if (HasBareMatmul(*child)) return true;
  }
  return false;
}

// ` + e cond` of a claim.
void AddCondition(const ExprPtr& condition, std::vector<DocPtr>& parts) {
  if (condition == nullptr) return;
  parts.push_back(TextDoc(" + "));
  parts.push_back(ExprDoc(*condition, kPrecedenceProduct));
  parts.push_back(TextDoc(" cond"));
}

// ` on x in [0, 1], k in [2, inf]` of a claim.
void AddRanges(const std::vector<InputRange>& ranges,
               std::vector<DocPtr>& parts) {
  const char* before = " on ";
  for (const InputRange& on : ranges) {
    parts.push_back(TextDoc(absl::StrCat(before, on.input, " in ")));
    parts.push_back(ListDoc(
        "[",
        {ExprDoc(*on.low, kPrecedenceIf), ExprDoc(*on.high, kPrecedenceIf)},
        "]", /*open_breaks=*/false));
    before = ", ";
  }
}

DocPtr AxisDoc(const AxisExpr& axis) {
  if (axis.is_new) {
    return ConcatDoc({TextDoc("new "), ExprDoc(*axis.size, kPrecedenceIf),
                      TextDoc(" <= "),
                      ExprDoc(*axis.bound, kPrecedenceConcat)});
  }
  DocPtr size = ExprDoc(*axis.size, kPrecedenceIf);
  if (HasBareMatmul(*axis.size)) size = ListDoc("(", {std::move(size)}, ")");
  if (axis.at.empty()) return size;
  return ConcatDoc({std::move(size), TextDoc(absl::StrCat("@", axis.at))});
}

DocPtr TypeDoc(const TypeExpr& type) {
  DocPtr dtype = ExprDoc(*type.dtype, kPrecedencePostfix);
  if (!type.has_shape) return dtype;
  std::vector<DocPtr> axes;
  for (const AxisExpr& axis : type.axes) axes.push_back(AxisDoc(axis));
  return ConcatDoc({std::move(dtype), ListDoc("[", std::move(axes), "]",
                                              /*open_breaks=*/false)});
}

DocPtr InputDoc(const InputDecl& input) {
  std::string text = absl::StrCat(input.is_static ? "static " : "", input.name);
  if (!input.variadic_index.empty()) {
    absl::StrAppend(&text, "[", input.variadic_index, "]");
  }
  return ConcatDoc({TextDoc(absl::StrCat(text, ": ")), TypeDoc(input.type),
                    TextDoc(input.optional ? "?" : "")});
}

DocPtr AttributeDoc(const AttributeDecl& attribute) {
  std::vector<DocPtr> parts;
  std::string text = absl::StrCat(attribute.name, ": ");
  if (attribute.type == "enum") {
    absl::StrAppend(&text, "{", absl::StrJoin(attribute.enum_values, ", "),
                    "}");
  } else {
    absl::StrAppend(&text, attribute.type);
    if (!attribute.axis_of.empty()) {
      absl::StrAppend(&text, "(", attribute.axis_of, ")");
    }
  }
  if (attribute.list) {
    parts.push_back(TextDoc(absl::StrCat(text, "[")));
    if (attribute.list_length != nullptr) {
      parts.push_back(ExprDoc(*attribute.list_length, kPrecedenceIf));
    }
    text = "]";
  }
  if (attribute.optional) text += "?";
  if (attribute.default_value == nullptr) {
    parts.push_back(TextDoc(std::move(text)));
  } else {
    parts.push_back(TextDoc(absl::StrCat(text, " = ")));
    parts.push_back(ExprDoc(*attribute.default_value, kPrecedenceIf));
  }
  return ConcatDoc(std::move(parts));
}

DocPtr AtenArgumentDoc(const AtenArgument& argument) {
  std::string text = argument.type;
  if (!argument.name.empty()) absl::StrAppend(&text, " ", argument.name);
  if (argument.default_text.has_value()) {
    absl::StrAppend(&text, "=", *argument.default_text);
  }
  return TextDoc(std::move(text));
}

DocPtr SignatureList(std::string open, std::vector<DocPtr> parts) {
  return ListDoc(std::move(open), std::move(parts), ")", /*open_breaks=*/false,
                 kSignatureHang);
}

// `op f(x: T[..], *, a: int = 1)`
DocPtr InputsDoc(const Item& item, absl::string_view keyword) {
  std::string open = absl::StrCat(keyword, " ", item.name);
  if (item.kind == ItemKind::kOnnx) absl::StrAppend(&open, "@", item.opset);
  open += "(";
  std::vector<DocPtr> parts;
  for (const std::string& parameter : item.parameters) {
    parts.push_back(TextDoc(parameter));
  }
  for (const InputDecl& input : item.inputs) parts.push_back(InputDoc(input));
  if (!item.attributes.empty()) parts.push_back(TextDoc("*"));
  for (const AttributeDecl& attribute : item.attributes) {
    parts.push_back(AttributeDoc(attribute));
  }
  bool keyword_only = false;
  for (const AtenArgument& argument : item.aten_arguments) {
    if (argument.keyword_only && !keyword_only) parts.push_back(TextDoc("*"));
    keyword_only = argument.keyword_only;
    parts.push_back(AtenArgumentDoc(argument));
  }
  return SignatureList(std::move(open), std::move(parts));
}

// ` -> T[..]`, without the arrow; null where there is none.
DocPtr ResultsDoc(const Item& item) {
  std::vector<DocPtr> parts;
  if (item.kind == ItemKind::kAten) {
    for (const AtenArgument& result : item.aten_results) {
      parts.push_back(AtenArgumentDoc(result));
    }
    if (parts.size() == 1 && item.aten_results[0].name.empty()) {
      return parts[0];
    }
    return SignatureList("(", std::move(parts));
  }
  if (item.results.empty()) return nullptr;
  for (const ResultDecl& result : item.results) {
    if (result.name.empty()) return TypeDoc(result.type);
    std::vector<DocPtr> pieces = {TextDoc(absl::StrCat(result.name, ": ")),
                                  TypeDoc(result.type)};
    if (result.condition != nullptr) {
      pieces.push_back(TextDoc(" if "));
      pieces.push_back(ExprDoc(*result.condition, kPrecedenceCoalesce));
    }
    parts.push_back(ConcatDoc(std::move(pieces)));
  }
  return SignatureList("(", std::move(parts));
}

class ItemPrinter {
 public:
  explicit ItemPrinter(std::string* out) : out_(out), writer_(out) {}

  void Print(const Item& item);

 private:
  void Clause(const DocPtr& doc) {
    writer_.Newline(2);
    writer_.SetBudget(*doc);
    writer_.Lay(*doc, 4);
  }
  void Signature(const Item& item, absl::string_view keyword);
  void Clauses(const Item& item);
  void Spec(const Item& item);
  void Laws(const Item& item);
  void BodyOf(const Item& item, int signature_width);
  // `left sign right`, on two lines where one does not hold it.
  void Sides(DocPtr left, const std::string& sign, DocPtr right);

  std::string* out_;
  LayoutWriter writer_;
};

void ItemPrinter::Signature(const Item& item, absl::string_view keyword) {
  DocPtr inputs = InputsDoc(item, keyword);
  DocPtr results = ResultsDoc(item);
  writer_.set_limit(kSignatureWidth);
  writer_.SetBudget(*inputs);
  if (item.kind == ItemKind::kNumeric) {
    inputs =
        ConcatDoc({std::move(inputs), TextDoc(" within "),
                   ExprDoc(*item.within, kPrecedenceSum), TextDoc(" ulp")});
  }
  writer_.Lay(*inputs, kSignatureHang);
  if (results != nullptr) {
    if (writer_.Fits(4 + results->width)) {
      writer_.Put(" -> ");
    } else {
      writer_.Newline(kSignatureHang);
      writer_.Put("-> ");
    }
    writer_.SetBudget(*results);
    writer_.Lay(*results, 2 * kSignatureHang);
  }
  writer_.set_limit(kLineWidth);
}

void ItemPrinter::Spec(const Item& item) {
  if (item.spec != nullptr) {
    const Body& body = *item.spec;
    if (body.statements.size() == 1 && body.statements[0].comments.empty() &&
        !body.statements[0].equation.name.empty()) {
      Clause(ConcatDoc({TextDoc("spec "), StatementToDoc(body.statements[0])}));
    } else {
      writer_.Newline(2);
      writer_.Put("spec ");
      writer_.Block(BodyDocs(body));
    }
  }
  Laws(item);
}

void ItemPrinter::Laws(const Item& item) {
  if (item.laws.empty()) return;
  std::vector<DocPtr> laws;
  int width = static_cast<int>(2 * item.laws.size());
  for (const Law& law : item.laws) {
    DocPtr doc = ExprDoc(*law.relation, kPrecedenceCoalesce);
    if (law.condition != nullptr) {
      doc = ConcatDoc({std::move(doc), TextDoc(" if "),
                       ExprDoc(*law.condition, kPrecedenceCoalesce)});
    }
    width = std::min(kNoWidth, width + doc->width);
    laws.push_back(std::move(doc));
  }
  writer_.Newline(2);
  writer_.Put("spec ");
  const bool one_line = writer_.Fits(width - 2);
  for (size_t i = 0; i < laws.size(); ++i) {
    if (i > 0 && one_line) writer_.Put(" ");
    if (i > 0 && !one_line) writer_.Newline(4);
    writer_.SetBudget(*laws[i]);
    writer_.Lay(*laws[i], i == 0 ? 4 : 6, i + 1 < laws.size() ? 1 : 0);
    if (i + 1 < laws.size()) writer_.Put(",");
  }
}

void ItemPrinter::Clauses(const Item& item) {
  if (!item.where.empty()) {
    std::vector<DocPtr> parts;
    for (const WhereClause& where : item.where) {
      parts.push_back(
          TextDoc(absl::StrCat(where.variable, ": ", where.dtype_class)));
    }
    Clause(ListDoc("where ", std::move(parts), "", /*open_breaks=*/false));
  }
  size_t next = 0;
  for (int count : item.let_clauses) {
    std::vector<DocPtr> parts;
    for (; count > 0 && next < item.lets.size(); --count, ++next) {
      const NamedExpr& let = item.lets[next];
      parts.push_back(
          EquationDoc(TextDoc(let.name), ExprDoc(*let.value, kPrecedenceIf)));
    }
    Clause(ListDoc("let ", std::move(parts), "", /*open_breaks=*/false));
  }
  if (!item.mutates.empty()) {
    std::vector<DocPtr> parts;
    for (const Equation& mutation : item.mutates) {
      parts.push_back(EquationOrExprDoc(mutation));
    }
    Clause(ListDoc("mutates ", std::move(parts), "", /*open_breaks=*/false));
  }
  if (item.compute_acc) Clause(TextDoc("compute acc"));
  for (const ErrorClause& error : item.errors) {
    const DocPtr condition = ExprDoc(*error.condition, kPrecedenceCoalesce);
    writer_.Newline(2);
    writer_.Put(
        absl::StrCat("error ", error.kind, " ", Quote(error.message), " if"));
    if (writer_.Fits(1 + condition->width)) {
      writer_.Put(" ");
    } else {
      writer_.Newline(4);
    }
    writer_.SetBudget(*condition);
    writer_.Lay(*condition, 4);
  }
  for (const DomainClause& domain : item.domains) {
    Clause(ConcatDoc(
        {TextDoc("domain "), ExprDoc(*domain.condition, kPrecedenceCoalesce)}));
  }
  Spec(item);
  for (const SpecialClause& special : item.specials) {
    Clause(ConcatDoc({TextDoc("special "), EquationOrExprDoc(special.equation),
                      TextDoc(" if "),
                      ExprDoc(*special.condition, kPrecedenceCoalesce)}));
  }
  for (const ApproximationClause& approximation : item.approximations) {
    std::vector<DocPtr> parts = {
        TextDoc("approximates within "),
        ExprDoc(*approximation.bound, kPrecedenceProduct)};
    AddCondition(approximation.condition, parts);
    AddRanges(approximation.on, parts);
    Clause(ConcatDoc(std::move(parts)));
  }
  for (const AccuracyClause& accuracy : item.accuracies) {
    std::vector<DocPtr> parts = {
        TextDoc(absl::StrCat("accuracy ", accuracy.dtype, " within ")),
        ExprDoc(*accuracy.bound, kPrecedenceProduct),
        TextDoc(absl::StrCat(" ", accuracy.unit))};
    AddCondition(accuracy.condition, parts);
    if (accuracy.eps_of != nullptr) {
      parts.push_back(TextDoc(" * "));
      parts.push_back(ExprDoc(*accuracy.eps_of, kPrecedenceProduct));
    }
    AddRanges(accuracy.on, parts);
    Clause(ConcatDoc(std::move(parts)));
  }
}

void ItemPrinter::BodyOf(const Item& item, int signature_width) {
  if (item.body == nullptr) return;
  if (!IsPlainBody(*item.body)) {
    writer_.Newline(0);
    writer_.Block(BodyDocs(*item.body));
    return;
  }
  const Expr& value = *item.body->statements[0].equation.value;
  const DocPtr doc = value.kind == ExprKind::kRecord
                         ? FilledRecordDoc(value)
                         : ExprDoc(value, kPrecedenceIf);
  const bool helper =
      item.kind == ItemKind::kDef || item.kind == ItemKind::kJvp;
  const bool may_follow =
      helper || item.kind == ItemKind::kFn || item.kind == ItemKind::kOnnx ||
      item.kind == ItemKind::kNumeric || item.kind == ItemKind::kOverride;
  writer_.SetBudget(*doc);
  if (may_follow && signature_width + 3 + doc->width <= kOneLineItemWidth) {
    writer_.Put(" = ");
    writer_.Flat(*doc);
    return;
  }
  if (helper) {
    writer_.Put(" =");
    writer_.Newline(2);
  } else {
    writer_.Newline(2);
    writer_.Put("= ");
    writer_.set_indent(4);
  }
  writer_.Lay(*doc, helper ? 4 : 6);
}

void ItemPrinter::Sides(DocPtr left, const std::string& sign, DocPtr right) {
  writer_.SetBudget(*left);
  writer_.Lay(*left, 2);
  if (writer_.Fits(TextWidth(sign) + 2 + right->width)) {
    writer_.Put(" ");
  } else {
    writer_.Newline(2);
  }
  writer_.Put(absl::StrCat(sign, " "));
  writer_.set_indent(writer_.column());
  writer_.SetBudget(*right);
  writer_.Lay(*right, writer_.column() + 2);
}

void ItemPrinter::Print(const Item& item) {
  for (const std::string& doc : item.docs) {
    writer_.Put(doc.empty() ? "///" : absl::StrCat("/// ", doc));
    writer_.Newline(0);
  }
  absl::string_view keyword;
  switch (item.kind) {
    case ItemKind::kOp:
      keyword = "op";
      break;
    case ItemKind::kDef:
      keyword = "def";
      break;
    case ItemKind::kAten:
      keyword = "aten";
      break;
    case ItemKind::kOnnx:
      keyword = "onnx";
      break;
    case ItemKind::kJvp:
      keyword = "jvp";
      break;
    case ItemKind::kNumeric:
      keyword = "numeric";
      break;
    case ItemKind::kFn:
      keyword = "fn";
      break;
    case ItemKind::kOverride:
      keyword = "override";
      break;
    case ItemKind::kRewrite: {
      DocPtr right = ExprDoc(*item.right, kPrecedenceIf);
      std::string behind = item.real ? " real" : "";
      for (const WhereClause& where : item.where) {
        absl::StrAppend(&behind, &where == &item.where[0] ? " where " : ", ",
                        where.variable, ": ", where.dtype_class);
      }
      right = ConcatDoc({std::move(right), TextDoc(std::move(behind))});
      Sides(ConcatDoc({TextDoc(absl::StrCat("rewrite ", item.name, ": ")),
                       ExprDoc(*item.left, kPrecedenceIf)}),
            "=>", std::move(right));
      return;
    }
    case ItemKind::kExample:
      Sides(ConcatDoc(
                {TextDoc("example "), ExprDoc(*item.left, kPrecedencePostfix)}),
            item.approximate ? "~" : "=", ExprDoc(*item.right, kPrecedenceIf));
      return;
  }
  const size_t start = out_->size();
  if (item.kind == ItemKind::kOverride) {
    writer_.Put(absl::StrCat(keyword, " ", item.name));
  } else {
    Signature(item, keyword);
  }
  const absl::string_view signature = absl::string_view(*out_).substr(start);
  // A signature of several lines has no body on its last.
  int width =
      absl::StrContains(signature, "\n") ? kNoWidth : TextWidth(signature);
  const size_t clauses = out_->size();
  Clauses(item);
  if (out_->size() != clauses) width = kNoWidth;
  BodyOf(item, width);
}

}  // namespace
}  // namespace internal

std::string PrintRuleFile(const RuleFile& file) {
  std::string out = absl::StrCat("language ", file.language, "\n");
  for (const RuleFile::Entry& entry : file.entries) {
    if (entry.blank_before) out += "\n";
    if (entry.item.has_value()) {
      CLEAVE_CHECK_OK(OnAmpleStack(
          [&] { internal::ItemPrinter(&out).Print(*entry.item); }));
      out += "\n";
    } else {
      for (const std::string& comment : entry.comments) {
        absl::StrAppend(&out, comment.empty() ? "//" : "// ", comment, "\n");
      }
    }
  }
  return out;
}

bool Declares(const BodyPtr& body, StatementKind kind) {
  return body != nullptr &&
         std::any_of(body->statements.begin(), body->statements.end(),
                     [&](const Statement& s) { return s.kind == kind; });
}

}  // namespace cleave
