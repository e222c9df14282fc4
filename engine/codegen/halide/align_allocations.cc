#include "engine/codegen/halide/align_allocations.h"

#include <string>

namespace cleave {
namespace {

using Halide::Internal::Allocate;
using Halide::Internal::IRMutator;
using Halide::Internal::IRVisitor;
using Halide::Internal::Load;
using Halide::Internal::Stmt;
using Halide::Internal::Store;

// Whether vectors of an allocation are loaded or stored.
class FindsVectors : public IRVisitor {
 public:
  explicit FindsVectors(const std::string& name) : name_(name) {}
  bool found() const { return found_; }

 protected:
  using IRVisitor::visit;
  void visit(const Load* op) override {
    found_ |= op->name == name_ && op->type.lanes() > 1;
    IRVisitor::visit(op);
  }
  void visit(const Store* op) override {
    found_ |= op->name == name_ && op->index.type().lanes() > 1;
    IRVisitor::visit(op);
  }

 private:
  const std::string& name_;
  bool found_ = false;
};

class Aligns : public IRMutator {
 protected:
  using IRMutator::visit;
  Stmt visit(const Allocate* op) override {
    if (op->constant_allocation_size() != 1) return IRMutator::visit(op);
    FindsVectors vectors(op->name);
    op->body.accept(&vectors);
    if (!vectors.found()) return IRMutator::visit(op);
    return Allocate::make(op->name, op->type, op->memory_type, {2},
                          op->condition, mutate(op->body), op->new_expr,
                          op->free_function, op->padding);
  }
};

}  // namespace

void AlignAllocations(Halide::Pipeline& pipeline) {
  pipeline.add_custom_lowering_pass(new Aligns());
}

}  // namespace cleave
