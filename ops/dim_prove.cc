// Proofs of dim >= 0: intervals, then linear reasoning over the monomials.

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

#include "ops/dim.h"
#include "ops/dim_internal.h"
#include "ops/dim_terms.h"

namespace cleave {
namespace {

using Kind = DimAtom::Kind;
using Interval = Dim::Interval;
using Bound = std::optional<int64_t>;

// Fourier-Motzkin gives up beyond these: the answer is then "unknown".
constexpr size_t kMaxInequalities = 160;
constexpr size_t kMaxFacts = 64;
// Levels of case distinction over the arguments of min and max.
constexpr int kMaxCaseSplits = 3;

bool BoundedBelowByZero(const Dim& dim) {
  const Bound low = dim.Bounds().low;
  return low && *low >= 0;
}

// The facts of a proof, each >= 0. Facts that overflow are left out: a proof
// may be missed then, never a wrong one found.
class Facts {
 public:
  void Add(const absl::StatusOr<Dim>& fact) {
    if (!fact.ok() || fact->IsConstant() || dims_.size() >= kMaxFacts) return;
    if (std::find(dims_.begin(), dims_.end(), *fact) == dims_.end()) {
      dims_.push_back(*fact);
    }
  }
  // a - b >= 0
  void AddGe(const absl::StatusOr<Dim>& a, const absl::StatusOr<Dim>& b) {
    if (a.ok() && b.ok()) Add(Dim::CheckedSub(*a, *b));
  }
  const std::vector<Dim>& dims() const { return dims_; }

