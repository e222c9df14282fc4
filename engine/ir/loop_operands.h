// LoopOperands: what the operands of a scan or a while are.
//
//   scan(a, b, c0, xs; consts: 2, carries: 1, ..)
//
//   LoopOperands loop = LoopOperands::Of(graph, v);
//   loop.consts == 2; loop.carries == 1; loop.slices == 1;
//   loop.IsCarry(2); loop.IsSlice(3);

#ifndef CLEAVE_ENGINE_IR_LOOP_OPERANDS_H_
#define CLEAVE_ENGINE_IR_LOOP_OPERANDS_H_

#include <cstddef>

#include "engine/ir/graph.h"
#include "ops/static_value.h"

namespace cleave {

// The operands stand in this order, and so do the inputs of the body, which
// gives the next carries, then what a scan stacks.
struct LoopOperands {
  int consts = 0;   // what each step reads as it is
  int carries = 0;  // what each step gives the next one
  int slices = 0;   // what each step of a scan reads a slice of; 0 of a while

  // The counts for a scan or while, which was typed, with these attributes on
  // so many operands: a while carries all that are no consts.
  static LoopOperands Of(const Attributes& attributes, size_t operands) {
    LoopOperands loop;
    loop.consts = static_cast<int>(attributes.GetInt("consts"));
    loop.carries = static_cast<int>(operands) - loop.consts;
    if (attributes.Find("length") == nullptr) return loop;
    const int rest = loop.carries;
    loop.carries = static_cast<int>(attributes.GetInt("carries"));
    loop.slices = rest - loop.carries;
    return loop;
  }
  static LoopOperands Of(const Graph& graph, Value v) {
    return Of(graph.attributes(v), graph.operands(v).size());
  }

  int count() const { return consts + carries + slices; }
  int first_slice() const { return consts + carries; }
  bool IsConst(int operand) const { return operand < consts; }
  bool IsCarry(int operand) const {
    return operand >= consts && operand < first_slice();
  }
  bool IsSlice(int operand) const { return operand >= first_slice(); }

  // Counts an operand as one of the same group as `operand` of `other`.
  void AddLike(const LoopOperands& other, int operand) {
    ++(other.IsConst(operand)   ? consts
       : other.IsCarry(operand) ? carries
                                : slices);
  }

  // `attributes` of a scan with these counts.
  Attributes InScan(Attributes attributes) const {
    attributes.Set("consts", consts);
    attributes.Set("carries", carries);
    return attributes;
  }
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_LOOP_OPERANDS_H_
