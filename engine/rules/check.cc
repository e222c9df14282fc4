#include "engine/rules/check.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/bind/op_lines.h"
#include "engine/files/threads.h"
#include "engine/rules/check_names.h"
#include "engine/rules/check_ops.h"
#include "engine/rules/rule_set_impl.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {

absl::StatusOr<TensorType> DeclaredType(const TypeExpr& type,
                                        Elaborator& elaborator, Scope& scope) {
  TensorType result;
  CLEAVE_ASSIGN_OR_RETURN(const DTypePtr dtype,
                          elaborator.EvalDType(*type.dtype, scope));
  if (!dtype->dtype().has_value()) {
    return elaborator.Fail(DiagnosticKind::kType, type.range,
                           "the dtype of this input is fixed, like `f32`");
  }
  result.dtype = *dtype->dtype();
  for (const AxisExpr& axis : type.axes) {
    if (axis.size->kind == ExprKind::kName &&
        scope.Find(axis.size->text) == nullptr) {
      scope.Set(axis.size->text, Dim::Variable(axis.size->text));
    }
    CLEAVE_ASSIGN_OR_RETURN(const Dim dim,
                            elaborator.EvalDim(*axis.size, scope));
    result.shape.push_back(dim);
  }
  return result;
}

namespace {

// Reports items that come back to themselves by calls. Linear in the calls of
// all items, but for those on cycles; without recursion, since a chain of calls
// is as long as a file likes.
class CycleFinder {
 public:
  CycleFinder(const Library& library, std::vector<Diagnostic>* diagnostics)
      : library_(library), diagnostics_(diagnostics) {}

  void Visit(const Item& start) {
    const Item* item = &start;
    if (start.kind == ItemKind::kOverride) {
      // An override that gives no body calls nothing that could come back.
      if (!Declares(start.body, StatementKind::kResult)) return;
      const Callable* callable = library_.FindCallable(start.name);
      if (callable == nullptr) return;
      item = callable->item;
    } else if (&BodyOf(start) != &start) {
      return;  // the override is visited by itself
    }
    if (NodeOf(*item).component < 0) FindComponents(*item);
    const Node& node = NodeOf(*item);
    if (reported_ == kMaxReported || !node.in_cycle) return;
    Report(*item, node.component);
  }

 private:
  // A file may consist of nothing else.
  static constexpr int kMaxReported = 50;
  static constexpr size_t kShownSteps = 8;

  struct Edge {
    const Item* callee;
    SourceRange range;
  };
  struct Node {
    std::vector<Edge> edges;
    int order = -1;  // in which it was found
    int lowest = 0;  // the least order that it comes back to
    int component = -1;
    bool in_cycle = false;
  };

  // The item that gives an op its body: itself, or an override.
  const Item& BodyOf(const Item& item) const {
    const Callable* callable = library_.FindCallable(CallableName(item));
    if (callable == nullptr || callable->item != &item) return item;
    const std::vector<OpLine> body = LinesOf(*callable, StatementKind::kResult);
    return body.empty() ? item : *body[0].part.item;
  }

  Node& NodeOf(const Item& item) {
    const auto [it, is_new] = nodes_.try_emplace(&item);
    if (is_new) {
      const Item& body = BodyOf(item);
      for (const NamedExpr& call : CallsOf(body)) {
        const Item* callee =
            library_.FindDef(call.name, library_.SourceOf(body));
        if (callee == nullptr) {
          const Callable* callable = library_.FindCallable(call.name);
          if (callable != nullptr) callee = callable->item;
        }
        if (callee != nullptr) it->second.edges.push_back({callee, call.range});
      }
    }
    return it->second;
  }

