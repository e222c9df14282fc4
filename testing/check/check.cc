#include "testing/check/check.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/files/threads.h"
#include "engine/rules/rule_set.h"
#include "ops/budget.h"
#include "ops/status_macros.h"
#include "testing/check/check_entries.h"
#include "testing/check/layers/check_complex.h"
#include "testing/check/layers/check_examples.h"
#include "testing/check/layers/check_host.h"
#include "testing/check/layers/check_primitive.h"
#include "testing/check/layers/check_rewrite.h"
#include "testing/check/layers/check_sweep.h"
#include "testing/check/layers/check_transforms.h"
#include "testing/check/layers/check_types.h"
#include "testing/check/layers/check_values.h"
#include "testing/check/layers/op_context.h"
#include "testing/check/reference/clause_rules.h"
#include "testing/check/samples/sample_counts.h"
#include "testing/check/samples/signature_sampler.h"

namespace cleave {

bool OpReport::Has(VerdictKind kind) const {
  return std::any_of(layers.begin(), layers.end(), [&](const auto& layer) {
    return layer.second.kind == kind;
  });
}

int CheckReport::Count(VerdictKind kind) const {
  return static_cast<int>(
      std::count_if(ops.begin(), ops.end(),
                    [&](const OpReport& op) { return op.Has(kind); }));
}

int CheckReport::CountSweepParts() const {
  return static_cast<int>(std::count_if(
      ops.begin(), ops.end(),
      [](const OpReport& op) { return !WholeSweep(op.op).empty(); }));
}

int CheckReport::CountCertified() const {
  return static_cast<int>(std::count_if(
      ops.begin(), ops.end(),
      [](const OpReport& op) { return op.certified.has_value(); }));
}

const OpReport* CheckReport::Find(absl::string_view op) const {
  for (const OpReport& report : ops) {
    if (report.op == op) return &report;
  }
  return nullptr;
}

int CheckReport::ExitStatus(const std::set<VerdictKind>& allowed) const {
  for (const VerdictKind kind :
       {VerdictKind::kDisagrees, VerdictKind::kInconclusive,
        VerdictKind::kNotIndependent}) {
    if (Count(kind) > 0 && allowed.count(kind) == 0) return 1;
  }
  return 0;
}

namespace {

// The seed of one op: that of the run, and the op's name, so that checking it
// alone draws the same samples.
uint64_t SeedOf(uint64_t seed, absl::string_view op) {
  uint64_t hash = 14695981039346656037u ^ seed;
  for (char c : op) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return hash;
}

class OpChecker {
 public:
  OpChecker(const OpContext& context, const CheckOptions& options,
            const RuleSet& rules)
      : context_(context), options_(options), rules_(rules) {}

  std::map<Layer, Verdict> Check() {
    if (Wants(Layer::kForm)) {
      // The loader refuses what is not well formed.
      Verdict& form = layers_[Layer::kForm];
      form.kind = VerdictKind::kAgrees;
      form.strength = Strength::kProved;
    }
    if (context_.item->kind == ItemKind::kJvp) {
      if (Wants(Layer::kTransforms)) {
        layers_[Layer::kTransforms] = CheckPrimitiveJvp(context_);
      }
      // The examples belong to an op of the same name, if there is one.
      if (context_.rules().Find(context_.item->name) == nullptr) {
        Add(Layer::kExamples, [&] { return CheckExamples(context_); });
      }
      return std::move(layers_);
    }
    if (context_.item->kind == ItemKind::kRewrite) {
      CheckRewrite();
      return std::move(layers_);
    }
    if (!TakesWantedDType()) {
      for (Layer layer : {Layer::kTypes, Layer::kReals, Layer::kRounding,
                          Layer::kEdges, Layer::kTransforms, Layer::kKernels,
                          Layer::kHostKernel, Layer::kExamples}) {
        if (!Wants(layer)) continue;
        layers_[layer] = Verdict::NotChecked("it takes none of these dtypes");
      }
      return std::move(layers_);
    }
    if (!context_.has_body) {
      CheckWithoutBody();
      return std::move(layers_);
    }
    if (TakesComplexAlone(*context_.item)) {
      CheckComplexAlone();
      return std::move(layers_);
    }
    const PreparedCalls concrete = PrepareConcreteCalls(context_);
    if (concrete.exceeded) {
      for (Layer layer : {Layer::kTypes, Layer::kReals, Layer::kRounding,
                          Layer::kEdges, Layer::kTransforms, Layer::kKernels,
                          Layer::kHostKernel, Layer::kExamples}) {
        if (!Wants(layer)) continue;
        layers_[layer] = Verdict::Inconclusive(concrete.problems.back());
      }
      return std::move(layers_);
    }
    Add(Layer::kTypes, [&] { return CheckTypes(context_, concrete); });
    // Preparing calls takes time, too.
    if (Ended()) return std::move(layers_);
    PreparedCalls prepared = PrepareCalls(context_, concrete);
    // Where a structured op computes each element by itself, as many elements
    // are compared as of a pointwise one.
    if (!prepared.elementwise) elements_ = PrepareSingleElements(context_);
    complex_ = PrepareComplexCalls(context_);
    // From cheap to dear.
    AddWithElements(Layer::kReals, CheckReals, prepared);
    CountWithinDomain(Layer::kReals);
    AddWithElements(Layer::kEdges, CheckEdges, prepared);
    if (Ended()) return std::move(layers_);
    AddLargeCalls(context_, concrete, prepared);
    AddWithElements(Layer::kRounding, CheckRounding, prepared);
    AddComplexValues();
    CountWithinDomain(Layer::kRounding);
    Add(Layer::kTransforms,
        [&] { return CheckTransforms(prepared, concrete); });
    Add(Layer::kKernels, [&] { return options_.kernels(context_, prepared); });
    if (!Ended()) CheckHost(prepared, concrete);
    Add(Layer::kExamples, [&] {
      Verdict verdict = CheckExamples(context_);
      if (!context_.item->laws.empty()) {
        PreparedCalls shaped = prepared;
        shaped.calls = concrete.calls;
        AddCallsInEachDType(context_, shaped);
        const Verdict laws = CheckLawsOf(context_, shaped);
        if (verdict.kind == VerdictKind::kNotChecked) verdict.why.clear();
        Merge(verdict, laws);
      }
      return verdict;
    });
    return std::move(layers_);
  }

