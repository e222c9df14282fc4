// JSON to the tree, as strictly as the schema.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "engine/lang/json_internal.h"
#include "engine/lang/json_text.h"
#include "engine/lang/lexer.h"

namespace cleave::internal {
namespace {

constexpr size_t kMaxDiagnostics = 100;

// The state that all readers of one file share.
struct State {
  std::vector<Diagnostic>* diagnostics;
  int depth = 0;

  void Report(DiagnosticKind kind, std::string message, std::string pointer,
              std::string help = "") {
    if (diagnostics->size() >= kMaxDiagnostics) return;
    // The pointer of the whole document is the empty text: `/` shows as one.
    if (pointer.empty()) pointer = "/";
    diagnostics->push_back({kind,
                            std::move(message),
                            {0, 0},
                            std::move(help),
                            std::move(pointer)});
  }
};

ExprPtr ReadExpr(const Json& json, const std::string& pointer, State* state);
BodyPtr ReadBody(const Json& json, const std::string& pointer, State* state);

ExprPtr PlaceholderExpr() {
  Expr expr;
  expr.text = "_";
  return std::make_shared<const Expr>(std::move(expr));
}

std::string JoinChoices(const std::vector<std::string>& choices) {
  std::string out;
  for (const std::string& choice : choices) {
    absl::StrAppend(&out, out.empty() ? "`" : ", `", choice, "`");
  }
  return out;
}

// Reads the members of one object; Finish() reports those that are left over.
class Reader {
 public:
  Reader(const Json& object, std::string pointer, State* state)
      : object_(object), pointer_(std::move(pointer)), state_(state) {}

  void Finish() {
    for (const auto& member : object_.items()) {
      const std::string& key = member.key();
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) {
        continue;
      }
      const std::string close = ClosestName(key, known_);
      state_->Report(
          DiagnosticKind::kJson,
          absl::StrCat("unknown member `", key.substr(0, 40), "`"),
          PointerStep(pointer_, key),
          close.empty() ? "" : absl::StrCat("did you mean `", close, "`?"));
    }
  }

  // Null where the member is absent.
  const Json* Member(const char* key, bool required) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    if (required) {
      state_->Report(DiagnosticKind::kJson,
                     absl::StrCat("member `", key, "` is missing"), pointer_);
    }
    return nullptr;
  }

