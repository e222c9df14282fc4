// The JSON pointer of a place in the canonical text.

#include <utility>

#include "engine/lang/json_internal.h"
#include "engine/lang/json_rule.h"

namespace cleave {
namespace internal {
namespace {

bool Contains(SourceRange outer, SourceRange inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end &&
         outer.begin < outer.end;
}

// Goes down to the innermost node that contains `range`.
class Locator {
 public:
  Locator(SourceRange range, std::string pointer, std::string* found)
      : range_(range), pointer_(std::move(pointer)), found_(found) {}

  void Text(const char*, const std::string&, TextKind) {}
  void OptionalText(const char*, const std::string&, TextKind) {}
  void Choice(const char*, const std::string&,
              std::initializer_list<const char*>) {}
  void Flag(const char*, bool, bool) {}
  void Integer(const char*, int, int) {}
  void Texts(const char*, const std::vector<std::string>&, TextKind, int) {}
  void OptionalTexts(const char*, const std::vector<std::string>&, TextKind) {}
  void Value(const char* key, const ExprPtr& expr) {
    if (expr != nullptr) Enter(*expr, PointerStep(pointer_, key));
  }
  void OptionalValue(const char* key, const ExprPtr& expr) { Value(key, expr); }
  void Values(const char* key, const std::vector<ExprPtr>& exprs) {
    for (size_t i = 0; i < exprs.size(); ++i) {
      Enter(*exprs[i], absl::StrCat(PointerStep(pointer_, key), "/", i));
    }
  }
  void Statements(const char* key, const BodyPtr& body) {
    if (body == nullptr) return;
    for (size_t i = 0; i < body->statements.size(); ++i) {
      Enter(body->statements[i],
            absl::StrCat(PointerStep(pointer_, key), "/", i));
    }
  }
  void OptionalStatements(const char* key, const BodyPtr& body) {
    Statements(key, body);
  }
  template <typename T>
  void Object(const char* key, const T& value) {
    Enter(value, PointerStep(pointer_, key));
  }
  template <typename T>
  void List(const char* key, const std::vector<T>& values, int) {
    for (size_t i = 0; i < values.size(); ++i) {
      Enter(values[i], absl::StrCat(PointerStep(pointer_, key), "/", i));
    }
  }
  template <typename T>
  void OptionalList(const char* key, const std::vector<T>& values) {
    List(key, values, 0);
  }
  template <typename T>
  void ListIf(const char* key, bool, const std::vector<T>& values) {
    List(key, values, 0);
  }

  template <typename T>
  void Enter(const T& value, std::string pointer) {
    SourceRange range = RangeOf(value);
    if (!Contains(range, range_)) return;
    *found_ = pointer;
    Locator locator(range_, std::move(pointer), found_);
    T copy = value;
    Describe(locator, copy);
  }

 private:
  template <typename T>
  static SourceRange RangeOf(const T& value) {
    return value.range;
  }
  static SourceRange RangeOf(const LetClause& clause) {
    if (clause.lets.empty()) return {};
    return {clause.lets.front().range.begin, clause.lets.back().range.end};
  }

  SourceRange range_;
  std::string pointer_;
  std::string* found_;
};

}  // namespace
}  // namespace internal

std::string JsonPointerOf(const RuleFile& file, SourceRange range) {
  std::string found;
  internal::Locator locator(range, "", &found);
  for (size_t i = 0; i < file.entries.size(); ++i) {
    if (file.entries[i].item.has_value()) {
      locator.Enter(*file.entries[i].item, absl::StrCat("/entries/", i));
    }
  }
  return found;
}

}  // namespace cleave