 private:
  // The layer's verdict, if it is wanted and the check goes on.
  template <typename Checks>
  void Add(Layer layer, const Checks& check) {
    if (Wants(layer) && !Ended()) layers_[layer] = check();
  }

  void AddWithElements(Layer layer,
                       Verdict (*check)(const OpContext&, const PreparedCalls&),
                       const PreparedCalls& prepared) {
    Add(layer, [&] {
      Verdict verdict = check(context_, prepared);
      AddElements(check, verdict);
      return verdict;
    });
  }

  // The layer's verdict is inconclusive where the op's domain left too little.
  void CountWithinDomain(Layer layer) {
    const auto found = layers_.find(layer);
    if (found == layers_.end()) return;
    found->second = EnoughWithinDomain(context_, std::move(found->second));
  }

  // Adds the verdict of the calls of single elements.
  template <typename Checks>
  void AddElements(const Checks& check, Verdict& verdict) {
    if (elements_.calls.empty() || verdict.kind == VerdictKind::kNotChecked ||
        Ends(verdict)) {
      return;
    }
    Verdict elements = check(context_, elements_);
    // Where the spec is the body without a reduction, others tell them apart.
    if (elements.kind == VerdictKind::kNotIndependent) return;
    for (std::string& note : elements.notes) {
      note = absl::StrCat("element by element: ", note);
    }
    Merge(verdict, elements);
  }

  // Adds those of the complex calls to L3.
  void AddComplexValues() {
    const auto rounding = layers_.find(Layer::kRounding);
    if (complex_.empty() || rounding == layers_.end() || Ended()) return;
    AddComplex(CheckComplexValues(context_, complex_), rounding->second);
  }

  // A complex verdict that is not checked does not hide the rest.
  static void AddComplex(const Verdict& complex, Verdict& verdict) {
    if (complex.kind == VerdictKind::kNotChecked) return;
    if (verdict.kind == VerdictKind::kNotChecked) verdict.why.clear();
    Merge(verdict, complex);
    verdict.notes.push_back("also in c128");
  }

  bool Ends(const Verdict& verdict) const {
    return options_.stop_at_refutation &&
           verdict.kind == VerdictKind::kDisagrees;
  }

  // A layer refuted the op, and that is all that was asked.
  bool Ended() const {
    return std::any_of(layers_.begin(), layers_.end(),
                       [&](const auto& layer) { return Ends(layer.second); });
  }

