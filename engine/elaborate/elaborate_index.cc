// Index notation: binders, reads, reductions and equations.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/elaborate/elaborator.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

OpenIndexPtr MakeIndex(const std::string& name) {
  auto index = std::make_shared<OpenIndex>();
  index->name = name;
  return index;
}

void SetExtent(OpenIndex& index, const Dim& extent) {
  index.extent = extent;
  index.known = true;
}

// How many axes each pack of a read takes, given how the axes were written;
// nullopt if the groups do not fit the read.
std::optional<std::vector<int>> MatchGroups(
    const std::vector<AxisGroup>& groups, const std::vector<int>& lengths) {
  if (groups.size() != lengths.size()) return std::nullopt;
  std::vector<int> result;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (lengths[i] >= 0 && lengths[i] != groups[i].length) return std::nullopt;
    result.push_back(groups[i].length);
  }
  return result;
}

}  // namespace

// The indices of one equation or reduction: singles have one, packs several.
struct Elaborator::BoundIndices {
  struct Entry {
    const Binder* binder;
    OpenIndexPtr index;  // of a single
    OpenPackPtr pack;
  };
  std::vector<Entry> entries;

  int Unknown() const {
    int count = 0;
    for (const Entry& e : entries) count += e.pack != nullptr && !e.pack->known;
    return count;
  }
};

