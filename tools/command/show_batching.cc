#include "tools/command/show_batching.h"

#include <algorithm>
#include <iostream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "tools/command/command.h"
#include "transforms/report/batching_coverage.h"

namespace cleave {
namespace {

using Answer = BatchingRow::Answer;

constexpr Answer kAnswers[] = {Answer::kKept, Answer::kPartly,
                               Answer::kExpanded, Answer::kGiven,
                               Answer::kRefused};

struct Line {
  std::string op, batched, answer, verdict, why;
};

void PrintLines(const std::vector<Line>& lines) {
  size_t op = 2, batched = 7, verdict = 7;
  for (const Line& line : lines) {
    op = std::max(op, line.op.size());
    batched = std::max(batched, line.batched.size());
    verdict = std::max(verdict, line.verdict.size());
  }
  const auto print = [&](const Line& line) {
    std::string text = absl::StrFormat(
        "%-*s  %-*s  %-8s  %-*s  %s", static_cast<int>(op), line.op,
        static_cast<int>(batched), line.batched, line.answer,
        static_cast<int>(verdict), line.verdict, line.why);
    text.erase(text.find_last_not_of(' ') + 1);
    std::cout << text << "\n";
  };
  print({"op", "batched", "answer", "verdict", "why"});
  for (const Line& line : lines) print(line);
}

}  // namespace

int ShowBatching(const RuleSet& rules, const std::vector<std::string>& names,
                 bool json) {
  std::vector<Line> lines;
  std::map<Answer, int> counts;
  std::map<std::string, int> verdicts;
  nlohmann::json ops = nlohmann::json::object();
  int total = 0;
  for (const std::string& name : names) {
    ShowProgress(name);
    const absl::StatusOr<BatchingCoverage> coverage =
        CoverBatching(rules, name);
    if (!coverage.ok()) return Complain(coverage.status());
    nlohmann::json subsets = nlohmann::json::array();
    for (const BatchingRow& row : coverage->rows) {
      ++total;
      ++counts[row.answer];
      const std::string verdict = VerdictName(row);
      const std::string answer(AnswerName(row.answer));
      ++verdicts[verdict.substr(0, verdict.find('('))];
      lines.push_back(
          {name, absl::StrJoin(row.batched, ","), answer, verdict, row.why});
      nlohmann::json subset = {{"batched", row.batched},
                               {"answer", answer},
                               {"calls", row.calls},
                               {"kept_calls", row.kept_calls}};
      if (!verdict.empty()) subset["verdict"] = verdict;
      if (!row.why.empty()) subset["why"] = row.why;
      subsets.push_back(std::move(subset));
    }
    nlohmann::json entry = {{"subsets", std::move(subsets)}};
    if (coverage->rows.empty()) {
      lines.push_back({name, "", "none", "", coverage->why});
      entry["why"] = coverage->why;
    } else if (!coverage->why.empty()) {
      entry["no_rank_bound"] = coverage->why;
    }
    ops[name] = std::move(entry);
  }
  ShowProgress("");
  nlohmann::json shares = nlohmann::json::object();
  for (Answer answer : kAnswers) {
    shares[std::string(AnswerName(answer))] = counts[answer];
  }
  if (json) {
    const nlohmann::json report = {{"ops", std::move(ops)},
                                   {"subsets", std::move(shares)}};
    std::cout << report.dump(2) << "\n";
    return kExitOk;
  }
  PrintLines(lines);
  std::cout << "\nof " << total << (total == 1 ? " subset:" : " subsets:");
  for (Answer answer : kAnswers) {
    std::cout << absl::StreamFormat(
        "%s %s %d (%.1f %%)", answer == kAnswers[0] ? "" : ",",
        AnswerName(answer), counts[answer],
        total == 0 ? 0.0 : 100.0 * counts[answer] / total);
  }
  std::cout << absl::StreamFormat(
      "\nkept: PROVED %d, EXHAUSTIVE %d, SAMPLED %d\n", verdicts["PROVED"],
      verdicts["EXHAUSTIVE"], verdicts["SAMPLED"]);
  return kExitOk;
}

}  // namespace cleave
