// Primitives that move, reduce, contract and index, as builtins and in index
// notation.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/filled_with.h"
#include "engine/rule_text/graph_writer.h"
#include "ops/check.h"
#include "ops/exact.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

std::string Listed(const std::vector<std::string>& parts) {
  return absl::StrJoin(parts, ", ");
}

// `x[a, b]`, and x where it has no axes.
std::string Read(const std::string& x, const std::vector<std::string>& at) {
  return at.empty() ? x : absl::StrCat(x, "[", Listed(at), "]");
}

std::string AxesText(const std::vector<int64_t>& axes) {
  return absl::StrCat("[", absl::StrJoin(axes, ", "), "]");
}

}  // namespace

std::vector<std::string> GraphWriter::Indices(size_t count) {
  std::vector<std::string> indices;
  for (size_t i = 0; i < count; ++i) indices.push_back(names_.Fresh('i'));
  return indices;
}

std::string GraphWriter::Bound(const std::vector<std::string>& indices,
                               const Shape& bounds) {
  std::vector<std::string> bound;
  for (size_t d = 0; d < indices.size(); ++d) {
    bound.push_back(absl::StrCat(indices[d], " < ", names_.DimText(bounds[d])));
  }
  return Listed(bound);
}

absl::StatusOr<RuleText> GraphWriter::Equation(
    Value v, const std::vector<std::string>& indices,
    absl::string_view element) {
  if (!may_let_) {
    return NotWritten("a condition that is no one expression");
  }
  std::string name = names_.Fresh('v');
  lines_.push_back(absl::StrCat("let ", name, "[",
                                Bound(indices, graph_.type(v).shape),
                                "] = ", element));
  return Atom(v, std::move(name));
}

absl::StatusOr<RuleText> GraphWriter::Structured(Primitive primitive, Value v) {
  const absl::Span<const Value> operands = graph_.operands(v);
  const Attributes& attributes = graph_.attributes(v);
  std::vector<std::string> arguments;
  // `name(operands, ..)`: arguments follow by name.
  const auto call = [&](absl::string_view name, size_t count) {
    std::vector<std::string> all;
    for (Value operand : operands.first(count)) {
      all.push_back(Full(operand));
    }
    all.insert(all.end(), arguments.begin(), arguments.end());
    return absl::StrCat(name, "(", Listed(all), ")");
  };
  const auto add = [&](absl::string_view name, std::string value) {
    arguments.push_back(absl::StrCat(name, ": ", value));
  };
  const auto add_flag = [&](absl::string_view name) {
    if (attributes.GetBool(name)) add(name, "true");
  };
  const auto finish = [&](std::string text) {
    return RuleText{std::move(text), true, true, graph_.type(v).shape};
  };
  const absl::string_view name = PrimitiveName(primitive);
  if (ClassOf(primitive) == PrimitiveClass::kReduction) {
    return Reduction(v);
  }
  switch (primitive) {
    case Primitive::kIota:
      return finish(absl::StrCat(
          "iota(", names_.DimText(attributes.Get("size").AsDim()), ")"));
    case Primitive::kTranspose:
    case Primitive::kReverse:
      add("axes", AxesText(attributes.GetInts("axes")));
      return finish(call(name, 1));
    case Primitive::kConcatenate: {
      std::vector<std::string> parts;
      for (Value operand : operands) {
        parts.push_back(Full(operand));
      }
      return finish(absl::StrCat("concatenate([", Listed(parts),
                                 "], axis: ", attributes.GetInt("axis"), ")"));
    }
    case Primitive::kLinearScan: {
      add("init", Full(operands[2]));
      add("axis", absl::StrCat(attributes.GetInt("axis")));
      add_flag("reverse");
      return finish(call(name, 2));
    }
    case Primitive::kCumulativeMax:
    case Primitive::kCumulativeMin:
      add("axis", absl::StrCat(attributes.GetInt("axis")));
      add_flag("reverse");
      return finish(call(name, 1));
    case Primitive::kSort: {
      add("axis", absl::StrCat(attributes.GetInt("axis")));
      add_flag("descending");
      CLEAVE_ASSIGN_OR_RETURN(const std::string sorted, Let(call(name, 1)));
      return Fields(v, {absl::StrCat(sorted, ".values"),
                        absl::StrCat(sorted, ".indices")});
    }
    case Primitive::kRandomBits:
    case Primitive::kRandomUniform:
      add("shape", names_.ShapeText(attributes.GetDims("shape")));
      add("dtype", std::string(DTypeName(graph_.type(v).dtype)));
      return finish(call(name, 1));
    case Primitive::kRandomSplit:
      add("count", names_.DimText(attributes.Get("count").AsDim()));
      return finish(call(name, 1));
    case Primitive::kRandomFoldIn:
      return finish(call(name, 2));
    case Primitive::kSlice:
      return Slice(v);
    case Primitive::kPad:
      return Pad(v);
    case Primitive::kWindows:
      return Windows(v);
    case Primitive::kWindowsAdd:
      return WindowsAdd(v);
    case Primitive::kDotGeneral:
      return DotGeneral(v);
    case Primitive::kConv:
      return Conv(v);
    case Primitive::kGather:
      return Gather(v);
    case Primitive::kScatter:
      return Scatter(v);
    default:
      return NotWritten(absl::StrCat("`", name, "`"));
  }
}

