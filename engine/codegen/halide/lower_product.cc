// Products over axes, whose exponents are kept apart.

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/codegen/halide/element.h"
#include "engine/codegen/halide/lowering.h"

namespace cleave {

using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::Func;
using Halide::Int;
using Halide::RDom;
using Halide::UInt;
using Halide::Var;

namespace {

// Lanes of products: two vectors of f64, which do not wait for each other.
constexpr int kProductLanes = 16;
// Factors of f32 that take a significand of f64 nowhere near the ends of its
// range: 2^(6 * 128 + 2), or 2^(6 * -149).
constexpr int kMostNarrowFactors = 6;

// How many elements of a lane are multiplied before its exponent is taken out:
// as many as divide them.
int FactorsAtATime(DType dtype, const Dim& length) {
  const int64_t each = length.Value().value_or(0) / kProductLanes;
  if (dtype == DType::kF64 || each == 0) return 1;
  int factors = kMostNarrowFactors;
  while (each % factors != 0) --factors;
  return factors;
}

}  // namespace

// Significand and exponent apart, so that nothing overflows on the way. The
// running product keeps a significand of f64, which each step brings to [1, 2)
// before it multiplies: by significands of f64, by narrower numbers as they
// are. Zeros, infinities and NaN are factors as they are. It is kept as its
// bits, and taken apart by division: Halide 21 splits a tuple's update into
// several where it does not see that one component reads another, and it does
// not look into the arguments of calls (shifts and reinterpretation are calls).
void Lowering::AddProduct(Value v) {
  const Value x = graph_.operands(v)[0];
  const DType dtype = graph_.type(v).dtype;
  const std::vector<Var> vars = VarsOf(v);
  const auto u64 = [](uint64_t value) {
    return Halide::Internal::make_const(UInt(64), value);
  };
  struct Parts {
    Expr significand;  // bits
    Expr exponent;
  };
  // The parts of a normal f64; another one is left whole.
  const auto split = [&](const Expr& bits) {
    const Expr field = bits / u64(uint64_t{1} << 52) % u64(2048);
    const Expr normal = field != u64(0) && field != u64(2047);
    const Expr significand =
        (bits & u64(0x800fffffffffffff)) | u64(0x3ff0000000000000);
    return Parts{Choose(normal, significand, bits),
                 Choose(normal, cast(Int(32), field) - 1023, 0)};
  };
  const auto times = [&](const Expr& a, const Expr& b) {
    return reinterpret(UInt(64),
                       MulElement(DType::kF64, reinterpret(Float(64), a),
                                  reinterpret(Float(64), b)));
  };
  // Subnormal numbers of f64 become normal ones first; no narrower number is
  // one.
  const auto factor_at = [&](const RDom& r, const Coordinates& place) {
    const Expr element =
        reinterpret(UInt(64), cast(Float(64), ForEach(r, At(x, place))));
    if (dtype != DType::kF64) return Parts{element, 0};
    const Expr tiny = (element & u64(0x7ff0000000000000)) == u64(0);
    const Expr scaled = times(element, u64(0x4350000000000000));  // 2^54
    Parts factor = split(Choose(tiny, scaled, element));
    factor.exponent = factor.exponent - Choose(tiny, 54, 0);
    return factor;
  };
  const auto product = [&](const Halide::FuncRef& so_far,
                           const std::vector<Parts>& factors) {
    const Parts before = split(so_far[0]);
    Expr significand = before.significand;
    Expr exponent = so_far[1];
    for (const Parts& factor : factors) {
      significand = times(significand, factor.significand);
      exponent = exponent + factor.exponent;
    }
    return Halide::Tuple(
        significand,
        Halide::clamp(exponent, -1000000000, 1000000000) + before.exponent);
  };
  const Halide::Tuple one(u64(0x3ff0000000000000), Expr(0));
  std::vector<Expr> row;
  for (const Var& var : Reversed(vars)) row.push_back(var);
  const bool in_lanes =
      space_.reduces_last() && !plain_schedule_ && !on_device_;
  // Over everything, blocks are multiplied so, each on its own.
  const bool blocked = in_lanes && space_.keeps_none();
  Func products;
  if (in_lanes) {
    const int steps = blocked ? 1 : FactorsAtATime(dtype, space_.shape.back());
    const LineLanes line = LanesOfLine(vars, kProductLanes, blocked, steps);
    const auto factor = [&](const RDom& r, const Expr& last) {
      return factor_at(r, InLine(vars, r, last));
    };
    products = MakeFunc("lanes");
    products(line.pure) = one;
    std::vector<Parts> factors;
    for (int step = 0; step < steps; ++step) {
      factors.push_back(factor(line.domain, line.at + kProductLanes * step));
    }
    products(line.pure) = product(products(line.pure), factors);
    if (line.has_tail) {
      const std::vector<Expr> at = line.At(line.tail[0]);
      products(at) = product(products(at), {factor(line.tail, line.rest)});
    }
    stages_.push_back(line.Partial(products));
    const auto parts_of = [&](const Halide::FuncRef& other) {
      Parts factor = split(other[0]);
      factor.exponent = factor.exponent + other[1];
      return factor;
    };
    for (int width = kProductLanes / 2; width >= 1; width /= 2) {
      const Func half = MakeFunc("half");
      half(line.pure) =
          product(products(line.pure),
                  {parts_of(products(line.At(line.pure.front() + width)))});
      products = half;
      stages_.push_back(line.Half(half, width));
    }
    if (blocked) {
      const RDom blocks(0, line.blocks, "b");
      std::vector<Expr> of_block = line.At(0);
      of_block.back() = blocks.x;
      Stage total;
      total.func = MakeFunc("product");
      total.role = Stage::Role::kWhole;
      total.func(Reversed(vars)) = one;
      total.func(Reversed(vars)) =
          product(total.func(row), {parts_of(products(of_block))});
      total.reduced = {blocks.x};
      products = total.func;
      stages_.push_back(std::move(total));
    } else {
      row = line.At(0);
    }
  } else {
    const auto [domain, extents, at] = ReducedBy(v, vars);
    Stage stage;
    stage.func = MakeFunc("product");
    stage.role =
        space_.keeps_none() ? Stage::Role::kWhole : Stage::Role::kSerial;
    stage.func(Reversed(vars)) = one;
    stage.func(Reversed(vars)) =
        product(stage.func(row), {factor_at(domain, at)});
    stage.reduced = Variables(domain);
    products = stage.func;
    stages_.push_back(std::move(stage));
  }

  Stage result;
  result.func = MakeFunc("scaled");
  result.role = space_.keeps_none() ? Stage::Role::kWhole : Stage::Role::kRow;
  const Halide::FuncRef done = products(row);
  const Expr exponent = Halide::clamp(done[1], -4000, 4000);
  result.func(Reversed(vars)) = RoundElement(
      dtype,
      Halide::Internal::Call::make(Float(64), "ldexp",
                                   {reinterpret(Float(64), done[0]), exponent},
                                   Halide::Internal::Call::PureExtern));
  AddStage(v, std::move(result));
}

}  // namespace cleave
