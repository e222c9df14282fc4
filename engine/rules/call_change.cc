// Proposals of CallSearch that are made from others.

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "engine/rules/call_search.h"

namespace cleave {
namespace {

// The dtype variable of an input that no `where` clause has: T of `x: T` in an
// ONNX signature; empty for another input.
std::string OpenDType(const InputDecl& input) {
  if (input.type.dtype == nullptr ||
      input.type.dtype->kind != ExprKind::kName ||
      ParseDType(input.type.dtype->text).ok()) {
    return "";
  }
  return input.type.dtype->text;
}

// Whether the declaration leaves the dtype open.
bool HasOpenDType(const InputDecl& input) {
  return !input.is_static &&
         (input.type.dtype == nullptr || !OpenDType(input).empty());
}

// A reason without its numbers and, if it is to be `coarse`, without its shapes
// and dtypes, but with its places in the rules.
std::string ReasonOf(absl::string_view refusal, bool coarse) {
  std::string reason;
  int depth = 0;
  bool in_place = false;
  for (const char c : refusal) {
    if (c == ']') --depth;
    if (depth > 0 && coarse) continue;
    if (c == '[') ++depth;
    const bool digit = absl::ascii_isdigit(c);
    in_place = coarse && (c == ':' || (digit && in_place));
    if (digit && !in_place && coarse && absl::EndsWith(reason, "0")) continue;
    reason.push_back(digit && !in_place ? '0' : c);
  }
  if (!coarse) return reason;
  return absl::StrReplaceAll(reason, {{"f0", "i0"},
                                      {"c0", "i0"},
                                      {"u0", "i0"},
                                      {"bf0", "i0"},
                                      {"bool", "i0"},
                                      {"axes", "axis"}});
}

}  // namespace

void CallSearch::Keep(std::string refusal, const Proposal& proposal) {
  refusal = ReasonOf(refusal, attempt_ >= 2);
  constexpr size_t kProposals = 6;  // of one reason
  constexpr size_t kReasons = 100;
  auto of_reason = std::find_if(
      kept_.begin(), kept_.end(),
      [&](const Refused& refused) { return refused.reason == refusal; });
  if (of_reason == kept_.end()) {
    if (kept_.size() == kReasons) return;
    of_reason = kept_.insert(kept_.end(), {std::move(refusal), 0, {}});
  }
  ++of_reason->count;
  if (of_reason->proposals.size() < kProposals) {
    of_reason->proposals.push_back(proposal);
  } else {
    of_reason->proposals[Draw(kProposals)] = proposal;
  }
}

void CallSearch::SetOpenDType(size_t input, DType dtype,
                              Proposal& proposal) const {
  const std::string name = OpenDType(callable_->inputs[input]);
  for (size_t i = 0; i < callable_->inputs.size(); ++i) {
    if (i != input &&
        (name.empty() || OpenDType(callable_->inputs[i]) != name)) {
      continue;
    }
    for (auto& tensor : proposal.inputs[i]) {
      if (tensor) tensor->dtype = dtype;
    }
  }
}

std::vector<CallSearch::Proposal> CallSearch::InFloats(
    const Proposal& proposal) const {
  const auto change = [&](size_t input, Proposal& variant) {
    SetOpenDType(input, DType::kF32, variant);
  };
  std::vector<size_t> open;
  for (size_t i = 0; i < callable_->inputs.size(); ++i) {
    if (HasOpenDType(callable_->inputs[i])) open.push_back(i);
  }
  std::vector<Proposal> variants;
  for (const size_t input : open) {
    Proposal one = proposal;
    change(input, one);
    variants.push_back(std::move(one));
    Proposal others = proposal;
    for (const size_t other : open) {
      if (other != input) change(other, others);
    }
    variants.push_back(std::move(others));
  }
  Proposal all = proposal;
  for (const size_t input : open) change(input, all);
  variants.push_back(std::move(all));
  return variants;
}

CallSearch::Proposal CallSearch::NextVariant() {
  Proposal variant = std::move(variants_.back());
  variants_.pop_back();
  return variant;
}

CallSearch::Proposal CallSearch::ProposeFromKept() {
  ++proposals_;
  // The rarest reason of three: what few proposals meet lies deeper.
  uint64_t reason = Draw(kept_.size());
  for (int i = 0; i < 2; ++i) {
    const uint64_t other = Draw(kept_.size());
    if (kept_[other].count < kept_[reason].count) reason = other;
  }
  const std::vector<Proposal>& proposals = kept_[reason].proposals;
  Proposal proposal = proposals[Draw(proposals.size())];
  for (uint64_t changes = 1 + Draw(3); changes > 0; --changes) {
    const uint64_t place =
        Draw(callable_->inputs.size() + callable_->attributes.size());
    if (place < callable_->inputs.size()) {
      ChangeInput(place, proposal);
    } else {
      ChangeAttribute(place - callable_->inputs.size(), proposal);
    }
  }
  return proposal;
}

void CallSearch::ChangeInput(size_t input, Proposal& proposal) {
  const InputDecl& declared = callable_->inputs[input];
  std::vector<std::optional<TensorType>>& tensors = proposal.inputs[input];
  if (declared.is_static) {
    proposal.attributes.Set(declared.name, DrawIntegers(1 + Draw(6)));
    return;
  }
  const size_t place = tensors.empty() ? 0 : Draw(tensors.size());
  switch (Draw(8)) {
    case 0:  // more tensors
      if (!declared.variadic_index.empty() && tensors.size() < 6) {
        tensors.push_back(tensors.empty() ? TensorType{DType::kF32, {}}
                                          : tensors.back());
      }
      return;
    case 1:  // fewer
      if (!declared.variadic_index.empty() && tensors.size() > 1) {
        tensors.pop_back();
      } else if (declared.optional && !tensors.empty()) {
        tensors[place] = std::nullopt;
      }
      return;
    case 2: {  // a dtype that the declaration leaves open
      static constexpr DType kOthers[] = {DType::kI32, DType::kU8, DType::kI8};
      const DType dtype =
          Draw(2) == 0 ? kOthers[Draw(std::size(kOthers))] : DrawDType("any");
      // The open dtype is mostly the same one for all inputs.
      const bool all = Draw(2) == 0;
      for (size_t i = 0; all && i < callable_->inputs.size(); ++i) {
        if (!HasOpenDType(callable_->inputs[i])) continue;
        SetOpenDType(i, DType::kF32, proposal);
      }
      if (!all && HasOpenDType(declared)) SetOpenDType(input, dtype, proposal);
      return;
    }
    default:
      break;
  }
  if (tensors.empty()) return;
  if (!tensors[place]) {
    tensors[place] = TensorType{DType::kF32, {CommonExtent()}};
    return;
  }
  // The axes of one tensor, or of all of this input.
  const bool all = Draw(2) == 0;
  const uint64_t change = Draw(4);
  const Dim extents[] = {Dim(1), Dim(2), Dim(3), CommonExtent(), CommonExtent(),
                         CommonExtent() * Dim(2), CommonExtent() * Dim(3),
                         CommonExtent() * Dim(4),
                         // Rows of numbers, which the first attempts have not.
                         Dim(4), Dim(5)};
  const Dim extent = extents[Draw(attempt_ < 2 ? 8 : std::size(extents))];
  const uint64_t axis = Draw(6);
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (!tensors[k] || (k != place && !all)) continue;
    Shape& shape = tensors[k]->shape;
    if (change == 0 && shape.size() < 5) {
      shape.push_back(extent);
    } else if (change == 1 && !shape.empty()) {
      shape.erase(shape.begin() + axis % shape.size());
    } else if (!shape.empty()) {
      shape[axis % shape.size()] = extent;
    }
  }
}

