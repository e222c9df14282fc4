#include "transforms/vmap/identity_proposals.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/ir/call_attributes.h"

namespace cleave {
namespace {

// The choices of operands that are proposed, each with its first two choices of
// attributes.
constexpr size_t kMaxOperandChoices = 12;
static_assert(2 * kMaxOperandChoices < kMaxIdentityProposals);

// An attribute's value for the batched call, and what was done to it.
struct Option {
  StaticValue value;
  std::string how;  // empty: as it is
};

struct AttributeOptions {
  std::string name;
  std::vector<Option> options;  // the likeliest first
};

// One further behind the batch; nullopt for what counts from the end, and for
// the largest integer, which is no axis.
std::optional<StaticValue> Shifted(const StaticValue& value) {
  if (value.kind() == StaticValue::Kind::kInt) {
    const std::optional<int64_t> axis = value.AsDim().Value();
    if (!axis || *axis < 0 || *axis == INT64_MAX) return std::nullopt;
    return StaticValue(*axis + 1);
  }
  if (value.kind() != StaticValue::Kind::kList) return std::nullopt;
  StaticValue::List list;
  for (const StaticValue& element : value.AsList()) {
    if (element.kind() != StaticValue::Kind::kInt) return std::nullopt;
    const std::optional<StaticValue> shifted = Shifted(element);
    if (!shifted) return std::nullopt;
    list.push_back(*shifted);
  }
  return StaticValue(std::move(list));
}

bool IsIntegers(const StaticValue& value) {
  if (value.kind() == StaticValue::Kind::kInt) return true;
  return value.kind() == StaticValue::Kind::kList &&
         std::all_of(value.AsList().begin(), value.AsList().end(),
                     [](const StaticValue& element) {
                       return element.kind() == StaticValue::Kind::kInt;
                     });
}

StaticValue WithFront(const StaticValue& list, const Dim& front) {
  StaticValue::List values = list.AsList();
  values.insert(values.begin(), StaticValue(front));
  return StaticValue(std::move(values));
}

// `ij,jk->ik` with a letter of the batch in front of the operands in `batched`
// and of the result; nullopt where it is no such equation.
std::optional<std::string> WithLetter(const std::string& equation,
                                      const std::vector<bool>& batched) {
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  if (sides.size() != 2) return std::nullopt;
  std::vector<std::string> operands = absl::StrSplit(sides[0], ',');
  if (operands.size() != batched.size()) return std::nullopt;
  char letter = 'a';
  while (absl::StrContains(equation, std::string(1, letter))) {
    letter = letter == 'z' ? 'A' : static_cast<char>(letter + 1);
    if (letter > 'Z' && letter < 'a') return std::nullopt;
  }
  const std::string front(1, letter);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (batched[i]) operands[i] = front + operands[i];
  }
  return absl::StrCat(absl::StrJoin(operands, ","), "->", front, sides[1]);
}

// The values that one attribute may have in the batched call.
std::vector<Option> OptionsOf(const std::string& name, const StaticValue& value,
                              const AttributeDecl* declared,
                              const std::vector<bool>& batched,
                              const Dim& batch) {
  const Option same = {value, ""};
  const bool axis = declared != nullptr &&
                    (declared->type == "axis" || declared->type == "axes");
  if (value.kind() == StaticValue::Kind::kString) {
    const auto equation = WithLetter(value.AsString(), batched);
    if (!equation) return {same};
    return {{StaticValue(*equation), "with a letter for the batch"}, same};
  }
  if (!IsIntegers(value) || name == kLayout || absl::StartsWith(name, "new.")) {
    return {same};
  }
  std::vector<Option> options;
  const std::optional<StaticValue> shifted = Shifted(value);
  const Option one_further = {shifted.value_or(value), "behind the batch"};
  if (axis) {
    if (shifted) options.push_back(one_further);
    options.push_back(same);
    return options;
  }
  options.push_back(same);
  const bool size = declared != nullptr && declared->type == "dim";
  if (shifted && !size) options.push_back(one_further);
  if (value.kind() != StaticValue::Kind::kList) return options;
  options.push_back({WithFront(value, batch), "with the batch in front"});
  if (size) return options;
  if (shifted) {
    options.push_back(
        {WithFront(*shifted, 0), "behind the batch, which stays in front"});
  }
  options.push_back({WithFront(value, 0), "with 0 in front"});
  options.push_back({WithFront(value, 1), "with 1 in front"});
  options.push_back({WithFront(value, -1), "with -1 in front"});
  const StaticValue::List& list = value.AsList();
  if (list.size() >= 2 && list.size() % 2 == 0) {
    // Both ends of each axis, all low ones first.
    StaticValue::List padded = list;
    padded.insert(padded.begin() + static_cast<int64_t>(list.size() / 2),
                  StaticValue(0));
    options.push_back({WithFront(StaticValue(std::move(padded)), 0),
                       "with 0 in front of both halves"});
  }
  return options;
}

struct AttributeChoice {
  Attributes attributes;
  std::string how;
};

// Combinations of the attributes' options: all at their first, then one or two
// of them elsewhere.
std::vector<AttributeChoice> Combine(
    const Attributes& attributes, const std::vector<AttributeOptions>& list) {
  std::vector<AttributeChoice> choices;
  std::vector<size_t> chosen(list.size(), 0);
  const auto add = [&] {
    AttributeChoice choice{attributes, ""};
    for (size_t i = 0; i < list.size(); ++i) {
      const Option& option = list[i].options[chosen[i]];
      choice.attributes.Set(list[i].name, option.value);
      if (option.how.empty()) continue;
      absl::StrAppend(&choice.how, choice.how.empty() ? "" : ", ", "`",
                      list[i].name, "` ", option.how);
    }
    choices.push_back(std::move(choice));
  };
  add();
  for (size_t i = 0; i < list.size(); ++i) {
    for (chosen[i] = 1; chosen[i] < list[i].options.size(); ++chosen[i]) add();
    chosen[i] = 0;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    for (size_t j = i + 1; j < list.size(); ++j) {
      for (chosen[i] = 1; chosen[i] < list[i].options.size(); ++chosen[i]) {
        for (chosen[j] = 1; chosen[j] < list[j].options.size(); ++chosen[j]) {
          add();
        }
        chosen[j] = 0;
      }
      chosen[i] = 0;
    }
  }
  return choices;
}

struct OperandChoice {
  std::vector<OperandForm> forms;
  std::string how;
};

std::vector<OperandChoice> OperandChoices(const std::vector<TensorType>& types,
                                          const std::vector<bool>& batched) {
  const size_t count = types.size();
  const std::vector<OperandForm> plain(count);
  std::vector<OperandChoice> choices = {{plain, ""}};
  const auto add = [&](const std::vector<OperandForm>& forms,
                       const std::string& how) {
    for (const OperandChoice& choice : choices) {
      if (choice.forms == forms) return;
    }
    choices.push_back({forms, how});
  };
  int rank = 0;
  for (const TensorType& type : types) rank = std::max(rank, type.rank());
  // Hosts take a number for a vector of one element.
  rank = std::max(rank, 1);
  std::vector<OperandForm> aligned = plain;
  for (size_t i = 0; i < count; ++i) {
    if (batched[i]) aligned[i].units_behind = rank - types[i].rank();
  }
  const std::string units = "extents 1 behind the batch";
  add(aligned, units);
  if (count == 2) {
    // A vector behind a matrix is a column.
    for (const bool first : {false, true}) {
      std::vector<OperandForm> column = plain;
      if (batched[0] && first) column[0].units_behind = 1;
      column[1].unit_at_end = batched[1];
      add(column, "an extent 1 at the end");
    }
  }
  // Operands that are not batched, repeated for each example: all, then each
  // alone.
  std::vector<size_t> shared;
  for (size_t i = 0; i < count; ++i) {
    if (!batched[i]) shared.push_back(i);
  }
  if (shared.empty()) return choices;
  const std::vector<OperandForm> bases[] = {plain, aligned};
  for (const std::vector<OperandForm>& base : bases) {
    const bool with_units = &base == &bases[1];
    const auto repeat = [&](std::vector<OperandForm>& forms, size_t i) {
      forms[i].repeated = true;
      if (with_units) forms[i].units_behind = rank - types[i].rank();
    };
    std::vector<OperandForm> all = base;
    for (size_t i : shared) repeat(all, i);
    add(all, "what is not batched repeated");
    if (shared.size() == 1) continue;
    for (size_t i : shared) {
      std::vector<OperandForm> one = base;
      repeat(one, i);
      add(one, absl::StrCat("operand ", i, " repeated"));
    }
  }
  if (choices.size() > kMaxOperandChoices) choices.resize(kMaxOperandChoices);
  return choices;
}

}  // namespace

