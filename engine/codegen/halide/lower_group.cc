#include "engine/codegen/halide/lower_group.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/codegen/element_support.h"
#include "engine/codegen/halide/align_allocations.h"
#include "engine/codegen/halide/device_code.h"
#include "engine/codegen/halide/element.h"
#include "engine/codegen/halide/float_ramps.h"
#include "engine/codegen/halide/lowering.h"
#include "engine/codegen/halide/nan_tests.h"
#include "engine/codegen/halide/narrow_float.h"
#include "engine/codegen/halide/rare_branches.h"
#include "engine/codegen/halide/remainders.h"
#include "engine/codegen/kernel_parameters.h"
#include "ops/element_cost.h"

namespace cleave {

using Halide::cast;
using Halide::Expr;
using Halide::Func;
using Halide::Int;
using Halide::Var;

namespace {

// Operations that make storing a value worth while where it is read twice.
constexpr int kStoreCost = 12;

// Nodes that are no expressions in the coordinates of one element.
bool IsStructured(const Graph& graph, Value v) {
  const Primitive primitive = ToPrimitive(graph.node(v).op);
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kContraction:
    case PrimitiveClass::kScan:
    case PrimitiveClass::kScatter:
      return true;
    default:
      return primitive == Primitive::kWindowsAdd;
  }
}

}  // namespace

Lowering::Lowering(const Graph& graph, GroupKind kind,
                   const Halide::Target& target, bool plain_schedule)
    : graph_(graph),
      kind_(kind),
      target_(target),
      on_device_(target.has_gpu_feature()),
      plain_schedule_(plain_schedule),
      rare_sides_(RareSides(graph)) {
  for (const Dim& dim : KernelDims(graph)) {
    extents_.emplace(dim.ToString(),
                     Halide::Param<int>(absl::StrCat("n", extents_.size())));
  }
  for (const NamedValue& input : graph.inputs()) {
    const TensorType& type = graph.type(input.value);
    image_of_[input.value] = static_cast<int>(images_.size());
    images_.emplace_back(StorageType(type.dtype), type.rank(), input.name);
  }
  FindSpaces();
}

Expr Lowering::Extent(const Dim& dim) {
  const auto number = dim.Value();
  if (number.has_value()) return Expr(static_cast<int>(*number));
  return extents_.at(dim.ToString());
}

Func Lowering::MakeFunc(const std::string& what) {
  return Func(absl::StrCat(what, "_", names_++));
}

std::vector<Var> Lowering::VarsOf(Value v) const {
  std::vector<Var> vars;
  for (int d = 0; d < graph_.type(v).rank(); ++d) {
    vars.emplace_back(absl::StrCat("a", d));
  }
  return vars;
}

Halide::FuncRef Lowering::Call(Func func, const Coordinates& at) {
  return func(Reversed(at));
}

Expr Lowering::At(Value v, const Coordinates& at) {
  std::vector<const void*> places;
  for (const Expr& e : at) places.push_back(e.get());
  // Elsewhere its coordinates are not clamped.
  if (maybe_empty_ > 0) places.push_back(nullptr);
  const auto key = std::make_pair(v.id, std::move(places));
  const auto known = memo_.find(key);
  if (known != memo_.end()) return known->second;
  const Expr result = Compute(v, at);
  kept_.push_back(at);
  memo_[key] = result;
  return result;
}

Expr Lowering::Compute(Value v, const Coordinates& at) {
  const auto func = funcs_.find(v);
  if (func != funcs_.end()) return Call(func->second, at);
  const Primitive primitive = ToPrimitive(graph_.node(v).op);
  const Attributes& attributes = graph_.attributes(v);
  const TensorType& type = graph_.type(v);
  switch (primitive) {
    case Primitive::kInput:
      return LoadElement(type.dtype, images_[image_of_.at(v)](Reversed(at)));
    case Primitive::kConstant:
      return ConstantElement(attributes);
    case Primitive::kExtent:
      return cast(Int(64), Extent(attributes.Get("value").AsDim()));
    case Primitive::kIota:
      return cast(Int(64), at[0]);
    default:
      break;
  }
  if (IsDraw(primitive)) return Draw(v, at);
  if (ClassOf(primitive) != PrimitiveClass::kPointwise) return Movement(v, at);
  std::vector<DType> dtypes;
  std::vector<Expr> arguments;
  for (const Value operand : graph_.operands(v)) {
    dtypes.push_back(graph_.type(operand).dtype);
    arguments.push_back(At(operand, at));
  }
  switch (rare_sides_[v.id]) {
    case RareSide::kFirst:
      return Unless(arguments[0], arguments[1], arguments[2]);
    case RareSide::kSecond:
      return Unless(!arguments[0], arguments[2], arguments[1]);
    case RareSide::kNone:
      break;
  }
  return PointwiseElement(primitive, type.dtype, dtypes, arguments);
}

