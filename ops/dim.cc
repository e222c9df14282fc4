#include "ops/dim.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "ops/dim_internal.h"
#include "ops/dim_terms.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_dim::CheckValid;
using internal_dim::IsConstantMonomial;
using internal_dim::TooLarge;
using internal_dim::ValueOrInvalid;

namespace {

using Kind = DimAtom::Kind;

absl::Status Overflow() { return TooLarge("a coefficient exceeds 64 bits"); }

size_t Mix(size_t seed, uint64_t value) {
  // The finaliser of splitmix64: the same in every process.
  uint64_t z = seed + 0x9e3779b97f4a7c15u + value;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<size_t>(z ^ (z >> 31));
}

size_t HashText(absl::string_view text) {
  size_t hash = text.size();
  for (char c : text) hash = Mix(hash, static_cast<unsigned char>(c));
  return hash;
}

int Nodes(const Dim& dim) {
  const auto* rep = DimBuilder::Get(dim);
  return rep == nullptr ? 1 : rep->nodes;
}

}  // namespace

namespace internal_dim {

absl::Status TooLarge(absl::string_view what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("a symbolic size is too large: ", what));
}

Dim ValueOrInvalid(absl::StatusOr<Dim> dim) {
  if (ABSL_PREDICT_FALSE(!dim.ok())) {
    return Dim::Invalid(std::move(dim).status());
  }
  return *std::move(dim);
}

}  // namespace internal_dim

int DimBuilder::OrderAtoms(const DimAtom& a, const DimAtom& b) {
  if (&a == &b) return 0;
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.kind == Kind::kVariable) {
    const int order = a.name.compare(b.name);
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  if (a.args.size() != b.args.size()) {
    return a.args.size() < b.args.size() ? -1 : 1;
  }
  for (size_t i = 0; i < a.args.size(); ++i) {
    const int order = Dim::Order(a.args[i], b.args[i]);
    if (order != 0) return order;
  }
  return 0;
}

int DimBuilder::Degree(const DimMonomial& monomial) {
  int degree = 0;
  for (const DimFactor& factor : monomial) degree += factor.power;
  return degree;
}

// Graded lexicographic: a monomial order, so leading terms multiply.
int DimBuilder::OrderMonomials(const DimMonomial& a, const DimMonomial& b) {
  const int degree_a = Degree(a), degree_b = Degree(b);
  if (degree_a != degree_b) return degree_a < degree_b ? -1 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    // The atom that comes first is the larger one.
    const int order = OrderAtoms(*a[i].atom, *b[i].atom);
    if (order != 0) return order < 0 ? 1 : -1;
    if (a[i].power != b[i].power) return a[i].power < b[i].power ? -1 : 1;
  }
  return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

absl::StatusOr<DimMonomial> DimBuilder::Product(const DimMonomial& a,
                                                const DimMonomial& b) {
  if (Degree(a) + Degree(b) > kMaxDimDegree) {
    return TooLarge(absl::StrCat("its degree exceeds ", kMaxDimDegree));
  }
  DimMonomial result;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const int order = i == a.size()   ? 1
                      : j == b.size() ? -1
                                      : OrderAtoms(*a[i].atom, *b[j].atom);
    result.push_back(order <= 0 ? a[i] : b[j]);
    if (order == 0) result.back().power += b[j].power;
    i += order <= 0;
    j += order >= 0;
  }
  return result;
}

std::optional<DimMonomial> DimBuilder::Quotient(const DimMonomial& a,
                                                const DimMonomial& b) {
  DimMonomial result;
  size_t j = 0;
  for (const DimFactor& factor : a) {
    int power = factor.power;
    if (j < b.size() && OrderAtoms(*factor.atom, *b[j].atom) == 0) {
      power -= b[j++].power;
      if (power < 0) return std::nullopt;
    }
    if (power > 0) result.push_back({factor.atom, power});
  }
  if (j < b.size()) return std::nullopt;
  return result;
}

std::vector<DimTerm> DimBuilder::Terms(const Dim& dim) {
  if (dim.rep_ != nullptr) return dim.rep_->terms;
  if (dim.constant_ == 0) return {};
  return {{{}, dim.constant_}};
}

