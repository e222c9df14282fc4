#include "engine/rules/rewrite_rule.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/bind/library.h"
#include "engine/elaborate/elaborator.h"
#include "engine/rules/name_checker.h"
#include "ops/check.h"
#include "ops/infer_type.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RewriteNode::Kind;

// Whether the subtrees are equal.
bool Equal(const RewriteSide& a, int i, const RewriteSide& b, int j) {
  const RewriteNode& x = a[i];
  const RewriteNode& y = b[j];
  if (x.kind != y.kind || x.dtype != y.dtype) return false;
  if (x.kind == Kind::kOperand) return x.operand == y.operand;
  if (x.kind == Kind::kNumber) return IsSame(x.number, y.number);
  if (x.primitive != y.primitive || x.attributes != y.attributes) return false;
  for (size_t k = 0; k < x.children.size(); ++k) {
    if (!Equal(a, x.children[k], b, y.children[k])) return false;
  }
  return true;
}

int64_t Operations(const RewriteSide& side) {
  return std::count_if(side.begin(), side.end(), [](const RewriteNode& node) {
    return node.kind == Kind::kApply;
  });
}

int64_t Occurrences(const RewriteSide& side, int operand) {
  return std::count_if(side.begin(), side.end(), [&](const RewriteNode& node) {
    return node.kind == Kind::kOperand && node.operand == operand;
  });
}

// Compiles one item. Fails with the first mistake.
class Compiler {
 public:
  Compiler(const Library& library, const Item& item, Context& context)
      : item_(item),
        context_(context),
        elaborator_(library, context, absl::StrCat("rewrite ", item.name),
                    nullptr) {
    elaborator_.EnterSource(library.SourceOf(item));
    rewrite_.item = &item;
    rewrite_.real = item.real;
  }

  std::variant<Rewrite, Diagnostic> Run() {
    const absl::Status status = Compile();
    if (status.ok()) return std::move(rewrite_);
    if (mistake_.has_value()) return *std::move(mistake_);
    if (elaborator_.diagnostic().has_value()) return *elaborator_.diagnostic();
    return Diagnostic{DiagnosticKind::kType, std::string(status.message()),
                      item_.range, "", ""};
  }

 private:
  absl::Status Fail(DiagnosticKind kind, SourceRange range,
                    std::string message) {
    mistake_ = Diagnostic{kind, message, range, "", ""};
    return absl::InvalidArgumentError(message);
  }

