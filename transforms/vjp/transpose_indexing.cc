// Transposes of gather and scatter.

#include <string>
#include <utility>
#include <vector>

#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/vjp/transpose_primitive.h"

namespace cleave {
namespace {

Attributes WithMode(const Attributes& attributes, const char* mode) {
  Attributes changed = attributes;
  changed.Set("mode", mode);
  return changed;
}

Value True(GraphBuilder& b) { return b.Constant(Exact(1), DType::kBool); }

// Where each update of a scatter that sets went: whether it is the last one of
// its place. Each writes its number; those that read it again are.
absl::StatusOr<Value> Stays(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  const Shape index = node.types[1].shape;
  const int batch = static_cast<int>(node.attributes.GetInt("batch"));
  const Shape rows(index.begin() + batch, index.end() - 1);
  CLEAVE_ASSIGN_OR_RETURN(const Dim count, NumElements(rows));
  const Value iota = b.Apply(Primitive::kIota, {}, {{"size", count}});
  CLEAVE_ASSIGN_OR_RETURN(
      const Value numbers,
      b.Add(Primitive::kReshape, {{"shape", StaticValue::Dims(rows)}}, {iota}));
  const Value written =
      b.BroadcastInDim(numbers, node.types[2].shape,
                       emit::Range(static_cast<int>(rows.size()), batch));
  const Value nobody =
      b.Constant(Exact(-1), TensorType{DType::kI64, node.types[0].shape});
  CLEAVE_ASSIGN_OR_RETURN(const Value places,
                          b.Add(Primitive::kScatter, node.attributes,
                                {nobody, node.x(1), written}));
  CLEAVE_ASSIGN_OR_RETURN(
      const Value read,
      b.Add(Primitive::kGather, WithMode(node.attributes, "fill"),
            {places, node.x(1), b.Constant(Exact(-1), DType::kI64)}));
  return emit::Eq(b, read, written);
}

}  // namespace

Cotangents TransposeGather(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  std::vector<Value> cotangents(3);
  const Value at = node.x(1);
  if (node.linear[0]) {
    CLEAVE_ASSIGN_OR_RETURN(
        cotangents[0],
        b.Add(Primitive::kScatter, WithMode(node.attributes, "add"),
              {b.Zeros(node.types[0]), at, node.dy()}));
  }
  // Where the mode is "error", no fill is read.
  if (node.linear[2] && node.attributes.Get("mode").AsString() == "fill") {
    const TensorType flags{DType::kBool, node.types[0].shape};
    CLEAVE_ASSIGN_OR_RETURN(const Value filled,
                            b.Add(Primitive::kGather, node.attributes,
                                  {b.Constant(Exact(0), flags), at, True(b)}));
    cotangents[2] = SumWhere(b, filled, node.dy());
  }
  return cotangents;
}

Cotangents TransposeScatter(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  const std::string& mode = node.attributes.Get("mode").AsString();
  if (mode != "add" && mode != "set") {
    return absl::InternalError("transpose: this scatter is not linear");
  }
  const bool sets = mode == "set";
  std::vector<Value> cotangents(3);
  if (node.linear[0]) {
    cotangents[0] = node.dy();
    if (sets) {
      const TensorType flags{DType::kBool, node.types[0].shape};
      const TensorType update_flags{DType::kBool, node.types[2].shape};
      CLEAVE_ASSIGN_OR_RETURN(const Value kept,
                              b.Add(Primitive::kScatter, node.attributes,
                                    {b.Constant(Exact(1), flags), node.x(1),
                                     b.Constant(Exact(0), update_flags)}));
      cotangents[0] =
          emit::Select(b, kept, node.dy(), emit::Like(b, node.dy(), Exact(0)));
    }
  }
  if (node.linear[2]) {
    CLEAVE_ASSIGN_OR_RETURN(
        cotangents[2],
        b.Add(
            Primitive::kGather, WithMode(node.attributes, "fill"),
            {node.dy(), node.x(1), b.Constant(Exact(0), node.types[2].dtype)}));
    if (sets) {
      CLEAVE_ASSIGN_OR_RETURN(const Value stays, Stays(node));
      cotangents[2] = emit::Select(b, stays, cotangents[2],
                                   emit::Like(b, cotangents[2], Exact(0)));
    }
  }
  return cotangents;
}

}  // namespace cleave
