#include "transforms/vjp/awkward_points_testing.h"

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "ops/check.h"
#include "transforms/testing/json_array.h"

namespace cleave {
namespace {

// Inputs stay in their order.
using Json = nlohmann::ordered_json;

constexpr char kNotImplemented[] = "not implemented";

AwkwardArray ReadArray(const Json& json) {
  const bool is_int = json.is_object();
  const absl::StatusOr<JsonArray> read =
      ReadJsonArray(is_int ? json.at("i64") : json);
  CLEAVE_CHECK(read.ok()) << read.status();
  AwkwardArray array;
  if (is_int) array.kind = AwkwardArray::Kind::kInt;
  if (read->has_bools) array.kind = AwkwardArray::Kind::kBool;
  array.shape = read->shape;
  array.elements = read->elements;
  return array;
}

NamedAwkwardArrays ReadArrays(const Json& json) {
  NamedAwkwardArrays arrays;
  for (const auto& [name, array] : json.items()) {
    arrays.emplace_back(name, ReadArray(array));
  }
  return arrays;
}

// The members of AwkwardResults that `json` has; those that are "not
// implemented" by name.
AwkwardResults ReadResults(const Json& json,
                           std::vector<std::string>* not_implemented) {
  AwkwardResults results;
  for (const char* name : {"value", "jvp", "vjp", "second"}) {
    if (!json.contains(name)) continue;
    const Json& member = json.at(name);
    if (not_implemented != nullptr && member == kNotImplemented) {
      not_implemented->push_back(name);
    } else if (absl::string_view(name) == "value") {
      results.value.push_back(ReadArray(member));
    } else if (absl::string_view(name) == "jvp") {
      results.jvp.push_back(ReadArray(member));
    } else {
      (absl::string_view(name) == "vjp" ? results.vjp : results.second) =
          ReadArrays(member);
    }
  }
  return results;
}

AwkwardPoint ReadPoint(const Json& json) {
  static const auto& known = *new std::set<std::string>(
      {"name", "rule", "inputs", "value", "tangents", "jvp", "cotangent", "vjp",
       "second", "convention", "source", "torch", "pytorch"});
  for (const auto& [name, member] : json.items()) {
    CLEAVE_CHECK(known.count(name) > 0) << "unknown member " << name;
  }
  AwkwardPoint point;
  point.name = json.at("name").get<std::string>();
  point.rule = json.at("rule").get<std::string>();
  point.inputs = ReadArrays(json.at("inputs"));
  point.expected = ReadResults(json, nullptr);
  if (json.contains("tangents")) {
    point.tangents = ReadArrays(json.at("tangents"));
    point.cotangent.push_back(ReadArray(json.at("cotangent")));
  }
  point.convention = json.at("convention").get<std::string>();
  point.source = json.at("source").get<std::string>();
  point.torch = json.at("torch").get<std::string>();
  if (json.contains("pytorch")) {
    const Json& pytorch = json.at("pytorch");
    point.pytorch = ReadResults(pytorch, &point.not_implemented);
    if (pytorch.contains("why")) {
      point.why = pytorch.at("why").get<std::string>();
    }
  }
  CLEAVE_CHECK(!point.expected.value.empty()) << point.name;
  CLEAVE_CHECK(point.tangents.empty() == point.expected.jvp.empty() &&
               point.tangents.size() == point.expected.vjp.size())
      << point.name;
  CLEAVE_CHECK(!point.convention.empty() && !point.source.empty())
      << point.name;
  return point;
}

std::string PrintNumber(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return absl::StrFormat("%.5g", x);
}

std::string Print(const AwkwardArray& array, size_t depth, size_t& next) {
  if (depth == array.shape.size()) {
    const double x = array.elements[next++];
    if (array.kind != AwkwardArray::Kind::kBool) return PrintNumber(x);
    return x != 0 ? "true" : "false";
  }
  std::vector<std::string> parts;
  for (int64_t i = 0; i < array.shape[depth]; ++i) {
    parts.push_back(Print(array, depth + 1, next));
  }
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

std::string Print(const AwkwardArray& array) {
  size_t next = 0;
  return Print(array, 0, next);
}

// `x = [1, 2], y = 0`; one without its name, where it is the only input.
std::string Print(const NamedAwkwardArrays& arrays, bool names) {
  std::vector<std::string> parts;
  for (const auto& [name, array] : arrays) {
    parts.push_back(names ? absl::StrCat(name, " = ", Print(array))
                          : Print(array));
  }
  return absl::StrJoin(parts, ", ");
}

bool AllOnes(const AwkwardArray& array) {
  for (double x : array.elements) {
    if (x != 1) return false;
  }
  return true;
}

bool SameArrays(const AwkwardArray& a, const AwkwardArray& b) {
  return a.shape == b.shape && Print(a) == Print(b);
}

// The derivatives of a point, each with its direction if that is not 1
// throughout. The slopes of a function that works element by element are given
// once: they are the jvp and the vjp.
std::string PrintDerivatives(const AwkwardPoint& point,
                             const AwkwardResults& results) {
  std::vector<std::string> parts;
  const bool names = point.tangents.size() > 1;
  bool ones = !point.cotangent.empty() && AllOnes(point.cotangent[0]);
  for (const auto& [name, tangent] : point.tangents) {
    ones = ones && AllOnes(tangent);
  }
  const bool slopes = ones && point.tangents.size() == 1 &&
                      results.jvp.size() == 1 && results.vjp.size() == 1 &&
                      SameArrays(results.jvp[0], results.vjp[0].second);
  if (slopes) {
    parts.push_back(absl::StrCat("slope ", Print(results.jvp[0])));
  } else {
    if (!results.jvp.empty()) {
      parts.push_back(absl::StrCat(
          "jvp ", Print(results.jvp[0]),
          ones ? "" : absl::StrCat(" along ", Print(point.tangents, names))));
    }
    if (!results.vjp.empty()) {
      parts.push_back(
          absl::StrCat("vjp ", Print(results.vjp, names),
                       AllOnes(point.cotangent[0])
                           ? ""
                           : absl::StrCat(" of ", Print(point.cotangent[0]))));
    }
  }
  if (!results.second.empty()) {
    parts.push_back(absl::StrCat("second ", Print(results.second, names)));
  }
  return absl::StrJoin(parts, "; ");
}

std::string PrintPyTorch(const AwkwardPoint& point) {
  if (point.SameInPyTorch()) return "same";
  std::vector<std::string> parts;
  if (!point.pytorch.value.empty()) {
    parts.push_back(absl::StrCat("value ", Print(point.pytorch.value[0])));
  }
  const std::string derivatives = PrintDerivatives(point, point.pytorch);
  if (!derivatives.empty()) parts.push_back(derivatives);
  for (const std::string& name : point.not_implemented) {
    parts.push_back(absl::StrCat(name, " not implemented"));
  }
  return absl::StrCat(absl::StrJoin(parts, "; "), point.why.empty() ? "" : ": ",
                      point.why);
}

// A row of a table.
std::string Row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) {
    absl::StrAppend(&row, " ", absl::StrReplaceAll(cell, {{"|", "\\|"}}), " |");
  }
  return absl::StrCat(row, "\n");
}

constexpr absl::string_view kPreamble = R"(# Conventions at awkward points

The values and derivatives at kinks, at jumps, where elements are equal, and where 0 meets infinity. This page is made
from `transforms/vjp/testdata/awkward_points.json` by the test that holds the rules to it, in f64 and f32, forwards and in
reverse: `bazel run //transforms:awkward_points_test -- --update`.

- *jvp* is the derivative along tangents, 1 throughout where none are named; *vjp* the cotangents of the inputs for a
  cotangent of the result, likewise; *slope* is both, of a function that works element by element.
- *second* is the derivative of the cotangent times the jvp. All four nestings of the two modes give it.
- Forward and reverse mode agree at every point where both are finite.
- *Source* is on whose authority: the *definition*, which leaves no choice; a one-sided *limit*; *IEEE 754*; *PyTorch*;
  the *subgradient of least norm*, which treats equals equally; or, where these leave it open, our *choice*.
- *PyTorch 2.15* is what PyTorch gives for the same function in f64 on a CPU, where that differs.

)";

}  // namespace

