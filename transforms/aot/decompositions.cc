#include "transforms/aot/decompositions.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/lang/ast.h"
#include "engine/lang/parser.h"
#include "engine/lang/source.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"

namespace cleave::aot {
namespace {

bool IsOp(const Item* item) {
  return item != nullptr &&
         (item->kind == ItemKind::kOp || item->kind == ItemKind::kAten ||
          item->kind == ItemKind::kOnnx);
}

absl::Status CheckOp(const std::string& op, const RuleSet& rules) {
  if (IsOp(rules.Find(op))) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("`", op, "` is ",
                   FindPrimitive(op) ? "a primitive: nothing decomposes it"
                                     : "no op that the rules declare"));
}

// The name of the first op that a text declares.
absl::StatusOr<std::string> FirstOp(const std::string& text) {
  const ParseResult parsed = ParseRules(Source("decomposition", text));
  for (const RuleFile::Entry& entry : parsed.file.entries) {
    if (entry.item && entry.item->kind == ItemKind::kOp) {
      return entry.item->name;
    }
  }
  return absl::InvalidArgumentError(
      "the text of a decomposition declares no op");
}

}  // namespace

absl::StatusOr<Decompositions> GetDecompositions(
    const std::vector<std::string>& ops, const RuleSet& rules) {
  Decompositions decompositions;
  for (const std::string& op : ops) {
    CLEAVE_RETURN_IF_ERROR(CheckOp(op, rules));
    decompositions.by_op.emplace(op, OwnBody());
  }
  return decompositions;
}

Decompositions CoreAtenDecompositions(const RuleSet& rules) {
  const std::vector<std::string>& core = CoreAtenOps();
  Decompositions decompositions;
  for (const std::string& op : rules.Names(ItemKind::kAten)) {
    if (!std::binary_search(core.begin(), core.end(), op)) {
      decompositions.by_op.emplace(op, OwnBody());
    }
  }
  return decompositions;
}

absl::StatusOr<Decompositions> NamedDecompositions(
    const std::vector<std::string>& names,
    const std::vector<std::string>& preserve, const RuleSet& rules) {
  std::vector<std::string> ops = names;
  const auto all = std::remove(ops.begin(), ops.end(), "core-aten");
  const bool core = all != ops.end();
  ops.erase(all, ops.end());
  CLEAVE_ASSIGN_OR_RETURN(Decompositions decompositions,
                          GetDecompositions(ops, rules));
  if (core) decompositions.by_op.merge(CoreAtenDecompositions(rules).by_op);
  decompositions.preserve = {preserve.begin(), preserve.end()};
  return decompositions;
}

const std::vector<std::string>& CoreAtenOps() {
  static const auto* ops = new std::vector<std::string>({
#define CORE_ATEN(name) name,
#include "transforms/aot/core_aten.def"
  });
  return *ops;
}

absl::StatusOr<ResolvedDecompositions> Resolve(
    const Decompositions& decompositions,
    std::shared_ptr<const RuleSet> rules) {
  ResolvedDecompositions resolved;
  resolved.preserve = decompositions.preserve;
  for (const std::string& op : decompositions.preserve) {
    CLEAVE_RETURN_IF_ERROR(CheckOp(op, *rules));
  }
  for (const auto& [op, decomposition] : decompositions.by_op) {
    CLEAVE_RETURN_IF_ERROR(CheckOp(op, *rules));
    if (std::holds_alternative<OwnBody>(decomposition)) {
      resolved.own.insert(op);
    } else if (const auto* name = std::get_if<RuleName>(&decomposition)) {
      CLEAVE_RETURN_IF_ERROR(CheckOp(name->op, *rules));
      resolved.replace.emplace(op, name->op);
    } else if (const auto* function =
                   std::get_if<BodyFunction>(&decomposition)) {
      if (*function == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("the function that decomposes `", op, "` is none"));
      }
      resolved.replace.emplace(op, *function);
    } else {
      const std::string& text = std::get<RuleText>(decomposition).text;
      CLEAVE_ASSIGN_OR_RETURN(const std::string declared, FirstOp(text));
      LoadResult loaded =
          ExtendRules(rules, {absl::StrCat("decomposition of ", op), text});
      if (loaded.rules == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrJoin(loaded.diagnostics, "\n"));
      }
      rules = std::move(loaded.rules);
      resolved.replace.emplace(op, declared);
    }
  }
  resolved.rules = std::move(rules);
  return resolved;
}

absl::StatusOr<Graph> ReplaceOps(const Graph& graph,
                                 const ResolvedDecompositions& resolved) {
  ExpandOptions options;
  options.preserve = resolved.preserve;
  options.only.emplace();
  options.replace = resolved.replace;
  return Expand(graph, *resolved.rules, options);
}

absl::StatusOr<Graph> Decompose(const Graph& graph,
                                const ResolvedDecompositions& resolved) {
  ExpandOptions options;
  options.preserve = resolved.preserve;
  options.only = resolved.own;
  options.replace = resolved.replace;
  return Expand(graph, *resolved.rules, options);
}

}  // namespace cleave::aot
