#include "testing/check/samples/signature_sampler.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "testing/check/samples/attribute_values.h"
#include "testing/check/samples/sample_counts.h"

namespace cleave {
// The values of the names of the signature in one draw.
struct SignatureSampler::Environment {
  std::map<std::string, DType> dtypes;
  std::map<std::string, int64_t> sizes;
  std::map<std::string, Shape> packs;
  std::map<std::string, int64_t> axes;  // attributes of `n@axis`
  Shape base;                           // the shape packs are made from
  std::set<int64_t> extents;            // those drawn so far
  int64_t one_extent = 2;               // of DrawOptions::alike

  // Without the names in `redrawn`, those of the elements of a list too.
  Environment Without(const std::set<std::string>& redrawn) const {
    Environment kept = *this;
    const auto drop = [&redrawn](auto& named) {
      for (auto it = named.begin(); it != named.end();) {
        const std::string name = it->first.substr(0, it->first.find('#'));
        it = redrawn.count(name) != 0 ? named.erase(it) : std::next(it);
      }
    };
    drop(kept.dtypes);
    drop(kept.sizes);
    drop(kept.packs);
    // They follow from the packs.
    kept.axes.clear();
    return kept;
  }
};

SignatureSampler::SignatureSampler(const Item& item, uint64_t seed)
    : item_(item),
      random_(seed),
      compared_(ComparedConstants(item)),
      required_sizes_(RequiredSizes(item)),
      asked_(AskedClasses(item)) {
  for (const AttributeDecl& attribute : item.attributes) {
    if (attribute.list || attribute.type == "axis" || attribute.type == "dim") {
      continue;
    }
    Factor factor;
    factor.name = attribute.name;
    if (attribute.type == "axes") {
      if (attribute.default_value != nullptr || attribute.optional) {
        factor.axes.push_back(AxesChoice::kDefault);
      }
      for (const AxesChoice choice :
           {AxesChoice::kAll, AxesChoice::kFirst, AxesChoice::kLast}) {
        factor.axes.push_back(choice);
      }
      factors_.push_back(std::move(factor));
      continue;
    }
    if (attribute.default_value != nullptr || attribute.optional) {
      factor.values.push_back(std::nullopt);
    }
    for (StaticValue& value : AttributeValues(item_, attribute, compared_)) {
      const std::optional<StaticValue> one = std::move(value);
      if (std::find(factor.values.begin(), factor.values.end(), one) ==
          factor.values.end()) {
        factor.values.push_back(one);
      }
    }
    if (!factor.values.empty()) factors_.push_back(std::move(factor));
  }
  for (const InputDecl& input : item.inputs) {
    if (!input.optional || !input.variadic_index.empty()) continue;
    factors_.push_back({input.name, FactorKind::kInput, {}, {}});
  }
  AddPackRanks();
}

int64_t SignatureSampler::Uniform(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random_);
}

int64_t SignatureSampler::DrawExtent() {
  static constexpr int64_t kExtents[] = {2, 3, 1, 2, 3, 4, 5, 0};
  return kExtents[Uniform(0, 7)];
}

int64_t SignatureSampler::DrawExtent(const DrawOptions& options,
                                     const Environment& environment) {
  if (!options.alike) return DrawExtent();
  return Chance(0.2) ? 1 : environment.one_extent;
}

int64_t SignatureSampler::DistinctExtent(Environment& environment) {
  std::vector<int64_t> left;
  for (int64_t extent : {2, 3, 4, 5}) {
    if (environment.extents.count(extent) == 0) left.push_back(extent);
  }
  if (left.empty()) return Uniform(1, 5);
  const int64_t extent = left[Uniform(0, left.size() - 1)];
  environment.extents.insert(extent);
  return extent;
}

Shape SignatureSampler::DrawPack(int64_t rank, const DrawOptions& options,
                                 Environment& environment) {
  Shape pack;
  for (; rank > 0; --rank) {
    int64_t size = options.distinct && !options.alike
                       ? DistinctExtent(environment)
                       : DrawExtent(options, environment);
    if (size == 0 && options.nonempty) size = 3;
    pack.push_back(size);
  }
  return pack;
}

bool SignatureSampler::Chance(double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
}

