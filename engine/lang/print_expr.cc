// The printer of expressions and statements.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/lang/lexer.h"
#include "engine/lang/precedence.h"
#include "engine/lang/print_internal.h"
#include "ops/budget.h"
#include "ops/check.h"

namespace cleave::internal {
namespace {

int PrecedenceOf(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kIf:
      return kPrecedenceIf;
    case ExprKind::kBinary:
      return BinaryPrecedence(expr.text);
    case ExprKind::kUnary:
      return expr.text == "-" ? kPrecedenceMinus : kPrecedenceNot;
    default:
      return kPrecedencePostfix;
  }
}

DocPtr BinderDoc(const Binder& binder) {
  std::string text = absl::StrCat(binder.name, binder.pack ? ".." : "");
  if (binder.bound == nullptr) return TextDoc(std::move(text));
  return ConcatDoc({TextDoc(absl::StrCat(text, " < ")),
                    ExprDoc(*binder.bound, kPrecedenceConcat)});
}

std::vector<DocPtr> BinderDocs(const std::vector<Binder>& binders) {
  std::vector<DocPtr> docs;
  for (const Binder& binder : binders) docs.push_back(BinderDoc(binder));
  return docs;
}

DocPtr ArgumentsDoc(const std::vector<ExprPtr>& positional,
                    const std::vector<NamedExpr>& named) {
  std::vector<DocPtr> docs;
  for (const ExprPtr& argument : positional) {
    docs.push_back(ExprDoc(*argument, kPrecedenceIf));
  }
  for (const NamedExpr& argument : named) {
    docs.push_back(ConcatDoc({TextDoc(absl::StrCat(argument.name, ": ")),
                              ExprDoc(*argument.value, kPrecedenceIf)}));
  }
  return ListDoc("(", std::move(docs), ")");
}

// Operands of operators of one precedence, in the order of the text.
void FlattenChain(const Expr& expr, int precedence, std::vector<DocPtr>* parts,
                  std::vector<std::string>* leads) {
  const bool to_the_right = precedence == kPrecedenceCoalesce;
  const Expr& left = *expr.children[0];
  const Expr& right = *expr.children[1];
  const auto is_link = [&](const Expr& operand) {
    return operand.kind == ExprKind::kBinary &&
           PrecedenceOf(operand) == precedence;
  };
  if (!to_the_right && is_link(left) && precedence != kPrecedenceComparison) {
    FlattenChain(left, precedence, parts, leads);
  } else {
    parts->push_back(ExprDoc(left, precedence + 1));
    leads->emplace_back();
  }
  if (to_the_right && is_link(right)) {
    const size_t first = parts->size();
    FlattenChain(right, precedence, parts, leads);
    (*leads)[first] = expr.text;
    return;
  }
  DocPtr operand = ExprDoc(right, precedence + 1);
  if (expr.text == "//") {
    // A line that begins with `//` would be a comment.
    parts->back() =
        ConcatDoc({parts->back(), TextDoc(" // "), std::move(operand)});
    return;
  }
  parts->push_back(std::move(operand));
  leads->push_back(expr.text);
}

DocPtr BinaryDoc(const Expr& expr) {
  const int precedence = PrecedenceOf(expr);
  if (precedence == kPrecedenceRange) {
    return ConcatDoc({ExprDoc(*expr.children[0], precedence + 1), TextDoc(".."),
                      ExprDoc(*expr.children[1], precedence + 1)});
  }
  if (precedence == kPrecedencePower) {
    const Expr& exponent = *expr.children[1];
    const bool sign = exponent.kind == ExprKind::kUnary && exponent.text == "-";
    return ConcatDoc(
        {ExprDoc(*expr.children[0], precedence + 1), TextDoc("^"),
         ExprDoc(exponent, sign ? kPrecedenceMinus : kPrecedencePower)});
  }
  std::vector<DocPtr> parts;
  std::vector<std::string> leads;
  FlattenChain(expr, precedence, &parts, &leads);
  if (parts.size() == 1) return parts[0];
  return ChainDoc(std::move(parts), std::move(leads));
}

DocPtr IfChainDoc(const Expr& expr) {
  std::vector<DocPtr> parts;
  const Expr* at = &expr;
  while (true) {
    parts.push_back(ExprDoc(*at->children[0], kPrecedenceCoalesce));
    parts.push_back(ExprDoc(*at->children[1], kPrecedenceCoalesce));
    if (at->children.size() < 3) break;
    const Expr& otherwise = *at->children[2];
    if (otherwise.kind != ExprKind::kIf) {
      parts.push_back(ExprDoc(otherwise, kPrecedenceIf));
      break;
    }
    at = &otherwise;
  }
  return IfDoc(std::move(parts));
}

DocPtr ComprehensionDoc(const Expr& expr) {
  std::vector<DocPtr> parts = {
      ExprDoc(*expr.children[0], kPrecedenceIf),
      ConcatDoc({TextDoc(absl::StrCat(expr.binders[0].name, " in ")),
                 ExprDoc(*expr.children[1], kPrecedenceCoalesce)})};
  std::vector<std::string> leads = {"", "for"};
  if (expr.children.size() > 2) {
    parts.push_back(ExprDoc(*expr.children[2], kPrecedenceCoalesce));
    leads.emplace_back("if");
  }
  return ListDoc("[", {ChainDoc(std::move(parts), std::move(leads))}, "]");
}

DocPtr ReduceDoc(const Expr& expr) {
  std::vector<DocPtr> binders = BinderDocs(expr.binders);
  if (expr.children.size() > 1) {
    binders.back() = ChainDoc(
        {binders.back(), ExprDoc(*expr.children[1], kPrecedenceCoalesce)},
        {"", "if"});
  }
  return ConcatDoc(
      {ListDoc(absl::StrCat(expr.text, "["), std::move(binders), "]",
               /*open_breaks=*/false),
       ListDoc("(", {ExprDoc(*expr.children[0], kPrecedenceIf)}, ")")});
}

std::vector<DocPtr> FieldDocs(const std::vector<Equation>& fields) {
  std::vector<DocPtr> docs;
  for (const Equation& field : fields) {
    docs.push_back(EquationOrExprDoc(field));
  }
  return docs;
}

// `x in xs, t in ts`
std::vector<DocPtr> SourceDocs(const Expr& expr) {
  std::vector<DocPtr> docs;
  for (size_t i = 0; i < expr.binders.size(); ++i) {
    docs.push_back(
        ConcatDoc({TextDoc(absl::StrCat(expr.binders[i].name, " in ")),
                   ExprDoc(*expr.children[i], kPrecedenceCoalesce)}));
  }
  return docs;
}

DocPtr RegionDoc(const Expr& expr) {
  std::vector<std::vector<StatementDoc>> bodies = {BodyDocs(*expr.body)};
  DocPtr head;
  switch (expr.kind) {
    case ExprKind::kFold: {
      std::vector<DocPtr> parts = FieldDocs(expr.fields);
      parts.push_back(SourceDocs(expr)[0]);
      head = ListDoc("fold(", std::move(parts), ")");
      break;
    }
    case ExprKind::kScan:
      head = ConcatDoc({ListDoc("scan(", FieldDocs(expr.fields), ")"),
                        ListDoc(" over ", SourceDocs(expr), "",
                                /*open_breaks=*/false)});
      break;
    case ExprKind::kMap:
      head = ListDoc("map(", SourceDocs(expr), ")");
      break;
    case ExprKind::kCond:
      head = ListDoc("cond(", {ExprDoc(*expr.children[0], kPrecedenceIf)}, ")");
      bodies.push_back(BodyDocs(*expr.else_body));
      break;
    default:
      head = ConcatDoc({ListDoc("while(", FieldDocs(expr.fields), ") "),
                        ExprDoc(*expr.children[0], kPrecedenceCoalesce)});
      if (expr.children.size() > 1) {
        head = ConcatDoc({std::move(head), TextDoc(" max "),
                          ExprDoc(*expr.children[1], kPrecedenceCoalesce)});
      }
      break;
  }
  return BlockDoc(std::move(head), std::move(bodies));
}

DocPtr BareDoc(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kNumber:
    case ExprKind::kName:
      return TextDoc(expr.text);
    case ExprKind::kString:
      return TextDoc(Quote(expr.text));
    case ExprKind::kUnary:
      return ConcatDoc(
          {TextDoc(expr.text == "-" ? "-" : "not "),
           ExprDoc(*expr.children[0],
                   expr.text == "-" ? kPrecedencePower : kPrecedenceNot)});
    case ExprKind::kBinary:
      return BinaryDoc(expr);
    case ExprKind::kIf:
      return IfChainDoc(expr);
    case ExprKind::kCall:
      return ConcatDoc(
          {TextDoc(expr.text), ArgumentsDoc(expr.children, expr.named)});
    case ExprKind::kTransformCall:
      return ConcatDoc({TextDoc(absl::StrCat(expr.text, " ", expr.callee)),
                        ArgumentsDoc(expr.children, expr.named),
                        ArgumentsDoc(expr.seconds, expr.named_seconds)});
    case ExprKind::kMember:
      return ConcatDoc({ExprDoc(*expr.children[0], kPrecedencePostfix),
                        TextDoc(absl::StrCat(".", expr.text))});
    case ExprKind::kIndex: {
      std::vector<DocPtr> indices;
      for (size_t i = 1; i < expr.children.size(); ++i) {
        indices.push_back(ExprDoc(*expr.children[i], kPrecedenceIf));
      }
      return ConcatDoc({ExprDoc(*expr.children[0], kPrecedencePostfix),
                        ListDoc("[", std::move(indices), "]",
                                /*open_breaks=*/false)});
    }
    case ExprKind::kSpread:
      return ConcatDoc(
          {ExprDoc(*expr.children[0], kPrecedencePostfix), TextDoc("..")});
    case ExprKind::kList: {
      std::vector<DocPtr> elements;
      for (const ExprPtr& element : expr.children) {
        elements.push_back(ExprDoc(*element, kPrecedenceIf));
      }
      return ListDoc("[", std::move(elements), "]");
    }
    case ExprKind::kComprehension:
      return ComprehensionDoc(expr);
    case ExprKind::kRecord:
      return RecordDoc(FieldDocs(expr.fields));
    case ExprKind::kReduce:
      return ReduceDoc(expr);
    case ExprKind::kFold:
    case ExprKind::kScan:
    case ExprKind::kMap:
    case ExprKind::kCond:
    case ExprKind::kWhile:
      return RegionDoc(expr);
    case ExprKind::kTie:
      return ConcatDoc({ExprDoc(*expr.children[0], kPrecedencePostfix),
                        TextDoc(absl::StrCat(" @tie(", expr.text, ")"))});
  }
  return TextDoc("");
}

}  // namespace

