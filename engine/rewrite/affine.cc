#include "engine/rewrite/affine.h"

#include <algorithm>

#include "engine/rewrite/term_builder.h"

namespace cleave {
namespace {

// Reads of comprehensions that read comprehensions, and so on.
constexpr int kMaxInlinedReads = 16;

bool IsTrue(Truth truth) { return truth == Truth::kTrue; }

// Every variable has a value, so that its extent is at least 1. Extents that
// are 0 leave nothing to prove: `empty`.
struct Assumptions {
  Constraints constraints;
  bool empty = false;

  explicit Assumptions(const Affine& a) {
    for (const auto& [index, coefficient] : a.terms) {
      if (index->extent.IsConstant() && *index->extent.Value() >= 1) continue;
      if (!constraints.Assume(index->extent, CompareOp::kGe, 1).ok()) {
        empty = true;
      }
    }
  }
};

std::optional<Dim> Extreme(const Affine& a, bool greatest) {
  Dim value = a.constant;
  for (const auto& [index, coefficient] : a.terms) {
    const bool positive = IsTrue(Compare(coefficient, CompareOp::kGe, 0));
    if (!positive && !IsTrue(Compare(coefficient, CompareOp::kLe, 0))) {
      return std::nullopt;
    }
    if (positive == greatest) {
      value = value + coefficient * (index->extent - 1);
    }
  }
  return value;
}

// a = c * quotient + remainder with 0 <= remainder < c, where that is proved.
struct Division {
  Affine quotient;
  Affine remainder;
};

std::optional<Division> Divide(const Affine& a, const Dim& c) {
  if (!IsTrue(Compare(c, CompareOp::kGe, 1))) return std::nullopt;
  Division result;
  for (const auto& term : a.terms) {
    const Dim quotient = Dim::FloorDiv(term.second, c);
    if (quotient * c == term.second) {
      result.quotient.terms.emplace_back(term.first, quotient);
    } else {
      result.remainder.terms.push_back(term);
    }
  }
  const Dim quotient = Dim::FloorDiv(a.constant, c);
  if (a.constant.IsConstant() || quotient * c == a.constant) {
    result.quotient.constant = quotient;
    result.remainder.constant = a.constant - quotient * c;
  } else {
    result.remainder.constant = a.constant;
  }
  Affine last;
  last.constant = c - 1;
  if (!ProvedNonNegative(result.remainder) ||
      !ProvedNonNegative(last - result.remainder)) {
    return std::nullopt;
  }
  return result;
}

// Affine forms that are >= 0 where the comparison of a with b holds.
std::vector<Affine> ComparisonFacts(Primitive comparison, const Affine& a,
                                    const Affine& b) {
  Affine one;
  one.constant = 1;
  switch (comparison) {
    case Primitive::kLe:
      return {b - a};
    case Primitive::kLt:
      return {b - a - one};
    case Primitive::kGe:
      return {a - b};
    case Primitive::kGt:
      return {a - b - one};
    case Primitive::kEq:
      return {a - b, b - a};
    default:
      return {};
  }
}

class AffineReader {
 public:
  std::optional<Affine> Read(const Term& e) {
    // Others could wrap.
    if (ResolvedDType(e) != DType::kI64) return std::nullopt;
    Affine result;
    switch (e.kind) {
      case TermKind::kIndex:
        result.terms.emplace_back(e.indices[0], 1);
        return result;
      case TermKind::kNumber: {
        const std::optional<int64_t> value = e.number.ToInt64();
        if (!value.has_value()) return std::nullopt;
        result.constant = *value;
        return result;
      }
      case TermKind::kDim:
        result.constant = e.dim;
        return result;
      case TermKind::kPointwise:
        return ReadPointwise(e);
      case TermKind::kRead: {
        const TermPtr inlined = Inlined(e);
        if (inlined == nullptr) return std::nullopt;
        return Read(*inlined);
      }
      default:
        return std::nullopt;
    }
  }