RuleText GraphWriter::Reduction(Value v) {
  const bool keep_axes = keeps_axes_[v.id];
  const Value x = graph_.operands(v)[0];
  const std::vector<int64_t> axes = graph_.attributes(v).GetInts("axes");
  RuleText result{absl::StrCat(PrimitiveName(ToPrimitive(graph_.node(v).op)),
                               "(", Full(x), ", axes: ", AxesText(axes),
                               keep_axes ? "" : ", keepdims: false", ")"),
                  true, true, keep_axes ? KeptShape(v) : graph_.type(v).shape};
  const StaticValue* tie = graph_.attributes(v).Find("tie");
  if (tie != nullptr && tie->AsString() != "even") {
    absl::StrAppend(&result.text, " @tie(", tie->AsString(), ")");
    result.atom = false;
  }
  return result;
}

absl::StatusOr<RuleText> GraphWriter::Slice(Value v) {
  CLEAVE_ASSIGN_OR_RETURN(const std::string x, Name(graph_.operands(v)[0]));
  const Attributes& attributes = graph_.attributes(v);
  const std::vector<Dim> start = attributes.GetDims("start");
  const std::vector<int64_t> stride = attributes.GetInts("stride");
  const std::vector<std::string> out = Indices(start.size());
  std::vector<std::string> at;
  for (size_t d = 0; d < out.size(); ++d) {
    at.push_back(stride[d] == 1 ? out[d]
                                : absl::StrCat(stride[d], " * ", out[d]));
    if (start[d] != Dim(0)) {
      absl::StrAppend(&at.back(), " + ", names_.DimText(start[d]));
    }
  }
  return Equation(v, out, Read(x, at));
}

absl::StatusOr<RuleText> GraphWriter::Pad(Value v) {
  CLEAVE_ASSIGN_OR_RETURN(const std::string x, Name(graph_.operands(v)[0]));
  const std::string fill = Operand(graph_.operands(v)[1]);
  const Attributes& attributes = graph_.attributes(v);
  const std::vector<Dim> low = attributes.GetDims("low");
  const std::vector<Dim> interior = attributes.GetDims("interior");
  const std::vector<std::string> out = Indices(low.size());
  std::vector<std::string> at;
  std::vector<std::string> between;
  for (size_t d = 0; d < out.size(); ++d) {
    std::string place = out[d];
    if (low[d] != Dim(0)) {
      place = absl::StrCat(place, " - (", names_.DimText(low[d]), ")");
    }
    if (interior[d] != Dim(0)) {
      const std::string step = names_.DimText(interior[d] + 1);
      between.push_back(absl::StrCat("(", place, ") % (", step, ") == 0"));
      place = absl::StrCat("(", place, ") // (", step, ")");
    }
    at.push_back(std::move(place));
  }
  std::string element = absl::StrCat(Read(x, at), " ?? ", fill);
  if (!between.empty()) {
    element = absl::StrCat("select(", absl::StrJoin(between, " and "), ", ",
                           element, ", ", fill, ")");
  }
  return Equation(v, out, element);
}

