// Context: the tables that graphs of one engine share. Types, attributes, op
// names and provenances are interned, so that a node is a few small integers
// and comparing them compares what they stand for.
//
// Not thread-safe while interning; lookups of existing ids are.

#ifndef CLEAVE_ENGINE_IR_CONTEXT_H_
#define CLEAVE_ENGINE_IR_CONTEXT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
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
  std::deque<std::vector<TensorType>> types_;
  absl::flat_hash_map<std::vector<TensorType>, TypeId> type_ids_;
  std::deque<Attributes> attributes_;
  absl::flat_hash_map<Attributes, AttributesId> attribute_ids_;
  std::deque<std::string> composites_;
  absl::flat_hash_map<std::string, OpId> op_ids_;
  std::deque<Provenance> provenances_;
  absl::flat_hash_map<Provenance, ProvenanceId> provenance_ids_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_CONTEXT_H_
