#include "engine/codegen/halide/float_ramps.h"

namespace cleave {
namespace {

using Halide::Expr;
using Halide::Internal::IRMutator;
using Halide::Internal::Ramp;

class Finds : public IRMutator {
 public:
  explicit Finds(bool* found) : found_(found) {}

 protected:
  using IRMutator::visit;
  Expr visit(const Ramp* op) override {
    *found_ |= !op->type.is_int_or_uint();
    return IRMutator::visit(op);
  }

 private:
  bool* const found_;
};

}  // namespace

void FindFloatRamps(Halide::Pipeline& pipeline, bool* found) {
  pipeline.add_custom_lowering_pass(new Finds(found));
}

}  // namespace cleave