  void Text(const char* key, std::string& text, TextKind kind) {
    if (const Json* json = Member(key, true)) {
      ReadText(*json, PointerStep(pointer_, key), kind, &text);
    }
  }
  void OptionalText(const char* key, std::string& text, TextKind kind) {
    if (const Json* json = Member(key, false)) {
      ReadText(*json, PointerStep(pointer_, key), kind, &text);
    }
  }
  void Choice(const char* key, std::string& text,
              std::initializer_list<const char*> choices) {
    const std::vector<std::string> values(choices.begin(), choices.end());
    text = values[0];
    const Json* json = Member(key, true);
    if (json == nullptr) return;
    if (json->is_string()) {
      const std::string& value = json->get_ref<const std::string&>();
      if (std::find(values.begin(), values.end(), value) != values.end()) {
        text = value;
        return;
      }
      const std::string close = ClosestName(value, values);
      state_->Report(
          DiagnosticKind::kJson,
          absl::StrCat("`", value.substr(0, 40), "` is no `", key, "`"),
          PointerStep(pointer_, key),
          close.empty() ? absl::StrCat("one of ", JoinChoices(values))
                        : absl::StrCat("did you mean `", close, "`?"));
      return;
    }
    state_->Report(DiagnosticKind::kJson, "expected a string",
                   PointerStep(pointer_, key));
  }
  void Flag(const char* key, bool& flag, bool absent) {
    flag = absent;
    const Json* json = Member(key, false);
    if (json == nullptr) return;
    if (!json->is_boolean() || json->get<bool>() == absent) {
      state_->Report(DiagnosticKind::kJson,
                     absl::StrCat("expected ", absent ? "false" : "true",
                                  ", or no such member"),
                     PointerStep(pointer_, key));
      return;
    }
    flag = json->get<bool>();
  }
  void Integer(const char* key, int& value, int min) {
    const Json* json = Member(key, true);
    if (json == nullptr) return;
    if (!json->is_number_unsigned() || json->get<uint64_t>() < uint64_t(min) ||
        json->get<uint64_t>() > 1000000) {
      state_->Report(DiagnosticKind::kJson,
                     absl::StrCat("expected an integer of at least ", min,
                                  " and at most 1000000"),
                     PointerStep(pointer_, key));
      return;
    }
    value = json->get<int>();
  }
  void Value(const char* key, ExprPtr& expr) {
    const Json* json = Member(key, true);
    expr = json == nullptr
               ? PlaceholderExpr()
               : ReadExpr(*json, PointerStep(pointer_, key), state_);
  }
  void OptionalValue(const char* key, ExprPtr& expr) {
    if (const Json* json = Member(key, false)) {
      expr = ReadExpr(*json, PointerStep(pointer_, key), state_);
    }
  }
  void Values(const char* key, std::vector<ExprPtr>& exprs) {
    const Json* array = Array(key, true, 0);
    if (array == nullptr) return;
    const std::string pointer = PointerStep(pointer_, key);
    for (size_t i = 0; i < array->size(); ++i) {
      exprs.push_back(
          ReadExpr((*array)[i], absl::StrCat(pointer, "/", i), state_));
    }
  }
  void Statements(const char* key, BodyPtr& body) {
    const Json* array = Array(key, true, 1);
    body = array == nullptr
               ? std::make_shared<const Body>()
               : ReadBody(*array, PointerStep(pointer_, key), state_);
  }
  void OptionalStatements(const char* key, BodyPtr& body) {
    if (const Json* array = Array(key, false, 1)) {
      body = ReadBody(*array, PointerStep(pointer_, key), state_);
    }
  }
  template <typename T>
  void Object(const char* key, T& value) {
    if (const Json* json = Member(key, true)) {
      ReadStruct(*json, PointerStep(pointer_, key), &value);
    }
  }
  template <typename T>
  void List(const char* key, std::vector<T>& values, size_t min) {
    ReadList(key, Array(key, true, min), &values);
  }
  template <typename T>
  void OptionalList(const char* key, std::vector<T>& values) {
    ReadList(key, Array(key, false, 1), &values);
  }
  template <typename T>
  void ListIf(const char* key, bool& present, std::vector<T>& values) {
    const Json* array = Array(key, false, 0);
    present = array != nullptr;
    ReadList(key, array, &values);
  }
  void Texts(const char* key, std::vector<std::string>& texts, TextKind kind,
             size_t min) {
    ReadTexts(key, Array(key, true, min), kind, &texts);
  }
  void OptionalTexts(const char* key, std::vector<std::string>& texts,
                     TextKind kind) {
    ReadTexts(key, Array(key, false, 1), kind, &texts);
  }

 private:
  const Json* Array(const char* key, bool required, size_t min) {
    const Json* json = Member(key, required);
    if (json == nullptr) return nullptr;
    if (!json->is_array() || json->size() < min) {
      state_->Report(DiagnosticKind::kJson,
                     min == 0 ? "expected an array"
                              : "expected an array that is not empty",
                     PointerStep(pointer_, key));
      return nullptr;
    }
    return json;
  }

  void ReadText(const Json& json, const std::string& pointer, TextKind kind,
                std::string* text) {
    if (json.is_string() &&
        IsTextOfKind(json.get_ref<const std::string&>(), kind)) {
      *text = json.get<std::string>();
      return;
    }
    *text = kind == TextKind::kNumber ? "0" : "_";
    state_->Report(
        DiagnosticKind::kJson,
        absl::StrCat("expected a string with ", DescribeTextKind(kind)),
        pointer);
  }

  void ReadTexts(const char* key, const Json* array, TextKind kind,
                 std::vector<std::string>* texts) {
    if (array == nullptr) return;
    const std::string pointer = PointerStep(pointer_, key);
    for (size_t i = 0; i < array->size(); ++i) {
      texts->emplace_back();
      ReadText((*array)[i], absl::StrCat(pointer, "/", i), kind,
               &texts->back());
    }
  }

  template <typename T>
  void ReadList(const char* key, const Json* array, std::vector<T>* values) {
    if (array == nullptr) return;
    const std::string pointer = PointerStep(pointer_, key);
    for (size_t i = 0; i < array->size(); ++i) {
      values->emplace_back();
      ReadStruct((*array)[i], absl::StrCat(pointer, "/", i), &values->back());
    }
  }