namespace {

// Where windows read along their axes: `p * stride + k * dilation - low`.
std::vector<std::string> WindowPlaces(const Attributes& attributes,
                                      const std::vector<std::string>& p,
                                      const std::vector<std::string>& k,
                                      RuleNames& names) {
  const std::vector<Dim> strides = attributes.GetDims("strides");
  const std::vector<Dim> dilations = attributes.GetDims("dilations");
  const std::vector<Dim> low = attributes.GetDims("low");
  std::vector<std::string> places;
  for (size_t d = 0; d < p.size(); ++d) {
    std::string place =
        absl::StrCat(p[d], " * (", names.DimText(strides[d]), ") + ", k[d],
                     " * (", names.DimText(dilations[d]), ")");
    if (low[d] != Dim(0)) {
      absl::StrAppend(&place, " - (", names.DimText(low[d]), ")");
    }
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace

absl::StatusOr<RuleText> GraphWriter::Windows(Value v) {
  CLEAVE_ASSIGN_OR_RETURN(const std::string x, Name(graph_.operands(v)[0]));
  const Attributes& attributes = graph_.attributes(v);
  const size_t spatial = attributes.GetDims("sizes").size();
  const std::vector<std::string> out = Indices(graph_.type(v).shape.size());
  const auto places = out.end() - 2 * spatial;
  std::vector<std::string> at(out.begin(), places);
  for (std::string& place :
       WindowPlaces(attributes, {places, places + spatial},
                    {places + spatial, out.end()}, names_)) {
    at.push_back(std::move(place));
  }
  return Equation(
      v, out,
      absl::StrCat(Read(x, at), " ?? ", Operand(graph_.operands(v)[1])));
}

absl::StatusOr<RuleText> GraphWriter::WindowsAdd(Value v) {
  const Value windows = graph_.operands(v)[0];
  CLEAVE_ASSIGN_OR_RETURN(const std::string u, Name(windows));
  const Attributes& attributes = graph_.attributes(v);
  const size_t spatial = attributes.GetDims("sizes").size();
  const Shape& shape = graph_.type(windows).shape;
  const std::vector<std::string> out = Indices(graph_.type(v).shape.size());
  const std::vector<std::string> p = Indices(spatial);
  const std::vector<std::string> k = Indices(spatial);
  std::vector<std::string> at(out.begin(), out.end() - spatial);
  at.insert(at.end(), p.begin(), p.end());
  at.insert(at.end(), k.begin(), k.end());
  std::vector<std::string> reduced = p;
  reduced.insert(reduced.end(), k.begin(), k.end());
  std::vector<std::string> conditions = WindowPlaces(attributes, p, k, names_);
  for (size_t d = 0; d < spatial; ++d) {
    absl::StrAppend(&conditions[d], " == ", out[out.size() - spatial + d]);
  }
  return Equation(
      v, out,
      absl::StrCat(
          "sum[", Bound(reduced, Shape(shape.end() - 2 * spatial, shape.end())),
          " if ", absl::StrJoin(conditions, " and "), "](", Read(u, at), ")"));
}

absl::StatusOr<RuleText> GraphWriter::DotGeneral(Value v) {
  const absl::Span<const Value> operands = graph_.operands(v);
  const Attributes& attributes = graph_.attributes(v);
  const std::vector<std::string> out = Indices(graph_.type(v).shape.size());
  const Shape& a = graph_.type(operands[0]).shape;
  const Shape& b = graph_.type(operands[1]).shape;
  std::vector<std::string> at_a(a.size());
  std::vector<std::string> at_b(b.size());
  size_t next = 0;
  const std::vector<int64_t> batch_a = attributes.GetInts("batch_a");
  const std::vector<int64_t> batch_b = attributes.GetInts("batch_b");
  for (size_t i = 0; i < batch_a.size(); ++i, ++next) {
    at_a[batch_a[i]] = at_b[batch_b[i]] = out[next];
  }
  const std::vector<int64_t> contract_a = attributes.GetInts("contract_a");
  const std::vector<int64_t> contract_b = attributes.GetInts("contract_b");
  const std::vector<std::string> inner = Indices(contract_a.size());
  Shape bounds;
  for (size_t i = 0; i < inner.size(); ++i) {
    at_a[contract_a[i]] = at_b[contract_b[i]] = inner[i];
    bounds.push_back(a[contract_a[i]]);
  }
  for (std::vector<std::string>* at : {&at_a, &at_b}) {
    for (std::string& index : *at) {
      if (index.empty()) index = out[next++];
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::string x, Name(operands[0]));
  CLEAVE_ASSIGN_OR_RETURN(const std::string y, Name(operands[1]));
  const std::string product = absl::StrCat(Read(x, at_a), " * ", Read(y, at_b));
  return Equation(v, out,
                  inner.empty() ? product
                                : absl::StrCat("sum[", Bound(inner, bounds),
                                               "](", product, ")"));
}

// x is spread, padded and read where the kernel lies over it; out of range
// there is nothing.
absl::StatusOr<RuleText> GraphWriter::Conv(Value v) {
  const absl::Span<const Value> operands = graph_.operands(v);
  CLEAVE_ASSIGN_OR_RETURN(const std::string x, Name(operands[0]));
  CLEAVE_ASSIGN_OR_RETURN(const std::string w, Name(operands[1]));
  const Attributes& attributes = graph_.attributes(v);
  const Shape& kernel = graph_.type(operands[1]).shape;
  const Shape& result = graph_.type(v).shape;
  const size_t spatial = kernel.size() - 2;
  const std::vector<Dim> stride = attributes.GetDims("stride");
  const std::vector<Dim> low = attributes.GetDims("low");
  const std::vector<Dim> spread = attributes.GetDims("lhs_dilation");
  const std::vector<Dim> dilation = attributes.GetDims("rhs_dilation");
  const Dim groups = attributes.Get("groups").AsDim();
  const Dim batch_groups = attributes.Get("batch_groups").AsDim();
  const std::vector<std::string> out = Indices(result.size());
  const std::vector<std::string> inner = Indices(1 + spatial);
  std::vector<std::string> at_x = {out[0], inner[0]};
  std::vector<std::string> at_w = {out[1], inner[0]};
  const Dim outputs = kernel[0];
  if (groups != Dim(1)) {
    at_x[1] = absl::StrCat(
        "(", out[1], " // (", names_.DimText(Dim::FloorDiv(outputs, groups)),
        ")) * (", names_.DimText(kernel[1]), ") + ", inner[0]);
  }
  if (batch_groups != Dim(1)) {
    at_x[0] = absl::StrCat("(", out[1], " // (",
                           names_.DimText(Dim::FloorDiv(outputs, batch_groups)),
                           ")) * (", names_.DimText(result[0]), ") + ", out[0]);
  }
  std::vector<std::string> between;
  for (size_t d = 0; d < spatial; ++d) {
    at_w.push_back(inner[1 + d]);
    std::string place =
        absl::StrCat(out[2 + d], " * (", names_.DimText(stride[d]), ") + ",
                     inner[1 + d], " * (", names_.DimText(dilation[d]), ") - (",
                     names_.DimText(low[d]), ")");
    if (spread[d] != Dim(1)) {
      const std::string step = names_.DimText(spread[d]);
      between.push_back(absl::StrCat("(", place, ") % (", step, ") == 0"));
      place = absl::StrCat("(", place, ") // (", step, ")");
    }
    at_x.push_back(std::move(place));
  }
  std::string factor = absl::StrCat("(", Read(x, at_x), " ?? 0)");
  if (!between.empty()) {
    factor = absl::StrCat("select(", absl::StrJoin(between, " and "), ", ",
                          factor, ", 0)");
  }
  return Equation(
      v, out,
      absl::StrCat("sum[",
                   Bound(inner, Shape(kernel.begin() + 1, kernel.end())), "](",
                   factor, " * ", Read(w, at_w), ")"));
}

absl::StatusOr<RuleText> GraphWriter::Gather(Value v) {
  const absl::Span<const Value> operands = graph_.operands(v);
  CLEAVE_ASSIGN_OR_RETURN(const std::string x, Name(operands[0]));
  CLEAVE_ASSIGN_OR_RETURN(const std::string index, Name(operands[1]));
  const Attributes& attributes = graph_.attributes(v);
  const std::vector<int64_t> axes = attributes.GetInts("axes");
  const size_t batch = attributes.GetInt("batch");
  const size_t rows = graph_.type(operands[1]).shape.size() - 1 - batch;
  const std::vector<std::string> out = Indices(graph_.type(v).shape.size());
  const std::vector<std::string> row(out.begin(), out.begin() + batch + rows);
  std::vector<std::string> at(graph_.type(operands[0]).shape.size());
  for (size_t d = 0; d < batch; ++d) at[d] = out[d];
  for (size_t i = 0; i < axes.size(); ++i) {
    std::vector<std::string> place = row;
    place.push_back(absl::StrCat(i));
    at[axes[i]] = Read(index, place);
  }
  size_t next = batch + rows;
  for (std::string& part : at) {
    if (part.empty()) part = out[next++];
  }
  std::string element = Read(x, at);
  if (attributes.Get("mode").AsString() == "fill") {
    absl::StrAppend(&element, " ?? ", Operand(operands[2]));
  }
  return Equation(v, out, element);
}

absl::StatusOr<RuleText> GraphWriter::Scatter(Value v) {
  const absl::Span<const Value> operands = graph_.operands(v);
  const Attributes& attributes = graph_.attributes(v);
  const std::string mode = attributes.Get("mode").AsString();
  if (mode == "set") {
    return NotWritten("`scatter` in mode \"set\"");
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::string index, Name(operands[1]));
  CLEAVE_ASSIGN_OR_RETURN(const std::string updates, Name(operands[2]));
  const std::vector<int64_t> axes = attributes.GetInts("axes");
  const size_t batch = attributes.GetInt("batch");
  const Shape& index_shape = graph_.type(operands[1]).shape;
  const Shape bounds(index_shape.begin() + batch, index_shape.end() - 1);
  const std::vector<std::string> out = Indices(graph_.type(v).shape.size());
  const std::vector<std::string> rows = Indices(bounds.size());
  std::vector<std::string> row(out.begin(), out.begin() + batch);
  row.insert(row.end(), rows.begin(), rows.end());
  std::vector<std::string> conditions;
  std::vector<bool> is_target(out.size(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    std::vector<std::string> place = row;
    place.push_back(absl::StrCat(i));
    conditions.push_back(
        absl::StrCat(Read(index, place), " == ", out[axes[i]]));
    is_target[axes[i]] = true;
  }
  std::vector<std::string> at = row;
  for (size_t d = batch; d < out.size(); ++d) {
    if (!is_target[d]) at.push_back(out[d]);
  }
  const bool is_sum = mode == "add";
  const bool is_product = mode == "mul";
  std::string update = Read(updates, at);
  const std::string filter = absl::StrJoin(conditions, " and ");
  // A place that nothing is written to keeps its -0.
  const std::optional<Exact> filled = FilledWith(graph_, operands[0]);
  const bool is_onto_identity =
      !rows.empty() && filled.has_value() &&
      ((is_sum && IsSame(*filled, 0)) || (is_product && IsSame(*filled, 1)));
  std::string x;
  if (!is_onto_identity) {
    CLEAVE_ASSIGN_OR_RETURN(x, Name(operands[0]));
  }
  const std::string reduced =
      rows.empty() ? absl::StrCat("select(", filter, ", ", update, ", ",
                                  is_sum       ? "0"
                                  : is_product ? "1"
                                               : Read(x, out),
                                  ")")
                   : absl::StrCat(is_sum       ? "sum"
                                  : is_product ? "prod"
                                               : mode,
                                  "[", Bound(rows, bounds), " if ", filter,
                                  "](", update, ")");
  // With a tie, the first of equal updates counts, before what is there.
  const StaticValue* tie = attributes.Find("tie");
  const bool first = tie != nullptr && tie->AsString() == "first";
  const std::string element =
      is_onto_identity ? reduced
      : is_sum         ? absl::StrCat(Read(x, out), " + ", reduced)
      : is_product
          ? absl::StrCat(Read(x, out), " * ", reduced)
          : absl::StrCat(mode, "(", Read(x, out), ", ", reduced,
                         first && !rows.empty() ? " @tie(first))" : ")",
                         first ? " @tie(second)" : "");
  return Equation(v, out, element);
}

}  // namespace cleave
