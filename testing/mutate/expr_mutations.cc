#include "testing/mutate/expr_mutations.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/lang/build_expr.h"

namespace cleave {
namespace {

using build_expr::Binary;
using build_expr::Call;
using build_expr::Minus;
using build_expr::Name;
using build_expr::Number;
using build_expr::Of;
using Operator = MutationOperator;
using Words = std::vector<std::string>;

// Digits of a constant that change places: further ones are beyond what f64
// tells apart.
constexpr int kSwappedDigits = 6;
// A positive constant up to this one is an eps.
constexpr double kLargestEps = 1e-3;

const std::map<std::string, Words>& ArithmeticTable() {
  static const auto* const table = new std::map<std::string, Words>{
      {"+", {"-", "*"}}, {"-", {"+", "*"}}, {"*", {"+", "/"}},
      {"/", {"*", "-"}}, {"//", {"%"}},     {"%", {"//"}},
      {"^", {"*"}},
  };
  return *table;
}

// Functions of one operand, and what they are mistaken for; "" for nothing.
const std::map<std::string, Words>& FunctionTable() {
  static const auto* const table = new std::map<std::string, Words>{
      {"abs", {""}},
      {"sign", {""}},
      {"exp", {"expm1", ""}},
      {"expm1", {"exp", ""}},
      {"exp2", {"exp"}},
      {"log", {"log1p", ""}},
      {"log1p", {"log", ""}},
      {"log2", {"log"}},
      {"log10", {"log"}},
      {"sqrt", {"rsqrt", "cbrt", ""}},
      {"rsqrt", {"sqrt"}},
      {"cbrt", {"sqrt"}},
      {"sin", {"cos", ""}},
      {"cos", {"sin"}},
      {"tan", {"sin", ""}},
      {"asin", {"acos", ""}},
      {"acos", {"asin"}},
      {"atan", {"tanh", ""}},
      {"sinh", {"cosh", ""}},
      {"cosh", {"sinh"}},
      {"tanh", {"sigmoid", "atan", ""}},
      {"asinh", {"acosh", ""}},
      {"acosh", {"asinh"}},
      {"atanh", {"asinh", ""}},
      {"sigmoid", {"tanh", ""}},
      {"erf", {"erfc", ""}},
      {"erfc", {"erf"}},
      {"erfinv", {"erf", ""}},
      {"lgamma", {"log"}},
      {"floor", {"ceil", "trunc", ""}},
      {"ceil", {"floor", ""}},
      {"trunc", {"floor", ""}},
      {"round_nearest_even", {"floor", ""}},
      {"isnan", {"isinf"}},
      {"isinf", {"isnan"}},
      {"isfinite", {"isnan"}},
      {"real", {"imag", ""}},
      {"imag", {"real"}},
  };
  return *table;
}

const std::map<std::string, std::string>& MinMaxTable() {
  static const auto* const table = new std::map<std::string, std::string>{
      {"max", "min"},
      {"min", "max"},
      {"argmax", "argmin"},
      {"argmin", "argmax"},
      {"reduce_max", "reduce_min"},
      {"reduce_min", "reduce_max"},
      {"cumulative_max", "cumulative_min"},
      {"cumulative_min", "cumulative_max"},
  };
  return *table;
}

const std::map<std::string, std::string>& ReductionTable() {
  static const auto* const table = new std::map<std::string, std::string>{
      {"sum", "max"},
      {"prod", "sum"},
      {"reduce_sum", "reduce_max"},
      {"reduce_prod", "reduce_sum"},
      {"reduce_any", "reduce_all"},
      {"reduce_all", "reduce_any"},
  };
  return *table;
}

const std::map<std::string, std::string>& OppositeTable() {
  static const auto* const table = new std::map<std::string, std::string>{
      {"==", "!="}, {"!=", "=="}, {"<", ">"},
      {">", "<"},   {"<=", ">="}, {">=", "<="},
  };
  return *table;
}

const std::map<std::string, std::string>& StrictnessTable() {
  static const auto* const table = new std::map<std::string, std::string>{
      {"<", "<="}, {"<=", "<"}, {">", ">="}, {">=", ">"}};
  return *table;
}

template <typename Table>
const typename Table::mapped_type* FindIn(const Table& table,
                                          const std::string& key) {
  const auto it = table.find(key);
  return it == table.end() ? nullptr : &it->second;
}

ExprPtr WithText(const Expr& expr, std::string text) {
  Expr other = expr;
  other.text = std::move(text);
  return std::make_shared<Expr>(std::move(other));
}

ExprPtr WithChild(const Expr& expr, size_t i, ExprPtr child) {
  Expr other = expr;
  other.children[i] = std::move(child);
  return std::make_shared<Expr>(std::move(other));
}

ExprPtr WithNamed(const Expr& expr, size_t i, ExprPtr value) {
  Expr other = expr;
  other.named[i].value = std::move(value);
  return std::make_shared<Expr>(std::move(other));
}

ExprPtr Swapped(const Expr& expr, size_t i, size_t j) {
  Expr other = expr;
  std::swap(other.children[i], other.children[j]);
  return std::make_shared<Expr>(std::move(other));
}

bool IsNumber(const Expr& expr, double* value) {
  return expr.kind == ExprKind::kNumber && absl::SimpleAtod(expr.text, value);
}

// By its name, or its size.
bool IsEps(const Expr& expr) {
  double value = 0;
  if (IsNumber(expr, &value)) return value > 0 && value <= kLargestEps;
  return expr.kind == ExprKind::kName &&
         absl::StrContains(absl::AsciiStrToLower(expr.text), "eps");
}

bool IsImpossible(const Expr& expr) {
  return expr.kind == ExprKind::kCall && expr.text == "impossible";
}

// Whether `expr` has no derivative: it is `nograd(e)`, or of numbers and static
// values alone.
bool IsConstant(const Expr& expr, const std::set<std::string>& statics) {
  switch (expr.kind) {
    case ExprKind::kNumber:
      return true;
    case ExprKind::kName:
      return expr.text == "pi" || statics.count(expr.text) != 0;
    case ExprKind::kCall:
      if (expr.text == "nograd" || expr.text == "size") return true;
      [[fallthrough]];
    case ExprKind::kUnary:
    case ExprKind::kBinary:
    case ExprKind::kIf:
      return expr.named.empty() && !expr.children.empty() &&
             std::all_of(expr.children.begin(), expr.children.end(),
                         [&](const ExprPtr& child) {
                           return IsConstant(*child, statics);
                         });
    default:
      return false;
  }
}

bool IsArgument(const Expr& expr) {
  return expr.kind == ExprKind::kReduce &&
         (expr.text == "argmax" || expr.text == "argmin");
}

// An index that is one place: no rest of a shape and no range.
bool IsSingleIndex(const Expr& expr) {
  return expr.kind != ExprKind::kSpread &&
         !(expr.kind == ExprKind::kBinary && expr.text == "..");
}

class Mutator {
 public:
  Mutator(const ExprPtr& expr, const ExprPlace& place, const ItemNames& names,
          const std::function<void(Operator, ExprPtr)>& add)
      : expr_(expr), e_(*expr), place_(place), names_(names), add_(add) {}

