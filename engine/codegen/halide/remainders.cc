#include "engine/codegen/halide/remainders.h"

#include <cmath>
#include <cstdint>

#include "engine/codegen/halide/named.h"

namespace cleave {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::Type;
using Halide::Internal::Call;
using Halide::Internal::IRMutator;
using Halide::Internal::Select;
using Halide::Internal::VectorReduce;

constexpr char kRemainder[] = "cleave_remainder";

Expr Strict(Call::IntrinsicOp op, const Expr& a, const Expr& b) {
  return Call::make(a.type(), op, {a, b}, Call::PureIntrinsic);
}
Expr Less(const Expr& a, const Expr& b) {
  return Call::make(Halide::Bool(a.type().lanes()), Call::strict_lt, {a, b},
                    Call::PureIntrinsic);
}
Expr Number(const Type& type, double value) {
  return Halide::Internal::make_const(type, value);
}
Expr SignBit(const Type& type) {
  return Halide::Internal::make_const(Halide::UInt(type.bits(), type.lanes()),
                                      uint64_t{1} << (type.bits() - 1));
}
Expr Bits(const Expr& a) {
  return Halide::reinterpret(Halide::UInt(a.type().bits(), a.type().lanes()),
                             a);
}

Expr ByLibrary(const Expr& a, const Expr& b) {
  const char* name = a.type().bits() == 32 ? "fmodf" : "fmod";
  return Call::make(a.type(), name, {a, b}, Call::PureExtern);
}

// x - n y of numbers of f64 that are not negative, n = x / y as it is rounded:
// that is at most one too many, or too few, and the difference is exact.
Expr ByQuotient(const Expr& x, const Expr& y, const Expr& quotient) {
  const Type type = x.type();
  const Expr negated =
      Halide::reinterpret(type, Bits(Halide::trunc(quotient)) ^ SignBit(type));
  const Expr rest =
      Call::make(type, "llvm.fma.f64", {negated, y, x}, Call::PureExtern);
  return Named(rest, [&](const Expr& r) {
    const Expr more = Select::make(Less(r, Number(type, 0)),
                                   Strict(Call::strict_add, r, y), r);
    return Named(more, [&](const Expr& m) {
      return Select::make(Less(m, y), m, Strict(Call::strict_sub, m, y));
    });
  });
}

Expr Lowered(const Expr& a, const Expr& b) {
  const Type type = a.type();
  const Type wide = Float(64, type.lanes());
  const auto magnitude = [&](const Expr& v) {
    return cast(wide, Halide::reinterpret(type, Bits(v) & ~SignBit(type)));
  };
  return Named(magnitude(a), [&](const Expr& x) {
    return Named(magnitude(b), [&](const Expr& y) {
      return Named(x / y, [&](const Expr& quotient) {
        // A NaN, an infinity or 0 is none of these. Below 2^-960 the difference
        // might not be a number of f64.
        const Expr lanes = Less(quotient, Number(wide, 0x1p52)) &&
                           Less(y, Number(wide, HUGE_VAL)) &&
                           Less(Number(wide, 0x1p-960), y);
        const Expr all = type.is_vector()
                             ? VectorReduce::make(VectorReduce::And, lanes, 1)
                             : lanes;
        const Expr rest = cast(type, ByQuotient(x, y, quotient));
        const Expr fast =
            Halide::reinterpret(type, Bits(rest) | (Bits(a) & SignBit(type)));
        return Call::make(type, Call::if_then_else,
                          {all, fast, ByLibrary(a, b)}, Call::PureIntrinsic);
      });
    });
  });
}

class Lowers : public IRMutator {
 public:
  explicit Lowers(bool on_device) : on_device_(on_device) {}

 protected:
  using IRMutator::visit;
  Expr visit(const Call* op) override {
    if (op->name != kRemainder) return IRMutator::visit(op);
    const Expr a = mutate(op->args[0]);
    const Expr b = mutate(op->args[1]);
    if (on_device_) return ByLibrary(a, b);
    return Named(a, [&](const Expr& first) {
      return Named(b,
                   [&](const Expr& second) { return Lowered(first, second); });
    });
  }

 private:
  const bool on_device_;
};

}  // namespace

Expr Remainder(const Expr& a, const Expr& b) {
  return Call::make(a.type(), kRemainder, {a, b}, Call::PureExtern);
}

void LowerRemainders(Halide::Pipeline& pipeline, const Halide::Target& target) {
  pipeline.add_custom_lowering_pass(new Lowers(target.has_gpu_feature()));
}

}  // namespace cleave
