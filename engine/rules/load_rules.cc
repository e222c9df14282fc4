// Loading: parse, check, compile.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/lang/json_rule.h"
#include "engine/lang/parser.h"
#include "engine/rules/check.h"
#include "engine/rules/rule_set.h"
#include "engine/rules/rule_set_impl.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

LoadResult Load(std::unique_ptr<RuleSet::Impl> impl,
                const std::vector<NamedSource>& sources) {
  LoadResult result;
  const auto report = [&](std::vector<Diagnostic> diagnostics,
                          const Source& source) {
    std::stable_sort(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& a, const Diagnostic& b) {
                       return a.range.begin < b.range.begin;
                     });
    for (const Diagnostic& d : diagnostics) {
      result.diagnostics.push_back(Render(d, source));
    }
  };
  std::vector<std::shared_ptr<const LoadedFile>> files;
  std::set<const LoadedFile*> generated;
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
    files.push_back(std::make_shared<const LoadedFile>(std::move(source),
                                                       std::move(parsed.file)));
    if (named.generated) generated.insert(files.back().get());
  }
  for (const auto& file : files) {
    std::vector<Diagnostic> diagnostics;
    impl->library.Add(file, &diagnostics);
    report(std::move(diagnostics), file->source);
  }
  auto rules = std::make_shared<const RuleSet>(std::move(impl));
  // Mistakes of syntax hide names: what they would cause is not reported.
  if (result.diagnostics.empty()) {
    for (const auto& file : files) {
      report(CheckFile(*rules, *file, generated.count(file.get()) != 0),
             file->source);
    }
  }
  if (result.diagnostics.empty()) result.rules = std::move(rules);
  return result;
}

}  // namespace

LoadResult LoadRules(const std::vector<NamedSource>& sources,
                     std::shared_ptr<Context> context,
                     const LoadOptions& options) {
  auto impl = std::make_unique<RuleSet::Impl>();
  impl->context = std::move(context);
  impl->options = options;
  return Load(std::move(impl), sources);
}

LoadResult ExtendRules(std::shared_ptr<const RuleSet> base,
                       const NamedSource& source) {
  auto impl = std::make_unique<RuleSet::Impl>();
  impl->context = base->impl().context;
  impl->options = base->impl().options;
  impl->library = base->impl().library;
  return Load(std::move(impl), {source});
}

absl::StatusOr<Graph> RuleSet::Function(absl::string_view name) const {
  const Callable* callable = impl_->library.FindCallable(name);
  if (callable == nullptr || callable->item->kind != ItemKind::kFn) {
    return absl::NotFoundError(absl::StrCat("there is no fn `", name, "`"));
  }
  Signature signature;
  signature.op = context()->InternOp(name);
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