absl::Status Elaborator::BindIndices(const std::vector<Binder>& binders,
                                     Scope& outer, Scope& inner,
                                     BoundIndices* bound) {
  for (const Binder& binder : binders) {
    BoundIndices::Entry entry{&binder, nullptr, nullptr};
    if (binder.pack) {
      entry.pack = std::make_shared<OpenPack>();
      entry.pack->name = binder.name;
      if (binder.bound != nullptr) {
        CLEAVE_ASSIGN_OR_RETURN(const Shape extents,
                                EvalDims(*binder.bound, outer));
        for (const Dim& extent : extents) {
          entry.pack->indices.push_back(MakeIndex(binder.name));
          SetExtent(*entry.pack->indices.back(), extent);
          entry.pack->indices.back()->is_given = true;
        }
        entry.pack->known = true;
      }
      inner.Set(binder.name, entry.pack);
    } else {
      entry.index = MakeIndex(binder.name);
      if (binder.bound != nullptr) {
        CLEAVE_ASSIGN_OR_RETURN(const Dim extent,
                                EvalDim(*binder.bound, outer));
        SetExtent(*entry.index, extent);
        entry.index->is_given = true;
      }
      inner.Set(binder.name, entry.index);
    }
    bound->entries.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

absl::Status Elaborator::Close(const BoundIndices& bound, SourceRange range,
                               std::vector<IndexPtr>* indices,
                               std::vector<AxisGroup>* groups) {
  const auto close = [&](const OpenIndexPtr& index,
                         const Binder& binder) -> absl::Status {
    if (!index->known && index->has_default) {
      SetExtent(*index, index->default_extent);
    }
    if (!index->known) {
      return Fail(DiagnosticKind::kIndex, binder.range,
                  absl::StrCat("the range of `", binder.name,
                               "` is not known: it stands alone at no axis"),
                  absl::StrCat("give it as `", binder.name, " < n`"));
    }
    indices->push_back(index);
    return absl::OkStatus();
  };
  for (const BoundIndices::Entry& entry : bound.entries) {
    if (entry.pack == nullptr) {
      CLEAVE_RETURN_IF_ERROR(close(entry.index, *entry.binder));
      if (groups != nullptr) groups->push_back({false, 1});
      continue;
    }
    if (!entry.pack->known) {
      return Fail(DiagnosticKind::kIndex, entry.binder->range,
                  absl::StrCat("the range of `", entry.binder->name,
                               "..` is not known: it stands alone at no axes"),
                  absl::StrCat("give it as `", entry.binder->name, ".. < S`"));
    }
    for (const OpenIndexPtr& index : entry.pack->indices) {
      CLEAVE_RETURN_IF_ERROR(close(index, *entry.binder));
    }
    if (groups != nullptr) {
      groups->push_back({true, static_cast<int>(entry.pack->indices.size())});
    }
  }
  return absl::OkStatus();
}

void Elaborator::Learn(const Expr& e, Scope& scope) {
  if (e.kind == ExprKind::kIndex || e.kind == ExprKind::kReduce) {
    const size_t guard_count = guards().size();
    const bool had_diagnostic = diagnostic_.has_value();
    Eval(e, scope).IgnoreError();
    if (!had_diagnostic) diagnostic_.reset();
    guards().resize(guard_count);
  }
  for (const ExprPtr& child : e.children) Learn(*child, scope);
  for (const NamedExpr& named : e.named) Learn(*named.value, scope);
}

// An index of a pack cannot be counted (`p[d]`) before its range is known: the
// reads of the expression tell it. Each round makes another pack known, or
// gives up.
template <typename F>
auto Elaborator::Settle(const BoundIndices& bound,
                        const std::vector<ExprPtr>& learn_from, Scope& scope,
                        F evaluate) -> decltype(evaluate()) {
  while (true) {
    const int unknown = bound.Unknown();
    const size_t guard_count = guards().size();
    auto result = evaluate();
    if (result.ok() || result.status().code() != absl::StatusCode::kAborted) {
      return result;
    }
    for (const ExprPtr& e : learn_from) Learn(*e, scope);
    if (bound.Unknown() == unknown) return result;
    guards().resize(guard_count);
  }
}

Elaborator::Result Elaborator::EvalEquation(const Equation& equation,
                                            Scope& scope,
                                            const DeclaredResult* declared) {
  if (!equation.indexed) return Eval(*equation.value, scope);
  Scope inner(&scope);
  BoundIndices bound;
  CLEAVE_RETURN_IF_ERROR(BindIndices(equation.indices, scope, inner, &bound));
  // The declared type of a result gives its packs, and ranges where nothing
  // else does.
  if (declared != nullptr && declared->type.has_value()) {
    const TermType& type = *declared->type;
    std::vector<int> lengths;
    int singles = 0;
    int unknown = 0;
    int known = 0;
    for (const BoundIndices::Entry& entry : bound.entries) {
      if (entry.pack == nullptr) {
        lengths.push_back(1);
        ++singles;
      } else if (entry.pack->known) {
        lengths.push_back(static_cast<int>(entry.pack->indices.size()));
        known += lengths.back();
      } else {
        lengths.push_back(-1);
        ++unknown;
      }
    }
    std::optional<std::vector<int>> solved;
    if (unknown == 1) {
      solved = lengths;
      const int rest = static_cast<int>(type.shape.size()) - singles - known;
      for (int& length : *solved) length = length < 0 ? rest : length;
      if (rest < 0) solved.reset();
    } else {
      solved = MatchGroups(type.groups, lengths);
    }
    int total = 0;
    if (solved.has_value()) {
      for (int length : *solved) total += length;
    }
    if (solved.has_value() && total == static_cast<int>(type.shape.size())) {
      int axis = 0;
      for (size_t i = 0; i < bound.entries.size(); ++i) {
        BoundIndices::Entry& entry = bound.entries[i];
        const auto set_default = [&](OpenIndex& index) {
          index.has_default = true;
          index.default_extent = type.shape[axis++];
        };
        if (entry.pack == nullptr) {
          set_default(*entry.index);
          continue;
        }
        if (!entry.pack->known) {
          for (int d = 0; d < (*solved)[i]; ++d) {
            entry.pack->indices.push_back(MakeIndex(entry.pack->name));
          }
          entry.pack->known = true;
        }
        for (const OpenIndexPtr& index : entry.pack->indices) {
          set_default(*index);
        }
      }
    }
  }
  absl::StatusOr<TermPtr> element =
      Settle(bound, {equation.value}, inner, [&]() -> absl::StatusOr<TermPtr> {
        CLEAVE_ASSIGN_OR_RETURN(const RuleValue value,
                                Eval(*equation.value, inner));
        if (value.Is(Kind::kAbsent)) return TermPtr();
        return ToTerm(value, equation.value->range);
      });
  if (!element.ok() && element.status().code() == absl::StatusCode::kAborted) {
    std::vector<IndexPtr> indices;
    CLEAVE_RETURN_IF_ERROR(Close(bound, equation.range, &indices, nullptr));
  }
  CLEAVE_RETURN_IF_ERROR(element.status());
  if (*element == nullptr) return RuleValue();
  std::vector<IndexPtr> indices;
  std::vector<AxisGroup> groups;
  CLEAVE_RETURN_IF_ERROR(Close(bound, equation.range, &indices, &groups));
  SetPlace(equation.range);
  absl::StatusOr<TermPtr> array = terms_.Comprehension(
      std::move(indices), *std::move(element), std::move(groups));
  if (!array.ok()) return At(array.status(), equation.range);
  return RuleValue(*std::move(array));
}

Elaborator::Result Elaborator::EvalReduce(const Expr& e, Scope& scope,
                                          bool tie_first) {
  Scope inner(&scope);
  BoundIndices bound;
  CLEAVE_RETURN_IF_ERROR(BindIndices(e.binders, scope, inner, &bound));
  TermPtr condition;
  bool none = false;
  absl::StatusOr<TermPtr> element =
      Settle(bound, e.children, inner, [&]() -> absl::StatusOr<TermPtr> {
        if (e.children.size() > 1) {
          CLEAVE_ASSIGN_OR_RETURN(const RuleValue value,
                                  Eval(*e.children[1], inner));
          none = value.Is(Kind::kBool) && !value.AsBool();
          if (!value.Is(Kind::kBool) || none) {
            CLEAVE_ASSIGN_OR_RETURN(condition,
                                    ToTerm(value, e.children[1]->range));
          }
        }
        CLEAVE_ASSIGN_OR_RETURN(const RuleValue value,
                                Eval(*e.children[0], inner));
        return ToTerm(value, e.children[0]->range);
      });
  std::vector<IndexPtr> indices;
  if (!element.ok() && element.status().code() == absl::StatusCode::kAborted &&
      bound.Unknown() > 0) {
    // An index of an equation around this one may still get known.
    return element.status();
  }
  CLEAVE_RETURN_IF_ERROR(element.status());
  CLEAVE_RETURN_IF_ERROR(Close(bound, e.range, &indices, nullptr));
  Reduction reduction = Reduction::kSum;
  if (e.text == "prod") reduction = Reduction::kProd;
  if (e.text == "max") reduction = Reduction::kMax;
  if (e.text == "min") reduction = Reduction::kMin;
  if (e.text == "argmax") reduction = Reduction::kArgmax;
  if (e.text == "argmin") reduction = Reduction::kArgmin;
  if (e.text == "any") reduction = Reduction::kAny;
  if (e.text == "all") reduction = Reduction::kAll;
  SetPlace(e.range);
  absl::StatusOr<TermPtr> term = terms_.Reduce(reduction, std::move(indices),
                                               *element, condition, tie_first);
  if (!term.ok()) return At(term.status(), e.range);
  return RuleValue(*std::move(term));
}

Elaborator::Result Elaborator::EvalIndex(const Expr& e, Scope& scope) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Eval(*e.children[0], scope));
  switch (value.kind()) {
    case Kind::kAbsent:
    // A number is the same at all indices.
    case Kind::kInt:
    case Kind::kReal:
    case Kind::kBool:
    case Kind::kCondition:
      return value;
    case Kind::kList:
      return Subscript(value.AsList(), e, scope);
    case Kind::kTerm:
      break;
    case Kind::kPack:
      return absl::AbortedError("the number of indices is not known yet");
    default:
      return Fail(DiagnosticKind::kType, e.range,
                  absl::StrCat(value.KindName(), " has no elements"));
  }
  const TermPtr& array = value.AsTerm();
  if (IsElement(*array)) {
    return Fail(DiagnosticKind::kIndex, e.range, "an element has no indices");
  }
  if (array->kind == TermKind::kNumber || array->kind == TermKind::kDim) {
    return value;
  }
  return ReadArray(array, e, scope);
}

