// The JSON Schema, from the same description as the reader and the writer.

#include <utility>

#include "engine/lang/json_internal.h"
#include "engine/lang/json_rule.h"
#include "engine/lang/json_text.h"

namespace cleave {
namespace internal {
namespace {

Json Reference(absl::string_view name) {
  return {{"$ref", absl::StrCat("#/$defs/", name)}};
}

Json StrictObject() {
  return {{"type", "object"},
          {"additionalProperties", false},
          {"required", Json::array()},
          {"properties", Json::object()}};
}

Json TextSchema(TextKind kind) {
  return {{"type", "string"}, {"pattern", TextPattern(kind)}};
}

// Fills in the members of one object; adds the structs in it to `defs`.
class SchemaWriter {
 public:
  SchemaWriter(Json* object, Json* defs) : object_(*object), defs_(*defs) {}

  void Add(const char* key, bool required, Json schema) {
    if (required) object_["required"].push_back(key);
    object_["properties"][key] = std::move(schema);
  }
  void Text(const char* key, const std::string&, TextKind kind) {
    Add(key, true, TextSchema(kind));
  }
  void OptionalText(const char* key, const std::string&, TextKind kind) {
    Add(key, false, TextSchema(kind));
  }
  void Choice(const char* key, const std::string&,
              std::initializer_list<const char*> choices) {
    Json values = Json::array();
    for (const char* choice : choices) values.push_back(choice);
    Add(key, true, {{"enum", std::move(values)}});
  }
  void Flag(const char* key, bool, bool absent) {
    Add(key, false, {{"const", !absent}});
  }
  void Integer(const char* key, int, int min) {
    Add(key, true,
        {{"type", "integer"}, {"minimum", min}, {"maximum", 1000000}});
  }
  void Value(const char* key, const ExprPtr&) {
    Add(key, true, Reference("expression"));
  }
  void OptionalValue(const char* key, const ExprPtr&) {
    Add(key, false, Reference("expression"));
  }
  void Values(const char* key, const std::vector<ExprPtr>&) {
    Add(key, true, {{"type", "array"}, {"items", Reference("expression")}});
  }
  void Statements(const char* key, const BodyPtr&) {
    Add(key, true, Reference("body"));
  }
  void OptionalStatements(const char* key, const BodyPtr&) {
    Add(key, false, Reference("body"));
  }
  template <typename T>
  void Object(const char* key, const T&) {
    Add(key, true, Struct<T>());
  }
  template <typename T>
  void List(const char* key, const std::vector<T>&, int min) {
    AddArray(key, true, min, Struct<T>());
  }
  template <typename T>
  void OptionalList(const char* key, const std::vector<T>&) {
    AddArray(key, false, 1, Struct<T>());
  }
  template <typename T>
  void ListIf(const char* key, bool, const std::vector<T>&) {
    AddArray(key, false, 0, Struct<T>());
  }
  void Texts(const char* key, const std::vector<std::string>&, TextKind kind,
             int min) {
    AddArray(key, true, min, TextSchema(kind));
  }
  void OptionalTexts(const char* key, const std::vector<std::string>&,
                     TextKind kind) {
    AddArray(key, false, 1, TextSchema(kind));
  }

 private:
  void AddArray(const char* key, bool required, int min, Json items) {
    Json schema = {{"type", "array"}};
    if (min > 0) schema["minItems"] = min;
    schema["items"] = std::move(items);
    Add(key, required, std::move(schema));
  }

  template <typename T>
  Json Struct() {
    T value;
    const std::string name = SchemaName(value);
    if (!defs_.contains(name)) {
      defs_[name] = Json::object();
      Json object = StrictObject();
      SchemaWriter writer(&object, &defs_);
      Describe(writer, value);
      defs_[name] = std::move(object);
    }
    return Reference(name);
  }

  Json& object_;
  Json& defs_;
};

// One schema for each kind of `table`, and `name`: any of them.
template <typename Value, typename Table>
void AddKinds(const Table& table, const std::string& name,
              const std::string& prefix, bool entries, Json* defs) {
  Json any = Json::array();
  for (const auto& entry : table) {
    const std::string full = absl::StrCat(prefix, entry.name);
    Json object = StrictObject();
    SchemaWriter writer(&object, defs);
    writer.Add("kind", true, {{"const", std::string(entry.name)}});
    if (entries) writer.Flag("blank_before", true, true);
    Value value;
    value.kind = entry.kind;
    Describe(writer, value);
    (*defs)[full] = std::move(object);
    any.push_back(Reference(full));
  }
  (*defs)[name] = {{"oneOf", std::move(any)}};
}

}  // namespace
}  // namespace internal

std::string RuleSchema() {
  using internal::Json;
  Json defs = Json::object();
  internal::AddKinds<Item>(internal::kItemKinds, "item", "item_", true, &defs);
  internal::AddKinds<Statement>(internal::kStatementKinds, "statement",
                                "statement_", false, &defs);
  internal::AddKinds<Expr>(internal::kExprKinds, "expression", "expression_",
                           false, &defs);
  defs["body"] = {{"type", "array"},
                  {"minItems", 1},
                  {"items", internal::Reference("statement")}};
  Json comment = internal::StrictObject();
  internal::SchemaWriter writer(&comment, &defs);
  writer.Add("kind", true, {{"const", "comment"}});
  writer.Flag("blank_before", true, true);
  writer.Texts("lines", {}, internal::TextKind::kComment, 1);
  defs["comment"] = std::move(comment);

  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "A rule file of Cleave"}};
  schema.update(internal::StrictObject());
  internal::SchemaWriter root(&schema, &defs);
  root.Add("language", true, {{"const", 1}});
  root.Add("entries", true,
           {{"type", "array"},
            {"items",
             {{"oneOf", Json::array({internal::Reference("comment"),
                                     internal::Reference("item")})}}}});
  schema["$defs"] = std::move(defs);
  return schema.dump(2) + "\n";
}

}  // namespace cleave
