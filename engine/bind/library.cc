#include "engine/bind/library.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/bind/op_lines.h"
#include "ops/check.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

// "exp f32": the primitive and the dtype of its first operand.
std::string NumericKey(const Item& item) {
  if (item.inputs.empty()) return item.name;
  return absl::StrCat(item.name, " ", item.inputs[0].type.dtype->text);
}

}  // namespace

std::string CallableName(const Item& item) {
  switch (item.kind) {
    case ItemKind::kAten:
      return absl::StrCat("aten.", item.name);
    case ItemKind::kOnnx:
      return absl::StrCat("onnx.", item.name);
    default:
      return item.name;
  }
}

void Library::Add(std::shared_ptr<const LoadedFile> file,
                  std::vector<Diagnostic>* diagnostics) {
  const auto twice = [&](const Item& item, absl::string_view what,
                         const Item& first) {
    const Source& source = SourceOf(first);
    diagnostics->push_back(
        {DiagnosticKind::kDuplicate, absl::StrCat(what, " is declared twice"),
         item.range,
         absl::StrCat("the first one is at ", source.name(), ":",
                      source.PositionOf(first.range.begin).line),
         ""});
  };
  const auto add = [&](std::map<std::string, const Item*>& table,
                       const std::string& key, const Item& item,
                       absl::string_view what) {
    const auto [it, is_new] = table.emplace(key, &item);
    if (!is_new) {
      twice(item, absl::StrCat(what, " `", item.name, "`"), *it->second);
    }
  };
  auto& defs = file->shipped ? shipped_defs_ : other_defs_;
  const auto find_def = [&](const std::string& name) -> const Item* {
    const auto it = defs.find(name);
    return it == defs.end() ? nullptr : it->second;
  };
  files_by_source_[&file->source] = file.get();
  for (const RuleFile::Entry& entry : file->file.entries) {
    if (!entry.item.has_value()) continue;
    const Item& item = *entry.item;
    files_of_[&item] = file.get();
    switch (item.kind) {
      case ItemKind::kOp:
      case ItemKind::kAten:
      case ItemKind::kOnnx:
      case ItemKind::kFn: {
        const std::string name = CallableName(item);
        const Callable* callable = FindCallable(name);
        const Item* first =
            callable != nullptr ? callable->item : find_def(name);
        if (first != nullptr) {
          twice(item, absl::StrCat("`", name, "`"), *first);
          break;
        }
        // A node of a graph names its op: it must not mean two things.
        if (FindPrimitive(name).has_value()) {
          diagnostics->push_back(
              {DiagnosticKind::kDuplicate,
               absl::StrCat("`", name, "` is the name of a primitive"),
               item.range, "", ""});
          break;
        }
        callables_.emplace(name, MakeCallable(item, file->source, diagnostics));
        for (const AttributeDecl& attribute : item.attributes) {
          enum_words_.insert(attribute.enum_values.begin(),
                             attribute.enum_values.end());
        }
        break;
      }
      case ItemKind::kDef: {
        const Callable* first = FindCallable(item.name);
        if (first != nullptr &&
            files_of_.at(first->item)->shipped == file->shipped) {
          twice(item, absl::StrCat("`", item.name, "`"), *first->item);
          break;
        }
        add(defs, item.name, item, "def");
        break;
      }
      case ItemKind::kJvp:
        add(derivatives_, item.name, item, "the derivative of");
        break;
      case ItemKind::kNumeric:
        add(numerics_, NumericKey(item), item, "numeric");
        break;
      case ItemKind::kRewrite:
        add(rewrites_, item.name, item, "rewrite");
        break;
      case ItemKind::kExample:
        examples_.push_back(&item);
        break;
      case ItemKind::kOverride:
        break;
    }
  }
  files_.push_back(std::move(file));
}

