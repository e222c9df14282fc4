#include "transforms/aot/specialization.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/status_macros.h"
#include "transforms/aot/checked_graph.h"

namespace cleave::aot {
namespace {

// Whether the extents have the same numbers, or are the same polynomial.
bool SameExtent(const Dim& a, const Dim& b) {
  const std::optional<int64_t> value = a.Value();
  return value.has_value() ? value == b.Value() : a == b;
}

bool SameType(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && a.shape.size() == b.shape.size() &&
         std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(),
                    SameExtent);
}

// The part of a signature that messages tell.
std::string Describe(const CallSignature& call) {
  const std::vector<std::string> names = LeafNames(call.arguments, "x");
  std::vector<std::string> leaves;
  for (size_t i = 0; i < call.leaves.size(); ++i) {
    leaves.push_back(absl::StrCat(names[i], ": ",
                                  call.leaves[i].type().ToString(),
                                  call.requires_gradient[i] ? " gradient" : "",
                                  call.shared[i] ? " shared" : ""));
  }
  return absl::StrJoin(leaves, ", ");
}

}  // namespace

CallSignature::CallSignature(const Tree& arguments,
                             const std::vector<bool>& requires_gradient,
                             bool traced, bool write_in_graph)
    : arguments(arguments.shape()),
      leaves(arguments.leaves()),
      requires_gradient(requires_gradient),
      traced(traced),
      write_in_graph(write_in_graph),
      first(FirstOfStorage(leaves)),
      shared(leaves.size()) {
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i] == static_cast<int>(i)) continue;
    shared[i] = true;
    shared[first[i]] = true;
  }
}

Specialization::Specialization(const CallSignature& call)
    : traced(call.traced),
      requires_gradient(call.requires_gradient),
      first(call.first),
      views(call.leaves.size()) {
  for (size_t i = 0; i < views.size(); ++i) {
    if (call.ViewMatters(i)) views[i] = call.leaves[i].view();
  }
}

void Specialization::SetTypes(std::vector<TensorType> traced_at,
                              std::vector<std::string> names) {
  types = std::move(traced_at);
  symbols = std::move(names);
  symbol_of_.clear();
  wanted_.clear();
  for (const TensorType& type : types) {
    for (const Dim& extent : type.shape) {
      int symbol = -1;
      if (!traced && !extent.IsConstant()) {
        const auto at =
            std::find(symbols.begin(), symbols.end(), extent.ToString());
        symbol = static_cast<int>(at - symbols.begin());
      }
      symbol_of_.push_back(symbol);
      wanted_.push_back(symbol < 0 ? extent.Value().value_or(0)
                                   : int64_t{-1} - symbol);
    }
  }
  bool shares = false;
  at_once_ = !traced;
  default_gradients_ = true;
  no_gradients_ = true;
  for (size_t i = 0; i < types.size(); ++i) {
    shares |= first[i] != static_cast<int>(i);
    at_once_ &= views[i].IsIdentity();
    default_gradients_ &=
        requires_gradient[i] == InClass(types[i].dtype, DTypeClass::kInexact);
    no_gradients_ &= !requires_gradient[i];
  }
  // The views of leaves that share a storage have numbers for extents.
  at_once_ &= !shares || symbols.empty();
}

bool Specialization::Gives(const GradientRequest& gradients) const {
  if (gradients.none) return no_gradients_;
  if (gradients.leaves == nullptr) return default_gradients_;
  return *gradients.leaves == requires_gradient;
}

bool Specialization::ServesAtOnce(const Tree& arguments,
                                  const GradientRequest& gradients,
                                  Extents* extents) const {
  const std::vector<functional::Tensor>& leaves = arguments.leaves();
  if (!at_once_ || leaves.size() != types.size() || !Gives(gradients)) {
    return false;
  }
  extents->assign(symbols.size(), -1);
  const int64_t* wanted = wanted_.data();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const cleave::Tensor* const value = leaves[i].Known();
    if (value == nullptr || value->dtype() != types[i].dtype ||
        value->shape().size() != types[i].shape.size()) {
      return false;
    }
    for (const int64_t extent : value->shape()) {
      int64_t number = *wanted++;
      if (number < 0) {
        int64_t& known = (*extents)[-1 - number];
        if (known < 0) known = extent;
        number = known;
      }
      if (extent != number) return false;
    }
  }
  return program.arguments == arguments.shape() &&
         SharesStorageAs(leaves, first, &storage_slots_) &&
         CheckGuards(*extents).ok();
}

functional::Tensor Specialization::NewTensor(size_t n,
                                             cleave::Tensor value) const {
  if (n >= made_views_.size()) made_views_.resize(n + 1);
  functional::Tensor made(std::move(value), made_views_[n]);
  if (made_views_[n] != made.view()) made_views_[n] = made.view();
  return made;
}

bool Specialization::ReadExtents(absl::Span<const functional::Tensor> leaves,
                                 Extents* extents) const {
  extents->assign(symbols.size(), -1);
  const int* symbol = symbol_of_.data();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Shape& shape = leaves[i].view().type().shape;
    for (size_t d = 0; d < shape.size(); ++d, ++symbol) {
      const int64_t value = *shape[d].Value();
      if (*symbol < 0) {
        if (types[i].shape[d].Value() != value) return false;
        continue;
      }
      int64_t& known = (*extents)[*symbol];
      if (known < 0) known = value;
      if (known != value) return false;
    }
  }
  return true;
}