absl::StatusOr<Dim> DimBuilder::FromTerms(std::vector<DimTerm> terms) {
  if (terms.size() > 1) {
    std::sort(terms.begin(), terms.end(),
              [](const DimTerm& a, const DimTerm& b) {
                return OrderMonomials(a.monomial, b.monomial) > 0;
              });
  }
  size_t kept = 0;
  for (size_t i = 0; i < terms.size();) {
    __int128 sum = 0;  // of far fewer than 2^63 numbers of 64 bits
    size_t j = i;
    while (
        j < terms.size() &&
        (j == i || OrderMonomials(terms[i].monomial, terms[j].monomial) == 0)) {
      sum += terms[j++].coefficient;
    }
    if (sum != static_cast<int64_t>(sum)) return Overflow();
    if (sum != 0) {
      if (kept != i) terms[kept].monomial = std::move(terms[i].monomial);
      terms[kept++].coefficient = static_cast<int64_t>(sum);
    }
    i = j;
  }
  terms.resize(kept);
  return FromSorted(std::move(terms));
}

absl::StatusOr<Dim> DimBuilder::FromSorted(std::vector<DimTerm> terms) {
  if (terms.empty()) return Dim(0);
  if (IsConstantMonomial(terms[0])) return Dim(terms[0].coefficient);
  if (terms.size() > kMaxDimTerms) {
    return TooLarge(absl::StrCat("it has more than ", kMaxDimTerms, " terms"));
  }
  auto rep = std::make_shared<Dim::Rep>();
  rep->terms = std::move(terms);
  rep->hash = 0x64696d;
  for (const DimTerm& term : rep->terms) {
    rep->hash = Mix(rep->hash, static_cast<uint64_t>(term.coefficient));
    rep->nodes += 1;
    for (const DimFactor& factor : term.monomial) {
      rep->hash = Mix(Mix(rep->hash, factor.atom->hash), factor.power);
      rep->nodes += factor.atom->nodes * factor.power;
    }
    if (rep->nodes > kMaxDimNodes) {
      return TooLarge(
          absl::StrCat("it has more than ", kMaxDimNodes, " nodes"));
    }
  }
  return Dim(std::shared_ptr<const Dim::Rep>(std::move(rep)));
}

absl::StatusOr<Dim> DimBuilder::Sum(const Dim& a, const Dim& b, bool negate) {
  const DimTerms x(a), y(b);
  std::vector<DimTerm> terms;
  terms.reserve(x.size() + y.size());
  const DimTerm* i = x.begin();
  const DimTerm* j = y.begin();
  while (i != x.end() || j != y.end()) {
    const int order = i == x.end()   ? -1
                      : j == y.end() ? 1
                                     : OrderMonomials(i->monomial, j->monomial);
    int64_t sum = 0;
    if (order <= 0 &&
        __builtin_mul_overflow(j->coefficient, negate ? -1 : 1, &sum)) {
      return Overflow();
    }
    if (order >= 0 && __builtin_add_overflow(sum, i->coefficient, &sum)) {
      return Overflow();
    }
    if (sum != 0)
      terms.push_back({order >= 0 ? i->monomial : j->monomial, sum});
    i += order >= 0;
    j += order <= 0;
  }
  return FromSorted(std::move(terms));
}

absl::StatusOr<Dim> DimBuilder::FromAtom(DimAtom atom) {
  atom.hash = Mix(static_cast<size_t>(atom.kind) + 1, HashText(atom.name));
  for (const Dim& arg : atom.args) {
    atom.hash = Mix(atom.hash, arg.Hash());
    atom.nodes += Nodes(arg);
  }
  atom.bounds = AtomBounds(atom);
  return FromTerms(
      {{{{std::make_shared<const DimAtom>(std::move(atom)), 1}}, 1}});
}

Dim::Dim(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}

Dim Dim::Invalid(absl::Status status) {
  auto rep = std::make_shared<Rep>();
  rep->status = status.ok()
                    ? absl::InvalidArgumentError("a size that is a mistake")
                    : std::move(status);
  rep->hash = Mix(HashText(rep->status.message()),
                  static_cast<uint64_t>(rep->status.code()));
  return Dim(std::shared_ptr<const Rep>(std::move(rep)));
}

bool Dim::RepIsValid() const { return rep_->status.ok(); }

absl::Status Dim::status() const {
  return rep_ == nullptr ? absl::OkStatus() : rep_->status;
}

Dim Dim::Variable(absl::string_view name) {
  const auto is_first = [](char c) {
    return absl::ascii_isalpha(c) || c == '_';
  };
  const auto is_next = [&](char c) {
    return is_first(c) || absl::ascii_isdigit(c) || c == '.';
  };
  if (name.empty() || !is_first(name[0]) ||
      !std::all_of(name.begin(), name.end(), is_next)) {
    return Invalid(absl::InvalidArgumentError(absl::StrCat(
        "`", absl::CEscape(name.substr(0, 200)), "` does not name a size")));
  }
  DimAtom atom;
  atom.name = std::string(name);
  return ValueOrInvalid(DimBuilder::FromAtom(std::move(atom)));
}

