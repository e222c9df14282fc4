#include "engine/lang/diagnostic.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "engine/lang/marked_line.h"

namespace cleave {
namespace {

// The number of single-character insertions, deletions, replacements and swaps
// of neighbours between two names.
int EditDistance(absl::string_view a, absl::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<int> before(width), last(width), row(width);
  for (size_t j = 0; j < width; ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j < width; ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1,
                         last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[width - 1];
}

}  // namespace

absl::string_view DiagnosticKindName(DiagnosticKind kind) {
  switch (kind) {
#define DIAGNOSTIC(enumerator, text) \
  case DiagnosticKind::enumerator:   \
    return text;
#include "engine/lang/diagnostic_kind.def"
  }
  return "unknown";
}

std::string Render(const Diagnostic& diagnostic, const Source& source) {
  std::string out;
  if (!diagnostic.pointer.empty()) {
    absl::StrAppend(&out, source.name(), ":", diagnostic.pointer,
                    ": error: ", diagnostic.message, " [",
                    DiagnosticKindName(diagnostic.kind), "]\n");
  } else {
    const Source::Position begin = source.PositionOf(diagnostic.range.begin);
    absl::StrAppend(&out, source.name(), ":", begin.line, ":", begin.column,
                    ": error: ", diagnostic.message, " [",
                    DiagnosticKindName(diagnostic.kind), "]\n");
    absl::StrAppend(&out, MarkedLine(diagnostic.range, source));
  }
  if (!diagnostic.help.empty()) {
    absl::StrAppend(&out, "help: ", diagnostic.help, "\n");
  }
  return out;
}

std::string Render(std::vector<Diagnostic> diagnostics, const Source& source) {
  std::stable_sort(diagnostics.begin(), diagnostics.end(),
                   [](const Diagnostic& a, const Diagnostic& b) {
                     return a.range.begin < b.range.begin;
                   });
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    absl::StrAppend(&out, Render(diagnostic, source));
  }
  return out;
}

std::string ClosestName(absl::string_view name,
                        const std::vector<std::string>& candidates) {
  // Names longer than this have no typing mistakes worth finding.
  constexpr size_t kMaxLength = 64;
  if (name.size() > kMaxLength) return "";
  std::string best;
  // One mistake in up to five characters, two in up to eight, and so on.
  int best_distance = static_cast<int>(name.size() + 4) / 3;
  if (name.size() <= 2) best_distance = static_cast<int>(name.size());
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxLength || candidate == name) continue;
    const int distance = EditDistance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace cleave