  template <typename T>
  void ReadStruct(const Json& json, const std::string& pointer, T* value) {
    static const Json* const kNothing = new Json(Json::object());
    if (!json.is_object()) {
      state_->Report(DiagnosticKind::kJson, "expected an object", pointer);
      // Fills in place holders, whose absence is no further mistake.
      std::vector<Diagnostic> ignored;
      State quiet = {&ignored, state_->depth};
      Reader reader(*kNothing, pointer, &quiet);
      Describe(reader, *value);
      return;
    }
    Reader reader(json, pointer, state_);
    Describe(reader, *value);
    reader.Finish();
  }

  const Json& object_;
  std::string pointer_;
  State* state_;
  std::vector<std::string> known_;
};

// The value of member `kind` among those of `table`.
template <typename Table, typename Kind>
bool ReadKind(const Json& json, const std::string& pointer, const Table& table,
              State* state, Kind* kind) {
  if (!json.is_object()) {
    state->Report(DiagnosticKind::kJson, "expected an object", pointer);
    return false;
  }
  const auto found = json.find("kind");
  if (found == json.end() || !found->is_string()) {
    state->Report(DiagnosticKind::kJson, "member `kind` is missing", pointer);
    return false;
  }
  const std::string& text = found->get_ref<const std::string&>();
  std::vector<std::string> names;
  for (const auto& entry : table) {
    if (entry.name == text) {
      *kind = entry.kind;
      return true;
    }
    names.emplace_back(entry.name);
  }
  const std::string close = ClosestName(text, names);
  state->Report(DiagnosticKind::kJson,
                absl::StrCat("`", text.substr(0, 40), "` is no `kind`"),
                PointerStep(pointer, "kind"),
                close.empty() ? absl::StrCat("one of ", JoinChoices(names))
                              : absl::StrCat("did you mean `", close, "`?"));
  return false;
}

ExprPtr ReadExpr(const Json& json, const std::string& pointer, State* state) {
  Expr expr;
  if (!ReadKind(json, pointer, kExprKinds, state, &expr.kind)) {
    return PlaceholderExpr();
  }
  if (state->depth > kMaxNesting) {
    state->Report(
        DiagnosticKind::kLimit,
        absl::StrCat("an expression nests at most ", kMaxNesting, " deep"),
        pointer);
    return PlaceholderExpr();
  }
  ++state->depth;
  Reader reader(json, pointer, state);
  reader.Member("kind", true);
  Describe(reader, expr);
  reader.Finish();
  --state->depth;
  return std::make_shared<const Expr>(std::move(expr));
}

BodyPtr ReadBody(const Json& array, const std::string& pointer, State* state) {
  Body body;
  body.braces = true;
  for (size_t i = 0; i < array.size(); ++i) {
    const std::string at = absl::StrCat(pointer, "/", i);
    Statement statement;
    if (!ReadKind(array[i], at, kStatementKinds, state, &statement.kind)) {
      continue;
    }
    Reader reader(array[i], at, state);
    reader.Member("kind", true);
    Describe(reader, statement);
    reader.Finish();
    body.statements.push_back(std::move(statement));
  }
  return std::make_shared<const Body>(std::move(body));
}

void ReadEntry(const Json& json, const std::string& pointer, State* state,
               RuleFile* file) {
  RuleFile::Entry entry;
  Reader reader(json, pointer, state);
  const bool comment =
      json.is_object() && json.contains("kind") && json["kind"] == "comment";
  Item item;
  if (!comment && !ReadKind(json, pointer, kItemKinds, state, &item.kind)) {
    return;
  }
  reader.Member("kind", true);
  reader.Flag("blank_before", entry.blank_before, true);
  if (comment) {
    reader.Texts("lines", entry.comments, TextKind::kComment, 1);
  } else {
    Describe(reader, item);
    entry.item = std::move(item);
  }
  reader.Finish();
  file->entries.push_back(std::move(entry));
}

