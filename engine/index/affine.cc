#include "engine/index/affine.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/index/term_builder.h"

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

// a + b * c; nullopt beyond the limits.
std::optional<Dim> MultiplyAdd(const Dim& a, const Dim& b, const Dim& c) {
  const absl::StatusOr<Dim> product = Dim::CheckedMul(b, c);
  if (!product.ok()) return std::nullopt;
  const absl::StatusOr<Dim> sum = Dim::CheckedAdd(a, *product);
  if (!sum.ok()) return std::nullopt;
  return *sum;
}

std::optional<Dim> Extreme(const Affine& a, bool greatest) {
  if (a.overflow) return std::nullopt;
  std::optional<Dim> value = a.constant;
  for (const auto& [index, coefficient] : a.terms) {
    const bool positive = IsTrue(Compare(coefficient, CompareOp::kGe, 0));
    if (!positive && !IsTrue(Compare(coefficient, CompareOp::kLe, 0))) {
      return std::nullopt;
    }
    if (positive != greatest) continue;
    const absl::StatusOr<Dim> last = Dim::CheckedSub(index->extent, 1);
    if (last.ok()) value = MultiplyAdd(*value, coefficient, *last);
    if (!last.ok() || !value.has_value()) return std::nullopt;
  }
  return value;
}

// a = c * quotient + remainder with 0 <= remainder < c, where that is proved.
struct Division {
  Affine quotient;
  Affine remainder;
};

