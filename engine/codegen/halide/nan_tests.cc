#include "engine/codegen/halide/nan_tests.h"

namespace cleave {
namespace {

using Halide::Expr;
using Halide::Internal::Call;
using Halide::Internal::IRMutator;

constexpr char kNanTest[] = "cleave_is_nan";

class Lowers : public IRMutator {
 protected:
  using IRMutator::visit;
  Expr visit(const Call* op) override {
    if (op->name != kNanTest) return IRMutator::visit(op);
    const Expr a = mutate(op->args[0]);
    const char* name = a.type().bits() == 32 ? "is_nan_f32" : "is_nan_f64";
    return Call::make(op->type, name, {a}, Call::PureExtern);
  }
};

}  // namespace

Expr NanTest(const Expr& a) {
  return Call::make(Halide::Bool(), kNanTest, {a}, Call::PureExtern);
}

void LowerNanTests(Halide::Pipeline& pipeline) {
  pipeline.add_custom_lowering_pass(new Lowers);
}

}  // namespace cleave
