#include "testing/check/layers/check_examples.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/dtype.h"
#include "ops/status_macros.h"
#include "testing/check/layers/domain_sampler.h"
#include "testing/check/layers/evaluate_example.h"
#include "testing/check/layers/read_example.h"
#include "testing/check/reference/reference.h"
#include "testing/check/reference/work.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/sample_counts.h"
#include "testing/check/samples/shrink.h"

namespace cleave {
namespace {

// The work of a law (WorkOf) that is evaluated, and the elements of operands
// for which smaller values are looked for.
constexpr double kLawWork = 4e6;
constexpr int64_t kShrunkElements = 1000;

// An element of a tensor of integers or bools.
Exact IntegerAt(const Tensor& tensor, int64_t i) {
  const int64_t bits = tensor.GetInt(i);
  if (tensor.dtype() != DType::kU64) return Exact(bits);
  const auto value = static_cast<uint64_t>(bits);
  return Exact(static_cast<int64_t>(value / 2)) * 2 +
         static_cast<int64_t>(value % 2);
}

// A result whose element `i` is wrong: of one with many elements that alone.
std::string ShownResult(const Tensor& got, int64_t i) {
  constexpr int64_t kShownElements = 64;
  if (got.size() <= kShownElements) return got.ToString();
  return absl::StrCat(got.type().ToString(), ", and there element ", i, " is ",
                      IsFloat(got.dtype())
                          ? FloatToString(got.GetDouble(i), got.dtype())
                          : got.ElementToString(i));
}

// The errors allowed to the elements of a result of an example.
struct Allowed {
  bool is_eps = false;  // in eps of the dtype, not in ULP
  std::vector<double> errors;
};

absl::StatusOr<Allowed> AllowedTo(const OpContext& context,
                                  const ExampleCall& example,
                                  const std::optional<CallGraphs>& graphs,
                                  const Tensor& got, size_t number) {
  // For `~` of an op that declares no accuracy, and of derivatives.
  Allowed allowed;
  allowed.errors.assign(got.size(), 2 * kUndeclaredUlp);
  if (!graphs.has_value() || !graphs->spec ||
      context.item->accuracies.empty()) {
    return allowed;
  }
  const int result = static_cast<int>(number);
  CLEAVE_ASSIGN_OR_RETURN(
      const SpecReference reference,
      SpecReference::Make(*context.clauses, example.call, *graphs));
  CLEAVE_ASSIGN_OR_RETURN(const ErrorBound bound,
                          reference.Bound(example.operands, result, got));
  if (bound.is_eps) return Allowed{true, bound.eps};
  CLEAVE_ASSIGN_OR_RETURN(
      const auto conditions,
      reference.Conditions(example.operands, kFirstReferenceBits));
  for (int64_t i = 0; i < got.size(); ++i) {
    allowed.errors[i] =
        bound.ulp[i] + bound.condition[i] * conditions[result][i];
  }
  return allowed;
}

// The expression that an example gives for a result; null if it gives none.
const Expr* ExpectedOf(const Expr& right, const std::string& name) {
  if (right.kind != ExprKind::kRecord) return &right;
  for (const Equation& field : right.fields) {
    if (field.name == name) return field.value.get();
  }
  return nullptr;
}

// Each member of a record is that of a result, or of an input of a `vjp`.
absl::Status CheckExpected(const Expr& right,
                           const std::vector<std::string>& names) {
  if (right.kind != ExprKind::kRecord) {
    if (names.size() == 1) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("one value is given, and the results are ",
                     absl::StrJoin(names, ", ")));
  }
  for (const Equation& field : right.fields) {
    if (std::find(names.begin(), names.end(), field.name) != names.end()) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("there is no result `",
                                                   field.name, "`: they are ",
                                                   absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

Counterexample Shown(const OpContext& context, const Item& example,
                     std::string what, std::string got) {
  Counterexample shown;
  shown.call = PrintExpr(*example.left);
  shown.what = std::move(what);
  shown.expected = PrintExpr(*example.right);
  shown.got = std::move(got);
  shown.place = PlaceIn(context.rules(), example, example.range.begin);
  shown.replay = context.Replay();
  return shown;
}

absl::StatusOr<Verdict> CheckExample(const OpContext& context,
                                     const Item& item) {
  CLEAVE_ASSIGN_OR_RETURN(const ExampleCall example,
                          ReadExample(*context.item, item));
  const absl::StatusOr<ExampleResults> evaluated =
      EvaluateExample(context.rules(), *context.item, example, item);
  if (absl::IsInvalidArgument(evaluated.status()) ||
      absl::IsOutOfRange(evaluated.status())) {
    // The rule refuses what the example gives a value for.
    return Verdict::Disagrees(Shown(context, item, "an example",
                                    std::string(evaluated.status().message())));
  }
  CLEAVE_RETURN_IF_ERROR(evaluated.status());
  const ExampleResults& results = *evaluated;
  CLEAVE_RETURN_IF_ERROR(CheckExpected(*item.right, results.names));
  Verdict verdict;
  verdict.kind = VerdictKind::kAgrees;
  for (size_t r = 0; r < results.names.size(); ++r) {
    const std::string& name = results.names[r];
    const Expr* right = ExpectedOf(*item.right, name);
    if (right == nullptr) continue;
    CLEAVE_ASSIGN_OR_RETURN(const WrittenTensor expected, ReadWritten(*right));
    const Tensor& got = results.values[r];
    Counterexample shown =
        Shown(context, item, absl::StrCat("result ", name, " of an example"),
              got.type().ToString());
    shown.expected = PrintExpr(*right);
    if (expected.shape != got.shape()) {
      shown.what = absl::StrCat("shape of ", shown.what);
      return Verdict::Disagrees(std::move(shown));
    }
    if (expected.dtype && *expected.dtype != got.dtype()) {
      shown.what = absl::StrCat("dtype of ", shown.what);
      return Verdict::Disagrees(std::move(shown));
    }
    // The shape is all that there is of an empty result.
    if (got.size() == 0) ++verdict.samples;
    std::optional<Allowed> allowed;  // once it is asked for
    for (int64_t i = 0; i < got.size(); ++i) {
      CLEAVE_ASSIGN_OR_RETURN(const Exact want,
                              ReadNumber(*expected.elements[i]));
      ++verdict.samples;
      if (!IsFloat(got.dtype())) {
        if (want == IntegerAt(got, i)) continue;
        shown.got = ShownResult(got, i);
        return Verdict::Disagrees(std::move(shown));
      }
      const Real real = item.approximate ? Real(want, kFirstReferenceBits)
                                         : Real(want.RoundTo(got.dtype()), 64);
      const double ulp = UlpError(real, got.GetDouble(i), got.dtype());
      // A zero that is written -0.0 is that one; 0.0 stands for both.
      const bool other_zero =
          ulp == 0 && want.IsNegativeZero() && !std::signbit(got.GetDouble(i));
      if (ulp == 0 && !other_zero) continue;
      shown.got = ShownResult(got, i);
      shown.ulp = ulp;
      if (other_zero || !item.approximate) {
        return Verdict::Disagrees(std::move(shown));
      }
      if (!allowed) {
        CLEAVE_ASSIGN_OR_RETURN(
            allowed, AllowedTo(context, example, results.graphs, got, r));
      }
      const double most = allowed->errors[i];
      if (allowed->is_eps) {
        const double eps = EpsError(real, got.GetDouble(i), got.dtype());
        if (eps <= most) continue;
        absl::StrAppend(&shown.got,
                        absl::StrFormat(", %.4g eps off where %.4g are allowed",
                                        eps, most));
      } else {
        if (ulp <= most) continue;
        shown.bound = most;
      }
      return Verdict::Disagrees(std::move(shown));
    }
  }
  return verdict;
}

bool HasInexactOperand(const SampledCall& call) {
  const std::vector<TensorType> types = call.OperandTypes();
  return std::any_of(types.begin(), types.end(), [](const TensorType& type) {
    return InClass(type.dtype, DTypeClass::kInexact);
  });
}

// The laws of one call, at inputs that are drawn.
class LawsOfCall {
 public:
  LawsOfCall(const OpContext& context, const PreparedCall& call)
      : context_(context), call_(call) {}

  // The truth of a law, `true` or `false`, or why the op gives no results,
  // which are those at `inputs`. Nullopt where the law costs too much: at long
  // axes some compare all pairs.
  absl::StatusOr<std::optional<std::string>> TruthOf(
      const LawOp& law, absl::Span<const Tensor> inputs,
      const absl::StatusOr<std::vector<Tensor>>& results) {
    if (IsBadSample(results.status())) {
      return std::string(results.status().message());
    }
    CLEAVE_RETURN_IF_ERROR(results.status());
    CLEAVE_ASSIGN_OR_RETURN(const Graph* const graph, GraphOf(law, *results));
    if (WorkOf(*graph) > kLawWork) return std::nullopt;
    std::vector<Tensor> arguments(inputs.begin(), inputs.end());
    arguments.insert(arguments.end(), results->begin(), results->end());
    const absl::StatusOr<std::vector<Tensor>> truth =
        Interpret(*graph, arguments);
    // A place among the results that is none: `x[at[i]]` has no value there.
    if (absl::IsOutOfRange(truth.status())) return "false";
    CLEAVE_RETURN_IF_ERROR(truth.status());
    return (*truth)[0].GetInt(0) != 0 ? "true" : "false";
  }

  // The refutation by inputs at which the law has this truth.
  Verdict Explain(const LawOp& law, std::vector<Tensor> inputs,
                  const std::string& truth) {
    const auto fails = [&](absl::Span<const Tensor> trial) {
      if (!call_.domain.Contains(trial).value_or(true)) return false;
      const auto again =
          TruthOf(law, trial, Interpret(call_.graphs.body, trial));
      return again.ok() && *again == truth;
    };
    int64_t elements = 0;
    for (const Tensor& input : inputs) elements += input.size();
    inputs =
        ShrinkValues(std::move(inputs), fails,
                     elements > kShrunkElements ? 0 : context_.ShrinkTrials());
    Counterexample example;
    example.call = call_.call.ToString();
    example.inputs = DescribeInputs(call_.call.OperandNames(), inputs);
    example.what = absl::StrCat("law ", law.text);
    example.expected = "true";
    example.got = truth;
    example.place = PlaceIn(context_.rules(), *context_.item, law.begin);
    example.replay = context_.Replay();
    return Verdict::Disagrees(std::move(example));
  }

 private:
  struct Made {
    std::vector<TensorType> results;
    Graph graph;
  };

  // The law in primitives, of the inputs and of results of these types: one
  // graph for all inputs, as long as their results are of one size.
  absl::StatusOr<const Graph*> GraphOf(const LawOp& law,
                                       const std::vector<Tensor>& results) {
    std::vector<TensorType> types;
    std::vector<std::pair<std::string, TensorType>> extra;
    for (size_t r = 0; r < results.size(); ++r) {
      types.push_back(results[r].type());
      extra.emplace_back(call_.graphs.body.outputs()[r].name, types.back());
    }
    const auto known = made_.find(&law);
    if (known != made_.end() && known->second.results == types) {
      return &known->second.graph;
    }
    CLEAVE_ASSIGN_OR_RETURN(
        const Graph graph,
        MakeCallGraph(context_.rules(), call_.call, law.op, extra));
    CLEAVE_ASSIGN_OR_RETURN(Graph expanded, Expand(graph, context_.rules()));
    Made& made = made_[&law];
    made.results = std::move(types);
    made.graph = std::move(expanded);
    return &made.graph;
  }

  const OpContext& context_;
  const PreparedCall& call_;
  std::map<const LawOp*, Made> made_;
};

}  // namespace

Verdict CheckExamples(const OpContext& context) {
  Verdict verdict = Verdict::NotChecked("no examples");
  for (const Item* item :
       ExamplesOf(context.item->name, context.rules().examples())) {
    const absl::StatusOr<Verdict> one = CheckExample(context, *item);
    if (verdict.kind == VerdictKind::kNotChecked) verdict.why.clear();
    Merge(verdict, one.ok() ? *one
                            : Verdict::Inconclusive(absl::StrCat(
                                  PrintExpr(*item->left), ": ",
                                  std::string(one.status().message()))));
    // Only a counterexample that is shown is one among others.
    if (!context.shrinks && verdict.kind == VerdictKind::kDisagrees) break;
  }
  return verdict;
}

Verdict CheckLawsOf(const OpContext& context, const PreparedCalls& prepared) {
  const OpClauses& clauses = context.clauses->Of(context.item->name);
  if (!clauses.error.empty()) return Verdict::Inconclusive(clauses.error);
  if (clauses.laws.empty()) return Verdict::NotChecked("no laws");
  Verdict verdict;
  DomainSampler sampler(context.seed + 9);
  // False once a law is refuted.
  const auto check = [&](const PreparedCall& call,
                         const std::vector<Pattern>& patterns) {
    LawsOfCall laws(context, call);
    // The laws that are not settled for the call.
    std::vector<const LawOp*> open;
    for (const LawOp& law : clauses.laws) {
      if (!law.needs_inexact || HasInexactOperand(call.call)) {
        open.push_back(&law);
      }
    }
    for (auto pattern = patterns.begin(); pattern != patterns.end();
         ++pattern) {
      if (open.empty()) break;
      // Another pattern that takes its place tells nothing more of it.
      if (pattern != patterns.begin() && *pattern == *std::prev(pattern) &&
          sampler.IsRare(*pattern)) {
        continue;
      }
      if (context.Expired()) {
        Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
        return false;
      }
      // Outside of its domain the op means nothing. All laws are tested at the
      // same inputs: to find some, and the results, may be dear.
      const std::optional<std::vector<Tensor>> within =
          sampler.Tensors(call, *pattern);
      if (!within) continue;
      const absl::StatusOr<std::vector<Tensor>> results =
          Interpret(call.graphs.body, *within);
      for (size_t i = 0; i < open.size();) {
        const LawOp& law = *open[i];
        const absl::StatusOr<std::optional<std::string>> truth =
            laws.TruthOf(law, *within, results);
        if (truth.ok() && truth->has_value()) {
          if (**truth != "true") {
            Merge(verdict, laws.Explain(law, *within, **truth));
            return false;
          }
          Merge(verdict, Verdict::Agrees(1));
          ++i;
          continue;
        }
        if (!truth.ok()) {
          Merge(verdict,
                Verdict::Inconclusive(absl::StrCat("law ", law.text, ": ",
                                                   truth.status().message())));
        }
        open.erase(open.begin() + static_cast<int64_t>(i));
      }
    }
    return true;
  };
  for (const PreparedCall& call : prepared.calls) {
    // Orders go wrong at few inputs: neighbours that a rule makes equal, and
    // integers that it makes too large.
    if (!check(call, {Pattern::kNormal, Pattern::kTies, Pattern::kAllEqual,
                      Pattern::kNeighbours, Pattern::kNeighbours,
                      Pattern::kNeighbours, Pattern::kWide, Pattern::kLargeMean,
                      Pattern::kLargeMean, Pattern::kLargeMean})) {
      return verdict;
    }
  }
  if (prepared.refused) {
    Merge(verdict, *prepared.refused);
    return verdict;
  }
  for (const PreparedCall& call : prepared.large) {
    // Few large matrices of normal numbers are regular, and none is positive
    // definite.
    std::vector<Pattern> patterns;
    if (!call.is_dear) patterns = {Pattern::kNormal, Pattern::kTies};
    if (patterns.empty() || HasSquareMatrices(call.call)) {
      patterns.push_back(Pattern::kDominant);
    }
    if (!check(call, patterns)) return verdict;
  }
  return verdict;
}

}  // namespace cleave
