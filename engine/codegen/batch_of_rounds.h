// Batch: the nodes of a graph that compute a batch of products, or the rows of
// one product, and how a round computes a part of them. Internal to
// RoundsOfBatches.

#ifndef CLEAVE_ENGINE_CODEGEN_BATCH_OF_ROUNDS_H_
#define CLEAVE_ENGINE_CODEGEN_BATCH_OF_ROUNDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/codegen/rounds_of_batches.h"
#include "engine/ir/graph.h"

namespace cleave::internal_rounds {

using Extents = std::vector<int64_t>;

// A round has a part of these.
enum class Part {
  kBatch,  // the products
  kRows,   // the rows of one product's left operand: the right one is read
           // whole
};

// `beside_small`: what rounds of rows read as a whole is small.
const RoundBytes& BytesOf(Part part, bool beside_small);

// The bytes of a value; nullopt where an extent is open.
std::optional<int64_t> BytesOf(const TensorType& type);

// The first extents of a contraction's result, which number its products, or
// its only product's rows; nullopt where not both operands have them in front.
std::optional<Extents> ExtentsOf(const Graph& graph, Value v, Part part);

// The nodes of one batch, or of one product's rows, and what they read. Borrows
// the graph.
class Batch {
 public:
  Batch(const Graph& graph, Extents extents, Part part);

  Part part() const { return part_; }
  int rank() const { return static_cast<int>(extents_.size()); }
  // Products, or rows.
  int64_t count() const;

  // Whether a node computes each element of the batch by itself, or is a total.
  bool Has(Value v) const;

  // Whether a node is a product that adds up the rows of both operands, as the
  // gradient of a product's right operand does: a round has a part of the sum.
  bool IsTotal(Value v) const;

  // Whether a node of the batch reads that operand as a whole: a broadcast that
  // repeats it along the batch, or a product of rows its right one.
  bool ReadsWhole(Value v, size_t operand) const;

  // The type of a value in a round of so many: that axis is in place of the
  // batch; a total has none.
  TensorType Round(Value v, int64_t count) const;

  // The type of an operand that is read whole, without the axes of 1 in front
  // of the rows.
  TensorType Whole(Value reader, Value operand) const;

  // The attributes of a node over such values, of that type.
  Attributes RoundAttributes(Value v, const TensorType& type) const;

 private:
  bool Leads(Value v) const;
  int Leading(Value v) const;
  bool IsUniform(Value v) const;
  bool KeepsBatch(Value v) const;
  bool MovesRows(Value v) const;
  Attributes ProductAttributes(Value v) const;
  std::vector<int64_t> Shifted(Value v, const char* name) const;

  const Graph& graph_;
  const Extents extents_;
  const Part part_;
};

}  // namespace cleave::internal_rounds

#endif  // CLEAVE_ENGINE_CODEGEN_BATCH_OF_ROUNDS_H_