absl::StatusOr<Dim> Dim::CheckedAdd(const Dim& a, const Dim& b) {
  if (a.IsConstant() && b.IsConstant()) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a.constant_, b.constant_, &sum)) {
      return Overflow();
    }
    return Dim(sum);
  }
  CLEAVE_RETURN_IF_ERROR(CheckValid(a, b));
  if (a == Dim(0)) return b;
  if (b == Dim(0)) return a;
  return DimBuilder::Sum(a, b, /*negate=*/false);
}

absl::StatusOr<Dim> Dim::CheckedSub(const Dim& a, const Dim& b) {
  if (a.IsConstant() && b.IsConstant()) {
    int64_t difference = 0;
    if (__builtin_sub_overflow(a.constant_, b.constant_, &difference)) {
      return Overflow();
    }
    return Dim(difference);
  }
  CLEAVE_RETURN_IF_ERROR(CheckValid(a, b));
  if (b == Dim(0)) return a;
  return DimBuilder::Sum(a, b, /*negate=*/true);
}

absl::StatusOr<Dim> Dim::CheckedMul(const Dim& a, const Dim& b) {
  if (a.IsConstant() && b.IsConstant()) {
    int64_t product = 0;
    if (__builtin_mul_overflow(a.constant_, b.constant_, &product)) {
      return Overflow();
    }
    return Dim(product);
  }
  CLEAVE_RETURN_IF_ERROR(CheckValid(a, b));
  if (a == Dim(1)) return b;
  if (b == Dim(1)) return a;
  const DimTerms left(a), right(b);
  std::vector<DimTerm> terms;
  terms.reserve(left.size() * right.size());
  if (a.IsConstant() || b.IsConstant()) {
    // The order stays.
    const int64_t factor = a.IsConstant() ? a.constant_ : b.constant_;
    for (const DimTerm& x : a.IsConstant() ? right : left) {
      DimTerm term;
      if (__builtin_mul_overflow(x.coefficient, factor, &term.coefficient)) {
        return Overflow();
      }
      if (term.coefficient == 0) continue;
      term.monomial = x.monomial;
      terms.push_back(std::move(term));
    }
    return DimBuilder::FromSorted(std::move(terms));
  }
  for (const DimTerm& x : left) {
    for (const DimTerm& y : right) {
      DimTerm term;
      if (__builtin_mul_overflow(x.coefficient, y.coefficient,
                                 &term.coefficient)) {
        return Overflow();
      }
      CLEAVE_ASSIGN_OR_RETURN(term.monomial,
                              DimBuilder::Product(x.monomial, y.monomial));
      terms.push_back(std::move(term));
    }
  }
  return DimBuilder::FromTerms(std::move(terms));
}

Dim operator+(const Dim& a, const Dim& b) {
  return ValueOrInvalid(Dim::CheckedAdd(a, b));
}
Dim operator-(const Dim& a, const Dim& b) {
  return ValueOrInvalid(Dim::CheckedSub(a, b));
}
Dim operator*(const Dim& a, const Dim& b) {
  return ValueOrInvalid(Dim::CheckedMul(a, b));
}
Dim Dim::operator-() const { return ValueOrInvalid(CheckedMul(*this, -1)); }

int Dim::Order(const Dim& a, const Dim& b) {
  if (a.rep_ == b.rep_) {
    return a.constant_ < b.constant_ ? -1 : a.constant_ > b.constant_ ? 1 : 0;
  }
  // Constants come last, so that min(n, 3) prints in that order.
  if (a.rep_ == nullptr) return 1;
  if (b.rep_ == nullptr) return -1;
  const std::vector<DimTerm>& x = a.rep_->terms;
  const std::vector<DimTerm>& y = b.rep_->terms;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    const int order = DimBuilder::OrderMonomials(x[i].monomial, y[i].monomial);
    if (order != 0) return -order;
    if (x[i].coefficient != y[i].coefficient) {
      return x[i].coefficient < y[i].coefficient ? -1 : 1;
    }
  }
  if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
  if (a.valid()) return 0;
  const absl::Status& p = a.rep_->status;
  const absl::Status& q = b.rep_->status;
  if (p.code() != q.code()) return p.code() < q.code() ? -1 : 1;
  const int order = p.message().compare(q.message());
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.rep_ == nullptr || b.rep_ == nullptr) {
    return a.rep_ == b.rep_ && a.constant_ == b.constant_;
  }
  return a.rep_ == b.rep_ ||
         (a.rep_->hash == b.rep_->hash && Dim::Order(a, b) == 0);
}

size_t Dim::Hash() const {
  return rep_ == nullptr ? Mix(1, static_cast<uint64_t>(constant_))
                         : rep_->hash;
}

}  // namespace cleave
