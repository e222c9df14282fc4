// Elements of random_bits and random_uniform: Philox 4x32-10, as in
// ops/reference/philox.h.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "engine/codegen/halide/element.h"
#include "engine/codegen/halide/lowering.h"
#include "engine/codegen/halide/named.h"

namespace cleave {

using Halide::cast;
using Halide::Expr;
using Halide::Func;
using Halide::Int;
using Halide::MemoryType;
using Halide::UInt;
using Halide::Var;
using Halide::Internal::make_const;

namespace {

// Philox's words in lanes of 64 bits, of which the upper half is anything: so
// the products of 32 bits by 32 are one instruction of x86 each, and no lane
// moves.
using Words = std::array<Expr, 4>;

Expr Number64(uint64_t value) { return make_const(UInt(64), value); }
Expr LowHalf(const Expr& x) { return x & Number64(0xFFFFFFFF); }
Expr HighHalf(const Expr& x) { return x >> Number64(32); }

// The result of `use` on the words of a block after the rounds from `round` on.
template <typename Use>
Expr AfterRounds(const Words& words, const Expr& key, uint32_t round,
                 const Use& use) {
  if (round == 10) return use(words);
  const Expr a = Number64(0xD2511F53) * LowHalf(words[0]);
  const Expr b = Number64(0xCD9E8D57) * LowHalf(words[2]);
  // The halves of the key go up by these with each round, and wrap.
  const Expr low = key + Number64(uint64_t{0x9E3779B9} * round);
  const Expr high = HighHalf(key) + Number64(uint64_t{0xBB67AE85} * round);
  return Named(a, [&](const Expr& a) {
    return Named(b, [&](const Expr& b) {
      return Named(HighHalf(b) ^ words[1] ^ low, [&](const Expr& first) {
        return Named(HighHalf(a) ^ words[3] ^ high, [&](const Expr& third) {
          return AfterRounds({first, b, third, a}, key, round + 1, use);
        });
      });
    });
  });
}

// Two words, the low half first.
Expr Pair(const Expr& low, const Expr& high) {
  return LowHalf(low) | (high << Number64(32));
}

// An element of the dtype from its own word, or pair of words.
Expr DrawnElement(Primitive primitive, DType dtype, const Expr& word) {
  if (primitive == Primitive::kRandomBits) {
    return cast(ElementType(dtype), word);
  }
  const int bits = SignificandBits(dtype);
  // A signed integer converts to a float in fewer instructions.
  const Expr leading =
      word >> make_const(word.type(), word.type().bits() - bits);
  const Expr number =
      cast(ElementType(dtype), cast(Int(word.type().bits()), leading));
  return MulElement(dtype, number,
                    NumberElement(dtype, std::ldexp(1.0, -bits)));
}

int ElementsOfBlock(DType dtype) { return ByteSize(dtype) == 8 ? 2 : 4; }

}  // namespace

Expr Lowering::RowStart(Value v, const Coordinates& row) {
  const Shape& shape = graph_.type(v).shape;
  const size_t keys = graph_.type(graph_.operands(v)[0]).rank();
  // Not of 32 bits: a sum is over more elements than memory has room for.
  Expr number = make_const(Int(64), 0);
  for (size_t d = keys; d < shape.size(); ++d) {
    number = number * cast(Int(64), Extent(shape[d]));
    if (d < row.size()) number = number + cast(Int(64), row[d]);
  }
  return Halide::Internal::simplify(number);
}

Expr Lowering::DrawInRow(Value v, const Coordinates& row, const Expr& place) {
  const Value keys = graph_.operands(v)[0];
  const TensorType& type = graph_.type(v);
  const int per_block = ElementsOfBlock(type.dtype);
  const Expr key = At(
      keys, Coordinates(row.begin(), row.begin() + graph_.type(keys).rank()));
  const Expr first = RowStart(v, row) / make_const(Int(64), per_block);
  const Expr block = cast(UInt(64), first + cast(Int(64), place / per_block));
  const Primitive primitive = ToPrimitive(graph_.node(v).op);
  const Expr at = place % per_block;
  return Named(key, [&](const Expr& key) {
    return Named(block, [&](const Expr& block) {
      const Words counter = {block, HighHalf(block), Number64(0), Number64(0)};
      return AfterRounds(counter, key, 0, [&](const Words& words) {
        const Expr word =
            per_block == 2
                ? Halide::select(at == 0, Pair(words[0], words[1]),
                                 Pair(words[2], words[3]))
                : cast(UInt(32),
                       Halide::select(
                           at < 2, Halide::select(at == 0, words[0], words[1]),
                           Halide::select(at == 2, words[2], words[3])));
        return DrawnElement(primitive, type.dtype, word);
      });
    });
  });
}

bool Lowering::GoesAlong(Value v, const Coordinates& at) const {
  if (on_device_ || plain_schedule_) return false;
  const Shape& shape = graph_.type(v).shape;
  const bool in_rows = kind_ == GroupKind::kReduction &&
                       space_.reduces_last() && !space_.keeps_none() &&
                       shape == space_.shape;
  const bool in_order =
      kind_ == GroupKind::kPointwise && shape == output_shape_;
  if (!in_rows && !in_order) return false;
  const std::vector<Var> vars = VarsOf(v);
  for (size_t d = 0; d < at.size(); ++d) {
    const auto* variable = at[d].as<Halide::Internal::Variable>();
    if (variable == nullptr || variable->name != vars[d].name()) return false;
  }
  return true;
}

Expr Lowering::Draw(Value v, const Coordinates& at) {
  const TensorType& type = graph_.type(v);
  const int per_block = ElementsOfBlock(type.dtype);
  if (type.rank() == graph_.type(graph_.operands(v)[0]).rank()) {
    return DrawInRow(v, at, 0);  // one element of each key
  }
  const Coordinates row(at.begin(), at.end() - 1);
  const Expr skipped =
      cast(Int(32), RowStart(v, row) % make_const(Int(64), per_block));
  const Expr place = Halide::Internal::simplify(skipped + at.back());
  if (!GoesAlong(v, at)) return DrawInRow(v, row, place);
  Func& draws = draws_[v];
  if (!draws.defined()) {
    draws = MakeFunc("draws");
    std::vector<Var> vars = VarsOf(v);
    vars.back() = Var("place");
    draws(Reversed(vars)) = DrawInRow(v, row, vars.back());
    Stage stage;
    stage.func = draws;
    stage.role = Stage::Role::kDraws;
    stage.per_block = per_block;
    stages_.push_back(std::move(stage));
  }
  Coordinates shifted = at;
  shifted.back() = place;
  return Call(draws, shifted);
}

void Lowering::ScheduleDraws(const Halide::LoopLevel& level,
                             MemoryType memory) {
  // Two vectors of blocks: the products of one are made while the others wait.
  const int blocks = 2 * target_.natural_vector_size(UInt(64));
  for (Stage& stage : stages_) {
    if (stage.role != Stage::Role::kDraws) continue;
    const Var place = stage.func.args().front();
    const Var block("block");
    const Var element("element");
    const int size = blocks * stage.per_block;
    stage.func.compute_at(level).store_in(memory);
    stage.func.align_bounds(place, size)
        .split(place, place, block, size)
        .split(block, block, element, stage.per_block)
        .reorder(element, block, place)
        .unroll(element)
        .vectorize(block);
  }
}

}  // namespace cleave