// From here on elements of v are read from the stage: expressions that were
// remembered before do not know of it.
void Lowering::AddStage(Value v, Stage stage) {
  memo_.clear();
  funcs_[v] = stage.func;
  stages_.push_back(std::move(stage));
}

Halide::RDom Lowering::Domain(const std::vector<Expr>& extents,
                              const std::string& name) {
  Halide::Region region;
  for (const Expr& extent : extents) region.push_back({0, extent});
  return Halide::RDom(region, name);
}

std::vector<Halide::RVar> Lowering::Variables(const Halide::RDom& domain) {
  std::vector<Halide::RVar> variables;
  for (int i = 0; i < domain.dimensions(); ++i) {
    variables.push_back(domain[i]);
  }
  return variables;
}

void Lowering::StoreValue(Value v, Stage::Role role) {
  Stage stage;
  stage.func = MakeFunc(role == Stage::Role::kStored ? "stored" : "row");
  stage.role = role;
  const std::vector<Var> vars = VarsOf(v);
  const Expr value = At(v, Coordinates(vars.begin(), vars.end()));
  stage.func(Reversed(vars)) = value;
  AddStage(v, std::move(stage));
}

// Decides which of the nodes that `needed` rest on are stages, and makes them.
void Lowering::AddStages(const std::vector<Value>& needed) {
  const size_t size = graph_.size();
  // Which nodes are reached, and what reads them in passes of their own:
  // reductions by their number, the outputs by -1.
  std::vector<std::set<int>> sinks(size);
  std::vector<std::vector<Value>> users(size);
  for (const Value v : needed) sinks[v.id].insert(-1);
  for (uint32_t id = static_cast<uint32_t>(size); id-- > 0;) {
    if (sinks[id].empty()) continue;
    const Value v{id};
    if (funcs_.count(v) > 0) continue;  // rows that are stored
    const bool own = IsReduction(graph_, v) || IsStructured(graph_, v);
    for (const Value operand : graph_.operands(v)) {
      users[operand.id].push_back(v);
      if (own) {
        sinks[operand.id].insert(static_cast<int>(id));
      } else {
        sinks[operand.id].insert(sinks[id].begin(), sinks[id].end());
      }
    }
  }
  std::vector<int> cost(size, 0);
  std::vector<bool> rests_on_reduction(size, false);
  for (uint32_t id = 0; id < size; ++id) {
    const Value v{id};
    for (const Value operand : graph_.operands(v)) {
      rests_on_reduction[id] = rests_on_reduction[id] ||
                               rests_on_reduction[operand.id] ||
                               IsReduction(graph_, operand);
    }
    if (sinks[id].empty() || funcs_.count(v) > 0) continue;
    if (IsReduction(graph_, v)) {
      AddReduction(v);
      continue;
    }
    if (IsStructured(graph_, v)) {
      AddStructured(v);
      continue;
    }
    const Primitive primitive = ToPrimitive(graph_.node(v).op);
    if (space_.reduced.empty() || !IsComputed(primitive)) {
      for (const Value operand : graph_.operands(v)) {
        cost[id] = std::max(cost[id], cost[operand.id]);
      }
      continue;
    }
    cost[id] = CostOf(primitive);
    for (const Value operand : graph_.operands(v)) {
      cost[id] = std::min(cost[id] + cost[operand.id], 1000);
    }
    const bool returned =
        std::find(needed.begin(), needed.end(), v) != needed.end();
    if (!IsFull(v)) {
      // A value per row that rests on a reduction is computed once per row.
      bool widened = false;
      for (const Value user : users[id]) {
        widened |= ClassOf(ToPrimitive(graph_.node(user).op)) !=
                   PrimitiveClass::kPointwise;
      }
      if (widened && !returned && rests_on_reduction[id] &&
          graph_.type(v).shape == space_.RowShape()) {
        StoreValue(v, Stage::Role::kRow);
        cost[id] = 0;
      }
      continue;
    }
    // The last value that all of its passes share: behind it they part.
    bool parts = returned;
    for (const Value user : users[id]) {
      parts |= IsReduction(graph_, user) || sinks[user.id] != sinks[id];
    }
    if (sinks[id].size() > 1 && cost[id] >= kStoreCost && parts &&
        (!on_device_ || FitsBlock(v))) {
      StoreValue(v, Stage::Role::kStored);
      cost[id] = 0;
    }
  }
}