void CallSearch::ChangeAttribute(size_t attribute, Proposal& proposal) {
  const AttributeDecl& declared = callable_->attributes[attribute];
  const StaticValue* value = proposal.attributes.Find(declared.name);
  if (value != nullptr && value->kind() == StaticValue::Kind::kList &&
      !value->AsList().empty() && Draw(2) == 0) {
    StaticValue::List list = value->AsList();
    const uint64_t place = Draw(list.size());
    switch (Draw(3)) {
      case 0:
        list.push_back(list[place]);
        break;
      case 1:
        list.erase(list.begin() + place);
        break;
      default:
        if (list[place].kind() == StaticValue::Kind::kInt) {
          list[place] = DrawInteger();
        }
    }
    proposal.attributes.Set(declared.name, std::move(list));
    return;
  }
  if (Draw(4) == 0) {
    // 0, which half of the time is what a number is to be.
    if (declared.type == "real" || declared.type == "scalar") {
      proposal.attributes.Set(declared.name, Exact(0));
      return;
    }
    if (declared.type == "bool") {
      proposal.attributes.Set(declared.name, Draw(2) == 0);
      return;
    }
  }
  proposal.attributes.Set(declared.name,
                          DrawAttribute(declared, 1 + Draw(4), 2));
}

}  // namespace cleave