std::vector<DType> SignatureSampler::DTypes() const {
  std::vector<DType> dtypes;
  const auto add = [&](DType dtype) {
    if (std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end()) {
      dtypes.push_back(dtype);
    }
  };
  for (const WhereClause& where : item_.where) {
    const auto dtype_class = ParseDTypeClass(where.dtype_class);
    if (!dtype_class.ok()) continue;
    for (DType dtype : kSampledDTypes) {
      if (InClass(dtype, *dtype_class)) add(dtype);
    }
  }
  if (!item_.where.empty()) return dtypes;
  // The dtypes of the floats, or of the integers where there are none.
  for (const bool floats : {true, false}) {
    if (!dtypes.empty()) break;
    for (const InputDecl& input : item_.inputs) {
      if (input.type.dtype == nullptr) continue;
      const auto dtype = ParseDType(input.type.dtype->text);
      if (dtype.ok() && (floats ? IsFloat(*dtype) : IsInt(*dtype))) {
        add(*dtype);
      }
    }
  }
  return dtypes;
}

absl::StatusOr<DType> SignatureSampler::DrawDType(
    const TypeExpr& type, const Environment& environment) {
  if (type.dtype == nullptr || type.dtype->kind != ExprKind::kName) {
    return NotSupported("inputs of a computed dtype are not sampled");
  }
  const auto it = environment.dtypes.find(type.dtype->text);
  if (it != environment.dtypes.end()) return it->second;
  CLEAVE_ASSIGN_OR_RETURN(const DType dtype, ParseDType(type.dtype->text));
  if (IsComplex(dtype)) return NotSupported("complex inputs are not sampled");
  return dtype;
}

absl::StatusOr<int64_t> SignatureSampler::DrawSize(const Expr& expr,
                                                   int element,
                                                   const DrawOptions& options,
                                                   Environment& environment) {
  const auto draw = [&](const std::string& name) {
    const auto it = environment.sizes.find(name);
    if (it != environment.sizes.end()) return it->second;
    int64_t size = DrawExtent(options, environment);
    const auto fixed = fixed_sizes_.find(name.substr(0, name.find('#')));
    if (fixed != fixed_sizes_.end()) {
      size = fixed->second;
    } else if (options.large && !options.large->is_pack &&
               options.large->name == name) {
      size = options.large->extent;
    } else if (options.middle) {
      size = Uniform(6, 13);
    } else if (options.large) {
      size =
          Chance(options.large_chance) ? options.large->extent : Uniform(1, 3);
    } else if (const auto required =
                   required_sizes_.find(name.substr(0, name.find('#')));
               required != required_sizes_.end() && Chance(0.75)) {
      size = required->second[Uniform(0, required->second.size() - 1)];
    } else if (options.distinct && !options.alike) {
      size = DistinctExtent(environment);
    } else if (size == 0 && options.nonempty) {
      size = 2;
    }
    environment.sizes[name] = size;
    return size;
  };
  switch (expr.kind) {
    case ExprKind::kName:
      return draw(expr.text);
    case ExprKind::kNumber: {
      int64_t value;
      if (absl::SimpleAtoi(expr.text, &value)) return value;
      break;
    }
    case ExprKind::kIndex:
      if (expr.children[0]->kind == ExprKind::kName) {
        return draw(absl::StrCat(expr.children[0]->text, "#", element));
      }
      break;
    case ExprKind::kBinary: {
      CLEAVE_ASSIGN_OR_RETURN(
          const int64_t a,
          DrawSize(*expr.children[0], element, options, environment));
      CLEAVE_ASSIGN_OR_RETURN(
          const int64_t b,
          DrawSize(*expr.children[1], element, options, environment));
      if (expr.text == "+") return a + b;
      if (expr.text == "-" && a >= b) return a - b;
      if (expr.text == "*") return a * b;
      if (expr.text == "//" && b > 0) return a / b;
      break;
    }
    default:
      break;
  }
  return NotSupported("inputs of extent `", PrintExpr(expr),
                      "` are not sampled");
}

Shape SignatureSampler::NewPack(const std::string& name, bool has_pack,
                                bool is_further, const DrawOptions& options,
                                Environment& environment) {
  if (options.large && options.large->is_pack && options.large->name == name) {
    return {Dim(options.large->extent)};
  }
  Shape pack = environment.base;
  if (options.shape || options.large || options.middle) return pack;
  const std::optional<int64_t> rank = PackRankOf(name, options);
  if (has_pack) {
    // Around one axis: packs of one type do not broadcast.
    return DrawPack(rank ? *rank : Uniform(0, 2), options, environment);
  }
  // A suffix of the base, an axis of it perhaps 1: it broadcasts. The elements
  // of one input are alike more often than two inputs.
  if (rank) {
    while (pack.size() > static_cast<size_t>(*rank)) pack.erase(pack.begin());
  } else if (Chance(is_further ? 0.5 : 0.25) && !pack.empty()) {
    pack.erase(pack.begin());
  }
  if (Chance(is_further ? 0.3 : 0.15) && !pack.empty()) {
    pack[Uniform(0, pack.size() - 1)] = 1;
  }
  return pack;
}