 private:
  std::vector<Dim> dims_;
};

// The laws of floordiv, mod, min and max that are linear.
void AddAtomLaws(const DimAtomPtr& atom, Facts* facts) {
  const auto self = DimBuilder::FromTerms({{{{atom, 1}}, 1}});
  if (!self.ok()) return;
  switch (atom->kind) {
    case Kind::kVariable:
      return;
    case Kind::kMin:
      for (const Dim& arg : atom->args) facts->AddGe(arg, *self);
      return;
    case Kind::kMax:
      for (const Dim& arg : atom->args) facts->AddGe(*self, arg);
      return;
    case Kind::kFloorDiv: {
      // b (a // b) <= a <= b (a // b) + b - 1 for b > 0; where b = 0 there is
      // no value.
      const Dim& b = atom->args[1];
      if (!BoundedBelowByZero(b)) return;
      const auto product = Dim::CheckedMul(*self, b);
      facts->AddGe(atom->args[0], product);
      if (!product.ok()) return;
      const auto next = Dim::CheckedAdd(*product, b);
      if (next.ok()) facts->AddGe(Dim::CheckedSub(*next, 1), atom->args[0]);
      return;
    }
    case Kind::kMod:
      if (!BoundedBelowByZero(atom->args[1])) return;
      facts->AddGe(Dim::CheckedSub(atom->args[1], 1), *self);
      if (BoundedBelowByZero(atom->args[0])) {
        facts->AddGe(atom->args[0], *self);
      }
      return;
  }
}

void CollectAtoms(const Dim& dim, std::vector<DimAtomPtr>* atoms) {
  for (const DimTerm& term : DimTerms(dim)) {
    for (const DimFactor& factor : term.monomial) {
      const auto same = [&](const DimAtomPtr& known) {
        return DimBuilder::OrderAtoms(*known, *factor.atom) == 0;
      };
      if (std::none_of(atoms->begin(), atoms->end(), same)) {
        atoms->push_back(factor.atom);
      }
    }
  }
}

Facts FactsFor(const Dim& dim, const std::vector<Dim>& given) {
  Facts facts;
  for (const Dim& fact : given) facts.Add(fact);
  std::vector<DimAtomPtr> atoms;
  CollectAtoms(dim, &atoms);
  for (const Dim& fact : given) CollectAtoms(fact, &atoms);
  // Laws bring further atoms in; a few rounds reach what matters.
  for (size_t i = 0; i < atoms.size() && i < kMaxFacts; ++i) {
    AddAtomLaws(atoms[i], &facts);
    for (const Dim& arg : atoms[i]->args) CollectAtoms(arg, &atoms);
  }
  bool nonlinear = false;
  for (const DimTerm& term : DimTerms(dim)) {
    if (DimBuilder::Degree(term.monomial) < 2) continue;
    nonlinear = true;
    // x^k >= x^(k-1) for integers x >= 0
    for (size_t i = 0; i < term.monomial.size(); ++i) {
      if (term.monomial[i].power < 2) continue;
      DimMonomial less = term.monomial;
      --less[i].power;
      if (const Bound low = DimBuilder::MonomialBounds(less).low;
          low && *low >= 0 && term.monomial[i].atom->bounds.low &&
          *term.monomial[i].atom->bounds.low >= 0) {
        facts.AddGe(DimBuilder::FromTerms({{term.monomial, 1}}),
                    DimBuilder::FromTerms({{less, 1}}));
      }
    }
  }
  if (!nonlinear) return facts;
  // f >= 0 and x >= 0 give f x >= 0.
  const std::vector<Dim> linear = facts.dims();
  std::vector<DimAtomPtr> factors;
  CollectAtoms(dim, &factors);
  for (const DimAtomPtr& atom : factors) {
    if (!atom->bounds.low || *atom->bounds.low < 0) continue;
    const auto x = DimBuilder::FromTerms({{{{atom, 1}}, 1}});
    if (!x.ok()) continue;
    for (const Dim& fact : linear) facts.Add(Dim::CheckedMul(fact, *x));
  }
  return facts;
}

// sum of coefficients[i] * unknown[i] + constant >= 0
struct Inequality {
  std::vector<__int128> coefficients;
  __int128 constant = 0;
};

__int128 Gcd(__int128 a, __int128 b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const __int128 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Whether a system over integer unknowns (the monomials) has no solution: by
// elimination of one unknown after another, with the constants tightened.
class Elimination {
 public:
  void Add(const Dim& dim) {
    Inequality inequality;
    for (const DimTerm& term : DimTerms(dim)) {
      if (term.monomial.empty()) {
        inequality.constant = term.coefficient;
        continue;
      }
      const size_t i = Unknown(term.monomial);
      if (inequality.coefficients.size() <= i) {
        inequality.coefficients.resize(i + 1);
      }
      inequality.coefficients[i] = term.coefficient;
    }
    inequalities_.push_back(std::move(inequality));
  }

  bool IsInfeasible() {
    for (size_t i = 0; i < unknowns_.size(); ++i) {
      const Interval bounds = DimBuilder::MonomialBounds(unknowns_[i]);
      if (bounds.low) AddBound(i, 1, -static_cast<__int128>(*bounds.low));
      if (bounds.high) AddBound(i, -1, *bounds.high);
    }
    for (Inequality& inequality : inequalities_) {
      inequality.coefficients.resize(unknowns_.size());
      if (Tighten(&inequality)) return true;
    }
    std::vector<bool> done(unknowns_.size(), false);
    for (size_t round = 0; round < unknowns_.size(); ++round) {
      const size_t i = Cheapest(done);
      done[i] = true;
      if (Eliminate(i)) return true;
      if (inequalities_.size() > kMaxInequalities) return false;
    }
    return false;
  }

 private:
  size_t Unknown(const DimMonomial& monomial) {
    for (size_t i = 0; i < unknowns_.size(); ++i) {
      if (DimBuilder::OrderMonomials(unknowns_[i], monomial) == 0) return i;
    }
    unknowns_.push_back(monomial);
    return unknowns_.size() - 1;
  }

  void AddBound(size_t i, int coefficient, __int128 constant) {
    Inequality inequality;
    inequality.coefficients.resize(unknowns_.size());
    inequality.coefficients[i] = coefficient;
    inequality.constant = constant;
    inequalities_.push_back(std::move(inequality));
  }

  // Divides by the common divisor, rounding the constant down. True if nothing
  // is left but a negative constant: a contradiction.
  static bool Tighten(Inequality* inequality) {
    __int128 divisor = 0;
    for (__int128 c : inequality->coefficients) divisor = Gcd(divisor, c);
    if (divisor == 0) return inequality->constant < 0;
    for (__int128& c : inequality->coefficients) c /= divisor;
    inequality->constant = FloorDivide(inequality->constant, divisor);
    return false;
  }

  // The unknown whose elimination makes the fewest inequalities.
  size_t Cheapest(const std::vector<bool>& done) const {
    size_t best = 0;
    int64_t best_cost = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < done.size(); ++i) {
      if (done[i]) continue;
      int64_t up = 0, down = 0;
      for (const Inequality& inequality : inequalities_) {
        up += inequality.coefficients[i] > 0;
        down += inequality.coefficients[i] < 0;
      }
      const int64_t cost = up * down - up - down;
      if (cost < best_cost) {
        best = i;
        best_cost = cost;
      }
    }
    return best;
  }

  bool Eliminate(size_t i) {
    std::vector<Inequality> kept, up, down;
    for (Inequality& inequality : inequalities_) {
      const __int128 c = inequality.coefficients[i];
      (c == 0 ? kept : c > 0 ? up : down).push_back(std::move(inequality));
    }
    for (const Inequality& x : up) {
      for (const Inequality& y : down) {
        if (kept.size() > kMaxInequalities) break;
        Inequality sum;
        if (!Combine(x, -y.coefficients[i], y, x.coefficients[i], &sum)) {
          continue;
        }
        if (Tighten(&sum)) return true;
        const bool trivial =
            std::all_of(sum.coefficients.begin(), sum.coefficients.end(),
                        [](__int128 c) { return c == 0; });
        if (!trivial) kept.push_back(std::move(sum));
      }
    }
    inequalities_ = std::move(kept);
    return false;
  }

  // p x + q y; false beyond 62 bits, where the sum is given up.
  static bool Combine(const Inequality& x, __int128 p, const Inequality& y,
                      __int128 q, Inequality* sum) {
    constexpr __int128 kLimit = __int128{1} << 62;
    const auto small = [&](__int128 v) { return -kLimit < v && v < kLimit; };
    const auto term = [&](__int128 a, __int128 b, __int128* out) {
      if (!small(a) || !small(b)) return false;
      *out = p * a + q * b;
      return small(*out);
    };
    if (!small(p) || !small(q)) return false;
    sum->coefficients.resize(x.coefficients.size());
    for (size_t i = 0; i < x.coefficients.size(); ++i) {
      if (!term(x.coefficients[i], y.coefficients[i], &sum->coefficients[i])) {
        return false;
      }
    }
    return term(x.constant, y.constant, &sum->constant);
  }

  std::vector<DimMonomial> unknowns_;
  std::vector<Inequality> inequalities_;
};

bool ProveLinearly(const Dim& dim, const std::vector<Dim>& given) {
  // dim >= 0 holds if -dim - 1 >= 0 contradicts the facts.
  const auto negated = Dim::CheckedMul(dim, -1);
  if (!negated.ok()) return false;
  const auto denial = Dim::CheckedSub(*negated, 1);
  if (!denial.ok()) return false;
  Elimination elimination;
  elimination.Add(*denial);
  const Facts facts = FactsFor(dim, given);
  for (const Dim& fact : facts.dims()) elimination.Add(fact);
  return elimination.IsInfeasible();
}

// `dim` with an atom replaced, where it occurs outside other atoms.
absl::StatusOr<Dim> ReplaceAtom(const Dim& dim, const DimAtom& atom,
                                const Dim& value) {
  Dim result;
  for (const DimTerm& term : DimTerms(dim)) {
    DimTerm rest = {{}, term.coefficient};
    int power = 0;
    for (const DimFactor& factor : term.monomial) {
      if (DimBuilder::OrderAtoms(*factor.atom, atom) == 0) {
        power = factor.power;
      } else {
        rest.monomial.push_back(factor);
      }
    }
    auto product = DimBuilder::FromTerms({rest});
    for (int i = 0; i < power && product.ok(); ++i) {
      product = Dim::CheckedMul(*product, value);
    }
    if (!product.ok()) return product;
    auto sum = Dim::CheckedAdd(result, *product);
    if (!sum.ok()) return sum;
    result = *sum;
  }
  return result;
}

// Whether each unknown is a product of different variables. Without facts each
// may then be as large as one likes while the others are 0: what the intervals
// do not prove is not true.
bool IsFree(const Dim& dim) {
  for (const DimTerm& term : DimTerms(dim)) {
    for (const DimFactor& factor : term.monomial) {
      if (factor.atom->kind != Kind::kVariable || factor.power != 1) {
        return false;
      }
    }
  }
  return true;
}

bool Prove(const Dim& dim, const std::vector<Dim>& facts, int splits) {
  if (BoundedBelowByZero(dim)) return true;
  if (facts.empty() && IsFree(dim)) return false;
  if (ProveLinearly(dim, facts)) return true;
  if (splits == 0) return false;
  // min and max equal one of their arguments: try each.
  std::vector<DimAtomPtr> atoms;
  CollectAtoms(dim, &atoms);
  for (const DimAtomPtr& atom : atoms) {
    if (atom->kind != Kind::kMin && atom->kind != Kind::kMax) continue;
    return std::all_of(
        atom->args.begin(), atom->args.end(), [&](const Dim& arg) {
          const auto with_arg = ReplaceAtom(dim, *atom, arg);
          return with_arg.ok() && Prove(*with_arg, facts, splits - 1);
        });
  }
  return false;
}

// Typing an op's body asks the same questions over and over, as each rank and
// each choice of attributes does for the next one.
class Proofs {
 public:
  bool Prove(const Dim& dim, const std::vector<Dim>& facts) {
    if (proofs_.size() >= kMaxProofs) proofs_.clear();
    const auto [it, is_new] = proofs_.try_emplace({dim, facts}, false);
    if (is_new) it->second = cleave::Prove(dim, facts, kMaxCaseSplits);
    return it->second;
  }

 private:
  // A quarter of a MiB, or a few of them.
  static constexpr size_t kMaxProofs = 1024;

  struct Question {
    Dim dim;
    std::vector<Dim> facts;
    friend bool operator==(const Question& a, const Question& b) {
      return a.dim == b.dim && a.facts == b.facts;
    }
  };
  struct Hash {
    size_t operator()(const Question& question) const {
      size_t hash = question.dim.Hash();
      for (const Dim& fact : question.facts) hash = 31 * hash + fact.Hash();
      return hash;
    }
  };
  std::unordered_map<Question, bool, Hash> proofs_;
};

}  // namespace

bool ProveNonNegative(const Dim& dim, const std::vector<Dim>& facts) {
  if (BoundedBelowByZero(dim)) return true;
  if (facts.empty() && IsFree(dim)) return false;
  thread_local Proofs proofs;
  return proofs.Prove(dim, facts);
}

}  // namespace cleave