  void Run() {
    switch (e_.kind) {
      case ExprKind::kNumber:
        MutateNumber();
        break;
      case ExprKind::kName:
        MutateName();
        break;
      case ExprKind::kUnary:
        if (e_.text == "-" && place_.even) break;
        add_(e_.text == "not" ? Operator::kLogic : Operator::kSign,
             e_.children[0]);
        break;
      case ExprKind::kBinary:
        MutateBinary();
        break;
      case ExprKind::kIf:
        if (e_.children.size() == 3) MutateBranches();
        break;
      case ExprKind::kCall:
        MutateCall();
        break;
      case ExprKind::kReduce:
        MutateReduce();
        break;
      case ExprKind::kIndex:
        MutateIndex();
        break;
      case ExprKind::kTie:
        // argmax and argmin choose the first with and without it.
        if (!IsArgument(*e_.children[0])) {
          add_(Operator::kTie,
               WithText(e_, e_.text == "first" ? "second" : "first"));
          add_(Operator::kTie, e_.children[0]);
        }
        for (const ExprPtr& operand : e_.children[0]->children) {
          add_(Operator::kTermDropped, operand);
        }
        break;
      default:
        break;
    }
    for (const Binder& binder : e_.binders) MutateBound(binder);
  }

 private:
  void MutateNumber() {
    double value = 0;
    if (!absl::SimpleAtod(e_.text, &value)) return;
    if (!place_.in_index) {
      add_(Operator::kConstantRelative,
           Number(value == 0 ? "1e-5" : Shortest(value * (1 + 1e-5))));
    }
    std::string text = e_.text;
    int digits = 0;
    for (size_t i = 0; i + 1 < text.size(); ++i) {
      if (text[i] == 'e' || text[i] == 'E') break;
      if (!absl::ascii_isdigit(text[i])) continue;
      if (text[i] == '0' && digits == 0) continue;
      ++digits;
      const size_t next = i + (text[i + 1] == '.' && i + 2 < text.size());
      if (digits > kSwappedDigits || !absl::ascii_isdigit(text[next + 1]) ||
          text[i] == text[next + 1]) {
        continue;
      }
      std::string other = text;
      std::swap(other[i], other[next + 1]);
      add_(Operator::kConstantDigits, Number(Plain(std::move(other))));
    }
    int64_t whole = 0;
    if (absl::SimpleAtoi(e_.text, &whole) && whole < 1'000'000'000) {
      add_(Operator::kConstantStep, Number(absl::StrCat(whole + 1)));
      if (whole > 0) {
        add_(Operator::kConstantStep, Number(absl::StrCat(whole - 1)));
      }
    }
  }