DocPtr ExprDoc(const Expr& expr, int min_precedence) {
  DocPtr doc = BareDoc(expr);
  if (PrecedenceOf(expr) >= min_precedence) return doc;
  return ListDoc("(", {std::move(doc)}, ")");
}

DocPtr EquationOrExprDoc(const Equation& equation) {
  DocPtr value = ExprDoc(*equation.value, kPrecedenceIf);
  if (equation.name.empty()) return value;
  DocPtr left = TextDoc(equation.name);
  if (equation.indexed) {
    left = ListDoc(absl::StrCat(equation.name, "["),
                   BinderDocs(equation.indices), "]", /*open_breaks=*/false);
  }
  return EquationDoc(std::move(left), std::move(value));
}

DocPtr FilledRecordDoc(const Expr& record) {
  return ListDoc("(", FieldDocs(record.fields), ")", /*open_breaks=*/false);
}

DocPtr StatementToDoc(const Statement& statement) {
  const Equation& equation = statement.equation;
  switch (statement.kind) {
    case StatementKind::kLet:
      return ConcatDoc({TextDoc("let "), EquationOrExprDoc(equation)});
    case StatementKind::kJvp:
      if (!statement.inputs.empty()) {
        return EquationDoc(TextDoc(absl::StrCat("jvp ", equation.name, " (",
                                                statement.inputs[0].name, ")")),
                           ExprDoc(*equation.value, kPrecedenceIf));
      }
      return ConcatDoc({TextDoc("jvp "), EquationOrExprDoc(equation)});
    case StatementKind::kResult:
      return EquationOrExprDoc(equation);
    case StatementKind::kVmap:
    case StatementKind::kVjp: {
      std::vector<DocPtr> inputs;
      for (const Statement::OverrideInput& input : statement.inputs) {
        inputs.push_back(
            TextDoc(absl::StrCat(input.name, input.unbatched ? "@_" : "")));
      }
      const bool vmap = statement.kind == StatementKind::kVmap;
      return EquationDoc(ListDoc(vmap ? "vmap (" : "vjp (", std::move(inputs),
                                 ")", /*open_breaks=*/false),
                         ExprDoc(*equation.value, kPrecedenceIf));
    }
  }
  return TextDoc("");
}

std::vector<StatementDoc> BodyDocs(const Body& body) {
  std::vector<StatementDoc> docs;
  for (const Statement& statement : body.statements) {
    docs.push_back({statement.comments, StatementToDoc(statement)});
  }
  return docs;
}

bool IsPlainBody(const Body& body) {
  if (body.statements.size() != 1) return false;
  const Statement& statement = body.statements[0];
  return statement.kind == StatementKind::kResult &&
         statement.equation.name.empty() && statement.comments.empty();
}

}  // namespace cleave::internal

namespace cleave {

std::string PrintExpr(const Expr& expr) {
  std::string out;
  CLEAVE_CHECK_OK(OnAmpleStack([&] {
    internal::LayoutWriter writer(&out);
    const internal::DocPtr doc =
        internal::ExprDoc(expr, internal::kPrecedenceIf);
    if (doc->width < internal::kNoWidth) {
      writer.Flat(*doc);
    } else {
      writer.SetBudget(*doc);
      writer.Lay(*doc, 2);
    }
  }));
  return out;
}

}  // namespace cleave