  Verdict CheckTransforms(const PreparedCalls& prepared,
                          const PreparedCalls& concrete) {
    // One layer, three parts: what is not checked in one does not hide the
    // others.
    Verdict jvp = CheckJvp(context_, prepared, concrete, rules_);
    AddElements(
        [&](const OpContext& context, const PreparedCalls& elements) {
          return CheckJvp(context, elements, PreparedCalls(), rules_);
        },
        jvp);
    if (Ends(jvp)) return jvp;
    if (!complex_.empty()) {
      AddComplex(CheckComplexDerivatives(context_, complex_, rules_), jvp);
      if (Ends(jvp)) return jvp;
    }
    // Integers have no derivative, within the domain or outside.
    if (HasFloatResult(concrete)) {
      jvp = EnoughWithinDomain(context_, std::move(jvp));
    }
    const Verdict vjp = CheckVjp(context_, concrete, rules_);
    if (Ends(vjp)) return vjp;
    Verdict verdict = CheckVmap(context_, concrete, rules_);
    std::vector<std::string> parts;
    const auto add = [&](const char* part, const Verdict& one) {
      if (one.kind == VerdictKind::kNotChecked) {
        parts.push_back(absl::StrCat(part, " not checked: ", one.why));
      }
    };
    add("vmap", verdict);
    add("jvp", jvp);
    add("vjp", vjp);
    Merge(verdict, jvp);
    Merge(verdict, vjp);
    verdict.notes.insert(verdict.notes.end(), parts.begin(), parts.end());
    if (verdict.kind != VerdictKind::kNotChecked &&
        verdict.kind != VerdictKind::kInconclusive) {
      verdict.why.clear();
    }
    return verdict;
  }

  // The reference has no complex numbers, and neither have the patterns of
  // values.
  void CheckComplexAlone() {
    for (Layer layer :
         {Layer::kReals, Layer::kEdges, Layer::kKernels, Layer::kHostKernel}) {
      if (!Wants(layer)) continue;
      layers_[layer] = Verdict::NotChecked("it takes complex numbers alone");
    }
    PreparedCalls calls;
    calls.calls = PrepareComplexCalls(context_);
    Add(Layer::kTypes, [&] { return CheckTypes(context_, calls); });
    Add(Layer::kRounding,
        [&] { return CheckComplexValues(context_, calls.calls); });
    Add(Layer::kTransforms,
        [&] { return CheckComplexDerivatives(context_, calls.calls, rules_); });
    Add(Layer::kExamples, [&] { return CheckExamples(context_); });
  }

  // A host's computation is not seen; overrides are compared with the spec.
  void CheckWithoutBody() {
    for (Layer layer : {Layer::kTypes, Layer::kReals, Layer::kRounding,
                        Layer::kEdges, Layer::kKernels, Layer::kExamples}) {
      if (Wants(layer)) layers_[layer] = Verdict::NotChecked("no body");
    }
    if (context_.item->spec == nullptr) {
      const Verdict nothing = Verdict::NotChecked("no body and no spec");
      if (Wants(Layer::kTransforms)) layers_[Layer::kTransforms] = nothing;
      if (Wants(Layer::kHostKernel)) layers_[Layer::kHostKernel] = nothing;
      return;
    }
    const PreparedCalls concrete = PrepareConcreteCalls(context_);
    PreparedCalls prepared = PrepareCalls(context_, concrete);
    AddLargeCalls(context_, concrete, prepared);
    Add(Layer::kTransforms,
        [&] { return CheckTransforms(prepared, concrete); });
    if (!Ended()) CheckHost(prepared, concrete);
  }

  void CheckHost(const PreparedCalls& prepared, const PreparedCalls& concrete) {
    if (!Wants(Layer::kHostKernel)) return;
    layers_[Layer::kHostKernel] =
        context_.host_kernels == nullptr
            ? Verdict::NotChecked("no host kernel")
            : CheckHostKernel(context_, prepared, concrete);
  }

  void CheckRewrite() {
    const auto add = [&](Layer layer, Verdict (*check)(const OpContext&)) {
      Add(layer, [&] { return check(context_); });
    };
    add(Layer::kTypes, CheckRewriteTypes);
    add(Layer::kReals, CheckRewriteReals);
    add(Layer::kRounding, CheckRewriteBits);
    add(Layer::kEdges, CheckRewriteEdges);
    add(Layer::kTransforms, CheckRewriteJvp);
  }

  // Ops without dtype variables take what their inputs say.
  bool TakesWantedDType() const {
    const std::vector<DType> dtypes =
        SignatureSampler(*context_.item, context_.seed).DTypes();
    return dtypes.empty() ||
           std::any_of(dtypes.begin(), dtypes.end(),
                       [&](DType d) { return context_.Wants(d); });
  }

  bool Wants(Layer layer) const {
    if (layer == Layer::kKernels) return options_.kernels != nullptr;
    if (!options_.layers.empty()) return options_.layers.count(layer) != 0;
    return layer != Layer::kHostKernel || context_.host_kernels != nullptr;
  }

