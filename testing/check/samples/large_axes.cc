#include "testing/check/samples/large_axes.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace cleave {
namespace {

// Adds the sizes that `expr` reads.
void CollectSizes(const Expr& expr, std::vector<LargeAxis>& axes) {
  const auto add = [&](std::string name) {
    for (const LargeAxis& axis : axes) {
      if (axis.name == name) return;
    }
    axes.push_back({std::move(name), false, 0});
  };
  if (expr.kind == ExprKind::kName) {
    add(expr.text);
  } else if (expr.kind == ExprKind::kIndex &&
             expr.children[0]->kind == ExprKind::kName) {
    add(absl::StrCat(expr.children[0]->text, "#0"));
  } else if (expr.kind == ExprKind::kBinary) {
    for (const ExprPtr& child : expr.children) CollectSizes(*child, axes);
  }
}

}  // namespace

std::vector<LargeAxis> LargeAxesOf(const Item& item) {
  std::vector<LargeAxis> axes;
  for (const InputDecl& input : item.inputs) {
    if (input.is_static) continue;
    for (const AxisExpr& axis : input.type.axes) {
      if (axis.is_new) continue;
      if (axis.size->kind != ExprKind::kSpread) {
        CollectSizes(*axis.size, axes);
        continue;
      }
      const size_t before = axes.size();
      CollectSizes(*axis.size->children[0], axes);
      for (size_t i = before; i < axes.size(); ++i) axes[i].is_pack = true;
    }
  }
  return axes;
}

}  // namespace cleave
