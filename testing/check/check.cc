#include "testing/check/check.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "testing/check/check_examples.h"
#include "testing/check/check_kernels.h"
#include "testing/check/check_primitive.h"
#include "testing/check/check_rewrite.h"
#include "testing/check/check_transforms.h"
#include "testing/check/check_types.h"
#include "testing/check/check_values.h"
#include "testing/check/clause_rules.h"
#include "testing/check/op_context.h"
#include "testing/check/sample_counts.h"
#include "testing/check/signature_sampler.h"
#include "testing/glob.h"
#include "transforms/table/synthetic_rules.h"

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

int CheckReport::ExitStatus() const {
  return Count(VerdictKind::kDisagrees) > 0 ? 1 : 0;
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
            SyntheticRules& rules)
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
      return std::move(layers_);
    }
    if (context_.item->kind == ItemKind::kRewrite) {
      CheckRewrite();
      return std::move(layers_);
    }
    if (!TakesWantedDType()) {
      for (Layer layer :
           {Layer::kTypes, Layer::kReals, Layer::kRounding, Layer::kEdges,
            Layer::kTransforms, Layer::kKernels, Layer::kExamples}) {
        if (!Wants(layer)) continue;
        layers_[layer] = Verdict::NotChecked("it takes none of these dtypes");
      }
      return std::move(layers_);
    }
    const PreparedCalls concrete = PrepareConcreteCalls(context_);
    if (Wants(Layer::kTypes)) {
      layers_[Layer::kTypes] = CheckTypes(context_, concrete);
    }
    const PreparedCalls prepared = PrepareCalls(context_);
    if (Wants(Layer::kReals)) {
      layers_[Layer::kReals] = CheckReals(context_, prepared);
    }
    if (Wants(Layer::kEdges)) {
      layers_[Layer::kEdges] = CheckEdges(context_, prepared);
    }
    if (Wants(Layer::kRounding)) {
      layers_[Layer::kRounding] = CheckRounding(context_, prepared);
    }
    if (Wants(Layer::kTransforms)) {
      // One layer, three parts: what is not checked in one does not hide the
      // others.
      Verdict verdict = CheckVmap(context_, concrete, rules_);
      const Verdict jvp = CheckJvp(context_, prepared, concrete, rules_);
      const Verdict vjp = CheckVjp(context_, concrete, rules_);
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
      layers_[Layer::kTransforms] = std::move(verdict);
    }
    if (Wants(Layer::kKernels)) {
      layers_[Layer::kKernels] = CheckKernels(context_, prepared);
    }
    if (Wants(Layer::kExamples)) {
      Verdict verdict = CheckExamples(context_);
      if (!context_.item->laws.empty()) {
        const Verdict laws = CheckLawsOf(context_, concrete);
        if (verdict.kind == VerdictKind::kNotChecked) verdict.why.clear();
        Merge(verdict, laws);
      }
      layers_[Layer::kExamples] = std::move(verdict);
    }
    return std::move(layers_);
  }

 private:
  void CheckRewrite() {
    const auto add = [&](Layer layer, Verdict (*check)(const OpContext&)) {
      if (Wants(layer)) layers_[layer] = check(context_);
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
    if (layer == Layer::kKernels && options_.kernels) return true;
    if (!options_.layers.empty()) return options_.layers.count(layer) != 0;
    return layer != Layer::kKernels;
  }

  const OpContext& context_;
  const CheckOptions& options_;
  SyntheticRules& rules_;
  std::map<Layer, Verdict> layers_;
};

}  // namespace

CheckReport CheckRules(std::shared_ptr<const RuleSet> rules,
                       const CheckOptions& options) {
  CheckReport report;
  report.seed = options.seed;
  // Names as they are reported, and items.
  std::vector<std::pair<std::string, const Item*>> items;
  std::vector<std::string> ops;
  const auto wanted = [&](const std::string& name, const Item* item) {
    return item != nullptr && MatchesGlob(options.ops, name) &&
           (options.sources.empty() ||
            options.sources.count(rules->SourceOf(*item).name()) != 0);
  };
  for (const std::string& name : rules->Names(ItemKind::kOp)) {
    if (!wanted(name, rules->Find(name))) continue;
    ops.push_back(name);
    items.emplace_back(name, nullptr);
  }
  const ClauseRules clauses = ClauseRules::Make(rules, ops);
  for (auto& [name, item] : items) item = clauses.rules().Find(name);
  for (const std::string& name : rules->Names(ItemKind::kJvp)) {
    const std::string shown = absl::StrCat("jvp ", name);
    const Item* item = clauses.rules().FindDerivative(name);
    if (wanted(shown, item)) items.emplace_back(shown, item);
  }
  for (const std::string& name : rules->Names(ItemKind::kRewrite)) {
    const std::string shown = absl::StrCat("rewrite ", name);
    const Item* item = clauses.rules().FindRewrite(name);
    if (wanted(shown, item)) items.emplace_back(shown, item);
  }
  SyntheticRules synthetic(clauses.rules());
  for (const auto& [name, item] : items) {
    if (options.stop && options.stop()) break;
    const auto start = std::chrono::steady_clock::now();
    OpContext context;
    context.clauses = &clauses;
    context.item = item;
    context.run_seed = options.seed;
    context.seed = SeedOf(options.seed, name);
    context.dtypes = options.dtypes;
    context.deadline =
        start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                    std::chrono::duration<double>(options.seconds_per_op));
    OpReport op;
    op.op = name;
    op.place = context.Place();
    op.layers = OpChecker(context, options, synthetic).Check();
    const auto rounding = op.layers.find(Layer::kRounding);
    op.loose_claim = rounding != op.layers.end() &&
                     rounding->second.kind == VerdictKind::kAgrees &&
                     !item->accuracies.empty() &&
                     rounding->second.worst_part < kTightClaim;
    op.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    report.ops.push_back(std::move(op));
    if (options.progress) {
      options.progress(report.ops.back(), static_cast<int>(report.ops.size()),
                       static_cast<int>(items.size()));
    }
  }
  return report;
}

}  // namespace cleave
