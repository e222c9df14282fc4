// rules/rule.schema.json against the loader: what shipped rules become is valid
// by the schema, and what the schema refuses the loader refuses. The validator
// here knows the keywords that the schema uses, and no others.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/lang/json_rule.h"
#include "engine/lang/lang_testing.h"
#include "engine/lang/parser.h"
#include "nlohmann/json.hpp"

namespace cleave {
namespace {

using nlohmann::json;

class Validator {
 public:
  explicit Validator(json schema) : root_(std::move(schema)) {}

  bool IsValid(const json& value) { return Check(root_, value); }

 private:
  bool Check(const json& schema, const json& value) {
    for (const auto& [keyword, argument] : schema.items()) {
      if (!CheckKeyword(schema, keyword, argument, value)) return false;
    }
    return true;
  }

  bool CheckKeyword(const json& schema, const std::string& keyword,
                    const json& argument, const json& value) {
    if (keyword == "$ref") {
      absl::string_view name = argument.get_ref<const std::string&>();
      EXPECT_TRUE(absl::ConsumePrefix(&name, "#/$defs/"));
      return Check(root_["$defs"][std::string(name)], value);
    }
    if (keyword == "oneOf") return CheckOneOf(argument, value);
    if (keyword == "const") return value == argument;
    if (keyword == "enum") {
      return std::find(argument.begin(), argument.end(), value) !=
             argument.end();
    }
    if (keyword == "type") {
      return (argument == "object" && value.is_object()) ||
             (argument == "array" && value.is_array()) ||
             (argument == "string" && value.is_string()) ||
             (argument == "integer" && value.is_number_integer());
    }
    if (keyword == "pattern") {
      return !value.is_string() ||
             std::regex_search(value.get<std::string>(), Regex(argument));
    }
    if (keyword == "required") {
      for (const json& key : argument) {
        if (value.is_object() && !value.contains(key.get<std::string>())) {
          return false;
        }
      }
      return true;
    }
    if (keyword == "additionalProperties") {
      EXPECT_EQ(argument, false);
      if (!value.is_object()) return true;
      for (const auto& member : value.items()) {
        if (!schema["properties"].contains(member.key())) return false;
      }
      return true;
    }
    if (keyword == "properties") {
      if (!value.is_object()) return true;
      for (const auto& member : value.items()) {
        const auto found = argument.find(member.key());
        if (found != argument.end() && !Check(*found, member.value())) {
          return false;
        }
      }
      return true;
    }
    if (keyword == "items") {
      if (!value.is_array()) return true;
      for (const json& element : value) {
        if (!Check(argument, element)) return false;
      }
      return true;
    }
    if (keyword == "minItems") {
      return !value.is_array() || value.size() >= argument;
    }
    if (keyword == "minimum") return !value.is_number() || value >= argument;
    if (keyword == "maximum") return !value.is_number() || value <= argument;
    EXPECT_TRUE(keyword == "$schema" || keyword == "title" ||
                keyword == "$defs")
        << "the schema uses `" << keyword << "`";
    return true;
  }

  // The branches differ in `kind`: the others cannot hold, which keeps the
  // check linear.
  bool CheckOneOf(const json& branches, const json& value) {
    if (!value.is_object() || !value.contains("kind")) return false;
    std::set<std::string> kinds;
    bool valid = false;
    for (const json& branch : branches) {
      const std::string name = branch["$ref"].get<std::string>().substr(8);
      const json& schema = root_["$defs"][name];
      if (schema.contains("oneOf")) {
        valid = valid || Check(schema, value);
        continue;
      }
      const json& kind = schema["properties"]["kind"]["const"];
      EXPECT_TRUE(kinds.insert(kind.get<std::string>()).second);
      if (value["kind"] == kind) valid = valid || Check(schema, value);
    }
    return valid;
  }

  const std::regex& Regex(const std::string& pattern) {
    const auto found = regexes_.find(pattern);
    if (found != regexes_.end()) return found->second;
    return regexes_.emplace(pattern, std::regex(pattern)).first->second;
  }