Callable* Library::FindOverridden(const Item& item,
                                  std::vector<Diagnostic>* diagnostics) {
  const auto report = [&](DiagnosticKind kind, absl::string_view what,
                          std::string help) {
    diagnostics->push_back({kind, absl::StrCat("`", item.name, "` ", what),
                            item.range, std::move(help), ""});
  };
  const auto found = callables_.find(item.name);
  if (found != callables_.end() && found->second.item->kind == ItemKind::kOp) {
    return &found->second;
  }
  if (found != callables_.end()) {
    report(DiagnosticKind::kPlacement, "is a fn: ops alone are overridden",
           "override an op that it calls");
  } else if (FindDef(item.name, SourceOf(item)) != nullptr ||
             FindShippedDef(item.name) != nullptr) {
    report(DiagnosticKind::kPlacement,
           "is a def, which is part of the bodies that call it: ops alone are "
           "overridden",
           "override an op that calls it");
  } else if (FindPrimitive(item.name).has_value()) {
    report(DiagnosticKind::kPlacement,
           "is a primitive, on which all ops rest: ops alone are overridden",
           "override an op that calls it, or declare one that has it as its "
           "body");
  } else {
    std::vector<std::string> names;
    for (const auto& [name, callable] : callables_) {
      if (callable.item->kind == ItemKind::kOp) names.push_back(name);
    }
    const std::string closest = ClosestName(item.name, names);
    diagnostics->push_back(
        {DiagnosticKind::kUnknownOp,
         absl::StrCat("there is no op `", item.name, "` to override"),
         item.range,
         closest.empty() ? "" : absl::StrCat("did you mean `", closest, "`?"),
         ""});
  }
  return nullptr;
}

void Library::AddOverrides(const LoadedFile& file,
                           std::vector<Diagnostic>* diagnostics) {
  for (const RuleFile::Entry& entry : file.file.entries) {
    if (!entry.item.has_value() || entry.item->kind != ItemKind::kOverride) {
      continue;
    }
    const Item& item = *entry.item;
    Callable* callable = FindOverridden(item, diagnostics);
    if (callable == nullptr) continue;
    for (const Statement& statement : item.body->statements) {
      if (statement.kind == StatementKind::kLet) continue;
      for (const OpLine& line : LinesOf(*callable, statement.kind)) {
        if (line.part.item == callable->item ||
            LineName(*line.statement) != LineName(statement)) {
          continue;
        }
        diagnostics->push_back(
            {DiagnosticKind::kDuplicate,
             absl::StrCat(LineName(statement), " of `", item.name,
                          "` is overridden twice"),
             statement.range,
             absl::StrCat(
                 "the first one is at ", line.part.source->name(), ":",
                 line.part.source->PositionOf(line.statement->range.begin)
                     .line),
             ""});
      }
    }
    callable->overrides.push_back({&item, &file.source});
  }
}

const Callable* Library::FindCallable(absl::string_view name) const {
  const auto it = callables_.find(std::string(name));
  return it == callables_.end() ? nullptr : &it->second;
}

const Item* Library::FindDef(absl::string_view name,
                             const Source& reader) const {
  const auto file = files_by_source_.find(&reader);
  CLEAVE_CHECK(file != files_by_source_.end())
      << reader.name() << " is not of this library";
  if (!file->second->shipped) {
    const auto it = other_defs_.find(std::string(name));
    if (it != other_defs_.end()) return it->second;
    if (!file->second->generated || FindCallable(name) != nullptr) {
      return nullptr;
    }
  }
  return FindShippedDef(name);
}

const Item* Library::FindShippedDef(absl::string_view name) const {
  const auto it = shipped_defs_.find(std::string(name));
  return it == shipped_defs_.end() ? nullptr : it->second;
}

std::vector<std::string> Library::DefNames() const {
  std::vector<std::string> names;
  for (const auto& [name, unused] : shipped_defs_) names.push_back(name);
  for (const auto& [name, unused] : other_defs_) names.push_back(name);
  return names;
}

const Item* Library::FindDerivative(absl::string_view primitive) const {
  const auto it = derivatives_.find(std::string(primitive));
  return it == derivatives_.end() ? nullptr : it->second;
}

const Item* Library::FindNumeric(absl::string_view primitive,
                                 absl::string_view dtype) const {
  const auto it = numerics_.find(absl::StrCat(primitive, " ", dtype));
  return it == numerics_.end() ? nullptr : it->second;
}

const Source& Library::SourceOf(const Item& item) const {
  const auto it = files_of_.find(&item);
  CLEAVE_CHECK(it != files_of_.end()) << item.name << " is not of this library";
  return it->second->source;
}

}  // namespace cleave
