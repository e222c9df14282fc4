#include "engine/ir/context.h"

#include <optional>
#include <utility>

#include "ops/check.h"

namespace cleave {
namespace {

// The id of `value`, which is appended to `values` where it is new.
template <typename T>
uint32_t InternIn(const T& value, std::mutex& mutex, StableVector<T>* values,
                  absl::flat_hash_map<T, uint32_t>* ids) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [it, inserted] =
      ids->try_emplace(value, static_cast<uint32_t>(values->size()));
  if (inserted) values->Append(value);
  return it->second;
}

}  // namespace

Context::Context() {
  Intern(Attributes());  // kNoAttributes
  Intern(Provenance());  // of the caller
}

TypeId Context::Intern(const std::vector<TensorType>& types) {
  return InternIn(types, mutex_, &types_, &type_ids_);
}

TypeId Context::Intern(const TensorType& type) {
  return Intern(std::vector<TensorType>{type});
}

AttributesId Context::Intern(const Attributes& attributes) {
  return InternIn(attributes, mutex_, &attributes_, &attribute_ids_);
}

ProvenanceId Context::Intern(const Provenance& provenance) {
  return InternIn(provenance, mutex_, &provenances_, &provenance_ids_);
}

OpId Context::InternOp(absl::string_view name) {
  if (std::optional<Primitive> primitive = FindPrimitive(name)) {
    return ToOpId(*primitive);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = op_ids_.find(name);
  if (it != op_ids_.end()) return it->second;
  const OpId id = kNumPrimitives + static_cast<OpId>(composites_.Append(
                                       name.data(), name.size()));
  op_ids_.emplace(std::string(name), id);
  return id;
}

absl::string_view Context::op_name(OpId op) const {
  if (IsPrimitive(op)) return PrimitiveName(ToPrimitive(op));
  return composites_[op - kNumPrimitives];
}

std::shared_ptr<Context> ContextReference::Share() const {
  if (owner_ != nullptr || context_ == nullptr) return owner_;
  std::shared_ptr<Context> context = alive_.lock();
  CLEAVE_CHECK(context != nullptr)
      << "a region is used after its context is gone";
  return context;
}

}  // namespace cleave
