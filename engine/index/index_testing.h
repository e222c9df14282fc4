// For tests of index notation: element terms written as C++ expressions, an
// oracle that evaluates them by nested loops, and a run through the lowering
// and the interpreter.
//
//   IndexTest t(/*symbolic=*/true, /*seed=*/1);
//   const Dim n = t.Extent("n", 5);
//   const Array x = t.Input("x", DType::kF32, {n});
//   const Index i("i", n), j("j", n);
//   t.Check({i}, Sum({j}, x(j), j <= i));     // against the oracle
//   EXPECT_EQ(t.Structure(), "linear_scan");

#ifndef CLEAVE_ENGINE_INDEX_INDEX_TESTING_H_
#define CLEAVE_ENGINE_INDEX_INDEX_TESTING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/index/term_builder.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"

namespace cleave {

// An element. Numbers take the dtype of the element that they meet.
struct Elem {
  TermPtr term;

  DType dtype() const { return ResolvedDType(*term); }
  // A read's value where it is out of range.
  Elem Or(const Elem& fill) const;
  Elem Or(double fill) const;
};

struct Index : Elem {
  IndexPtr index;
  Index(const std::string& name, const Dim& extent);
};

struct Array {
  TermPtr term;

  template <typename... Indices>
  Elem operator()(const Indices&... indices) const {
    return Read({ToElem(indices)...});
  }
  Elem Read(const std::vector<Elem>& indices) const;

 private:
  static Elem ToElem(const Elem& elem) { return elem; }
  static Elem ToElem(int64_t place) {
    return {NumberTerm(Exact(place), DType::kI64)};
  }
};

Elem Num(double value, DType dtype);
Elem Size(const Dim& dim, DType dtype = DType::kI64);
Elem Convert(const Elem& a, DType dtype);
Elem Select(const Elem& c, const Elem& a, const Elem& b);
Elem Apply(Primitive primitive, const Elem& a);
Elem Reduce(Reduction reduction, const std::vector<Index>& indices,
            const Elem& element, const std::optional<Elem>& condition);
Array Comprehension(const std::vector<Index>& indices, const Elem& element);

inline Elem Sum(const std::vector<Index>& indices, const Elem& element,
                const std::optional<Elem>& condition = std::nullopt) {
  return Reduce(Reduction::kSum, indices, element, condition);
}
inline Elem Max(const std::vector<Index>& indices, const Elem& element,
                const std::optional<Elem>& condition = std::nullopt) {
  return Reduce(Reduction::kMax, indices, element, condition);
}

// Operators between elements, and with numbers and sizes on the right.
#define CLEAVE_ELEM_OPERATOR(op)                  \
  Elem operator op(const Elem& a, const Elem& b); \
  Elem operator op(const Elem& a, const Dim& b);  \
  Elem operator op(const Elem& a, int b);
CLEAVE_ELEM_OPERATOR(+)
CLEAVE_ELEM_OPERATOR(-)
CLEAVE_ELEM_OPERATOR(*)
CLEAVE_ELEM_OPERATOR(/)  // floor division of integers
CLEAVE_ELEM_OPERATOR(%)
CLEAVE_ELEM_OPERATOR(==)
CLEAVE_ELEM_OPERATOR(!=)
CLEAVE_ELEM_OPERATOR(<)
CLEAVE_ELEM_OPERATOR(<=)
CLEAVE_ELEM_OPERATOR(>)
CLEAVE_ELEM_OPERATOR(>=)
#undef CLEAVE_ELEM_OPERATOR
Elem operator&&(const Elem& a, const Elem& b);
Elem operator||(const Elem& a, const Elem& b);

class IndexTest {
 public:
  // Extents are variables if `symbolic`, else numbers.
  IndexTest(bool symbolic, uint32_t seed);
  ~IndexTest();

  Dim Extent(const std::string& name, int64_t value);
  // Small integers as values, so that no order of adding rounds.
  Array Input(const std::string& name, DType dtype, const Shape& shape,
              int64_t least = -4, int64_t greatest = 4);
  Array Input(const std::string& name, const Shape& shape, Tensor value);
  // A number in [least, greatest].
  int64_t Random(int64_t least, int64_t greatest);

  // The array's value by the lowering and the interpreter.
  absl::StatusOr<Tensor> Run(const Array& array);
  // The same by nested loops.
  absl::StatusOr<Tensor> Expected(const Array& array);
  // Expects both to be equal, or both to be errors.
  void Check(const std::vector<Index>& indices, const Elem& element);
  void Check(const Array& array);

  // The names of the nodes of the last graph that ran, in order, without leaves
  // and pointwise ones: "slice reduce_sum".
  std::string Structure() const;
  std::string GraphText() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_INDEX_INDEX_TESTING_H_
