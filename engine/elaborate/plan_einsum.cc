#include "engine/elaborate/plan_einsum.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// A letter, or an axis of `...`, counted from the right: "...0" is the last.
using Label = std::string;
using Labels = std::vector<Label>;

absl::Status Malformed(const std::string& equation, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("einsum equation \"", equation, "\": ", why));
}

// The labels of one operand; `ellipsis` axes stand for `...`.
absl::StatusOr<Labels> ParseLabels(const std::string& equation,
                                   const std::string& text, int ellipsis) {
  Labels labels;
  bool has_ellipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '.') {
      if (text.compare(i, 3, "...") != 0 || has_ellipsis) {
        return Malformed(equation, "`...` stands once, with three points");
      }
      has_ellipsis = true;
      for (int d = ellipsis - 1; d >= 0; --d) {
        labels.push_back(absl::StrCat("...", d));
      }
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      labels.emplace_back(1, text[i]);
    } else {
      return Malformed(equation, "an axis is named by a letter");
    }
  }
  return labels;
}

int CountLetters(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return std::isalpha(static_cast<unsigned char>(c));
  }));
}

StaticValue Extents(const Labels& labels, const std::map<Label, Dim>& extents) {
  std::vector<Dim> dims;
  for (const Label& label : labels) dims.push_back(extents.at(label));
  return StaticValue::Dims(dims);
}

// The position of each label in out ++ summed; -1 for a stretched extent 1.
StaticValue Positions(const Labels& labels, const Shape* shape,
                      const Labels& out, const Labels& summed,
                      const std::map<Label, Dim>& extents) {
  std::vector<int64_t> positions;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (shape != nullptr && (*shape)[i] == Dim(1) &&
        extents.at(labels[i]) != Dim(1)) {
      positions.push_back(-1);
      continue;
    }
    const auto in_out = std::find(out.begin(), out.end(), labels[i]);
    if (in_out != out.end()) {
      positions.push_back(in_out - out.begin());
      continue;
    }
    const auto in_summed = std::find(summed.begin(), summed.end(), labels[i]);
    positions.push_back(static_cast<int64_t>(out.size()) +
                        (in_summed - summed.begin()));
  }
  return StaticValue::Ints(positions);
}

bool Contains(const Labels& labels, const Label& label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

}  // namespace

absl::StatusOr<StaticValue> PlanEinsum(const std::string& equation,
                                       const std::vector<Shape>& shapes) {
  std::string text;
  for (char c : equation) {
    if (c != ' ') text.push_back(c);
  }
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  std::vector<std::string> operands(1);
  for (char c : left) {
    if (c == ',') {
      operands.emplace_back();
    } else {
      operands.back().push_back(c);
    }
  }
  if (operands.size() != shapes.size()) {
    return Malformed(equation,
                     absl::StrCat("names ", operands.size(),
                                  " operands; there are ", shapes.size()));
  }
  std::vector<Labels> labels;
  std::map<Label, Dim> extents;
  std::map<Label, int> counts;
  int most = 0;  // axes of the longest `...`
  for (size_t k = 0; k < shapes.size(); ++k) {
    const int rank = static_cast<int>(shapes[k].size());
    const bool has_ellipsis = operands[k].find('.') != std::string::npos;
    const int ellipsis = rank - CountLetters(operands[k]);
    if (ellipsis < 0 || (ellipsis > 0 && !has_ellipsis)) {
      return Malformed(equation,
                       absl::StrCat("operand ", k, " has ", rank, " axes, not ",
                                    CountLetters(operands[k])));
    }
    if (has_ellipsis) most = std::max(most, ellipsis);
    CLEAVE_ASSIGN_OR_RETURN(Labels names,
                            ParseLabels(equation, operands[k], ellipsis));
    for (size_t d = 0; d < names.size(); ++d) {
      ++counts[names[d]];
      const auto [it, is_new] = extents.emplace(names[d], shapes[k][d]);
      if (is_new || it->second == shapes[k][d] || shapes[k][d] == Dim(1)) {
        continue;
      }
      if (it->second != Dim(1) &&
          Compare(it->second, CompareOp::kEq, shapes[k][d]) == Truth::kFalse) {
        return Malformed(equation, absl::StrCat("`", names[d], "` is ",
                                                it->second.ToString(), " and ",
                                                shapes[k][d].ToString()));
      }
      if (it->second == Dim(1)) it->second = shapes[k][d];
    }
    labels.push_back(std::move(names));
  }
  Labels out;
  if (arrow != std::string::npos) {
    CLEAVE_ASSIGN_OR_RETURN(
        out, ParseLabels(equation, text.substr(arrow + 2), most));
    for (size_t i = 0; i < out.size(); ++i) {
      if (extents.count(out[i]) == 0) {
        return Malformed(equation,
                         absl::StrCat("`", out[i], "` is of no operand"));
      }
      if (std::count(out.begin(), out.end(), out[i]) > 1) {
        return Malformed(equation,
                         absl::StrCat("`", out[i], "` twice in the result"));
      }
    }
  } else {
    for (int d = most - 1; d >= 0; --d) out.push_back(absl::StrCat("...", d));
    for (const auto& [label, count] : counts) {
      if (count == 1 && label[0] != '.') out.push_back(label);
    }
  }
  Labels summed;
  for (const Labels& names : labels) {
    for (const Label& label : names) {
      if (!Contains(out, label) && !Contains(summed, label)) {
        summed.push_back(label);
      }
    }
  }
  StaticValue::List letters;
  for (size_t k = 0; k < labels.size(); ++k) {
    letters.push_back(Positions(labels[k], &shapes[k], out, summed, extents));
  }
  StaticValue::List steps;
  Labels have;
  for (size_t k = 0; k < labels.size(); ++k) {
    // A label that a later step or the result still needs stays.
    Labels all = have;
    for (const Label& label : labels[k]) {
      if (!Contains(all, label)) all.push_back(label);
    }
    Labels stay;
    Labels done;
    const bool is_last = k + 1 == labels.size();
    for (const Label& label : is_last ? out : all) {
      bool needed = Contains(out, label);
      for (size_t later = k + 1; later < labels.size(); ++later) {
        needed = needed || Contains(labels[later], label);
      }
      if (needed) stay.push_back(label);
    }
    for (const Label& label : all) {
      if (!Contains(stay, label)) done.push_back(label);
    }
    steps.push_back(StaticValue(StaticValue::Record{
        {"operand", static_cast<int64_t>(k)},
        {"left", Positions(have, nullptr, stay, done, extents)},
        {"right", Positions(labels[k], &shapes[k], stay, done, extents)},
        {"out", Extents(stay, extents)},
        {"summed", Extents(done, extents)},
    }));
    have = stay;
  }
  return StaticValue(StaticValue::Record{
      {"out", Extents(out, extents)},
      {"summed", Extents(summed, extents)},
      {"letters", StaticValue(std::move(letters))},
      {"steps", StaticValue(std::move(steps))},
  });
}

}  // namespace cleave