Shape SignatureSampler::DrawBase(const DrawOptions& options,
                                 Environment& environment) {
  if (options.shape) return *options.shape;
  if (options.middle) return Chance(0.5) ? Shape{2} : Shape{};
  if (options.large) {
    // A pack that is not the large one broadcasts with it, or it with that: a
    // weight is no larger than what it weighs.
    const bool some = Chance(0.5);
    if (!options.large->is_pack) return some ? Shape{2} : Shape{};
    return some ? Shape{Dim(options.large->extent)} : Shape{};
  }
  std::optional<int64_t> least;
  for (const Factor& factor : factors_) {
    if (const auto rank = PackRankOf(factor.name, options)) {
      least = std::max(least.value_or(0), *rank);
    }
  }
  if (least) return DrawPack(*least, options, environment);
  // Where there is one axis, the first is the last.
  const bool some =
      std::any_of(factors_.begin(), factors_.end(), [&](const Factor& factor) {
        const auto choice = AxesChoiceOf(factor.name, options);
        return choice == AxesChoice::kFirst || choice == AxesChoice::kLast;
      });
  // Two axes are kept of three, now and then.
  const int64_t rank = some ? 2 : Chance(0.15) ? 3 : Uniform(0, 2);
  return DrawPack(rank, options, environment);
}

absl::StatusOr<std::vector<Dim>> SignatureSampler::DrawAxes(
    const TypeExpr& type, int element, const std::string& element_index,
    const DrawOptions& options, Environment& environment) {
  std::vector<Dim> axes;
  bool has_pack = false;
  for (const AxisExpr& axis : type.axes) {
    if (axis.is_new) return NotSupported("new extents of inputs");
    if (axis.size->kind == ExprKind::kSpread) {
      const Expr& list = *axis.size->children[0];
      std::string name;
      if (list.kind == ExprKind::kName) {
        name = list.text;
      } else if (list.kind == ExprKind::kIndex &&
                 list.children[0]->kind == ExprKind::kName) {
        name = absl::StrCat(list.children[0]->text, "#", element);
      } else {
        return NotSupported("inputs of extents `", PrintExpr(list),
                            "..` are not sampled");
      }
      auto it = environment.packs.find(name);
      if (it == environment.packs.end()) {
        Shape pack = NewPack(name, has_pack, element > 0, options, environment);
        it = environment.packs.emplace(name, std::move(pack)).first;
      }
      has_pack = true;
      axes.insert(axes.end(), it->second.begin(), it->second.end());
      continue;
    }
    if (!axis.at.empty()) {
      const int64_t place = static_cast<int64_t>(axes.size());
      environment.axes.emplace(axis.at, place);
    }
    CLEAVE_ASSIGN_OR_RETURN(const int64_t size, DrawSize(*axis.size, element,
                                                         options, environment));
    axes.push_back(Dim(size));
  }
  return axes;
}

std::optional<StaticValue> SignatureSampler::LastAttribute(
    const std::string& name) const {
  const StaticValue* const last = last_.attributes.Find(name);
  return last == nullptr ? std::nullopt : std::make_optional(*last);
}

