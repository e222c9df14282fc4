// Groups of two levels: rows are reduced, and what is made of them again.

#include <vector>

#include "engine/codegen/halide/lowering.h"
#include "engine/codegen/reduction_spaces.h"
#include "ops/check.h"

namespace cleave {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

void Lowering::FindSpaces() {
  const std::vector<ReductionSpace> spaces = ReductionSpaces(graph_);
  if (spaces.empty()) return;
  space_ = spaces[0];
  if (spaces.size() == 1) return;
  rows_and_totals_ = FindRowsAndTotals(graph_);
  CLEAVE_CHECK(rows_and_totals_.has_value())
      << "reductions of one group over " << spaces.size() << " spaces";
  space_ = rows_and_totals_->rows;
}

void Lowering::AddRows() {
  if (!rows_and_totals_.has_value()) return;
  space_ = rows_and_totals_->rows;
  const std::vector<Value>& rows = rows_and_totals_->read;
  if (!rows.empty()) {
    AddStages(rows);
    const std::vector<Var> vars = VarsOf(rows[0]);
    const Coordinates at(vars.begin(), vars.end());
    std::vector<Expr> values;
    for (const Value v : rows) values.push_back(At(v, at));
    Func stored = MakeFunc("rows");
    if (values.size() == 1) {
      stored(Reversed(vars)) = values[0];
    } else {
      stored(Reversed(vars)) = Halide::Tuple(values);
    }
    stored.compute_root();
    const Shape shape = space_.RowShape();
    for (size_t d = 0; d < vars.size(); ++d) {
      stored.bound(vars[d], 0, Extent(shape[d]));
    }
    Schedule(stored, vars);
    memo_.clear();
    funcs_.clear();
    stages_.clear();
    draws_.clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      Func one = MakeFunc("row");
      one(Reversed(vars)) = values.size() == 1
                                ? Expr(Call(stored, at))
                                : Call(stored, at)[static_cast<int>(i)];
      funcs_[rows[i]] = one;
    }
  }
  space_ = rows_and_totals_->totals;
}

}  // namespace cleave
