// A `rewrite` item as two trees of pointwise primitives: where the left one
// matches a node of a graph, the right one stands for the same value.
//
//   rewrite one_times: 1 * x => x where x: real
//
// Applying rewrites ends, and makes no graph larger: each side is measured by
// its pointwise operations (operands and numbers count nothing), and
// - the right side has fewer of them than the left one,
// - no operand stands on the right side more often than on the left one, so
//   that this holds whatever the operands are,
// - at most one operation on the right side is not on the left one, too, so
//   that a graph has no more operations afterwards where others use the parts
//   of what was replaced.
// CompileRewrite refuses all others.

#ifndef CLEAVE_ENGINE_RULES_REWRITE_RULE_H_
#define CLEAVE_ENGINE_RULES_REWRITE_RULE_H_

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/context.h"
#include "engine/ir/graph.h"
#include "engine/lang/ast.h"
#include "engine/lang/diagnostic.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/tensor_type.h"

namespace cleave {

class Library;

// One node of a side.
struct RewriteNode {
  enum class Kind { kOperand, kNumber, kApply };
  Kind kind = Kind::kOperand;
  int dtype = 0;              // its place in Rewrite::dtypes
  int operand = 0;            // kOperand: its place in Rewrite::operands
  Exact number;               // kNumber; of dtype bool: 0 or 1
  Primitive primitive{};      // kApply: a pointwise one
  AttributesId attributes{};  // kApply; a convert's are its dtype
  std::vector<int> children;  // kApply: places in the side
};

// Children stand before what they are the children of; the root is the last.
using RewriteSide = std::vector<RewriteNode>;

// A dtype of some of the nodes: they have the same one.
struct RewriteDType {
  std::optional<DType> known;
  std::vector<DTypeClass> classes;  // it is in all of them
  bool Allows(DType dtype) const;
};

struct Rewrite {
  const Item* item = nullptr;
  bool real = false;  // true over the reals only: for floats
  std::vector<std::string> operands;
  std::vector<int> operand_dtypes;  // per operand: its place in dtypes
  std::vector<RewriteDType> dtypes;
  RewriteSide left;
  RewriteSide right;
  ProvenanceId provenance = 0;  // of what it makes

  const std::string& name() const { return item->name; }
  // Whether both sides type with `chosen` for the dtypes.
  bool Types(const Context& context, absl::Span<const DType> chosen) const;
};

// The choices of dtypes, one for each of Rewrite::dtypes, at which both sides
// type; `limit` of them at most.
std::vector<std::vector<DType>> TypingChoices(
    const Rewrite& rewrite, const Context& context,
    size_t limit = std::numeric_limits<size_t>::max());

// A side as a graph: inputs are the operands, of `shape`; the output is `y`.
// The dtypes are such that the side types (CHECK).
Graph GraphOfSide(const Rewrite& rewrite, const RewriteSide& side,
                  absl::Span<const DType> chosen, const Shape& shape,
                  std::shared_ptr<Context> context);

// The rewrite, or the mistake: something that is no pointwise arithmetic, sides
// of different dtypes, or that type at none, a right side that is not smaller.
std::variant<Rewrite, Diagnostic> CompileRewrite(const Library& library,
                                                 const Item& item,
                                                 Context& context);

// All rewrites of a library by the primitives of their roots, in the order of
// their names, which is that in which they are tried. CHECKs that they compile:
// loading refuses others.
class RewriteTable {
 public:
  RewriteTable(const Library& library, Context& context);

  absl::Span<const Rewrite* const> RootedAt(Primitive primitive) const {
    return by_root_[static_cast<int>(primitive)];
  }
  // Null if there is none of that name.
  const Rewrite* Find(absl::string_view name) const;

 private:
  std::vector<std::unique_ptr<const Rewrite>> all_;
  std::vector<std::vector<const Rewrite*>> by_root_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_REWRITE_RULE_H_
