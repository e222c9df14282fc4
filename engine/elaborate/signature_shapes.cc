// SignatureBinder: sizes and packs are read off the shapes of
// inputs.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/elaborate/signature_binder.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

}  // namespace

absl::Status SignatureBinder::BindShapes() {
  struct Task {
    size_t input;
    int place;
    TermPtr tensor;
  };
  std::vector<Task> tasks;
  for (size_t i = 0; i < callable_.inputs.size(); ++i) {
    const InputDecl& input = callable_.inputs[i];
    if (input.is_static) continue;
    if (!input.type.has_shape) {
      // `key: key` is one key; a host's tensor has any shape.
      continue;
    }
    const auto tensors = Tensors(inputs_[i]);
    if (!input.variadic_index.empty()) {
      PrepareIndexedNames(input, inputs_[i].AsList().size());
    }
    for (const auto& [place, tensor] : tensors) {
      tasks.push_back({i, place, tensor});
    }
  }
  // Inputs whose packs are not settled wait for others.
  while (!tasks.empty()) {
    std::vector<Task> waiting;
    for (Task& task : tasks) {
      CLEAVE_ASSIGN_OR_RETURN(
          const bool done, BindShape(callable_.inputs[task.input], task.place,
                                     task.tensor->shape));
      if (!done) waiting.push_back(std::move(task));
    }
    if (waiting.size() == tasks.size()) {
      return Wrong(absl::StrCat("the sizes of `",
                                callable_.inputs[waiting[0].input].name,
                                "` are not determined by the arguments"));
    }
    tasks = std::move(waiting);
  }
  // The packs of an absent input are empty.
  for (const InputDecl& input : callable_.inputs) {
    for (const AxisExpr& axis : input.type.axes) {
      if (axis.size->kind != ExprKind::kSpread) continue;
      const auto name = BindableName(*axis.size->children[0], input);
      if (name.has_value() && !name->second &&
          call_.scope.Find(name->first) == nullptr) {
        call_.scope.Set(name->first, RuleList{});
      }
    }
  }
  for (const auto& [name, list] : indexed_) call_.scope.Set(name, list);
  return absl::OkStatus();
}

void SignatureBinder::PrepareIndexedNames(const InputDecl& input,
                                          size_t count) {
  for (const AxisExpr& axis : input.type.axes) {
    const bool pack = axis.size->kind == ExprKind::kSpread;
    const auto name =
        BindableName(pack ? *axis.size->children[0] : *axis.size, input);
    if (name.has_value() && name->second) {
      indexed_[name->first] =
          RuleList(count, pack ? RuleValue(RuleList{}) : RuleValue());
    }
  }
}

absl::StatusOr<bool> SignatureBinder::BindShape(const InputDecl& input,
                                                int place, const Shape& shape) {
  const int rank = static_cast<int>(shape.size());
  std::vector<Wanted> wanted;
  for (const AxisExpr& axis : input.type.axes) {
    Wanted w{&axis, "", "", std::nullopt, -1};
    const bool spread = axis.size->kind == ExprKind::kSpread;
    const Expr& e = spread ? *axis.size->children[0] : *axis.size;
    const auto name = BindableName(e, input);
    const bool is_indexed = name.has_value() && name->second;
    const RuleValue* bound = name.has_value() && !is_indexed
                                 ? call_.scope.Find(name->first)
                                 : nullptr;
    if (is_indexed || (name.has_value() && bound == nullptr)) {
      (spread ? w.pack : w.single) = name->first;
      if (!spread) w.length = 1;
    } else if (spread) {
      Scope scope(&call_.scope);
      if (!AllBound(e)) return false;
      CLEAVE_ASSIGN_OR_RETURN(w.known, elaborator_.EvalDims(e, scope));
      w.length = static_cast<int>(w.known->size());
    } else {
      w.length = 1;
      if (AllBound(e)) {
        CLEAVE_ASSIGN_OR_RETURN(const Dim dim,
                                elaborator_.EvalDim(e, call_.scope));
        w.known = Shape{dim};
      } else if (!AllBound(e, &input)) {
        return false;
      }
    }
    wanted.push_back(std::move(w));
  }
  if (!Settle(wanted, rank)) {
    if (OpenPacks(wanted) > 1) return false;
    return Wrong(absl::StrCat("argument `", input.name, "` has ", rank,
                              rank == 1 ? " axis" : " axes",
                              "; its type does not"));
  }
  const auto require = [&](const Dim& known, const Dim& extent) {
    if (elaborator_.terms().RequireEqual(
            known, extent,
            absl::StrCat("`", callable_.name, "`: an axis of `", input.name,
                         "`"))) {
      return absl::OkStatus();
    }
    return Wrong(absl::StrCat("argument `", input.name, "` has shape ",
                              ShapeToString(shape),
                              "; an axis should have extent ", known.ToString(),
                              ", not ", extent.ToString()));
  };
  int axis = 0;
  // Sizes made of names that this shape binds: `m[n, 2 * n]`.
  std::vector<std::pair<const Expr*, Dim>> computed;
  for (const Wanted& w : wanted) {
    const Shape part(shape.begin() + axis, shape.begin() + axis + w.length);
    axis += w.length;
    if (w.known.has_value()) {
      for (int d = 0; d < w.length; ++d) {
        CLEAVE_RETURN_IF_ERROR(require((*w.known)[d], part[d]));
      }
      continue;
    }
    if (w.single.empty() && w.pack.empty()) {
      computed.emplace_back(w.axis->size.get(), part[0]);
      continue;
    }
    const bool is_pack = !w.pack.empty();
    const std::string& name = is_pack ? w.pack : w.single;
    RuleValue value = is_pack ? DimList(part) : RuleValue(part[0]);
    const auto indexed = indexed_.find(name);
    if (indexed != indexed_.end()) {
      indexed->second[place] = std::move(value);
      continue;
    }
    const RuleValue* bound = call_.scope.Find(name);
    if (bound == nullptr) {
      call_.scope.Set(name, std::move(value));
    } else if (!is_pack && !elaborator_.terms().RequireEqual(
                               bound->AsDim(), part[0], callable_.name)) {
      return Wrong(absl::StrCat("argument `", input.name, "`: `", name, "` is ",
                                bound->AsDim().ToString(), " and ",
                                part[0].ToString()));
    }
  }
  for (const auto& [size, extent] : computed) {
    CLEAVE_ASSIGN_OR_RETURN(const Dim known,
                            elaborator_.EvalDim(*size, call_.scope));
    CLEAVE_RETURN_IF_ERROR(require(known, extent));
  }
  return true;
}

