#include "engine/codegen/halide/rare_branches.h"

namespace cleave {
namespace {

using Halide::Expr;
using Halide::Internal::Call;
using Halide::Internal::IRMutator;
using Halide::Internal::Let;
using Halide::Internal::Select;
using Halide::Internal::Variable;
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
    const auto named = [](const Expr& value, std::string* name) {
      *name = Halide::Internal::unique_name('v');
      return Variable::make(value.type(), *name);
    };
    std::string rare_name, usual_name;
    const Expr condition = named(rare, &rare_name);
    const Expr value = named(usual, &usual_name);
    const Expr any = rare.type().is_scalar()
                         ? condition
                         : VectorReduce::make(VectorReduce::Or, condition, 1);
    const Expr chosen =
        Call::make(op->type, Call::if_then_else,
                   {any, Select::make(condition, other, value), value},
                   Call::PureIntrinsic);
    return Let::make(rare_name, rare, Let::make(usual_name, usual, chosen));
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
