// Context: the tables that graphs of one engine share. Types, attributes, op
// names and provenances are interned, so that a node is a few small integers
// and comparing them compares what they stand for.
//
// Ownership: graphs own their context. The attributes in its tables may hold
// regions, which are graphs of the same context: those borrow it, since it
// would own itself else (see MakeRegion in graph_text.h).
//
// Thread-safe. Ids are looked up without a lock; interning takes one.

#ifndef CLEAVE_ENGINE_IR_CONTEXT_H_
#define CLEAVE_ENGINE_IR_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "engine/ir/stable_vector.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave {

// A primitive (its enumerator) or a composite op (kNumPrimitives + number).
using OpId = uint32_t;
using TypeId = uint32_t;
using AttributesId = uint32_t;
// 0 is "of the caller": written by hand or traced.
using ProvenanceId = uint32_t;

inline constexpr AttributesId kNoAttributes = 0;

inline bool IsPrimitive(OpId op) { return op < kNumPrimitives; }
inline OpId ToOpId(Primitive p) { return static_cast<OpId>(p); }
inline Primitive ToPrimitive(OpId op) { return static_cast<Primitive>(op); }

// Where a node comes from: a rule, and the place of the expression in it.
struct Provenance {
  std::string rule;  // "softplus", "jvp tanh", "vmap reduce_sum"
  std::string file;
  int line = 0;
  friend bool operator==(const Provenance& a, const Provenance& b) {
    return a.rule == b.rule && a.file == b.file && a.line == b.line;
  }
  template <typename H>
  friend H AbslHashValue(H h, const Provenance& p) {
    return H::combine(std::move(h), p.rule, p.file, p.line);
  }
};

class Context {
 public:
  Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Ops have one TensorType per result; more than one is a tuple type.
  TypeId Intern(const std::vector<TensorType>& types);
  TypeId Intern(const TensorType& type);
  AttributesId Intern(const Attributes& attributes);
  OpId InternOp(absl::string_view name);  // primitives by their names, too
  ProvenanceId Intern(const Provenance& provenance);

  const std::vector<TensorType>& types(TypeId id) const { return types_[id]; }
  const Attributes& attributes(AttributesId id) const {
    return attributes_[id];
  }
  absl::string_view op_name(OpId op) const;
  const Provenance& provenance(ProvenanceId id) const {
    return provenances_[id];
  }

 private:
  // Guards the maps, and appending to the vectors.
  std::mutex mutex_;
  StableVector<std::vector<TensorType>> types_;
  absl::flat_hash_map<std::vector<TensorType>, TypeId> type_ids_;
  StableVector<Attributes> attributes_;
  absl::flat_hash_map<Attributes, AttributesId> attribute_ids_;
  StableVector<std::string> composites_;
  absl::flat_hash_map<std::string, OpId> op_ids_;
  StableVector<Provenance> provenances_;
  absl::flat_hash_map<Provenance, ProvenanceId> provenance_ids_;
};

// A graph's hold on its context: a share of it, or, in a region, none. A copy
// always owns; a move keeps what there was.
class ContextReference {
 public:
  ContextReference() = default;
  explicit ContextReference(std::shared_ptr<Context> context)
      : context_(context.get()), alive_(context), owner_(std::move(context)) {}
  ContextReference(const ContextReference& other)
      : ContextReference(other.Share()) {}
  ContextReference& operator=(const ContextReference& other) {
    return *this = ContextReference(other);
  }
  ContextReference(ContextReference&& other)
      : context_(std::exchange(other.context_, nullptr)),
        alive_(std::move(other.alive_)),
        owner_(std::move(other.owner_)) {}
  ContextReference& operator=(ContextReference&& other) {
    context_ = std::exchange(other.context_, nullptr);
    alive_ = std::move(other.alive_);
    owner_ = std::move(other.owner_);
    return *this;
  }

  // Borrows from here on: somebody else must own the context.
  void StopOwning() { owner_.reset(); }

  // Null where it borrows, or where there is no context.
  const std::shared_ptr<Context>& owner() const { return owner_; }
  // CHECKs that a borrowed context still lives.
  std::shared_ptr<Context> Share() const;

  // Unchecked: valid while the context lives.
  Context* get() const { return context_; }
  Context& operator*() const { return *context_; }
  Context* operator->() const { return context_; }

 private:
  Context* context_ = nullptr;
  std::weak_ptr<Context> alive_;
  std::shared_ptr<Context> owner_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_CONTEXT_H_