Tensor AwkwardArray::ToTensor(DType dtype) const {
  switch (kind) {
    case Kind::kFloat:
      return Tensor::FromDoubles(dtype, shape, elements);
    case Kind::kInt:
      return Tensor::FromInts(
          DType::kI64, shape,
          std::vector<int64_t>(elements.begin(), elements.end()));
    case Kind::kBool:
      return Tensor::FromDoubles(DType::kBool, shape, elements);
  }
  return Tensor();
}

std::string AwkwardArray::Type(DType dtype) const {
  const DType element = kind == Kind::kFloat ? dtype
                        : kind == Kind::kInt ? DType::kI64
                                             : DType::kBool;
  return absl::StrCat(DTypeName(element), "[", absl::StrJoin(shape, ", "), "]");
}

bool AwkwardPoint::SameInPyTorch() const {
  return pytorch.value.empty() && pytorch.jvp.empty() && pytorch.vjp.empty() &&
         pytorch.second.empty() && not_implemented.empty();
}

std::string AwkwardPoint::RuleText(DType dtype) const {
  std::vector<std::string> parameters;
  for (const auto& [input, array] : inputs) {
    parameters.push_back(absl::StrCat(input, ": ", array.Type(dtype)));
  }
  const bool equation = absl::StartsWith(rule, "y[");
  return absl::StrCat("language 1\n\nfn f(", absl::StrJoin(parameters, ", "),
                      ") -> ", expected.value[0].Type(dtype),
                      equation ? "\n{\n  " : " = ", rule,
                      equation ? "\n}\n" : "\n");
}

std::vector<AwkwardGroup> ReadAwkwardPoints(const std::string& path) {
  std::ifstream file(path);
  CLEAVE_CHECK(file.good()) << "cannot read " << path;
  std::ostringstream text;
  text << file.rdbuf();
  const Json json = Json::parse(text.str(), nullptr, false);
  CLEAVE_CHECK(!json.is_discarded()) << path << " is no JSON";
  std::vector<AwkwardGroup> groups;
  for (const Json& group : json) {
    groups.push_back({group.at("title").get<std::string>(), {}});
    for (const Json& point : group.at("points")) {
      groups.back().points.push_back(ReadPoint(point));
    }
  }
  return groups;
}

std::string AwkwardPointsDocument(const std::vector<AwkwardGroup>& groups) {
  std::string text(kPreamble);
  for (const AwkwardGroup& group : groups) {
    absl::StrAppend(&text, "## ", group.title, "\n\n",
                    "| | at | value | derivatives | convention | source | "
                    "PyTorch 2.15 |\n|-|-|-|-|-|-|-|\n");
    for (const AwkwardPoint& point : group.points) {
      text += Row({absl::StrCat(point.name, "<br>`", point.rule, "`"),
                   Print(point.inputs, point.inputs.size() > 1),
                   Print(point.expected.value[0]),
                   PrintDerivatives(point, point.expected), point.convention,
                   point.source, PrintPyTorch(point)});
    }
    absl::StrAppend(&text, "\n");
  }
  text.pop_back();
  return text;
}

}  // namespace cleave