Elaborator::Result Elaborator::Subscript(const RuleList& list, const Expr& e,
                                         Scope& scope) {
  if (e.children.size() != 2) {
    return Fail(DiagnosticKind::kArgument, e.range,
                "a list has one index, or a range `a..b`");
  }
  const Expr& at = *e.children[1];
  const int64_t size = static_cast<int64_t>(list.size());
  const auto constant = [&](const Expr& x) -> absl::StatusOr<int64_t> {
    CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Eval(x, scope));
    if (value.Is(Kind::kInt)) {
      if (const std::optional<int64_t> number = value.AsDim().Value()) {
        return *number;
      }
    }
    return Fail(DiagnosticKind::kStatic, x.range,
                "the index of a list must be a known integer");
  };
  if (at.kind == ExprKind::kBinary && at.text == "..") {
    CLEAVE_ASSIGN_OR_RETURN(const int64_t from, constant(*at.children[0]));
    CLEAVE_ASSIGN_OR_RETURN(const int64_t to, constant(*at.children[1]));
    const int64_t begin = std::clamp<int64_t>(from, 0, size);
    const int64_t end = std::clamp<int64_t>(to, begin, size);
    return RuleValue(RuleList(list.begin() + begin, list.begin() + end));
  }
  CLEAVE_ASSIGN_OR_RETURN(const int64_t i, constant(at));
  if (i < 0 || i >= size) {
    return Fail(DiagnosticKind::kIndex, e.range,
                absl::StrCat("index ", i, " of a list of ", size));
  }
  return list[i];
}