  const OpContext& context_;
  const CheckOptions& options_;
  const RuleSet& rules_;
  PreparedCalls elements_;             // of single elements
  std::vector<PreparedCall> complex_;  // in c128
  std::map<Layer, Verdict> layers_;
};

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// The checks of all items, which any number of threads work on.
class ItemChecks {
 public:
  using Items = std::vector<CheckEntry>;

  // `rules` are those of the caller, without the ops of the clauses.
  ItemChecks(const RuleSet& rules, const ClauseRules& clauses,
             const Items& items, const CheckOptions& options)
      : rules_(rules),
        clauses_(clauses),
        items_(items),
        options_(options),
        examples_(options),
        limits_(CurrentLimits()),
        reports_(items.size()) {
    examples_.layers = {Layer::kExamples};
    examples_.kernels = nullptr;
  }

  // Checks one item after another, until none is left.
  void Work() {
    while (const std::optional<size_t> i = Next()) {
      OpReport report = Check(*i);
      const std::lock_guard<std::mutex> lock(mutex_);
      reports_[*i] = std::move(report);
      ++done_;
      if (options_.progress) {
        options_.progress(*reports_[*i], done_,
                          static_cast<int>(items_.size()));
      }
    }
  }

  // By item; nullopt where its check was not begun.
  std::vector<std::optional<OpReport>> Reports() && {
    return std::move(reports_);
  }

 private:
  std::optional<size_t> Next() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (next_ == items_.size()) return std::nullopt;
    if (options_.stop && options_.stop()) return std::nullopt;
    if (limits_.cancelled != nullptr && *limits_.cancelled) return std::nullopt;
    if (options_.started) options_.started(items_[next_].name);
    return next_++;
  }

  OpReport Check(size_t i) const {
    const CheckEntry& entry = items_[i];
    const std::string& name = entry.item->name;
    const Item* const item = entry.item;
    const auto start = std::chrono::steady_clock::now();
    OpContext context;
    context.clauses = &clauses_;
    context.item = item;
    context.shown = entry.shown;
    context.has_body = item->kind != ItemKind::kOp ||
                       !rules_.Lines(name, StatementKind::kResult).empty();
    context.run_seed = options_.seed;
    context.seed = SeedOf(options_.seed, entry.name);
    context.dtypes = options_.dtypes;
    context.sizes = options_.sizes;
    context.points = options_.points;
    context.host_tolerance = options_.host_tolerance;
    context.host_survey = options_.host_survey;
    context.shrinks = !options_.stop_at_refutation;
    if (item->kind == ItemKind::kOp && options_.host_kernels.Has(name)) {
      context.host_kernels = &options_.host_kernels;
      const auto replay = options_.host_replays.find(name);
      if (replay != options_.host_replays.end()) {
        context.host_replay = replay->second;
      }
    }
    Limits limits = limits_;
    if (options_.seconds_per_op.has_value()) {
      context.deadline =
          start +
          std::chrono::duration_cast<std::chrono::steady_clock::duration>(
              std::chrono::duration<double>(*options_.seconds_per_op));
      limits.deadline = context.deadline;
    }
    const BudgetScope scope(limits, BudgetScope::Mode::kDefaults);
    OpReport op;
    op.op = entry.name;
    op.place = context.Place();
    if (entry.sweep.has_value()) {
      op.layers[Layer::kRounding] = CheckSweep(context, *entry.sweep);
      op.seconds = SecondsSince(start);
      return op;
    }
    if (options_.error_profiles) context.profiles = &op.profiles;
    op.layers = OpChecker(context, entry.examples_alone ? examples_ : options_,
                          clauses_.rules())
                    .Check();
    for (auto& [layer, verdict] : op.layers) {
      if (verdict.kind == VerdictKind::kAgrees &&
          verdict.strength == Strength::kSampled && verdict.samples == 0) {
        std::vector<std::string> why = {"no sample of it was compared"};
        why.insert(why.end(), verdict.notes.begin(), verdict.notes.end());
        verdict = Verdict::Inconclusive(absl::StrJoin(why, "; "));
      }
    }
    const auto rounding = op.layers.find(Layer::kRounding);
    op.loose_claim = rounding != op.layers.end() &&
                     rounding->second.kind == VerdictKind::kAgrees &&
                     !item->accuracies.empty() &&
                     rounding->second.worst_part < kTightClaim;
    op.seconds = SecondsSince(start);
    return op;
  }