absl::StatusOr<std::optional<StaticValue>> SignatureSampler::DrawAttribute(
    const AttributeDecl& attribute, const SampledCall& call,
    const DrawOptions& options, Environment& environment) {
  const std::string& name = attribute.name;
  if (attribute.type == "dim" && attribute.list &&
      environment.packs.count(name) != 0) {
    return std::make_optional(StaticValue::Dims(environment.packs[name]));
  }
  if (attribute.type == "dim" && environment.sizes.count(name) != 0) {
    return std::make_optional<StaticValue>(environment.sizes[name]);
  }
  const bool may_omit =
      attribute.default_value != nullptr || attribute.optional;
  const bool held = options.redrawn && last_environment_ != nullptr &&
                    options.redrawn->count(name) == 0;
  if (attribute.type == "axis" || attribute.type == "axes") {
    const auto bound = environment.axes.find(name);
    if (bound != environment.axes.end()) {
      return std::make_optional<StaticValue>(bound->second);
    }
    const std::optional<AxesChoice> chosen = AxesChoiceOf(name, options);
    if (!chosen && held) return LastAttribute(name);
    if (chosen == AxesChoice::kDefault ||
        (!chosen && may_omit && !(options.vary_attributes && Chance(0.6)))) {
      return std::optional<StaticValue>();
    }
    int64_t rank = 0;
    for (const SampledInput& input : call.inputs) {
      if (input.name != attribute.axis_of) continue;
      for (const auto& type : input.types) {
        if (type) rank = type->rank();
      }
    }
    if (attribute.type == "axis") {
      if (rank == 0) return std::optional<StaticValue>(StaticValue(0));
      return std::make_optional<StaticValue>(Uniform(0, rank - 1));
    }
    StaticValue::List axes;
    for (int64_t axis = 0; axis < rank; ++axis) {
      const bool taken = chosen == AxesChoice::kFirst  ? axis == 0
                         : chosen == AxesChoice::kLast ? axis == rank - 1
                         : chosen == AxesChoice::kAll  ? true
                                                       : Chance(0.6);
      if (taken) axes.push_back(StaticValue(axis));
    }
    if (axes.empty() && rank > 0) axes.push_back(StaticValue(rank - 1));
    return std::make_optional<StaticValue>(std::move(axes));
  }
  const bool may_be_large =
      options.large && options.large_chance > 0 && attribute.type == "int";
  if (may_be_large && !attribute.list && Chance(options.large_chance)) {
    return std::make_optional<StaticValue>(options.large->extent);
  }
  if (const auto choice = ChoiceOf(name, FactorKind::kAttribute, options)) {
    for (const Factor& factor : factors_) {
      if (factor.kind == FactorKind::kAttribute && factor.name == name) {
        return factor.values[*choice];
      }
    }
  }
  if (held) return LastAttribute(name);
  if (may_omit && !(options.vary_attributes && Chance(0.4))) {
    return std::optional<StaticValue>();
  }
  std::vector<StaticValue> values =
      AttributeValues(item_, attribute, compared_);
  if (values.empty()) {
    if (may_omit) return std::optional<StaticValue>();
    return NotSupported("attribute `", name, "` of type ", attribute.type,
                        " has no default and no sampled values");
  }
  const StaticValue value = values[Uniform(0, values.size() - 1)];
  if (!attribute.list) return std::make_optional(value);
  int64_t length = 1;
  const ExprPtr& wanted = attribute.list_length;
  if (wanted != nullptr && wanted->kind == ExprKind::kNumber) {
    if (!absl::SimpleAtoi(wanted->text, &length)) length = 1;
  } else if (wanted != nullptr && wanted->kind == ExprKind::kCall &&
             wanted->text == "len" && wanted->children.size() == 1 &&
             environment.packs.count(wanted->children[0]->text) != 0) {
    length = environment.packs[wanted->children[0]->text].size();
  } else if (wanted == nullptr) {
    // As long as a list of axes, where there is one.
    length = Uniform(1, 3);
    for (const auto& [other, list] : call.attributes.values()) {
      if (list.kind() == StaticValue::Kind::kList) {
        length = list.AsList().size();
      }
    }
  }
  if (may_be_large) {
    values.push_back(StaticValue(options.large->extent));
  }
  if (options.middle && attribute.type == "int" && !may_omit) {
    for (int64_t i = 2; i <= 5; ++i) values.push_back(StaticValue(i));
  }
  StaticValue::List list;
  for (int64_t i = 0; i < length; ++i) {
    list.push_back(values[Uniform(0, values.size() - 1)]);
  }
  return std::make_optional<StaticValue>(std::move(list));
}