  // "02" is "2".
  static std::string Plain(std::string text) {
    size_t zeros = 0;
    while (zeros + 1 < text.size() && text[zeros] == '0' &&
           absl::ascii_isdigit(text[zeros + 1])) {
      ++zeros;
    }
    return text.substr(zeros);
  }

  static std::string Shortest(double value) {
    for (int digits = 6; digits < 17; ++digits) {
      std::string text = absl::StrFormat("%.*g", digits, value);
      double again = 0;
      // A change of 1e-5 is there from eight digits on.
      if (absl::SimpleAtod(text, &again) &&
          std::abs(again - value) <= 1e-9 * std::abs(value)) {
        return text;
      }
    }
    return absl::StrFormat("%.17g", value);
  }

  void MutateName() {
    const std::string& name = e_.text;
    if (name == "pi") {
      add_(Operator::kConstantRelative,
           Binary(expr_, "*", Number(Shortest(1 + 1e-5))));
    } else if (name == "inf") {
      add_(Operator::kSpecialValue, Minus(expr_));
      add_(Operator::kSpecialValue, Name("nan"));
    } else if (name == "nan") {
      add_(Operator::kSpecialValue, Number("0"));
    } else if (name == "true" || name == "false") {
      add_(Operator::kSpecialValue, Name(name == "true" ? "false" : "true"));
    }
    if (const ExprPtr* value = FindIn(names_.defaults, name)) {
      add_(Operator::kAttributeForgotten, *value);
    }
    if (const Words* others = FindIn(names_.alike, name)) {
      for (const std::string& other : *others) {
        add_(Operator::kNameConfused, Name(other));
      }
    }
    if (IsEps(e_)) {
      add_(Operator::kEps, Number("0"));
      add_(Operator::kEps, Binary(expr_, "*", Number("10")));
    }
  }

  void MutateBinary() {
    const std::string& op = e_.text;
    const ExprPtr& a = e_.children[0];
    const ExprPtr& b = e_.children[1];
    // A product with it is as impossible, whatever is done to the other factor.
    if (IsImpossible(*a) || IsImpossible(*b)) {
      add_(Operator::kTermDropped, IsImpossible(*a) ? b : a);
      return;
    }
    if (const Words* others = FindIn(ArithmeticTable(), op)) {
      for (const std::string& other : *others) {
        if (place_.in_index && other != "+" && other != "-") continue;
        add_(Operator::kArithmetic, WithText(e_, other));
      }
      if (IsEps(*b)) add_(Operator::kEps, a);
      if (IsEps(*a)) add_(Operator::kEps, b);
      add_(Operator::kTermDropped, a);
      add_(Operator::kTermDropped, b);
      if (op != "+" && op != "*" && !(op == "-" && place_.even)) {
        add_(Operator::kOperandOrder, Swapped(e_, 0, 1));
      }
      MutateFactors();
    }
    if (op == "@") add_(Operator::kOperandOrder, Swapped(e_, 0, 1));
    if (const std::string* other = FindIn(OppositeTable(), op)) {
      add_(Operator::kComparison, WithText(e_, *other));
    }
    if (const std::string* other = FindIn(StrictnessTable(), op)) {
      add_(Operator::kStrictness, WithText(e_, *other));
    }
    if (op == "and" || op == "or") {
      add_(Operator::kLogic, WithText(e_, op == "and" ? "or" : "and"));
      add_(Operator::kGuardDropped, a);
      add_(Operator::kGuardDropped, b);
    }
  }