  json root_;
  std::map<std::string, std::regex> regexes_;
};

json Schema() { return json::parse(ReadFile("rules/rule.schema.json")); }

json JsonOf(const std::string& text) {
  const ParseResult result = ParseRules(Source("in.rules", text));
  EXPECT_TRUE(result.ok());
  return json::parse(RulesToJson(result.file));
}

TEST(Schema, HoldsForShippedRules) {
  Validator validator(Schema());
  std::vector<std::string> files = ShippedRuleFiles();
  EXPECT_GT(files.size(), 20);
  files.push_back("engine/lang/testdata/litmus.rules");
  for (const std::string& file : files) {
    EXPECT_TRUE(validator.IsValid(JsonOf(ReadFile(file)))) << file;
  }
}

// Every change of one place: each member removed, added, or replaced.
std::vector<json> Mutations(const json& value) {
  std::vector<json> mutations;
  const json replacements[] = {json(),        json(true), json(7),
                               json("a b"),   json("if"), json::array(),
                               json::object()};
  const json flat = value.flatten();
  std::set<std::string> pointers;
  for (const auto& leaf : flat.items()) {
    for (std::string at = leaf.key(); !at.empty();
         at = at.substr(0, at.rfind('/'))) {
      pointers.insert(at);
    }
  }
  for (const std::string& at : pointers) {
    const json::json_pointer pointer(at);
    for (const json& replacement : replacements) {
      json changed = value;
      changed[pointer] = replacement;
      mutations.push_back(std::move(changed));
    }
    json changed = value;
    json& parent = changed[pointer.parent_pointer()];
    if (parent.is_object()) {
      parent.erase(pointer.back());
      mutations.push_back(changed);
      parent[absl::StrCat(pointer.back(), "s")] = "x";
      mutations.push_back(changed);
    }
  }
  return mutations;
}

TEST(Schema, AgreesWithTheLoader) {
  // One of each kind of node.
  const std::string text = R"(language 1

// Comment.
/// Doc.
op f(xs[i]: T[A.., n@axis]?, static k: i64[], *, axis: axis(xs), m: {a, b} = a, l: int[2]?)
    -> (y: T[new q <= n, (A ++ [1])..], z: acc(T)[] if l)
  where T: float
  let a = 1, b = 2
  compute acc
  error value "no" if axis < 0
  domain x > 0
  spec y[i] = x[i]
  special y = 0 if x == 1
  approximates within 2^-60 + 2^-50 cond on x in [0, 2]
  approximates within 2^-60
  accuracy T within 2 ulp + 2 cond
  accuracy f32 within n eps * n
  accuracy f32 within 2 ulp on x in [0, inf], x in [-1, 1]
{
  // First.
  let s[i < 3, r..] = sum[j if j > 1](-x[j, r.., 0..2]) @tie(first)
  let t = [if not c then c else d for c in l if c is int]
  let u = fold(v = 0, w in t) { v + w.a ?? "text" }
  let v = scan(g = 0) over h in x { (g = g + h) }
  let w = cond(x > 0) { x } else { vjp f(x, axis: 1)(x, z: 2).x }
  let z = while(g = 1) g < 9 max 3 { g }
  let a = while(g = 1) g < 9 { (g = g) }
  let b = map(h in x) { h }
  (y = s, z = t)
  jvp xs = dxs
  vmap (xs, k@_) = xs
  vjp (dy) = (xs = dy)
}

op g(x: T[S..]) -> T[S..]
  spec x == y if x > 0
  = x

def h(a) = a

jvp exp(x) = dx * y

numeric exp(x: f32) within 1 ulp = x

rewrite r: a => b real where a: float, b: int

example f(1) ~ [2.5]

fn k(x: f32[B]) -> f32[B] = x

onnx R@3(X: T) -> (Y: T) = X

aten r.out(Tensor self, *, int a=1, Tensor(a!) out) -> (Tensor(a!) y)
  mutates out = self
  = self
)";
  Validator validator(Schema());
  const json whole = JsonOf(text);
  int valid = 0, invalid = 0, refused_as_text = 0;
  for (const json& entry : whole["entries"]) {
    const json file = {{"language", 1}, {"entries", json::array({entry})}};
    EXPECT_TRUE(ParseJsonRules(Source("in.json", file.dump())).ok());
    for (const json& mutation : Mutations(file)) {
      const bool by_schema = validator.IsValid(mutation);
      const bool by_loader =
          ParseJsonRules(Source("in.json", mutation.dump())).ok();
      EXPECT_TRUE(by_schema || !by_loader) << mutation.dump();
      // A schema cannot state mistakes that depend on several nodes.
      if (by_schema && !by_loader) ++refused_as_text;
      ++(by_schema ? valid : invalid);
    }
  }
  EXPECT_GT(valid, 100);
  EXPECT_GT(invalid, 5000);
  EXPECT_LT(refused_as_text, valid / 2);
  std::cout << valid << " valid, " << invalid << " invalid, " << refused_as_text
            << " refused as text only\n";
}

}  // namespace
}  // namespace cleave
