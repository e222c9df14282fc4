// The tree to JSON.

#include <utility>

#include "engine/lang/json_internal.h"

namespace cleave::internal {
namespace {

Json ExprJson(const Expr& expr);
Json BodyJson(const Body& body);
template <typename T>
Json StructJson(const T& value);

// Describe() takes what it visits by reference to what may change: a copy,
// whose children are shared.
class Writer {
 public:
  explicit Writer(Json* object) : object_(*object) {}

  void Text(const char* key, const std::string& text, TextKind) {
    object_[key] = text;
  }
  void OptionalText(const char* key, const std::string& text, TextKind) {
    if (!text.empty()) object_[key] = text;
  }
  void Choice(const char* key, const std::string& text,
              std::initializer_list<const char*>) {
    object_[key] = text;
  }
  void Flag(const char* key, bool flag, bool absent) {
    if (flag != absent) object_[key] = flag;
  }
  void Integer(const char* key, int value, int) { object_[key] = value; }
  void Value(const char* key, const ExprPtr& expr) {
    object_[key] = expr == nullptr ? Json() : ExprJson(*expr);
  }
  void OptionalValue(const char* key, const ExprPtr& expr) {
    if (expr != nullptr) object_[key] = ExprJson(*expr);
  }
  void Values(const char* key, const std::vector<ExprPtr>& exprs) {
    Json array = Json::array();
    for (const ExprPtr& expr : exprs) array.push_back(ExprJson(*expr));
    object_[key] = std::move(array);
  }
  void Statements(const char* key, const BodyPtr& body) {
    object_[key] = body == nullptr ? Json::array() : BodyJson(*body);
  }
  void OptionalStatements(const char* key, const BodyPtr& body) {
    if (body != nullptr) object_[key] = BodyJson(*body);
  }
  template <typename T>
  void Object(const char* key, const T& value) {
    object_[key] = StructJson(value);
  }
  template <typename T>
  void List(const char* key, const std::vector<T>& values, int) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(StructJson(value));
    object_[key] = std::move(array);
  }
  template <typename T>
  void OptionalList(const char* key, const std::vector<T>& values) {
    if (!values.empty()) List(key, values, 0);
  }
  template <typename T>
  void ListIf(const char* key, bool present, const std::vector<T>& values) {
    if (present) List(key, values, 0);
  }
  void Texts(const char* key, const std::vector<std::string>& texts, TextKind,
             int) {
    object_[key] = texts;
  }
  void OptionalTexts(const char* key, const std::vector<std::string>& texts,
                     TextKind) {
    if (!texts.empty()) object_[key] = texts;
  }

 private:
  Json& object_;
};

template <typename T>
Json StructJson(const T& value) {
  Json object = Json::object();
  Writer writer(&object);
  T copy = value;
  Describe(writer, copy);
  return object;
}

Json ExprJson(const Expr& expr) {
  Json object = {{"kind", KindText(kExprKinds, expr.kind)}};
  Writer writer(&object);
  Expr copy = expr;
  Describe(writer, copy);
  return object;
}

Json BodyJson(const Body& body) {
  Json array = Json::array();
  for (const Statement& statement : body.statements) {
    Json object = {{"kind", KindText(kStatementKinds, statement.kind)}};
    Writer writer(&object);
    Statement copy = statement;
    Describe(writer, copy);
    array.push_back(std::move(object));
  }
  return array;
}

}  // namespace

Json JsonOf(const RuleFile& file) {
  Json entries = Json::array();
  for (const RuleFile::Entry& entry : file.entries) {
    Json object = Json::object();
    if (entry.item.has_value()) {
      object["kind"] = KindText(kItemKinds, entry.item->kind);
    } else {
      object["kind"] = "comment";
    }
    Writer writer(&object);
    writer.Flag("blank_before", entry.blank_before, true);
    if (entry.item.has_value()) {
      Item copy = *entry.item;
      Describe(writer, copy);
    } else {
      writer.Texts("lines", entry.comments, TextKind::kComment, 1);
    }
    entries.push_back(std::move(object));
  }
  return {{"language", file.language}, {"entries", std::move(entries)}};
}

}  // namespace cleave::internal
