#include "engine/ir/map_dims.h"

#include <utility>

#include "ops/status_macros.h"

namespace cleave::internal_ir {
namespace {

absl::StatusOr<StaticValue> MapValue(const StaticValue& value,
                                     const DimFunction& dim,
                                     const RegionFunction& region) {
  switch (value.kind()) {
    case StaticValue::Kind::kInt: {
      if (value.AsDim().IsConstant()) return value;
      CLEAVE_ASSIGN_OR_RETURN(Dim mapped, dim(value.AsDim()));
      return StaticValue(std::move(mapped));
    }
    case StaticValue::Kind::kList: {
      StaticValue::List list;
      list.reserve(value.AsList().size());
      for (const StaticValue& element : value.AsList()) {
        CLEAVE_ASSIGN_OR_RETURN(StaticValue mapped,
                                MapValue(element, dim, region));
        list.push_back(std::move(mapped));
      }
      return StaticValue(std::move(list));
    }
    case StaticValue::Kind::kRecord: {
      StaticValue::Record record;
      record.reserve(value.AsRecord().size());
      for (const auto& [name, field] : value.AsRecord()) {
        CLEAVE_ASSIGN_OR_RETURN(StaticValue mapped,
                                MapValue(field, dim, region));
        record.emplace_back(name, std::move(mapped));
      }
      return StaticValue(std::move(record));
    }
    case StaticValue::Kind::kRegion: {
      if (region == nullptr) return value;
      CLEAVE_ASSIGN_OR_RETURN(Region mapped, region(value.AsRegion()));
      return StaticValue(std::move(mapped));
    }
    default:
      return value;
  }
}

}  // namespace

absl::StatusOr<Attributes> MapDims(const Attributes& attributes,
                                   const DimFunction& dim,
                                   const RegionFunction& region) {
  Attributes result;
  for (const auto& [name, value] : attributes.values()) {
    CLEAVE_ASSIGN_OR_RETURN(StaticValue mapped, MapValue(value, dim, region));
    result.Set(name, std::move(mapped));
  }
  return result;
}

}  // namespace cleave::internal_ir