// Finds mistakes of JSON itself, members that occur twice, and too much.
class TextChecker : public nlohmann::json_sax<Json> {
 public:
  TextChecker(absl::string_view text, std::vector<Diagnostic>* diagnostics)
      : text_(text), diagnostics_(diagnostics) {}

  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t) override { return Count(); }
  bool number_float(number_float_t, const string_t&) override {
    return Count();
  }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool start_array(size_t) override { return Open(); }
  bool start_object(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool end_object() override { return Close(); }
  bool key(string_t& key) override {
    open_.back().key = key;
    if (!open_.back().keys.insert(key).second) {
      ReportHere(DiagnosticKind::kDuplicate,
                 absl::StrCat("member `", key.substr(0, 40),
                              "` occurs twice in an object"));
      return false;
    }
    return true;
  }
  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::detail::exception&) override {
    Report(DiagnosticKind::kJson,
           token.empty() || token == "<U+0000>"
               ? "the text is not JSON"
               : absl::StrCat("the text is not JSON: near `", ShortToken(token),
                              "`"),
           position);
    return false;
  }

 private:
  static std::string ShortToken(const std::string& token) {
    std::string out;
    for (char c : token.substr(0, 40)) {
      out += c >= ' ' && c <= '~' ? c : '?';
    }
    return out;
  }
  // An object, or, without a key, an array.
  struct Opened {
    absl::flat_hash_set<std::string> keys;
    std::string key;
    int64_t values = 0;
  };

  bool Count() {
    if (!open_.empty()) ++open_.back().values;
    if (++count_ <= kMaxTokens) return true;
    ReportHere(DiagnosticKind::kLimit,
               absl::StrCat("a file has at most ", kMaxTokens, " JSON values"));
    return false;
  }
  bool Open() {
    if (!Count()) return false;
    open_.emplace_back();
    if (open_.size() <= kMaxJsonNesting) return true;
    ReportHere(DiagnosticKind::kLimit, absl::StrCat("brackets nest at most ",
                                                    kMaxJsonNesting, " deep"));
    return false;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  void ReportHere(DiagnosticKind kind, std::string message) {
    std::string pointer;
    for (const Opened& opened : open_) {
      pointer = opened.keys.empty()
                    ? absl::StrCat(pointer, "/",
                                   std::max<int64_t>(0, opened.values - 1))
                    : PointerStep(pointer, opened.key);
      // More than this names no place that one could read.
      if (pointer.size() > 1000) break;
    }
    diagnostics_->push_back(
        {kind, std::move(message), {0, 0}, "", std::move(pointer)});
  }
  void Report(DiagnosticKind kind, std::string message, size_t position) {
    // Without a pointer: the place is one of the JSON text.
    const uint32_t end =
        static_cast<uint32_t>(std::min(position, text_.size()));
    const uint32_t begin = end > 0 ? end - 1 : 0;
    diagnostics_->push_back(
        {kind, std::move(message), {begin, begin + 1}, "", ""});
  }

  absl::string_view text_;
  std::vector<Diagnostic>* diagnostics_;
  std::vector<Opened> open_;
  int count_ = 0;
};

}  // namespace

std::string PointerStep(absl::string_view pointer, absl::string_view key) {
  std::string out = absl::StrCat(pointer, "/");
  for (char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

bool CheckJsonText(absl::string_view text,
                   std::vector<Diagnostic>* diagnostics) {
  TextChecker checker(text, diagnostics);
  return Json::sax_parse(text.begin(), text.end(), &checker);
}

RuleFile FileOfJson(const Json& json, std::vector<Diagnostic>* diagnostics) {
  State state = {diagnostics};
  RuleFile file;
  if (!json.is_object()) {
    state.Report(DiagnosticKind::kJson, "expected an object", "");
    return file;
  }
  Reader reader(json, "", &state);
  const Json* language = reader.Member("language", true);
  if (language != nullptr &&
      !(language->is_number_integer() && *language == 1)) {
    state.Report(DiagnosticKind::kJson,
                 "this engine reads language 1: expected the number 1",
                 "/language");
  }
  const Json* entries = reader.Member("entries", true);
  if (entries != nullptr && !entries->is_array()) {
    state.Report(DiagnosticKind::kJson, "expected an array", "/entries");
  } else if (entries != nullptr) {
    for (size_t i = 0; i < entries->size(); ++i) {
      ReadEntry((*entries)[i], absl::StrCat("/entries/", i), &state, &file);
    }
  }
  reader.Finish();
  return file;
}

}  // namespace cleave::internal
