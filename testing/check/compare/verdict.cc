#include "testing/check/compare/verdict.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace cleave {
namespace {

// The order in which verdicts win when they are merged.
int Weight(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kNotChecked:
      return 0;
    case VerdictKind::kAgrees:
      return 1;
    case VerdictKind::kNotIndependent:
      return 2;
    case VerdictKind::kInconclusive:
      return 3;
    case VerdictKind::kDisagrees:
      return 4;
  }
  return 0;
}

}  // namespace

absl::string_view LayerName(Layer layer) {
  static constexpr const char* kNames[kNumLayers] = {
      "L0", "L1", "L2", "L3", "L4", "L5", "L6", "host", "examples"};
  return kNames[static_cast<int>(layer)];
}

std::optional<Layer> FindLayer(absl::string_view name) {
  for (int i = 0; i < kNumLayers; ++i) {
    const Layer layer = static_cast<Layer>(i);
    if (LayerName(layer) == name) return layer;
  }
  return std::nullopt;
}

absl::string_view StrengthName(Strength strength) {
  switch (strength) {
    case Strength::kSampled:
      return "SAMPLED";
    case Strength::kExhaustive:
      return "EXHAUSTIVE";
    case Strength::kProved:
      return "PROVED";
  }
  return "";
}

absl::string_view VerdictKindName(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kAgrees:
      return "agrees";
    case VerdictKind::kDisagrees:
      return "disagrees";
    case VerdictKind::kInconclusive:
      return "inconclusive";
    case VerdictKind::kNotIndependent:
      return "not independent";
    case VerdictKind::kNotChecked:
      return "not checked";
  }
  return "";
}

std::optional<VerdictKind> FindVerdictKind(absl::string_view name) {
  for (const VerdictKind kind :
       {VerdictKind::kAgrees, VerdictKind::kDisagrees,
        VerdictKind::kInconclusive, VerdictKind::kNotIndependent,
        VerdictKind::kNotChecked}) {
    if (VerdictKindName(kind) == name) return kind;
  }
  return std::nullopt;
}

std::optional<Strength> FindStrength(absl::string_view name) {
  for (const Strength strength :
       {Strength::kSampled, Strength::kExhaustive, Strength::kProved}) {
    if (StrengthName(strength) == name) return strength;
  }
  return std::nullopt;
}

absl::string_view HostFailureKindName(HostFailureKind kind) {
  switch (kind) {
    case HostFailureKind::kCall:
      return "call";
    case HostFailureKind::kDiscrete:
      return "discrete";
    case HostFailureKind::kNotFinite:
      return "not finite";
    case HostFailureKind::kSpecial:
      return "special";
    case HostFailureKind::kLostNaN:
      return "lost NaN";
    case HostFailureKind::kInaccurate:
      return "inaccurate";
  }
  return "";
}

std::optional<HostFailureKind> FindHostFailureKind(absl::string_view name) {
  for (const HostFailureKind kind :
       {HostFailureKind::kCall, HostFailureKind::kDiscrete,
        HostFailureKind::kNotFinite, HostFailureKind::kSpecial,
        HostFailureKind::kLostNaN, HostFailureKind::kInaccurate}) {
    if (HostFailureKindName(kind) == name) return kind;
  }
  return std::nullopt;
}

std::string Counterexample::ToString() const {
  std::vector<std::string> lines;
  const auto line = [&](absl::string_view label, const std::string& text) {
    if (!text.empty())
      lines.push_back(absl::StrFormat("  %-9s %s", label, text));
  };
  line("call", call);
  line("inputs", inputs);
  line("wrong", what);
  line("expected", expected);
  line("got", got);
  if (std::isfinite(ulp) && ulp > 0) {
    const bool claims = bound >= 0;
    line("error",
         claims ? absl::StrFormat("%.4g ulp, allowed %.4g", ulp, bound)
                : absl::StrFormat("%.4g ulp; the claim of accuracy is %s here",
                                  ulp, bound < 0 ? "negative" : "NaN"));
  }
  line("rule", place);
  line("replay", replay);
  return absl::StrJoin(lines, "\n");
}

Verdict Verdict::NotChecked(std::string why) {
  Verdict verdict;
  verdict.why = std::move(why);
  return verdict;
}

Verdict Verdict::Inconclusive(std::string why) {
  Verdict verdict;
  verdict.kind = VerdictKind::kInconclusive;
  verdict.why = std::move(why);
  return verdict;
}

Verdict Verdict::Agrees(int64_t samples) {
  Verdict verdict;
  verdict.kind = VerdictKind::kAgrees;
  verdict.samples = samples;
  return verdict;
}

Verdict Verdict::Disagrees(Counterexample counterexample) {
  Verdict verdict;
  verdict.kind = VerdictKind::kDisagrees;
  verdict.samples = 1;
  verdict.counterexample = std::move(counterexample);
  return verdict;
}

std::string Verdict::ToString() const {
  std::string text(VerdictKindName(kind));
  if (kind == VerdictKind::kAgrees) {
    absl::StrAppend(&text, " ", StrengthName(strength));
    if (strength != Strength::kProved) {
      absl::StrAppend(&text, "(", samples, ")");
    }
    if (!worst_at.empty()) {
      absl::StrAppend(&text, absl::StrFormat(", worst %.3g ulp", worst_ulp),
                      " at ", worst_at);
    }
  }
  if (!why.empty()) absl::StrAppend(&text, ": ", why);
  if (!notes.empty()) {
    absl::StrAppend(&text, " (", absl::StrJoin(notes, "; "), ")");
  }
  return text;
}

void Merge(Verdict& verdict, const Verdict& next) {
  verdict.samples += next.samples;
  verdict.worst_part = std::max(verdict.worst_part, next.worst_part);
  if (next.worst_ulp > verdict.worst_ulp || verdict.worst_at.empty()) {
    verdict.worst_ulp = std::max(verdict.worst_ulp, next.worst_ulp);
    if (!next.worst_at.empty()) verdict.worst_at = next.worst_at;
  }
  if (verdict.kind == VerdictKind::kAgrees &&
      next.kind == VerdictKind::kAgrees) {
    verdict.strength = std::min(verdict.strength, next.strength);
  }
  for (const std::string& note : next.notes) {
    if (std::find(verdict.notes.begin(), verdict.notes.end(), note) ==
        verdict.notes.end()) {
      verdict.notes.push_back(note);
    }
  }
  if (Weight(next.kind) > Weight(verdict.kind)) {
    verdict.kind = next.kind;
    verdict.strength = next.strength;
    verdict.why = next.why;
    verdict.counterexample = next.counterexample;
  } else if (next.kind == verdict.kind && verdict.why.empty()) {
    verdict.why = next.why;
  }
}

}  // namespace cleave