void Lowering::AddOutputs(const std::vector<Value>& outputs) {
  memo_.clear();
  kept_.clear();
  funcs_.clear();
  stages_.clear();
  draws_.clear();
  output_shape_ = graph_.type(outputs.front()).shape;
  AddRows();
  AddStages(outputs);
  TileTranspose(outputs);
  Func out = MakeFunc("out");
  const std::vector<Var> vars = VarsOf(outputs.front());
  const Coordinates at(vars.begin(), vars.end());
  std::vector<Expr> values;
  for (const Value v : outputs) {
    values.push_back(StoreElement(graph_.type(v).dtype, At(v, at)));
  }
  if (values.size() == 1) {
    out(Reversed(vars)) = values[0];
  } else {
    out(Reversed(vars)) = Halide::Tuple(values);
  }
  // Extents are the kernel's parameters, or numbers, not the buffer's.
  const Shape& shape = graph_.type(outputs.front()).shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    out.bound(vars[d], 0, Extent(shape[d]));
  }
  Schedule(out, vars);
  outputs_.push_back(out);
  if (std::find(shape.begin(), shape.end(), Dim(0)) == shape.end()) {
    stored_.push_back(out);
  }
}

Halide::Module Lowering::Finish(const std::string& name, bool* exact) {
  std::vector<Halide::Argument> arguments;
  for (const Dim& dim : KernelDims(graph_)) {
    arguments.push_back(extents_.at(dim.ToString()));
  }
  for (Halide::ImageParam& image : images_) arguments.push_back(image);
  Halide::Pipeline pipeline(outputs_);
  LowerNanTests(pipeline);
  LowerRareBranches(pipeline, /*branch=*/!on_device_ && !plain_schedule_);
  LowerF16Conversions(pipeline, target_);
  LowerRemainders(pipeline, target_);
  AlignAllocations(pipeline);
  if (on_device_) MakeDeviceCallsStrict(pipeline, stored_, target_);
  bool float_ramps = false;
  FindFloatRamps(pipeline, &float_ramps);
  Halide::Module module = pipeline.compile_to_module(arguments, name, target_);
  *exact = !float_ramps;
  return module;
}

namespace {

Halide::Module Lower(const Graph& graph, GroupKind kind,
                     const std::string& name, const Halide::Target& target,
                     bool plain_schedule, bool* exact) {
  Lowering lowering(graph, kind, target, plain_schedule);
  std::vector<Value> same;
  for (const int i : OutputOrder(graph)) {
    const Value v = graph.outputs()[i].value;
    if (!same.empty() &&
        graph.type(same.front()).shape != graph.type(v).shape) {
      lowering.AddOutputs(same);
      same.clear();
    }
    same.push_back(v);
  }
  lowering.AddOutputs(same);
  return lowering.Finish(name, exact);
}

}  // namespace

absl::StatusOr<Halide::Module> LowerGroup(const Graph& graph, GroupKind kind,
                                          const std::string& name,
                                          const Halide::Target& target,
                                          bool plain_schedule) {
  bool exact = false;
  Halide::Module module =
      Lower(graph, kind, name, target, plain_schedule, &exact);
  if (exact) return module;
  // Without vectors there are no ramps.
  module = Lower(graph, kind, name, target, /*plain_schedule=*/true, &exact);
  if (!exact) {
    return absl::InternalError(
        absl::StrCat("`", name, "` has a ramp of floats without vectors"));
  }
  return module;
}

}  // namespace cleave