  // Puts the other factor of a product with a tangent into `nograd`.
  void MutateFactors() {
    if (place_.part == MutatedPart::kValue || place_.tangents.empty()) return;
    if (e_.text != "*" && e_.text != "/") return;
    for (const size_t i : {0, 1}) {
      const Expr& factor = *e_.children[i];
      // A constant has no derivative as it is.
      if (Mentions(factor, place_.tangents) ||
          IsConstant(factor, names_.statics) ||
          !Mentions(*e_.children[1 - i], place_.tangents)) {
        continue;
      }
      add_(Operator::kSecondOrder,
           WithChild(e_, i, Call("nograd", {e_.children[i]})));
    }
  }

  // The branches are the second and the third child.
  void MutateBranches() {
    add_(Operator::kBranchSwapped, Swapped(e_, 1, 2));
    add_(Operator::kBranchDropped, e_.children[1]);
    add_(Operator::kBranchDropped, e_.children[2]);
  }

  void MutateCall() {
    const std::string& name = e_.text;
    const std::vector<ExprPtr>& arguments = e_.children;
    if (name == "select" && arguments.size() == 3) {
      MutateBranches();
    } else if (const std::string* other = FindIn(MinMaxTable(), name)) {
      add_(Operator::kMinMax, WithText(e_, *other));
      if (arguments.size() == 2) MutatePair();
    } else {
      for (size_t i = 0; i + 1 < arguments.size(); ++i) {
        add_(Operator::kOperandOrder, Swapped(e_, i, i + 1));
      }
    }
    if (const std::string* other = FindIn(ReductionTable(), name)) {
      add_(Operator::kReduction, WithText(e_, *other));
    }
    if (arguments.size() == 1) MutateFunction();
    if (name == "broadcast_to" || name == "reshape") {
      add_(Operator::kBroadcastDropped, arguments[0]);
    }
    if (name == "convert" && !arguments.empty()) {
      add_(Operator::kDType, arguments[0]);
    }
    for (size_t i = 0; i < e_.named.size(); ++i) MutateNamed(i);
  }

  // Mutates `max` and `min`.
  void MutatePair() {
    // A choice stands on a call alone.
    if (place_.tied) return;
    const ExprPtr& a = e_.children[0];
    const ExprPtr& b = e_.children[1];
    for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
      add_(IsEps(*one) ? Operator::kEps : Operator::kTermDropped, other);
      if (IsEps(*one)) add_(Operator::kEps, Binary(other, "+", one));
    }
    // Sizes have no derivatives.
    if (IsConstant(e_, names_.statics)) return;
    for (const char* side : {"first", "second"}) {
      add_(Operator::kTie, Of(ExprKind::kTie, side, {expr_}));
    }
  }

  void MutateFunction() {
    const std::string& name = e_.text;
    const ExprPtr& x = e_.children[0];
    if (const Words* others = FindIn(FunctionTable(), name)) {
      for (const std::string& other : *others) {
        add_(Operator::kFunction, other.empty() ? x : WithText(e_, other));
      }
    }
    const auto unstable = [&](ExprPtr form) {
      add_(Operator::kUnstableForm, std::move(form));
    };
    if (name == "log1p") {
      unstable(Call("log", {Binary(Number("1"), "+", x)}));
    } else if (name == "expm1") {
      unstable(Binary(Call("exp", {x}), "-", Number("1")));
    } else if (name == "erfc") {
      unstable(Binary(Number("1"), "-", Call("erf", {x})));
    } else if (name == "sigmoid") {
      const ExprPtr e = Call("exp", {x});
      unstable(Binary(e, "/", Binary(Number("1"), "+", e)));
    }
    if ((name == "sqrt" || name == "rsqrt") && x->kind == ExprKind::kBinary &&
        x->text == "+" && IsEps(*x->children[1])) {
      const ExprPtr moved =
          Binary(Call("sqrt", {x->children[0]}), "+", x->children[1]);
      add_(Operator::kEps,
           name == "sqrt" ? moved : Binary(Number("1"), "/", moved));
    }
  }