std::optional<std::pair<std::string, bool>> SignatureBinder::BindableName(
    const Expr& e, const InputDecl& input) const {
  if (e.kind == ExprKind::kName) return std::make_pair(e.text, false);
  if (e.kind == ExprKind::kIndex && e.children.size() == 2 &&
      e.children[0]->kind == ExprKind::kName &&
      e.children[1]->kind == ExprKind::kName && !input.variadic_index.empty() &&
      e.children[1]->text == input.variadic_index) {
    return std::make_pair(e.children[0]->text, true);
  }
  return std::nullopt;
}

bool SignatureBinder::AllBound(const Expr& e, const InputDecl* input) const {
  if (e.kind == ExprKind::kName && call_.scope.Find(e.text) == nullptr &&
      IsSizeName(e.text)) {
    return input != nullptr &&
           std::any_of(input->type.axes.begin(), input->type.axes.end(),
                       [&](const AxisExpr& axis) {
                         return axis.size->kind == ExprKind::kName &&
                                axis.size->text == e.text;
                       });
  }
  for (const ExprPtr& child : e.children) {
    if (!AllBound(*child, input)) return false;
  }
  return true;
}

bool SignatureBinder::IsSizeName(const std::string& name) const {
  for (const InputDecl& input : callable_.inputs) {
    for (const AxisExpr& axis : input.type.axes) {
      const Expr& e = axis.size->kind == ExprKind::kSpread
                          ? *axis.size->children[0]
                          : *axis.size;
      const auto bindable = BindableName(e, input);
      if (bindable.has_value() && bindable->first == name) return true;
    }
  }
  return false;
}

int SignatureBinder::OpenPacks(const std::vector<Wanted>& wanted) {
  int open = 0;
  for (const Wanted& w : wanted) open += w.length < 0;
  return open;
}

bool SignatureBinder::Settle(std::vector<Wanted>& wanted, int rank) const {
  int begin = 0;
  size_t first = 0;
  const auto settle = [&](size_t from, size_t to, int total) {
    int open = 0;
    int taken = 0;
    for (size_t i = from; i < to; ++i) {
      open += wanted[i].length < 0;
      taken += std::max(wanted[i].length, 0);
    }
    if (open > 1 || taken > total || (open == 0 && taken != total)) {
      return false;
    }
    for (size_t i = from; i < to; ++i) {
      if (wanted[i].length < 0) wanted[i].length = total - taken;
    }
    return true;
  };
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].axis->at.empty()) continue;
    const RuleValue* at = call_.scope.Find(wanted[i].axis->at);
    if (at == nullptr || !at->Is(Kind::kInt)) continue;
    const std::optional<int64_t> axis = at->AsDim().Value();
    if (!axis.has_value() || *axis < begin || *axis >= rank) return false;
    if (!settle(first, i, static_cast<int>(*axis) - begin)) return false;
    first = i + 1;
    begin = static_cast<int>(*axis) + 1;
  }
  return settle(first, wanted.size(), rank - begin);
}

void SignatureBinder::WriteGroups(size_t i) {
  const InputDecl& input = callable_.inputs[i];
  for (const auto& [place, tensor] : Tensors(inputs_[i])) {
    std::vector<AxisGroup> groups = GroupsOf(input.type, place);
    int total = 0;
    for (const AxisGroup& group : groups) total += group.length;
    if (total != static_cast<int>(tensor->shape.size())) continue;
    Replace(i, place,
            elaborator_.terms().WithGroups(tensor, std::move(groups)));
  }
}

std::vector<AxisGroup> SignatureBinder::GroupsOf(const TypeExpr& type,
                                                 int place) {
  std::vector<AxisGroup> groups;
  for (const AxisExpr& axis : type.axes) {
    if (axis.size->kind != ExprKind::kSpread) {
      groups.push_back({false, 1});
      continue;
    }
    const Expr& e = *axis.size->children[0];
    std::optional<int> length;
    if (e.kind == ExprKind::kIndex && place >= 0 &&
        e.children[0]->kind == ExprKind::kName) {
      const auto it = indexed_.find(e.children[0]->text);
      if (it != indexed_.end()) {
        length = static_cast<int>(it->second[place].AsList().size());
      }
    } else if (const absl::StatusOr<Shape> dims =
                   elaborator_.EvalDims(e, call_.scope);
               dims.ok()) {
      length = static_cast<int>(dims->size());
    }
    if (!length.has_value()) return {};
    groups.push_back({true, *length});
  }
  return groups;
}

}  // namespace cleave
