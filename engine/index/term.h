// Term: a rule body after static evaluation, before lowering to a graph. Static
// conditions are decided, defs inlined, folds unrolled, shapes known (symbolic
// or not); dtypes are variables under unification until the body is complete,
// so that literals and indices take the dtype that their place asks for.
//
// Two levels live in one tree. Array terms have a shape. Element terms stand
// inside a comprehension or reduction, for one value of its index variables:
// their shape is empty and `indices` of enclosing binders are in scope.
// An array inside an element is the first child of a kRead (of a scalar, a
// kRead without indices); array terms are closed: no index of a binder around
// them occurs in them. Terms are shared, and lowered once each.

#ifndef CLEAVE_ENGINE_INDEX_TERM_H_
#define CLEAVE_ENGINE_INDEX_TERM_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {

// A dtype to be found: union-find with at most one dtype per class. A class
// that is still open when a body is complete becomes i64.
class DTypeVariable {
 public:
  static std::shared_ptr<DTypeVariable> Open();
  static std::shared_ptr<DTypeVariable> Known(DType dtype);
  // False where the two are known and differ.
  static bool Unify(const std::shared_ptr<DTypeVariable>& a,
                    const std::shared_ptr<DTypeVariable>& b);
  // Whether the two are one dtype, known or not.
  static bool Same(const std::shared_ptr<DTypeVariable>& a,
                   const std::shared_ptr<DTypeVariable>& b);
  // Nullopt while open.
  std::optional<DType> dtype() const;

  // Not by recursion, as Term.
  ~DTypeVariable();

 private:
  const DTypeVariable* Root() const;
  mutable std::shared_ptr<DTypeVariable> parent_;
  std::optional<DType> dtype_;
};
using DTypePtr = std::shared_ptr<DTypeVariable>;

// An index variable with the range [0, extent), known once the equation that
// binds it is complete.
struct IndexVariable {
  std::string name;
  Dim extent;
};
using IndexPtr = std::shared_ptr<const IndexVariable>;

struct Term;
using TermPtr = std::shared_ptr<const Term>;

enum class TermKind : uint8_t {
  // Array terms.
  kValue,          // value: already in the graph
  kParameter,      // an input of the region that is being lowered
  kComprehension,  // indices; children: element. Shape: their extents
  kCall,           // a composite op or structured primitive: `call`
  kResult,         // children: call with several results; index
  // Element terms.
  kIndex,        // indices[0]: its value
  kRead,         // children: array, then one index element per axis;
                 // fill: read where an index is out of range; null: an error
  kReduce,       // reduction; indices; children: element[, condition]
  kCallElement,  // a composite op, `call`, of elements: children, all scalars
  // Both: array terms with broadcasting, or element terms.
  kNumber,     // number: an exact constant, shape []
  kDim,        // dim: an extent as a number, shape []
  kPointwise,  // primitive, attributes (a convert's dtype is the term's);
               // children
  kZero,       // a symbolic zero (of a tangent that is zero)
};

enum class Reduction : uint8_t {
  kSum,
  kProd,
  kMax,
  kMin,
  kArgmax,
  kArgmin,
  kAny,
  kAll
};

// How the axes of an array were written: single axes and packs, in order. It
// tells which axes `x[a.., i, b..]` means where the rank alone does not.
struct AxisGroup {
  bool pack = false;
  int length = 1;
};

// A region: terms over its parameters (kParameter) and over terms around it,
// which are captured.
struct RegionTerm {
  uint32_t first_order = 0;  // terms with a smaller `order` are around it
  std::vector<TermPtr> parameters;
  std::vector<TermPtr> results;
};

// The type of one result; the dtype may still be open.
struct TermType {
  DTypePtr dtype;
  Shape shape;
  std::vector<AxisGroup> groups;  // empty: not known
};

struct BoundCall;  // engine/elaborate/signature.h

// The callee of a kCall or kCallElement: a composite op by its name, or a
// structured primitive. The operands are the term's children.
struct CallTerm {
  std::string op;  // empty: `primitive`
  // The call of a composite op as it was bound, or, for a derivative, that of
  // the op itself. It lives as long as the Elaborator that made the term.
  const BoundCall* bound = nullptr;
  Primitive primitive{};
  Attributes attributes;            // of a primitive or a derivative
  std::vector<RegionTerm> regions;  // then, else; body; cond, body
  std::vector<TermType> results;    // those that are present
};

struct Term {
  TermKind kind = TermKind::kNumber;
  DTypePtr dtype;
  Shape shape;  // of array terms; empty for elements
  std::vector<TermPtr> children;
  TermPtr fill;                          // kRead
  Value value;                           // kValue
  Primitive primitive{};                 // kPointwise
  Attributes attributes;                 // kPointwise
  std::vector<IndexPtr> indices;         // kComprehension, kReduce, kIndex
  Reduction reduction{};                 // kReduce
  bool tie_first = false;                // kReduce max, min: @tie(first)
  Exact number;                          // kNumber
  Dim dim;                               // kDim
  std::shared_ptr<const CallTerm> call;  // kCall, kCallElement
  int index = 0;                         // kResult
  ProvenanceId provenance = 0;           // of the nodes that it becomes
  // The index variables that occur free, ascending by address.
  std::vector<const IndexVariable*> free;
  std::vector<AxisGroup> groups;  // of array terms; empty: not known
  uint32_t order = 0;             // in which terms were made
  // How deep the expression of an element nests; 0 of arrays.
  int height = 0;

  Term() = default;
  Term(const Term&) = default;
  Term(Term&&) = default;
  Term& operator=(const Term&) = default;
  Term& operator=(Term&&) = default;
  // Not by recursion: a fold makes chains of thousands of terms.
  ~Term();
};

// The DType of a term whose body is complete.
DType ResolvedDType(const Term& term);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_INDEX_TERM_H_