  absl::Status Compile() {
    elaborator_.SetPlace(item_.range);
    rewrite_.provenance = elaborator_.terms().provenance();
    DefineOperands(*item_.left);
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr left, Side(*item_.left));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr right, Side(*item_.right));
    if (!DTypeVariable::Unify(left->dtype, right->dtype)) {
      return Fail(
          DiagnosticKind::kType, item_.range,
          absl::StrCat("the sides differ: ", DTypeName(ResolvedDType(*left)),
                       " becomes ", DTypeName(ResolvedDType(*right))));
    }
    // Dtypes are unified: those that are one have one place.
    CLEAVE_RETURN_IF_ERROR(Flatten(left, *item_.left, &rewrite_.left));
    const size_t bound = rewrite_.dtypes.size();
    CLEAVE_RETURN_IF_ERROR(Flatten(right, *item_.right, &rewrite_.right));
    for (size_t i = bound; i < rewrite_.dtypes.size(); ++i) {
      if (rewrite_.dtypes[i].known.has_value()) continue;
      return Fail(DiagnosticKind::kType, item_.right->range,
                  "the left side does not say the dtype of all that stands "
                  "here");
    }
    for (const TermPtr& operand : operands_) {
      rewrite_.operand_dtypes.push_back(DTypeOf(*operand));
    }
    CLEAVE_RETURN_IF_ERROR(Where());
    CLEAVE_RETURN_IF_ERROR(CheckSmaller());
    if (TypingChoices(rewrite_, context_, 1).empty()) {
      return Fail(DiagnosticKind::kType, item_.range,
                  "there are no dtypes at which both sides type");
    }
    return absl::OkStatus();
  }

  // Names of the left side that mean nothing else, in order.
  void DefineOperands(const Expr& e) {
    if (e.kind == ExprKind::kName && !IsConstantName(e.text) &&
        scope_.Find(e.text) == nullptr) {
      operands_.push_back(
          elaborator_.terms().Parameter(DTypeVariable::Open(), {}));
      scope_.Set(e.text, operands_.back());
      rewrite_.operands.push_back(e.text);
    }
    for (const ExprPtr& child : e.children) DefineOperands(*child);
  }

  absl::StatusOr<TermPtr> Side(const Expr& e) {
    CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, elaborator_.Eval(e, scope_));
    return elaborator_.ToTerm(value, e.range);
  }

  int DTypeOf(const Term& term) {
    for (size_t i = 0; i < dtypes_.size(); ++i) {
      if (DTypeVariable::Same(dtypes_[i], term.dtype)) {
        return static_cast<int>(i);
      }
    }
    dtypes_.push_back(term.dtype);
    rewrite_.dtypes.push_back({term.dtype->dtype(), {}});
    return static_cast<int>(dtypes_.size()) - 1;
  }

  absl::Status Flatten(const TermPtr& term, const Expr& place,
                       RewriteSide* side) {
    RewriteNode node;
    switch (term->kind) {
      case TermKind::kParameter: {
        const auto it = std::find_if(
            operands_.begin(), operands_.end(),
            [&](const TermPtr& x) { return x->order == term->order; });
        CLEAVE_CHECK(it != operands_.end()) << "a parameter of no rewrite";
        node.kind = Kind::kOperand;
        node.operand = static_cast<int>(it - operands_.begin());
        break;
      }
      case TermKind::kNumber:
        node.kind = Kind::kNumber;
        node.number = term->number;
        break;
      case TermKind::kPointwise:
        node.kind = Kind::kApply;
        node.primitive = term->primitive;
        for (const TermPtr& child : term->children) {
          CLEAVE_RETURN_IF_ERROR(Flatten(child, place, side));
          node.children.push_back(static_cast<int>(side->size()) - 1);
        }
        // A convert's are made when its dtype is known.
        if (term->primitive != Primitive::kConvert &&
            !term->attributes.empty()) {
          node.attributes = context_.Intern(term->attributes);
        }
        break;
      default:
        return Fail(DiagnosticKind::kPlacement, place.range,
                    "a rewrite is about pointwise primitives on operands and "
                    "numbers");
    }
    node.dtype = DTypeOf(*term);
    side->push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status Where() {
    for (const WhereClause& where : item_.where) {
      const auto it = std::find(rewrite_.operands.begin(),
                                rewrite_.operands.end(), where.variable);
      const absl::StatusOr<DTypeClass> dtype_class =
          ParseDTypeClass(where.dtype_class);
      // The names were checked.
      if (it == rewrite_.operands.end() || !dtype_class.ok()) continue;
      RewriteDType& dtype =
          rewrite_
              .dtypes[rewrite_.operand_dtypes[it - rewrite_.operands.begin()]];
      if (dtype.known.has_value() && !InClass(*dtype.known, *dtype_class)) {
        return Fail(DiagnosticKind::kType, where.range,
                    absl::StrCat("`", where.variable, "` is ",
                                 DTypeName(*dtype.known), " here"));
      }
      dtype.classes.push_back(*dtype_class);
    }
    return absl::OkStatus();
  }

  absl::Status CheckSmaller() {
    const RewriteSide& left = rewrite_.left;
    const RewriteSide& right = rewrite_.right;
    if (left.back().kind != Kind::kApply) {
      return Fail(DiagnosticKind::kPlacement, item_.left->range,
                  "a rewrite replaces a primitive");
    }
    if (Operations(right) >= Operations(left)) {
      return Fail(
          DiagnosticKind::kNotSmaller, item_.right->range,
          absl::StrCat("a rewrite makes what it replaces smaller, so "
                       "that simplifying ends: operations on the left "
                       "side: ",
                       Operations(left), ", here: ", Operations(right)));
    }
    for (size_t i = 0; i < rewrite_.operands.size(); ++i) {
      if (Occurrences(right, i) <= Occurrences(left, i)) continue;
      return Fail(DiagnosticKind::kNotSmaller, item_.right->range,
                  absl::StrCat("`", rewrite_.operands[i],
                               "` stands here more often than on the left "
                               "side: what it stands for may be large"));
    }
    int made = 0;
    for (size_t i = 0; i < right.size(); ++i) {
      if (right[i].kind != Kind::kApply) continue;
      bool found = false;
      for (size_t j = 0; j < left.size() && !found; ++j) {
        found = Equal(right, i, left, j);
      }
      if (!found) ++made;
    }
    if (made > 1) {
      return Fail(DiagnosticKind::kNotSmaller, item_.right->range,
                  absl::StrCat("a rewrite makes at most one operation that is "
                               "not on the left side, and this one ",
                               made,
                               ": where others use the parts of what it "
                               "replaces, the graph would grow"));
    }
    return absl::OkStatus();
  }

  const Item& item_;
  Context& context_;
  Elaborator elaborator_;
  Scope scope_;
  Rewrite rewrite_;
  std::vector<TermPtr> operands_;
  std::vector<DTypePtr> dtypes_;  // as rewrite_.dtypes
  std::optional<Diagnostic> mistake_;
};

}  // namespace

bool RewriteDType::Allows(DType dtype) const {
  if (known.has_value() && *known != dtype) return false;
  return std::all_of(classes.begin(), classes.end(),
                     [&](DTypeClass c) { return InClass(dtype, c); });
}