absl::Status Specialization::Unfit(
    absl::Span<const functional::Tensor> leaves) const {
  std::vector<DimEquation> equations;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Shape& shape = leaves[i].shape();
    for (size_t d = 0; d < shape.size(); ++d) {
      equations.push_back({types[i].shape[d], *shape[d].Value(),
                           absl::StrCat("axis ", d, " of tensor ", i)});
    }
  }
  DimValues values;
  return BindEquations(std::move(equations), &values);
}

DimValues Specialization::ValuesOf(const Extents& extents) const {
  DimValues values;
  for (size_t i = 0; i < symbols.size(); ++i) {
    values.emplace(symbols[i], extents[i]);
  }
  return values;
}

absl::Status Specialization::CheckGuards(const Extents& extents) const {
  if (guards.empty() || (any_admitted_ && admitted_ == extents)) {
    return absl::OkStatus();
  }
  CLEAVE_RETURN_IF_ERROR(CheckKnownGuards(guards, ValuesOf(extents)));
  admitted_ = extents;
  any_admitted_ = true;
  return absl::OkStatus();
}

SpecializationCache::SpecializationCache(bool dynamic, int64_t limit)
    : dynamic_(dynamic), limit_(std::max<int64_t>(limit, 1)) {}

size_t SpecializationCache::HashOf(const CallSignature& call) const {
  size_t hash = call.traced ? 1 : 0;
  const auto add = [&hash](uint64_t number) {
    hash = (hash ^ number) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  };
  const bool symbolic = IsSymbolic(call);
  for (size_t i = 0; i < call.leaves.size(); ++i) {
    const TensorType& type = call.leaves[i].view().type();
    add(static_cast<uint64_t>(type.dtype) * 2 + call.requires_gradient[i]);
    add(call.first[i]);
    add(type.shape.size());
    if (symbolic) continue;
    for (const Dim& extent : type.shape) {
      add(extent.Value().has_value() ? *extent.Value() : extent.Hash());
    }
  }
  return hash;
}

bool SpecializationCache::Fits(const Specialization& one,
                               const CallSignature& call) const {
  if (one.traced != call.traced || one.types.size() != call.leaves.size() ||
      one.requires_gradient != call.requires_gradient ||
      one.first != call.first || one.program.arguments != call.arguments) {
    return false;
  }
  const bool symbolic = IsSymbolic(call);
  for (size_t i = 0; i < call.leaves.size(); ++i) {
    const TensorType& type = call.leaves[i].view().type();
    const bool same = symbolic ? type.dtype == one.types[i].dtype &&
                                     type.rank() == one.types[i].rank()
                               : SameType(type, one.types[i]);
    if (!same) return false;
    if (call.ViewMatters(i) && one.views[i] != call.leaves[i].view()) {
      return false;
    }
  }
  return true;
}

bool SpecializationCache::Serves(const Specialization& one,
                                 const CallSignature& call,
                                 Found* found) const {
  if (!Fits(one, call)) return false;
  if (!IsSymbolic(call)) return true;
  if (!one.ReadExtents(call.leaves, &found->extents)) {
    found->why = std::string(one.Unfit(call.leaves).message());
    return false;
  }
  const absl::Status admitted = one.CheckGuards(found->extents);
  if (!admitted.ok()) found->why = std::string(admitted.message());
  return admitted.ok();
}

SpecializationCache::Found SpecializationCache::Find(
    const CallSignature& call) {
  Found found;
  if (entries_.empty()) {
    found.why = "first call";
    return found;
  }
  if (Serves(*entries_.front(), call, &found)) {
    found.specialization = entries_.front();
    return found;
  }
  const auto bucket = by_hash_.find(HashOf(call));
  if (bucket != by_hash_.end()) {
    for (const Entries::iterator& entry : bucket->second) {
      if (!Serves(**entry, call, &found)) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      found.specialization = *entry;
      return found;
    }
  }
  if (found.why.empty()) {
    found.why = absl::StrCat("no trace for ", Describe(call));
  }
  return found;
}

void SpecializationCache::Insert(std::shared_ptr<Specialization> made,
                                 const CallSignature& call) {
  made->number = made_++;
  made->hash = HashOf(call);
  entries_.push_front(std::move(made));
  by_hash_[entries_.front()->hash].push_back(entries_.begin());
  if (size() <= limit_) return;
  const auto last = std::prev(entries_.end());
  const auto bucket = by_hash_.find((*last)->hash);
  auto& same = bucket->second;
  same.erase(std::find(same.begin(), same.end(), last));
  if (same.empty()) by_hash_.erase(bucket);
  entries_.pop_back();
}

std::vector<std::shared_ptr<const Specialization>>
SpecializationCache::InOrder() const {
  std::vector<std::shared_ptr<const Specialization>> all(entries_.begin(),
                                                         entries_.end());
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a->number < b->number; });
  return all;
}

}  // namespace cleave::aot