std::optional<Division> Divide(const Affine& a, const Dim& c) {
  if (a.overflow) return std::nullopt;
  if (!IsTrue(Compare(c, CompareOp::kGe, 1))) return std::nullopt;
  Division result;
  for (const auto& term : a.terms) {
    const absl::StatusOr<Dim> quotient = Dim::CheckedFloorDiv(term.second, c);
    if (!quotient.ok()) return std::nullopt;
    if (MultiplyAdd(0, *quotient, c) == term.second) {
      result.quotient.terms.emplace_back(term.first, *quotient);
    } else {
      result.remainder.terms.push_back(term);
    }
  }
  const absl::StatusOr<Dim> quotient = Dim::CheckedFloorDiv(a.constant, c);
  if (!quotient.ok()) return std::nullopt;
  const std::optional<Dim> multiple = MultiplyAdd(0, *quotient, c);
  if (!multiple.has_value()) return std::nullopt;
  result.remainder.constant = a.constant;
  if (a.constant.IsConstant() || *multiple == a.constant) {
    result.quotient.constant = *quotient;
    result.remainder.constant = a.constant - *multiple;
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
  // Once for each term: they share subterms.
  std::optional<Affine> Read(const Term& e) {
    const auto it = read_.find(&e);
    if (it != read_.end()) return it->second;
    return read_[&e] = ReadNew(e);
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
    const TermPtr inlined = InlinedRead(read);
    if (inlined != nullptr) kept_.push_back(inlined);
    return inlined;
  }

  Truth Decided(const Term& condition) {
    const auto it = decided_.find(&condition);
    if (it != decided_.end()) return it->second;
    return decided_[&condition] = DecidedNew(condition);
  }

 private:
  std::optional<Affine> ReadNew(const Term& e) {
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

  Truth DecidedNew(const Term& condition) {
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
  std::vector<TermPtr> kept_;  // so that no address is used again
  std::map<const Term*, std::optional<Affine>> read_;
  std::map<const Term*, Truth> decided_;
};

void AppendConjuncts(const TermPtr& condition, std::set<TermPtr>& seen,
                     std::vector<TermPtr>& out) {
  if (!seen.insert(condition).second) return;
  if (condition->kind == TermKind::kPointwise &&
      condition->primitive == Primitive::kAnd) {
    AppendConjuncts(condition->children[0], seen, out);
    AppendConjuncts(condition->children[1], seen, out);
    return;
  }
  if (condition->kind == TermKind::kRead) {
    const TermPtr inlined = AffineReader().Inlined(*condition);
    if (inlined != nullptr) return AppendConjuncts(inlined, seen, out);
  }
  if (Decide(*condition) != Truth::kTrue) out.push_back(condition);
}

// Proves that elements are in [0, extent); see ProveRange.
class RangeProver {
 public:
  RangeProver(const Dim& extent, const std::vector<Affine>& facts)
      : extent_(extent), facts_(facts) {}

  RangeProof Prove(const Term& element) {
    const auto it = proofs_.find(&element);
    if (it != proofs_.end()) return it->second;
    return proofs_[&element] = ProveNew(element);
  }

 private:
  RangeProof ProveNew(const Term& element) {
    if (const std::optional<Affine> affine = ToAffine(element)) {
      Affine last;
      last.constant = extent_ - 1;
      return {ProvedNonNegative(*affine, facts_),
              ProvedNonNegative(last - *affine, facts_)};
    }
    switch (element.kind) {
      case TermKind::kRead: {
        const Term& array = *element.children[0];
        if (array.kind != TermKind::kComprehension || element.fill != nullptr) {
          return {};
        }
        // Its indices are others: the facts do not speak of them.
        return ProveRange(*array.children[0], extent_);
      }
      case TermKind::kReduce:
        return ProvePlace(element);
      case TermKind::kPointwise:
        return ProvePointwise(element);
      default:
        return {};
    }
  }

  // The place of an extreme is one of those reduced.
  RangeProof ProvePlace(const Term& reduce) const {
    if (reduce.reduction != Reduction::kArgmax &&
        reduce.reduction != Reduction::kArgmin) {
      return {};
    }
    std::optional<Dim> count = 1;
    for (const IndexPtr& index : reduce.indices) {
      if (count.has_value()) count = MultiplyAdd(0, *count, index->extent);
    }
    return {true, count.has_value() &&
                      IsTrue(Compare(*count, CompareOp::kLe, extent_))};
  }

  RangeProof ProvePointwise(const Term& element) {
    const auto range = [&](int child) {
      return Prove(*element.children[child]);
    };
    switch (element.primitive) {
      case Primitive::kSelect: {
        const RangeProof a = range(1);
        const RangeProof b = range(2);
        return {a.not_below && b.not_below, a.not_above && b.not_above};
      }
      case Primitive::kMax: {
        const RangeProof a = range(0);
        const RangeProof b = range(1);
        return {a.not_below || b.not_below, a.not_above && b.not_above};
      }
      case Primitive::kMin: {
        const RangeProof a = range(0);
        const RangeProof b = range(1);
        return {a.not_below && b.not_below, a.not_above || b.not_above};
      }
      case Primitive::kFloorMod: {
        // A remainder by 0 is an error of its own.
        const std::optional<Affine> by = ToAffine(*element.children[1]);
        if (!by.has_value() || !by->IsConstant() ||
            !IsTrue(Compare(by->constant, CompareOp::kGe, 0))) {
          return {};
        }
        return {true, IsTrue(Compare(by->constant, CompareOp::kLe, extent_))};
      }
      default:
        return {};
    }
  }

  const Dim& extent_;
  const std::vector<Affine>& facts_;
  std::map<const Term*, RangeProof> proofs_;
};

}  // namespace

Dim Affine::CoefficientOf(const IndexVariable* index) const {
  for (const auto& [variable, coefficient] : terms) {
    if (variable.get() == index) return coefficient;
  }
  return 0;
}

Affine operator+(const Affine& a, const Affine& b) {
  Affine sum = a;
  sum.overflow = a.overflow || b.overflow;
  const auto add = [&sum](Dim& to, const Dim& value) {
    const std::optional<Dim> total = MultiplyAdd(to, value, 1);
    if (total.has_value()) {
      to = *total;
    } else {
      sum.overflow = true;
    }
  };
  add(sum.constant, b.constant);
  for (const auto& term : b.terms) {
    auto it = std::find_if(
        sum.terms.begin(), sum.terms.end(),
        [&term](const auto& other) { return other.first == term.first; });
    if (it == sum.terms.end()) {
      sum.terms.push_back(term);
    } else {
      add(it->second, term.second);
      if (it->second == Dim(0)) sum.terms.erase(it);
    }
  }
  return sum;
}

Affine Scaled(const Affine& a, const Dim& by) {
  Affine result;
  result.overflow = a.overflow;
  if (by == Dim(0)) return result;
  const auto scaled = [&](const Dim& value) {
    const std::optional<Dim> product = MultiplyAdd(0, value, by);
    result.overflow = result.overflow || !product.has_value();
    return product.value_or(0);
  };
  result.constant = scaled(a.constant);
  for (const auto& [index, coefficient] : a.terms) {
    result.terms.emplace_back(index, scaled(coefficient));
  }
  return result;
}

Affine operator-(const Affine& a, const Affine& b) { return a + Scaled(b, -1); }

std::optional<Dim> LeastValue(const Affine& a) { return Extreme(a, false); }
std::optional<Dim> GreatestValue(const Affine& a) { return Extreme(a, true); }

bool ProvedNonNegative(const Affine& a, const std::vector<Affine>& facts) {
  if (a.overflow) return false;
  const std::optional<Dim> least = LeastValue(a);
  // A number needs no proof: most indices stand for a whole axis.
  if (least.has_value() && least->Value().value_or(-1) >= 0) return true;
  const Assumptions assumptions(a);
  if (assumptions.empty) return true;
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
  std::optional<Affine> affine = AffineReader().Read(element);
  if (!affine.has_value() || affine->overflow) return std::nullopt;
  // Further arithmetic stays between these.
  const bool known_signs = std::all_of(
      affine->terms.begin(), affine->terms.end(), [](const auto& term) {
        return IsTrue(Compare(term.second, CompareOp::kGe, 0)) ||
               IsTrue(Compare(term.second, CompareOp::kLe, 0));
      });
  const bool bounded =
      LeastValue(*affine).has_value() && GreatestValue(*affine).has_value();
  if (known_signs && !bounded) return std::nullopt;
  return affine;
}

RangeProof ProveRange(const Term& element, const Dim& extent,
                      const std::vector<Affine>& facts) {
  return RangeProver(extent, facts).Prove(element);
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
  std::set<TermPtr> seen;
  AppendConjuncts(condition, seen, conjuncts);
  return conjuncts;
}

}  // namespace cleave