  // Tarjan's strongly connected components, of what `start` reaches.
  void FindComponents(const Item& start) {
    struct Step {
      const Item* item;
      size_t next = 0;
    };
    std::vector<Step> path;
    std::vector<const Item*> open;
    const auto enter = [&](const Item& item) {
      Node& node = NodeOf(item);
      node.order = node.lowest = next_order_++;
      path.push_back({&item});
      open.push_back(&item);
    };
    enter(start);
    while (!path.empty()) {
      const Item& item = *path.back().item;
      Node& node = NodeOf(item);
      if (path.back().next < node.edges.size()) {
        const Item& callee = *node.edges[path.back().next++].callee;
        const Node& other = NodeOf(callee);
        if (&callee == &item) node.in_cycle = true;
        if (other.order < 0) {
          enter(callee);
        } else if (other.component < 0) {
          node.lowest = std::min(node.lowest, other.order);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) {
        Node& caller = NodeOf(*path.back().item);
        caller.lowest = std::min(caller.lowest, node.lowest);
      }
      if (node.lowest != node.order) continue;
      const bool several = open.back() != &item;
      const Item* last = nullptr;
      while (last != &item) {
        last = open.back();
        open.pop_back();
        NodeOf(*last).component = components_;
        if (several) NodeOf(*last).in_cycle = true;
      }
      ++components_;
    }
  }

  // The first way back to `start`, in the order of calls.
  void Report(const Item& start, int component) {
    std::vector<std::pair<const Item*, size_t>> path = {{&start, 0}};
    std::set<const Item*> done;
    while (!path.empty()) {
      const Node& node = NodeOf(*path.back().first);
      if (path.back().second == node.edges.size()) {
        path.pop_back();
        continue;
      }
      const Edge& edge = node.edges[path.back().second++];
      if (edge.callee == &start) break;
      if (NodeOf(*edge.callee).component == component &&
          done.insert(edge.callee).second) {
        path.emplace_back(edge.callee, 0);
      }
    }
    CLEAVE_CHECK(!path.empty()) << "no cycle";
    std::string shown;
    for (size_t i = 0; i < path.size(); ++i) {
      if (i == kShownSteps && path.size() > kShownSteps + 1) {
        absl::StrAppend(&shown, ".. (", path.size() - kShownSteps,
                        " more) -> ");
        break;
      }
      absl::StrAppend(&shown, "`", CallableName(*path[i].first), "` -> ");
    }
    absl::StrAppend(&shown, "`", CallableName(start), "`");
    const bool is_def = start.kind == ItemKind::kDef;
    // The place of the call in the start itself.
    diagnostics_->push_back(
        {is_def ? DiagnosticKind::kRecursive : DiagnosticKind::kCycle,
         absl::StrCat(is_def ? "a def must not call itself: "
                             : "an op must not need itself: ",
                      shown),
         NodeOf(start).edges[path[0].second - 1].range, "", ""});
    ++reported_;
  }

  const Library& library_;
  std::vector<Diagnostic>* diagnostics_;
  std::map<const Item*, Node> nodes_;  // their addresses stay
  int next_order_ = 0;
  int components_ = 0;
  int reported_ = 0;
};

// The mistakes in names, cycles and rewrites.
std::vector<Diagnostic> CheckNamesOf(const RuleSet& rules,
                                     const LoadedFile& file) {
  const Library& library = rules.impl().library;
  std::vector<Diagnostic> diagnostics;
  CycleFinder cycles(library, &diagnostics);
  for (const RuleFile::Entry& entry : file.file.entries) {
    if (!entry.item.has_value()) continue;
    CheckNames(library, *entry.item, &diagnostics);
    cycles.Visit(*entry.item);
  }
  // Simplifying counts on them, whoever wrote them.
  if (diagnostics.empty()) {
    for (const RuleFile::Entry& entry : file.file.entries) {
      if (!entry.item.has_value() || entry.item->kind != ItemKind::kRewrite) {
        continue;
      }
      std::variant<Rewrite, Diagnostic> compiled =
          CompileRewrite(library, *entry.item, *rules.context());
      if (Diagnostic* mistake = std::get_if<Diagnostic>(&compiled)) {
        diagnostics.push_back(std::move(*mistake));
      }
    }
  }
  if (file.generated) {
    diagnostics.erase(std::remove_if(diagnostics.begin(), diagnostics.end(),
                                     [](const Diagnostic& d) {
                                       return d.kind == DiagnosticKind::kUnused;
                                     }),
                      diagnostics.end());
  }
  return diagnostics;
}

// The mistakes that elaboration finds.
void CheckItem(const RuleSet& rules, const Item& item,
               std::vector<Diagnostic>* diagnostics) {
  const Library& library = rules.impl().library;
  const BudgetScope scope(CurrentLimits(), BudgetScope::Mode::kRenew);
  if (item.kind == ItemKind::kJvp) {
    CheckDerivativeItem(rules, item, diagnostics);
  } else if (item.kind == ItemKind::kNumeric) {
    CheckNumericItem(rules, item, diagnostics);
  } else if (item.kind == ItemKind::kOp) {
    CheckOp(rules, *library.FindCallable(CallableName(item)), diagnostics);
  } else if (item.kind == ItemKind::kOverride) {
    CheckOverride(rules, *library.FindCallable(item.name), item, diagnostics);
  } else if (item.kind == ItemKind::kFn) {
    CheckFunction(rules, *library.FindCallable(CallableName(item)),
                  diagnostics);
  }
}

// For fewer items a thread is not worth its start.
constexpr size_t kItemsPerThread = 8;

// Looks for items with a mistake on several threads.
class MistakeSearch {
 public:
  MistakeSearch(const RuleSet& rules, std::vector<const Item*> items)
      : rules_(rules), items_(std::move(items)), limits_(CurrentLimits()) {}

  bool FindsNone() {
    const int threads =
        std::min<int64_t>(UsableCores(), items_.size() / kItemsPerThread);
    RunOnThreads(threads, [this] {
      if (!OnAmpleStack([this] { Work(); }).ok()) found_ = true;
    });
    return !found_;
  }

 private:
  void Work() {
    const BudgetScope scope(limits_);
    while (!found_) {
      const size_t i = next_++;
      if (i >= items_.size()) return;
      std::vector<Diagnostic> diagnostics;
      CheckItem(rules_, *items_[i], &diagnostics);
      if (!diagnostics.empty() || BudgetEnded()) found_ = true;
    }
  }

  const RuleSet& rules_;
  const std::vector<const Item*> items_;
  const Limits limits_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> found_{false};
};

}  // namespace

bool HaveNoMistakes(const RuleSet& rules,
                    absl::Span<const std::shared_ptr<const LoadedFile>> files) {
  std::vector<const Item*> items;
  for (const std::shared_ptr<const LoadedFile>& file : files) {
    if (!CheckNamesOf(rules, *file).empty()) return false;
    if (file->generated) continue;
    for (const RuleFile::Entry& entry : file->file.entries) {
      if (entry.item.has_value()) items.push_back(&*entry.item);
    }
  }
  return MistakeSearch(rules, std::move(items)).FindsNone();
}

std::vector<Diagnostic> CheckFile(const RuleSet& rules,
                                  const LoadedFile& file) {
  std::vector<Diagnostic> diagnostics = CheckNamesOf(rules, file);
  // Elaboration would find the same mistakes again.
  if (file.generated || !diagnostics.empty()) return diagnostics;
  for (const RuleFile::Entry& entry : file.file.entries) {
    if (!entry.item.has_value()) continue;
    if (BudgetEnded()) break;
    CheckItem(rules, *entry.item, &diagnostics);
    // The items that follow would most likely come to the same end, each in its
    // time.
    if (BudgetEnded()) break;
  }
  return diagnostics;
}

}  // namespace cleave