  // The element that a read of a comprehension stands for; null if there is
  // none, or the read may be out of range.
  TermPtr Inlined(const Term& read) {
    const Term& array = *read.children[0];
    if (array.kind != TermKind::kComprehension) return nullptr;
    if (++inlined_ > kMaxInlinedReads) return nullptr;
    for (size_t d = 0; d < array.indices.size(); ++d) {
      const std::optional<Affine> at = Read(*read.children[d + 1]);
      if (!at.has_value() || !ProvedNonNegative(*at)) return nullptr;
      Affine last;
      last.constant = array.indices[d]->extent - 1;
      if (!ProvedNonNegative(last - *at)) return nullptr;
    }
    return InlinedRead(read);
  }

  Truth Decided(const Term& condition) {
    if (condition.kind == TermKind::kNumber) {
      return condition.number == Exact(0) ? Truth::kFalse : Truth::kTrue;
    }
    if (condition.kind == TermKind::kRead) {
      const TermPtr inlined = Inlined(condition);
      return inlined == nullptr ? Truth::kUnknown : Decided(*inlined);
    }
    if (condition.kind != TermKind::kPointwise) return Truth::kUnknown;
    switch (condition.primitive) {
      case Primitive::kAnd:
      case Primitive::kOr: {
        const Truth a = Decided(*condition.children[0]);
        const Truth b = Decided(*condition.children[1]);
        const Truth absorbing = condition.primitive == Primitive::kAnd
                                    ? Truth::kFalse
                                    : Truth::kTrue;
        if (a == absorbing || b == absorbing) return absorbing;
        return a == b ? a : Truth::kUnknown;
      }
      case Primitive::kNot: {
        const Truth a = Decided(*condition.children[0]);
        if (a == Truth::kUnknown) return a;
        return a == Truth::kTrue ? Truth::kFalse : Truth::kTrue;
      }
      case Primitive::kLe:
      case Primitive::kLt:
      case Primitive::kGe:
      case Primitive::kGt:
      case Primitive::kEq:
      case Primitive::kNe:
        return DecidedComparison(condition);
      default:
        return Truth::kUnknown;
    }
  }

 private:
  Truth DecidedComparison(const Term& condition) {
    const std::optional<Affine> a = Read(*condition.children[0]);
    if (!a.has_value()) return Truth::kUnknown;
    const std::optional<Affine> b = Read(*condition.children[1]);
    if (!b.has_value()) return Truth::kUnknown;
    const Affine up = *a - *b;
    const Affine down = *b - *a;
    Affine one;
    one.constant = 1;
    const bool ge = ProvedNonNegative(up);
    const bool le = ProvedNonNegative(down);
    const bool gt = ge && ProvedNonNegative(up - one);
    const bool lt = le && ProvedNonNegative(down - one);
    const auto truth = [](bool yes, bool no) {
      return yes ? Truth::kTrue : no ? Truth::kFalse : Truth::kUnknown;
    };
    switch (condition.primitive) {
      case Primitive::kLe:
        return truth(le, gt);
      case Primitive::kLt:
        return truth(lt, ge);
      case Primitive::kGe:
        return truth(ge, lt);
      case Primitive::kGt:
        return truth(gt, le);
      case Primitive::kEq:
        return truth(ge && le, gt || lt);
      default:
        return truth(gt || lt, ge && le);
    }
  }

  std::optional<Affine> ReadPointwise(const Term& e) {
    if (e.primitive == Primitive::kSelect) {
      const Truth truth = Decided(*e.children[0]);
      if (truth == Truth::kUnknown) return std::nullopt;
      return Read(*e.children[truth == Truth::kTrue ? 1 : 2]);
    }
    if (e.children.empty() || e.children.size() > 2) return std::nullopt;
    const std::optional<Affine> a = Read(*e.children[0]);
    if (!a.has_value()) return std::nullopt;
    if (e.primitive == Primitive::kNeg) return Scaled(*a, -1);
    if (e.children.size() != 2) return std::nullopt;
    const std::optional<Affine> b = Read(*e.children[1]);
    if (!b.has_value()) return std::nullopt;
    switch (e.primitive) {
      case Primitive::kAdd:
        return *a + *b;
      case Primitive::kSub:
        return *a - *b;
      case Primitive::kMul:
        if (b->IsConstant()) return Scaled(*a, b->constant);
        if (a->IsConstant()) return Scaled(*b, a->constant);
        return std::nullopt;
      case Primitive::kFloorDiv:
      case Primitive::kFloorMod: {
        if (!b->IsConstant()) return std::nullopt;
        const std::optional<Division> division = Divide(*a, b->constant);
        if (!division.has_value()) return std::nullopt;
        return e.primitive == Primitive::kFloorDiv ? division->quotient
                                                   : division->remainder;
      }
      case Primitive::kMax:
      case Primitive::kMin: {
        const bool max = e.primitive == Primitive::kMax;
        if (ProvedNonNegative(*a - *b)) return max ? a : b;
        if (ProvedNonNegative(*b - *a)) return max ? b : a;
        return std::nullopt;
      }
      default:
        return std::nullopt;
    }
  }

