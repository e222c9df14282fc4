// Groups of two levels: rows are reduced, and what is made of them again.

#include <algorithm>
#include <set>
#include <vector>

#include "engine/codegen/halide/lowering.h"
#include "ops/check.h"

namespace cleave {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

// The space of the group's reductions; two where one is of what the other
// keeps.
void Lowering::FindSpaces() {
  std::vector<Space> spaces;
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    const Value v{id};
    if (!IsReduction(graph_, v)) continue;
    Space space;
    space.shape = graph_.type(graph_.operands(v)[0]).shape;
    space.reduced.assign(space.shape.size(), false);
    for (const int64_t a : graph_.attributes(v).GetInts("axes")) {
      space.reduced[a] = true;
    }
    if (std::find(spaces.begin(), spaces.end(), space) == spaces.end()) {
      spaces.push_back(std::move(space));
    }
  }
  if (spaces.empty()) return;
  space_ = spaces[0];
  if (spaces.size() == 1) return;
  CLEAVE_CHECK(spaces.size() == 2)
      << "reductions of one group over " << spaces.size() << " spaces";
  const int total = spaces[0].keeps_none() ? 0 : 1;
  total_space_ = spaces[total];
  row_space_ = spaces[1 - total];
  space_ = row_space_;
  has_totals_ = true;
  CLEAVE_CHECK(total_space_.keeps_none() && total_space_.shape == RowShape())
      << "reductions of one group over several spaces";
}

// The last values that rest on rows' reductions and on no total, where totals
// or what rests on them read them, movement seen through.
std::vector<Value> Lowering::RowsRead(const std::vector<Value>& outputs) const {
  const size_t size = graph_.size();
  std::vector<bool> of_rows(size, false);
  std::vector<bool> of_totals(size, false);
  for (uint32_t id = 0; id < size; ++id) {
    const Value v{id};
    for (const Value operand : graph_.operands(v)) {
      of_rows[id] = of_rows[id] || of_rows[operand.id];
      of_totals[id] = of_totals[id] || of_totals[operand.id];
    }
    if (!IsReduction(graph_, v)) continue;
    const bool total =
        graph_.type(graph_.operands(v)[0]).shape == total_space_.shape;
    of_rows[id] = of_rows[id] || !total;
    of_totals[id] = of_totals[id] || total;
  }
  std::set<Value> rows;
  std::set<Value> seen(outputs.begin(), outputs.end());
  std::vector<Value> stack = outputs;
  while (!stack.empty()) {
    const Value v = stack.back();
    stack.pop_back();
    if (!of_rows[v.id]) continue;
    const PrimitiveClass c = ClassOf(ToPrimitive(graph_.node(v).op));
    if (!of_totals[v.id] &&
        (c == PrimitiveClass::kPointwise || c == PrimitiveClass::kReduction)) {
      rows.insert(v);
      continue;
    }
    for (const Value operand : graph_.operands(v)) {
      if (seen.insert(operand).second) stack.push_back(operand);
    }
  }
  return {rows.begin(), rows.end()};
}

void Lowering::AddRows(const std::vector<Value>& outputs) {
  if (!has_totals_) return;
  space_ = row_space_;
  const std::vector<Value> rows = RowsRead(outputs);
  if (!rows.empty()) {
    AddStages(rows);
    const std::vector<Var> vars = VarsOf(rows[0]);
    const Coordinates at(vars.begin(), vars.end());
    std::vector<Expr> values;
    for (const Value v : rows) {
      CLEAVE_CHECK(graph_.type(v).shape == RowShape())
          << "a total reads what is no row's value";
      values.push_back(At(v, at));
    }
    Func stored = MakeFunc("rows");
    if (values.size() == 1) {
      stored(Reversed(vars)) = values[0];
    } else {
      stored(Reversed(vars)) = Halide::Tuple(values);
    }
    stored.compute_root();
    const Shape shape = RowShape();
    for (size_t d = 0; d < vars.size(); ++d) {
      stored.bound(vars[d], 0, Extent(shape[d]));
    }
    Schedule(stored, vars);
    memo_.clear();
    funcs_.clear();
    stages_.clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      Func one = MakeFunc("row");
      one(Reversed(vars)) = values.size() == 1
                                ? Expr(Call(stored, at))
                                : Call(stored, at)[static_cast<int>(i)];
      funcs_[rows[i]] = one;
    }
  }
  space_ = total_space_;
}

}  // namespace cleave
