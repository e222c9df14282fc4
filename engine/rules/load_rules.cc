// Loading: parse, check, compile.

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/files/build_id.h"
#include "engine/files/cache_folder.h"
#include "engine/lang/json_rule.h"
#include "engine/lang/parser.h"
#include "engine/rules/check.h"
#include "engine/rules/checked_rules.h"
#include "engine/rules/rule_set.h"
#include "engine/rules/rule_set_impl.h"
#include "engine/rules/shipped_names.h"
#include "ops/budget.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// All that the checks of the files behind the first `checked` ones depend on:
// the texts, and the code that checks. Empty where the code cannot be named.
std::string CheckedKey(const RuleSet::Impl& impl, size_t checked) {
  static const auto* const engine =
      new std::string(BuildIdOf(reinterpret_cast<const void*>(&CheckedKey)));
  // The function that derives may be another library's.
  std::string derived = "none";
  if (impl.options.derive != nullptr) {
    derived = BuildIdOf(reinterpret_cast<const void*>(impl.options.derive));
  }
  if (engine->empty() || derived.empty()) return "";
  std::string key;
  const auto add = [&](absl::string_view part) {
    absl::StrAppend(&key, part.size(), "\n", part);
  };
  add(*engine);
  add(derived);
  for (size_t i = 0; i < impl.library.files().size(); ++i) {
    const LoadedFile& file = *impl.library.files()[i];
    add(i < checked ? "checked" : file.generated ? "generated" : "new");
    // The shipped files decide over the names of the rest.
    add(file.shipped ? "shipped" : "other");
    add(file.source.text());
  }
  return key;
}

std::string FolderOf(const LoadOptions& options) {
  return options.cache_folder.has_value() ? *options.cache_folder
                                          : DefaultCacheFolder();
}

PlacedMistake Placed(const Diagnostic& diagnostic, const Source& source) {
  const Source::Position begin = source.PositionOf(diagnostic.range.begin);
  const Source::Position end =
      source.PositionOf(std::max(diagnostic.range.begin, diagnostic.range.end));
  PlacedMistake mistake;
  mistake.file = source.name();
  if (diagnostic.pointer.empty()) {
    mistake.line = begin.line;
    mistake.column = begin.column;
    mistake.end_line = end.line;
    mistake.end_column = end.column;
  }
  mistake.pointer = diagnostic.pointer;
  mistake.kind = std::string(DiagnosticKindName(diagnostic.kind));
  mistake.message = diagnostic.message;
  mistake.help = diagnostic.help;
  return mistake;
}

// An error that ended a load is a mistake without a place.
void AddMistake(const absl::Status& status, LoadResult* result) {
  result->diagnostics.push_back(absl::StrCat(status.message(), "\n"));
  result->mistakes.emplace_back().message = std::string(status.message());
}