  const RuleSet& rules_;
  const ClauseRules& clauses_;
  const Items& items_;
  const CheckOptions& options_;
  CheckOptions examples_;  // the same for examples alone
  const Limits limits_;
  std::mutex mutex_;
  // Guarded by mutex_.
  size_t next_ = 0;
  int done_ = 0;
  std::vector<std::optional<OpReport>> reports_;
};

int ThreadCount(const CheckOptions& options, size_t items) {
  int count = options.threads;
  if (count <= 0) {
    count = options.kernels != nullptr ? 1 : UsableCores();
  }
  return std::clamp<int>(count, 1, std::max<int>(static_cast<int>(items), 1));
}

// The declarations and overrides whose lines `entries` check, of those that are
// wanted. Rewrites have neither lines nor branches.
std::vector<const Item*> ItemsToCover(const RuleSet& rules,
                                      const std::vector<CheckEntry>& entries,
                                      const CheckOptions& options) {
  std::vector<const Item*> items;
  for (const CheckEntry& entry : entries) {
    if (entry.item->kind == ItemKind::kJvp && !entry.examples_alone) {
      items.push_back(entry.item);
    }
    if (entry.item->kind != ItemKind::kOp || entry.examples_alone ||
        entry.sweep.has_value()) {
      continue;
    }
    std::vector<const Item*> parts = rules.Overrides(entry.name);
    parts.push_back(rules.Find(entry.name));
    for (const Item* part : parts) {
      if (IsWanted(rules, options, entry.name, part)) items.push_back(part);
    }
  }
  return items;
}

// The item of these rules that is `item` in those that they extend.
const Item* ItemIn(const RuleSet& rules, const Item& item) {
  switch (item.kind) {
    case ItemKind::kJvp:
      return rules.FindDerivative(item.name);
    case ItemKind::kRewrite:
      return rules.FindRewrite(item.name);
    default:
      return rules.Find(item.name);
  }
}

}  // namespace

absl::StatusOr<std::vector<CheckedOp>> OpsToCheck(const RuleSet& rules,
                                                  const CheckOptions& options) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<CheckEntry> all,
                          EntriesToCheck(rules, options));
  std::vector<CheckedOp> ops;
  for (const CheckEntry& entry : EntriesOfShard(all, options)) {
    ops.push_back({entry.name, entry.examples_alone});
  }
  return ops;
}

absl::StatusOr<CheckReport> CheckRules(std::shared_ptr<const RuleSet> rules,
                                       const CheckOptions& options) {
  if (rules == nullptr) {
    return absl::InvalidArgumentError(
        "no rules to check: did loading them give diagnostics?");
  }
  CLEAVE_ASSIGN_OR_RETURN(std::vector<CheckEntry> all,
                          EntriesToCheck(*rules, options));
  const std::vector<CheckEntry> entries = EntriesOfShard(all, options);
  CheckReport report;
  report.seed = options.seed;
  std::vector<std::optional<OpReport>> known(entries.size());
  std::vector<CheckEntry> items;
  std::set<std::string> ops;
  for (size_t i = 0; i < entries.size(); ++i) {
    const CheckEntry& entry = entries[i];
    if (options.known) known[i] = options.known(entry.name);
    if (known[i].has_value()) {
      known[i]->op = entry.name;
      known[i]->place = PlaceIn(*rules, *entry.shown, entry.shown->range.begin);
      continue;
    }
    items.push_back(entry);
    if (entry.item->kind == ItemKind::kOp) ops.insert(entry.item->name);
  }
  ClauseRules clauses = ClauseRules::Make(
      rules, std::vector<std::string>(ops.begin(), ops.end()));
  const auto branches = std::make_shared<BranchLog>();
  if (options.coverage) clauses.Observe(branches);
  for (CheckEntry& entry : items)
    entry.item = ItemIn(clauses.rules(), *entry.item);
  ItemChecks checks(*rules, clauses, items, options);
  RunOnThreads(ThreadCount(options, items.size()),
               [&checks] { checks.Work(); });
  std::vector<std::optional<OpReport>> checked = std::move(checks).Reports();
  auto next = checked.begin();
  for (std::optional<OpReport>& one : known) {
    std::optional<OpReport>& op = one.has_value() ? one : *next++;
    if (op.has_value()) report.ops.push_back(*std::move(op));
  }
  if (options.coverage) {
    // A shard covers the items of all shards, so that each counts the same.
    std::vector<CheckEntry>& covered = options.shards > 1 ? all : items;
    for (CheckEntry& entry : covered) {
      entry.item = ItemIn(clauses.rules(), *entry.item);
    }
    report.coverage = CoverageOf(*rules, ItemsToCover(*rules, covered, options),
                                 options.ops == "*", *branches);
  }
  return report;
}

}  // namespace cleave