std::vector<IdentityProposal> ProposeIdentity(
    const Item& item, const Attributes& attributes,
    const std::vector<TensorType>& types, const std::vector<bool>& batched,
    const Dim& batch) {
  std::vector<AttributeOptions> varied;
  for (const auto& [name, value] : attributes.values()) {
    const AttributeDecl* declared = nullptr;
    for (const AttributeDecl& attribute : item.attributes) {
      if (attribute.name == name) declared = &attribute;
    }
    AttributeOptions options = {
        name, OptionsOf(name, value, declared, batched, batch)};
    if (options.options.size() > 1 || !options.options[0].how.empty()) {
      varied.push_back(std::move(options));
    }
  }
  const std::vector<AttributeChoice> of_attributes =
      Combine(attributes, varied);
  const std::vector<OperandChoice> of_operands = OperandChoices(types, batched);
  // All attributes on plain operands, then the first ones on each other form.
  std::vector<IdentityProposal> proposals;
  const auto add = [&](const OperandChoice& operands,
                       const AttributeChoice& choice) {
    if (proposals.size() >= kMaxIdentityProposals) return;
    std::string how =
        absl::StrJoin(std::vector<std::string>{choice.how, operands.how}, ", ");
    if (choice.how.empty() || operands.how.empty()) {
      how = choice.how.empty() ? operands.how : choice.how;
    }
    proposals.push_back({operands.forms, choice.attributes,
                         how.empty() ? "as it is" : std::move(how)});
  };
  const size_t later = std::min<size_t>(of_attributes.size(), 2);
  const size_t first = std::min<size_t>(
      of_attributes.size(),
      kMaxIdentityProposals - later * (of_operands.size() - 1));
  for (size_t i = 0; i < first; ++i) add(of_operands[0], of_attributes[i]);
  for (size_t i = 1; i < of_operands.size(); ++i) {
    for (size_t j = 0; j < later; ++j) add(of_operands[i], of_attributes[j]);
  }
  return proposals;
}

}  // namespace cleave