bool Rewrite::Types(const Context& context,
                    absl::Span<const DType> chosen) const {
  // A rewrite that is true over the reals says nothing about numbers modulo
  // 2^n, or of the branches of complex functions.
  if (real && std::any_of(chosen.begin(), chosen.end(), [](DType dtype) {
        return !IsFloat(dtype) && !IsBool(dtype);
      })) {
    return false;
  }
  for (const RewriteSide* side : {&left, &right}) {
    for (const RewriteNode& node : *side) {
      const DType dtype = chosen[node.dtype];
      if (!dtypes[node.dtype].Allows(dtype)) return false;
      if (node.kind == Kind::kNumber) {
        const bool is_truth =
            node.number == Exact(0) || node.number == Exact(1);
        if ((IsBool(dtype) && !is_truth) ||
            !InferType(Primitive::kConstant,
                       ConstantAttributes(node.number, dtype), {})
                 .ok()) {
          return false;
        }
      }
      if (node.kind != Kind::kApply) continue;
      std::vector<TensorType> operands;
      for (int child : node.children) {
        operands.push_back({chosen[(*side)[child].dtype], {}});
      }
      Attributes attributes = context.attributes(node.attributes);
      if (node.primitive == Primitive::kConvert) attributes.Set("dtype", dtype);
      const absl::StatusOr<InferredType> inferred =
          InferType(node.primitive, attributes, operands);
      if (!inferred.ok() || inferred->results[0].dtype != dtype) return false;
    }
  }
  return true;
}

std::vector<std::vector<DType>> TypingChoices(const Rewrite& rewrite,
                                              const Context& context,
                                              size_t limit) {
  std::vector<std::vector<DType>> options;
  for (const RewriteDType& dtype : rewrite.dtypes) {
    std::vector<DType>& allowed = options.emplace_back();
    for (DType d : AllDTypes()) {
      if (dtype.Allows(d)) allowed.push_back(d);
    }
  }
  std::vector<std::vector<DType>> choices;
  std::vector<DType> chosen(options.size());
  const std::function<void(size_t)> choose = [&](size_t i) {
    if (choices.size() >= limit) return;
    if (i == options.size()) {
      if (rewrite.Types(context, chosen)) choices.push_back(chosen);
      return;
    }
    for (DType d : options[i]) {
      chosen[i] = d;
      choose(i + 1);
    }
  };
  choose(0);
  return choices;
}

Graph GraphOfSide(const Rewrite& rewrite, const RewriteSide& side,
                  absl::Span<const DType> chosen, const Shape& shape,
                  std::shared_ptr<Context> context) {
  GraphBuilder builder(context);
  std::vector<Value> operands;
  for (size_t i = 0; i < rewrite.operands.size(); ++i) {
    operands.push_back(
        builder.Input(rewrite.operands[i],
                      TensorType{chosen[rewrite.operand_dtypes[i]], shape}));
  }
  std::vector<Value> values;
  for (const RewriteNode& node : side) {
    const DType dtype = chosen[node.dtype];
    if (node.kind == Kind::kOperand) {
      values.push_back(operands[node.operand]);
      continue;
    }
    if (node.kind == Kind::kNumber) {
      values.push_back(builder.Constant(node.number, TensorType{dtype, shape}));
      continue;
    }
    std::vector<Value> arguments;
    for (int child : node.children) arguments.push_back(values[child]);
    Attributes attributes = context->attributes(node.attributes);
    if (node.primitive == Primitive::kConvert) attributes.Set("dtype", dtype);
    values.push_back(builder.Apply(node.primitive, arguments, attributes));
  }
  return *std::move(builder).Build({{"y", values.back()}});
}

std::variant<Rewrite, Diagnostic> CompileRewrite(const Library& library,
                                                 const Item& item,
                                                 Context& context) {
  return Compiler(library, item, context).Run();
}

RewriteTable::RewriteTable(const Library& library, Context& context)
    : by_root_(kNumPrimitives) {
  for (const auto& [name, item] : library.rewrites()) {
    std::variant<Rewrite, Diagnostic> compiled =
        CompileRewrite(library, *item, context);
    Rewrite* rewrite = std::get_if<Rewrite>(&compiled);
    CLEAVE_CHECK(rewrite != nullptr)
        << name << ": " << std::get<Diagnostic>(compiled).message;
    all_.push_back(std::make_unique<const Rewrite>(std::move(*rewrite)));
    const Primitive root = all_.back()->left.back().primitive;
    by_root_[static_cast<int>(root)].push_back(all_.back().get());
  }
}

const Rewrite* RewriteTable::Find(absl::string_view name) const {
  for (const auto& rewrite : all_) {
    if (rewrite->name() == name) return rewrite.get();
  }
  return nullptr;
}

}  // namespace cleave
