// ExpressionMaker: random expressions of the index notation. Internal to
// testing/fuzz/differential: generate.cc makes functions of them.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_EXPRESSION_MAKER_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_EXPRESSION_MAKER_H_

#include <string>
#include <vector>

#include "ops/dtype.h"
#include "testing/fuzz/differential/random.h"

namespace cleave::fuzz {

// A tensor in scope. Extents are texts: "n", "3", "n + 1".
struct Array {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::string> shape;
};

// How a function's numbers are made.
struct Style {
  DType dtype = DType::kF32;  // of its numbers
  // Functions with roundings of their own, and division.
  bool rounded = false;
  // Nothing that is not differentiable nearly everywhere, no choice by value.
  // Complex numbers have no order, and are so.
  bool smooth = false;
};

class ExpressionMaker {
 public:
  ExpressionMaker(const Style& style, Random& random)
      : style_(style), random_(random) {}

  struct Index {
    std::string name;
    std::string extent;
  };

  std::vector<Array>& arrays() { return arrays_; }
  std::vector<std::string>& sizes() { return sizes_; }
  std::vector<Index>& scope() { return scope_; }

  // A name that nothing has.
  std::string Fresh(const std::string& stem);
  std::string AnySize();
  // A new index in scope; `<name> < <extent>` is its binder.
  Index Bind(const std::string& extent);
  static std::string Binder(const Index& index);

  // A number of the style's dtype.
  std::string Number(int depth);
  // An integer: indices, sizes, constants, and elements of i64 arrays.
  std::string Whole(int depth);
  std::string Condition(int depth);
  // Without operands: fits the dtype.
  std::string Literal();

 private:
  std::string Arithmetic(int depth);
  std::string IntegerOperation(int depth);
  std::string FloatOperation(int depth);
  std::string ComplexOperation(int depth);
  std::string Reduction(int depth);
  // An element of `array`, with a value in its place where it may be absent.
  std::string Read(const Array& array, int depth, const std::string& otherwise);
  // An index of that extent that is in scope; empty where there is none.
  std::string IndexOf(const std::string& extent);
  const Array* AnyArray(DType dtype);
  bool IsUnsigned() const {
    return IsInt(style_.dtype) && !IsSigned(style_.dtype);
  }

  const Style style_;
  Random& random_;
  std::vector<Array> arrays_;
  std::vector<std::string> sizes_;
  std::vector<Index> scope_;
  int names_ = 0;
};

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_EXPRESSION_MAKER_H_
