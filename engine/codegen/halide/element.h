// Elements of tensors as Halide expressions: what one primitive does to one
// element, and how elements lie in memory.
//
// Every operation is IEEE's: Halide's strict intrinsics, never its fast ones;
// an expression means the same bits as the reference kernel wherever IEEE 754
// rounds it, and a library function elsewhere. f16 and bf16 elements are f32
// expressions that hold a value of their type: each operation computes in f32
// (or f64) and rounds once more, which gives the correctly rounded result.
// Internal to this folder.
//
//   Expr x = LoadElement(DType::kBF16, image(i));  // an f32
//   Expr y = *PointwiseElement(Primitive::kExp, {DType::kBF16}, {x}, ...);
//   out(i) = StoreElement(DType::kBF16, y);

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_ELEMENT_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_ELEMENT_H_

#include <vector>

#include "Halide.h"
#include "absl/types/span.h"
#include "engine/codegen/element_support.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {

// The type of an element in a buffer: bool is u8, f16 and bf16 are u16.
Halide::Type StorageType(DType dtype);
// The type of an element in an expression.
Halide::Type ElementType(DType dtype);

Halide::Expr LoadElement(DType dtype, const Halide::Expr& stored);
Halide::Expr StoreElement(DType dtype, const Halide::Expr& element);

// A constant node's element.
Halide::Expr ConstantElement(const Attributes& attributes);
// A number of that dtype that it holds exactly; infinities, too.
Halide::Expr NumberElement(DType dtype, double value);
// The least and the greatest value (infinities of floats).
Halide::Expr LowestElement(DType dtype);
Halide::Expr HighestElement(DType dtype);

// The result's element. The caller has asked CanLowerElement.
Halide::Expr PointwiseElement(Primitive primitive, DType result,
                              absl::Span<const DType> operands,
                              const std::vector<Halide::Expr>& arguments);

// a where the condition holds, else b. Not Halide's select: where the tail of a
// loop reads only one of the two under a predicate, Halide 21 takes the
// condition for one on the loop, and judges it by the order of real numbers,
// which NaN is not in.
Halide::Expr Choose(const Halide::Expr& condition, const Halide::Expr& a,
                    const Halide::Expr& b);

// The larger and the smaller of two elements, as the primitives max and min:
// NaN wins, max(-0, 0) = 0.
Halide::Expr MaxElement(DType dtype, const Halide::Expr& a,
                        const Halide::Expr& b);
Halide::Expr MinElement(DType dtype, const Halide::Expr& a,
                        const Halide::Expr& b);
Halide::Expr AddElement(DType dtype, const Halide::Expr& a,
                        const Halide::Expr& b);
Halide::Expr MulElement(DType dtype, const Halide::Expr& a,
                        const Halide::Expr& b);
Halide::Expr IsNanElement(DType dtype, const Halide::Expr& a);
// Integers in the order in which max (or min) chooses among floats of 32 or 64
// bits, so that one instruction chooses: -0 is below 0, and NaN wins.
Halide::Expr OrderKey(bool max, const Halide::Expr& a);
// The float of a key; some NaN for that of one.
Halide::Expr OfOrderKey(const Halide::Expr& key);
// a * b + c with one rounding, of f32 or f64 expressions.
Halide::Expr FusedMultiplyAdd(const Halide::Expr& a, const Halide::Expr& b,
                              const Halide::Expr& c);
// Rounds an f32 or f64 expression to what `dtype` holds, once.
Halide::Expr RoundElement(DType dtype, const Halide::Expr& value);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_ELEMENT_H_