absl::StatusOr<SampledCall> SignatureSampler::Draw(const DrawOptions& options) {
  SampledCall call;
  call.op = item_.name;
  Environment environment;
  const bool keeps = options.redrawn && last_environment_ != nullptr;
  if (keeps) environment = last_environment_->Without(*options.redrawn);
  const auto is_kept = [&](const std::string& name) {
    return keeps && options.redrawn->count(name) == 0;
  };
  if (options.alike && !keeps) environment.one_extent = Uniform(2, 4);
  for (const WhereClause& where : item_.where) {
    if (environment.dtypes.count(where.variable) != 0) continue;
    CLEAVE_ASSIGN_OR_RETURN(const DTypeClass dtype_class,
                            ParseDTypeClass(where.dtype_class));
    std::vector<DType> dtypes;
    for (DType dtype : kSampledDTypes) {
      if (InClass(dtype, dtype_class)) dtypes.push_back(dtype);
    }
    const bool takes_wanted =
        options.dtype.has_value() && InClass(*options.dtype, dtype_class);
    if (dtypes.empty() && takes_wanted) dtypes.push_back(*options.dtype);
    if (dtypes.empty()) {
      return NotSupported("dtypes of class ", where.dtype_class,
                          " are not sampled");
    }
    environment.dtypes[where.variable] =
        takes_wanted ? *options.dtype : dtypes[Uniform(0, dtypes.size() - 1)];
    // The dtype that the rule asks for is not always that of the others.
    const auto asked = asked_.find(where.variable);
    if (asked == asked_.end() || Chance(0.5)) continue;
    const DTypeClass wanted =
        asked->second[Uniform(0, asked->second.size() - 1)];
    dtypes.erase(std::remove_if(dtypes.begin(), dtypes.end(),
                                [&](DType d) { return !InClass(d, wanted); }),
                 dtypes.end());
    if (dtypes.empty()) continue;
    environment.dtypes[where.variable] = dtypes[Uniform(0, dtypes.size() - 1)];
  }
  call.dtypes = environment.dtypes;
  environment.base = DrawBase(options, environment);
  for (const InputDecl& input : item_.inputs) {
    const StaticValue* const last = last_.statics.Find(input.name);
    if (input.is_static && is_kept(input.name) && last != nullptr) {
      call.statics.Set(input.name, *last);
      continue;
    }
    if (input.is_static) {
      StaticValue::List list;
      const int64_t size = Uniform(1, 3);
      for (int64_t i = 0; i < size; ++i) list.push_back(StaticValue(2));
      if (input.type.axes.empty()) {
        call.statics.Set(input.name, StaticValue(2));
      } else {
        call.statics.Set(input.name, StaticValue(std::move(list)));
      }
      continue;
    }
    SampledInput sampled;
    sampled.name = input.name;
    sampled.variadic = !input.variadic_index.empty();
    CLEAVE_ASSIGN_OR_RETURN(const DType dtype,
                            DrawDType(input.type, environment));
    sampled.is_index =
        IsInt(dtype) && environment.dtypes.count(input.type.dtype->text) == 0;
    const auto as_last = std::find_if(
        last_.inputs.begin(), last_.inputs.end(),
        [&](const SampledInput& last) { return last.name == input.name; });
    const bool held = is_kept(input.name) && as_last != last_.inputs.end();
    const int64_t count = held ? static_cast<int64_t>(as_last->types.size())
                          : sampled.variadic ? Uniform(1, 3)
                                             : 1;
    for (int64_t i = 0; i < count; ++i) {
      const auto choice = ChoiceOf(input.name, FactorKind::kInput, options);
      const bool absent =
          choice ? *choice == 1
          : held ? !as_last->types[i].has_value()
                 : input.optional && !options.shape.has_value() && Chance(0.5);
      if (absent) {
        sampled.types.push_back(std::nullopt);
        continue;
      }
      CLEAVE_ASSIGN_OR_RETURN(
          std::vector<Dim> axes,
          DrawAxes(input.type, static_cast<int>(i), input.variadic_index,
                   options, environment));
      // Refuses more of them than an int64_t counts: n^4 at a large n.
      CLEAVE_ASSIGN_OR_RETURN(const Dim elements, NumElements(axes));
      // Sizes that the declaration gives as numbers are the op's own.
      const bool is_drawn = std::any_of(
          input.type.axes.begin(), input.type.axes.end(),
          [](const AxisExpr& a) { return a.size->kind != ExprKind::kNumber; });
      if (is_drawn && !options.shape && !options.large &&
          fixed_sizes_.empty() &&
          elements.Value().value_or(1) > kMaxSampleElements) {
        return absl::InvalidArgumentError("the sample is too large");
      }
      sampled.types.push_back(TensorType{dtype, std::move(axes)});
    }
    call.inputs.push_back(std::move(sampled));
  }
  for (const AttributeDecl& attribute : item_.attributes) {
    CLEAVE_ASSIGN_OR_RETURN(
        const std::optional<StaticValue> value,
        DrawAttribute(attribute, call, options, environment));
    if (value) call.attributes.Set(attribute.name, *value);
  }
  if (HasNumberThatIntsLack(call)) {
    return absl::InvalidArgumentError(
        "an attribute has no value of an integer dtype");
  }
  last_ = call;
  last_environment_ = std::make_shared<const Environment>(environment);
  return call;
}

}  // namespace cleave