  void MutateNamed(size_t i) {
    const std::string& name = e_.named[i].name;
    const ExprPtr& value = e_.named[i].value;
    Expr without = e_;
    without.named.erase(without.named.begin() + static_cast<int>(i));
    add_(name == "keepdims" ? Operator::kKeepdims
                            : Operator::kAttributeForgotten,
         std::make_shared<Expr>(std::move(without)));
    const auto set = [&](Operator op, ExprPtr other) {
      add_(op, WithNamed(e_, i, std::move(other)));
    };
    const Operator axis = place_.part == MutatedPart::kVmap
                              ? Operator::kBatchAxis
                              : Operator::kAxis;
    const ExprPtr last = Minus(Number("1"));
    if (name == "axis") {
      set(axis, Number("0"));
      set(axis, last);
    } else if (name == "axes") {
      set(axis, Of(ExprKind::kList, "", {Number("0")}));
      set(axis, Of(ExprKind::kList, "", {last}));
    } else if (name == "keepdims") {
      set(Operator::kKeepdims, Name("true"));
      set(Operator::kKeepdims, Name("false"));
    } else if (name == "dtype") {
      for (const char* dtype : {"f16", "f32", "f64", "i32", "u8"}) {
        set(Operator::kDType, Name(dtype));
      }
    } else if (name == "padding" || name == "low" || name == "high" ||
               name == "start" || name == "limit" || name == "shift") {
      set(Operator::kIndexOffset, Binary(value, "+", Number("1")));
      set(Operator::kIndexOffset, Binary(value, "-", Number("1")));
    } else if (name == "descending" || name == "largest" || name == "reverse") {
      set(Operator::kSpecialValue, Of(ExprKind::kUnary, "not", {value}));
    }
  }

  void MutateReduce() {
    if (const std::string* other = FindIn(MinMaxTable(), e_.text)) {
      add_(Operator::kMinMax, WithText(e_, *other));
    }
    if (const std::string* other = FindIn(ReductionTable(), e_.text)) {
      add_(Operator::kReduction, WithText(e_, *other));
    }
    if (e_.children.size() > 1) {
      Expr without = e_;
      without.children.resize(1);
      add_(Operator::kGuardDropped, std::make_shared<Expr>(std::move(without)));
    }
  }

  void MutateIndex() {
    for (size_t i = 1; i < e_.children.size(); ++i) {
      const ExprPtr& index = e_.children[i];
      if (!IsSingleIndex(*index)) continue;
      for (const char* op : {"+", "-"}) {
        add_(Operator::kIndexOffset,
             WithChild(e_, i, Binary(index, op, Number("1"))));
      }
      if (i + 1 < e_.children.size() && IsSingleIndex(*e_.children[i + 1])) {
        add_(Operator::kIndexOrder, Swapped(e_, i, i + 1));
      }
    }
  }

  void MutateBound(const Binder& binder) {
    if (binder.bound == nullptr || binder.pack) return;
    for (const char* op : {"+", "-"}) {
      Expr other = e_;
      Binder& changed = other.binders[&binder - e_.binders.data()];
      changed.bound = Binary(binder.bound, op, Number("1"));
      add_(Operator::kIndexOffset, std::make_shared<Expr>(std::move(other)));
    }
  }

  const ExprPtr& expr_;
  const Expr& e_;
  const ExprPlace& place_;
  const ItemNames& names_;
  const std::function<void(Operator, ExprPtr)>& add_;
};

}  // namespace

void ExprMutations(
    const ExprPtr& expr, const ExprPlace& place, const ItemNames& names,
    const std::function<void(MutationOperator op, ExprPtr replacement)>& add) {
  Mutator(expr, place, names, add).Run();
}

}  // namespace cleave
