#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "ops/dtype.h"
#include "ops/exact.h"
#include "testing/check/samples/signature_sampler.h"

namespace cleave {
namespace {

// Ranks of packs beside other axes, the commonest first.
constexpr int64_t kPackRanks[] = {1, 0, 2};

bool HasName(const Expr& expr, const std::string& name) {
  if (expr.kind == ExprKind::kName && expr.text == name) return true;
  return std::any_of(
      expr.children.begin(), expr.children.end(),
      [&name](const ExprPtr& child) { return HasName(*child, name); });
}

}  // namespace

void SignatureSampler::AddPackRanks() {
  std::set<std::string> names;
  for (const InputDecl& input : item_.inputs) {
    if (input.is_static) continue;
    // The pack of an input that may be absent, a weight, say, broadcasts with
    // others: a rule may go by its rank alone.
    if (input.type.axes.size() < 2 && !input.optional) continue;
    for (const AxisExpr& axis : input.type.axes) {
      if (axis.is_new || axis.size->kind != ExprKind::kSpread) continue;
      const Expr& list = *axis.size->children[0];
      if (list.kind == ExprKind::kName && names.insert(list.text).second) {
        factors_.push_back({list.text, FactorKind::kPackRank, {}, {}});
      }
    }
  }
}

bool SignatureSampler::IsDefaults(const std::vector<int>& row) const {
  for (size_t f = 0; f < factors_.size(); ++f) {
    if (factors_[f].kind != FactorKind::kPackRank && row[f] != 0) return false;
  }
  return true;
}

std::vector<int> SignatureSampler::FactorSizes() const {
  std::vector<int> sizes;
  for (const Factor& factor : factors_) {
    switch (factor.kind) {
      case FactorKind::kAttribute:
        sizes.push_back(
            static_cast<int>(factor.values.size() + factor.axes.size()));
        break;
      case FactorKind::kInput:
        sizes.push_back(2);
        break;
      case FactorKind::kPackRank:
        sizes.push_back(std::size(kPackRanks));
        break;
    }
  }
  return sizes;
}

std::optional<int> SignatureSampler::ChoiceOf(
    const std::string& name, FactorKind kind,
    const DrawOptions& options) const {
  if (!options.row) return std::nullopt;
  for (size_t f = 0; f < factors_.size(); ++f) {
    if (factors_[f].name == name && factors_[f].kind == kind) {
      return (*options.row)[f];
    }
  }
  return std::nullopt;
}

std::optional<int64_t> SignatureSampler::PackRankOf(
    const std::string& name, const DrawOptions& options) const {
  const auto choice = ChoiceOf(name, FactorKind::kPackRank, options);
  if (!choice) return std::nullopt;
  return kPackRanks[*choice];
}

std::optional<SignatureSampler::AxesChoice> SignatureSampler::AxesChoiceOf(
    const std::string& name, const DrawOptions& options) const {
  const std::optional<int> choice =
      ChoiceOf(name, FactorKind::kAttribute, options);
  for (const Factor& factor : factors_) {
    if (choice && factor.name == name && !factor.axes.empty()) {
      return factor.axes[*choice];
    }
  }
  return std::nullopt;
}

SignatureSampler::Decided SignatureSampler::WhatDecides(
    const std::string& name, const DrawOptions& options) const {
  for (const WhereClause& where : item_.where) {
    if (where.variable != name) continue;
    const auto wanted = ParseDTypeClass(where.dtype_class);
    const bool drawn = asked_.count(name) != 0 || !options.dtype.has_value() ||
                       (wanted.ok() && !InClass(*options.dtype, *wanted));
    return drawn ? Decided::kDrawn : Decided::kGiven;
  }
  for (const InputDecl& input : item_.inputs) {
    if (input.name == name &&
        (input.is_static || !input.variadic_index.empty())) {
      return Decided::kDrawn;
    }
    for (const AxisExpr& axis : input.type.axes) {
      if (axis.size == nullptr || !HasName(*axis.size, name)) continue;
      return options.shape.has_value() || fixed_sizes_.count(name) != 0
                 ? Decided::kGiven
                 : Decided::kDrawn;
    }
  }
  const bool is_attribute = std::any_of(
      item_.attributes.begin(), item_.attributes.end(),
      [&](const AttributeDecl& attribute) { return attribute.name == name; });
  return is_attribute ? Decided::kDrawn : Decided::kNothing;
}

bool SignatureSampler::Move(const std::set<std::string>& names,
                            const std::vector<int>& kept, DrawOptions& options,
                            Blame& blame) {
  options.redrawn.emplace();
  blame = {};
  std::vector<std::string> drawn;
  std::vector<size_t> moved;
  bool others = false;
  for (const std::string& name : names) {
    bool decided = false;
    for (size_t f = 0; f < factors_.size(); ++f) {
      if (factors_[f].name != name || !options.row) continue;
      const bool is_kept = std::find(kept.begin(), kept.end(),
                                     static_cast<int>(f)) != kept.end();
      blame.factors.push_back(static_cast<int>(f));
      if (!is_kept) moved.push_back(f);
      // The extents of a pack of some rank are drawn.
      decided |= factors_[f].kind != FactorKind::kPackRank;
    }
    if (decided) continue;
    const Decided by = WhatDecides(name, options);
    if (by == Decided::kDrawn) drawn.push_back(name);
    others |= by == Decided::kGiven;
  }
  blame.alone = !others && drawn.empty();
  const int64_t count = static_cast<int64_t>(drawn.size() + moved.size());
  if (count == 0) return false;
  const size_t chosen = static_cast<size_t>(Uniform(0, count - 1));
  if (chosen < drawn.size()) {
    options.redrawn->insert(drawn[chosen]);
    return true;
  }
  const size_t factor = moved[chosen - drawn.size()];
  (*options.row)[factor] =
      static_cast<int>(Uniform(0, FactorSizes()[factor] - 1));
  options.redrawn->insert(factors_[factor].name);
  return true;
}

namespace {

// Whether `dtype` has the number; any integer is a bool.
bool HasDType(const Exact& number, DType dtype) {
  if (IsFloat(dtype)) return true;
  if (!number.IsInteger()) return false;
  if (!IsInt(dtype)) return true;
  const int bits = 8 * ByteSize(dtype) - (IsSigned(dtype) ? 1 : 0);
  const Exact end = Exact::Pow(2, bits);
  return number < end && (IsSigned(dtype) ? -end : Exact(0)) <= number;
}

}  // namespace

bool HasNumberThatIntsLack(const SampledCall& call) {
  for (const auto& [name, value] : call.attributes.values()) {
    if (value.kind() != StaticValue::Kind::kReal) continue;
    for (const auto& [variable, dtype] : call.dtypes) {
      if (!HasDType(value.AsReal(), dtype)) return true;
    }
  }
  return false;
}

}  // namespace cleave