Elaborator::Result Elaborator::ReadArray(const TermPtr& array, const Expr& e,
                                         Scope& scope) {
  // The indices at the axes: one entry per single index, and packs whose
  // length is -1 while it is not known.
  struct Entry {
    RuleValue value;
    OpenPackPtr pack;
    RuleList list;
    int length = 1;
  };
  std::vector<Entry> entries;
  int taken = 0;
  int open = 0;
  for (size_t i = 1; i < e.children.size(); ++i) {
    const Expr& at = *e.children[i];
    Entry entry;
    if (at.kind == ExprKind::kSpread) {
      const Expr& spread = *at.children[0];
      CLEAVE_ASSIGN_OR_RETURN(entry.value, Eval(spread, scope));
      if (entry.value.Is(Kind::kPack)) {
        entry.pack = entry.value.AsPack();
        entry.length = -1;
        ++open;
      } else {
        CLEAVE_ASSIGN_OR_RETURN(entry.list,
                                AsElements(entry.value, spread.range));
        entry.length = static_cast<int>(entry.list.size());
      }
    } else {
      CLEAVE_ASSIGN_OR_RETURN(entry.value, Eval(at, scope));
      if (entry.value.Is(Kind::kPack)) {
        return Fail(DiagnosticKind::kIndex, at.range,
                    absl::StrCat("`", at.text, "` is a list of indices"),
                    absl::StrCat("spread it: `", at.text, "..`"));
      }
      entry.list = {entry.value};
    }
    entries.push_back(std::move(entry));
  }
  // Inner reads may have made packs known.
  for (Entry& entry : entries) {
    if (entry.pack != nullptr && entry.pack->known) {
      for (const OpenIndexPtr& index : entry.pack->indices) {
        entry.list.push_back(index);
      }
      entry.length = static_cast<int>(entry.list.size());
      entry.pack = nullptr;
      --open;
    }
    taken += std::max(entry.length, 0);
  }
  const int rank = static_cast<int>(array->shape.size());
  const auto wrong_count = [&]() {
    return Fail(DiagnosticKind::kShape, e.range,
                absl::StrCat("an array with ", rank,
                             rank == 1 ? " axis" : " axes", " is read at ",
                             taken, taken == 1 ? " index" : " indices"));
  };
  if (open == 1) {
    for (Entry& entry : entries) {
      if (entry.length < 0) entry.length = rank - taken;
    }
    if (rank < taken) return wrong_count();
  } else if (open > 1) {
    std::vector<int> lengths;
    for (const Entry& entry : entries) lengths.push_back(entry.length);
    std::optional<std::vector<int>> solved =
        MatchGroups(array->groups, lengths);
    if (!solved.has_value() && rank == taken) {
      solved = lengths;
      for (int& length : *solved) length = std::max(length, 0);
    }
    if (!solved.has_value()) {
      return absl::AbortedError("the number of indices is not known yet");
    }
    for (size_t i = 0; i < entries.size(); ++i) {
      entries[i].length = (*solved)[i];
    }
  } else if (taken != rank) {
    return wrong_count();
  }
  std::vector<TermPtr> indices;
  int axis = 0;
  SetPlace(e.range);
  for (Entry& entry : entries) {
    if (entry.pack != nullptr) {
      for (int d = 0; d < entry.length; ++d) {
        entry.pack->indices.push_back(MakeIndex(entry.pack->name));
        entry.list.push_back(entry.pack->indices.back());
      }
      entry.pack->known = true;
    }
    for (const RuleValue& value : entry.list) {
      const Dim& extent = array->shape[axis++];
      if (value.Is(Kind::kIndex)) {
        OpenIndex& index = *value.AsIndex();
        if (!index.known) {
          SetExtent(index, extent);
        } else if (!index.is_given &&
                   !terms_.RequireEqual(index.extent, extent,
                                        "axes that share an index must "
                                        "agree")) {
          return Fail(
              DiagnosticKind::kShape, e.range,
              absl::StrCat("`", index.name, "` ranges over ",
                           index.extent.ToString(), " elsewhere and over ",
                           extent.ToString(), " here"));
        }
      }
      CLEAVE_ASSIGN_OR_RETURN(TermPtr term, ToTerm(value, e.range));
      indices.push_back(std::move(term));
    }
  }
  absl::StatusOr<TermPtr> read = terms_.Read(array, std::move(indices));
  if (!read.ok()) return At(read.status(), e.range, DiagnosticKind::kIndex);
  return RuleValue(*std::move(read));
}

}  // namespace cleave