  int inlined_ = 0;
};

void AppendConjuncts(const TermPtr& condition, std::vector<TermPtr>& out) {
  if (condition->kind == TermKind::kPointwise &&
      condition->primitive == Primitive::kAnd) {
    AppendConjuncts(condition->children[0], out);
    AppendConjuncts(condition->children[1], out);
    return;
  }
  if (condition->kind == TermKind::kRead) {
    const TermPtr inlined = AffineReader().Inlined(*condition);
    if (inlined != nullptr) return AppendConjuncts(inlined, out);
  }
  if (Decide(*condition) != Truth::kTrue) out.push_back(condition);
}

}  // namespace

Dim Affine::CoefficientOf(const IndexVariable* index) const {
  for (const auto& [variable, coefficient] : terms) {
    if (variable.get() == index) return coefficient;
  }
  return 0;
}

Affine operator+(const Affine& a, const Affine& b) {
  Affine sum = a;
  sum.constant = a.constant + b.constant;
  for (const auto& term : b.terms) {
    auto it = std::find_if(
        sum.terms.begin(), sum.terms.end(),
        [&term](const auto& other) { return other.first == term.first; });
    if (it == sum.terms.end()) {
      sum.terms.push_back(term);
    } else {
      it->second = it->second + term.second;
      if (it->second == Dim(0)) sum.terms.erase(it);
    }
  }
  return sum;
}

Affine Scaled(const Affine& a, const Dim& by) {
  Affine result;
  result.constant = a.constant * by;
  if (by == Dim(0)) return result;
  for (const auto& [index, coefficient] : a.terms) {
    result.terms.emplace_back(index, coefficient * by);
  }
  return result;
}

Affine operator-(const Affine& a, const Affine& b) { return a + Scaled(b, -1); }

std::optional<Dim> LeastValue(const Affine& a) { return Extreme(a, false); }
std::optional<Dim> GreatestValue(const Affine& a) { return Extreme(a, true); }

bool ProvedNonNegative(const Affine& a, const std::vector<Affine>& facts) {
  const Assumptions assumptions(a);
  if (assumptions.empty) return true;
  const std::optional<Dim> least = LeastValue(a);
  if (least.has_value() &&
      IsTrue(Compare(*least, CompareOp::kGe, 0, assumptions.constraints))) {
    return true;
  }
  return std::any_of(facts.begin(), facts.end(), [&a](const Affine& fact) {
    return ProvedNonNegative(a - fact);
  });
}

bool ProvedSometimesNegative(const Affine& a) {
  const std::optional<Dim> least = LeastValue(a);
  return least.has_value() &&
         IsTrue(Compare(*least, CompareOp::kLt, 0, Assumptions(a).constraints));
}

std::optional<Affine> ToAffine(const Term& element) {
  return AffineReader().Read(element);
}

Truth Decide(const Term& condition) {
  return AffineReader().Decided(condition);
}

std::vector<Affine> FactsOf(const Term& condition) {
  if (condition.kind != TermKind::kPointwise ||
      condition.children.size() != 2) {
    return {};
  }
  const std::optional<Affine> a = ToAffine(*condition.children[0]);
  if (!a.has_value()) return {};
  const std::optional<Affine> b = ToAffine(*condition.children[1]);
  if (!b.has_value()) return {};
  return ComparisonFacts(condition.primitive, *a, *b);
}

std::vector<TermPtr> Conjuncts(const TermPtr& condition) {
  std::vector<TermPtr> conjuncts;
  AppendConjuncts(condition, conjuncts);
  return conjuncts;
}

}  // namespace cleave
