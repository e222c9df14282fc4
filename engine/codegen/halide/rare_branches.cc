#include "engine/codegen/halide/rare_branches.h"

#include "engine/codegen/halide/named.h"

namespace cleave {
namespace {

using Halide::Expr;
using Halide::Internal::Call;
using Halide::Internal::IRMutator;
using Halide::Internal::Select;
using Halide::Internal::VectorReduce;

constexpr char kUnless[] = "cleave_unless";

class Lowers : public IRMutator {
 public:
  explicit Lowers(bool branch) : branch_(branch) {}

 protected:
  using IRMutator::visit;
  Expr visit(const Call* op) override {
    if (op->name != kUnless) return IRMutator::visit(op);
    const Expr rare = mutate(op->args[0]);
    const Expr other = mutate(op->args[1]);
    const Expr usual = mutate(op->args[2]);
    if (!branch_) return Select::make(rare, other, usual);
    return Named(rare, [&](const Expr& condition) {
      return Named(usual, [&](const Expr& value) {
        const Expr any =
            rare.type().is_scalar()
                ? condition
                : VectorReduce::make(VectorReduce::Or, condition, 1);
        return Call::make(op->type, Call::if_then_else,
                          {any, Select::make(condition, other, value), value},
                          Call::PureIntrinsic);
      });
    });
  }

 private:
  const bool branch_;
};

}  // namespace

Expr Unless(const Expr& rare, const Expr& other, const Expr& usual) {
  return Call::make(usual.type(), kUnless, {rare, other, usual},
                    Call::PureExtern);
}

void LowerRareBranches(Halide::Pipeline& pipeline, bool branch) {
  pipeline.add_custom_lowering_pass(new Lowers(branch));
}

}  // namespace cleave