LoadResult Load(std::unique_ptr<RuleSet::Impl> impl,
                absl::Span<const NamedSource> sources) {
  const BudgetScope scope;
  LoadResult result;
  const auto report = [&](std::vector<Diagnostic> diagnostics,
                          const Source& source) {
    std::stable_sort(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& a, const Diagnostic& b) {
                       return a.range.begin < b.range.begin;
                     });
    for (const Diagnostic& d : diagnostics) {
      result.diagnostics.push_back(Render(d, source));
      result.mistakes.push_back(Placed(d, source));
    }
  };
  const bool trusted = std::exchange(impl->options.trusted, false);
  const size_t checked = impl->library.files().size();
  std::vector<ParsedFile> parsed_files;
  // On this thread: where a host has little memory, the C library ends the
  // process of a thread that finds none for its thread-local data.
  for (const NamedSource& named : sources) {
    Source source(named.name, named.text);
    ParseResult parsed =
        named.json ? ParseJsonRules(source) : ParseRules(source);
    if (!parsed.ok()) {
      report(std::move(parsed.diagnostics), source);
      continue;
    }
    if (named.json) {
      // Places are those of the canonical text.
      source = Source(named.name, PrintRuleFile(parsed.file));
      ParseResult canonical = ParseRules(source);
      if (canonical.ok()) parsed = std::move(canonical);
    }
    parsed_files.push_back({std::move(source), std::move(parsed.file),
                            named.shipped, named.generated});
  }
  RenamedItems renamed = RenameBesideShipped(impl->library, &parsed_files);
  result.notes = std::move(renamed.notes);
  for (auto& [name, other] : renamed.functions) {
    impl->renamed_functions[name] = std::move(other);
  }
  std::vector<std::shared_ptr<const LoadedFile>> files;
  size_t generated = 0;
  for (ParsedFile& parsed : parsed_files) {
    auto file = std::make_shared<LoadedFile>(std::move(parsed.source),
                                             std::move(parsed.file));
    file->shipped = parsed.shipped;
    file->generated = parsed.generated;
    if (parsed.generated) ++generated;
    files.push_back(std::move(file));
  }
  for (const auto& file : files) {
    std::vector<Diagnostic> diagnostics;
    impl->library.Add(file, &diagnostics);
    report(std::move(diagnostics), file->source);
  }
  for (const auto& file : files) {
    std::vector<Diagnostic> diagnostics;
    impl->library.AddOverrides(*file, &diagnostics);
    report(std::move(diagnostics), file->source);
  }
  auto rules = std::make_shared<const RuleSet>(std::move(impl));
  // Mistakes of syntax hide names: what they would cause is not reported.
  if (!result.diagnostics.empty()) return result;
  // A generated file is checked in its names alone, which is as fast as to look
  // it up.
  const bool remembers = !trusted && generated < files.size();
  CheckedRules remembered(remembers ? FolderOf(rules->impl().options) : "");
  const std::string key = remembers ? CheckedKey(rules->impl(), checked) : "";
  result.checked_before = trusted || (!key.empty() && remembered.Contain(key));
  if (!result.checked_before) {
    if (!HaveNoMistakes(*rules, files)) {
      // Extents in bodies that threads compiled are numbered in the order of
      // their work: mistakes are told of rules that nobody has looked at.
      rules = std::make_shared<const RuleSet>(
          RuleSet::Impl::WithItemsOf(rules->impl()));
      for (const auto& file : files) {
        report(CheckFile(*rules, *file), file->source);
      }
    }
    // Names of extents are numbered from here on, whether it was checked or
    // not.
    rules->impl().dynamic_calls = 0;
    // Where the call was to end, not all was checked.
    const absl::Status ended = PollBudget();
    if (!ended.ok() && result.diagnostics.empty()) {
      AddMistake(ended, &result);
    }
    if (result.diagnostics.empty() && !key.empty()) remembered.Add(key);
  }
  if (result.diagnostics.empty()) result.rules = std::move(rules);
  return result;
}

// The functions that look through trees are recursive.
LoadResult LoadOnAmpleStack(std::unique_ptr<RuleSet::Impl> impl,
                            absl::Span<const NamedSource> sources) {
  LoadResult result;
  const absl::Status status =
      OnAmpleStack([&] { result = Load(std::move(impl), sources); });
  if (!status.ok()) {
    AddMistake(status, &result);
  }
  return result;
}

}  // namespace

LoadResult LoadRules(const std::vector<NamedSource>& sources,
                     std::shared_ptr<Context> context,
                     const LoadOptions& options) {
  auto impl = std::make_unique<RuleSet::Impl>();
  impl->context = std::move(context);
  impl->options = options;
  return LoadOnAmpleStack(std::move(impl), sources);
}

LoadResult ExtendRules(std::shared_ptr<const RuleSet> base,
                       absl::Span<const NamedSource> sources) {
  return LoadOnAmpleStack(RuleSet::Impl::WithItemsOf(base->impl()), sources);
}

LoadResult ExtendRules(std::shared_ptr<const RuleSet> base,
                       const NamedSource& source) {
  return ExtendRules(std::move(base), absl::MakeConstSpan(&source, 1));
}

absl::StatusOr<Graph> RuleSet::Function(absl::string_view name) const {
  const auto renamed = impl_->renamed_functions.find(std::string(name));
  const Callable* callable = impl_->library.FindCallable(
      renamed == impl_->renamed_functions.end() ? name : renamed->second);
  if (callable == nullptr || callable->item->kind != ItemKind::kFn) {
    return absl::NotFoundError(absl::StrCat("there is no fn `", name, "`"));
  }
  const BudgetScope scope_of_call;
  Signature signature;
  signature.op = context()->InternOp(callable->name);
  // Sizes of the declared types are variables of their names.
  Elaborator elaborator(impl_->library, *context(), std::string(name), nullptr);
  elaborator.EnterSource(*callable->source);
  Scope scope;
  for (const InputDecl& input : callable->inputs) {
    CLEAVE_ASSIGN_OR_RETURN(TensorType type,
                            DeclaredType(input.type, elaborator, scope));
    signature.operands.push_back(context()->Intern(type));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body, Body(signature));
  return *body;
}

}  // namespace cleave
