// RuleValue: what an expression of a rule means while a body is elaborated: a
// static value, a tensor (a Term), an index, or a list or record of these.

#ifndef CLEAVE_ENGINE_ELABORATE_RULE_VALUE_H_
#define CLEAVE_ENGINE_ELABORATE_RULE_VALUE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/index/term.h"
#include "ops/infer_type.h"
#include "ops/static_value.h"

namespace cleave {

// A comparison of extents that is not decided.
struct Condition {
  Dim lhs;
  CompareOp op = CompareOp::kGe;
  Dim rhs;
};

// The comparison, or what decides it.
std::variant<bool, Condition> Decide(const Dim& lhs, CompareOp op,
                                     const Dim& rhs);
Condition Negate(const Condition& condition);
// A Dim that is >= 0 exactly where the condition holds.
Dim MarginOf(const Condition& condition);
Condition And(const Condition& a, const Condition& b);
Condition Or(const Condition& a, const Condition& b);
// Whether it holds where all sizes are large and different: the case that an
// undecided `if` takes, under a guard.
bool HoldsForLargeSizes(const Condition& condition);

// An index under elaboration: its range may come from where it stands.
struct OpenIndex : IndexVariable {
  bool known = false;        // the extent is known
  bool is_given = false;     // by the author: `i < n`
  bool has_default = false;  // the declared extent of the result
  Dim default_extent;
};
using OpenIndexPtr = std::shared_ptr<OpenIndex>;

// A pack of indices, `s..`, whose number may come from where it stands.
struct OpenPack {
  std::string name;
  bool known = false;  // how many
  std::vector<OpenIndexPtr> indices;
};
using OpenPackPtr = std::shared_ptr<OpenPack>;

class RuleValue;
using RuleList = std::vector<RuleValue>;
using RuleRecord = std::vector<std::pair<std::string, RuleValue>>;

class RuleValue {
 public:
  struct Absent {};
  // `impossible("why")`: a coefficient that is not known.
  struct Impossible {
    std::string why;
  };
  enum class Kind {
    kAbsent,
    kBool,
    kCondition,
    kInt,
    kReal,
    kString,
    kDType,
    kList,
    kRecord,
    kTerm,
    kIndex,
    kPack,
    kImpossible,
  };

  RuleValue() = default;
  RuleValue(bool v) : data_(v) {}                    // NOLINT
  RuleValue(Condition v) : data_(std::move(v)) {}    // NOLINT
  RuleValue(Dim v) : data_(std::move(v)) {}          // NOLINT
  RuleValue(int v) : data_(Dim(v)) {}                // NOLINT
  RuleValue(Exact v) : data_(std::move(v)) {}        // NOLINT
  RuleValue(std::string v) : data_(std::move(v)) {}  // NOLINT
  RuleValue(DTypePtr v) : data_(std::move(v)) {}     // NOLINT
  RuleValue(RuleList v)                              // NOLINT
      : data_(std::make_shared<const RuleList>(std::move(v))) {}
  RuleValue(RuleRecord v)  // NOLINT
      : data_(std::make_shared<const RuleRecord>(std::move(v))) {}
  RuleValue(TermPtr v) : data_(std::move(v)) {}       // NOLINT
  RuleValue(OpenIndexPtr v) : data_(std::move(v)) {}  // NOLINT
  RuleValue(OpenPackPtr v) : data_(std::move(v)) {}   // NOLINT
  RuleValue(Impossible v) : data_(std::move(v)) {}    // NOLINT

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool Is(Kind k) const { return kind() == k; }
  bool IsNumber() const { return Is(Kind::kInt) || Is(Kind::kReal); }
  bool IsTruth() const { return Is(Kind::kBool) || Is(Kind::kCondition); }
  // A tensor or an index: not known before a graph runs.
  bool IsDynamic() const { return Is(Kind::kTerm) || Is(Kind::kIndex); }

  bool AsBool() const { return std::get<bool>(data_); }
  const Condition& AsCondition() const { return std::get<Condition>(data_); }
  const Dim& AsDim() const { return std::get<Dim>(data_); }
  const Exact& AsReal() const { return std::get<Exact>(data_); }
  const std::string& AsString() const { return std::get<std::string>(data_); }
  const DTypePtr& AsDType() const { return std::get<DTypePtr>(data_); }
  const RuleList& AsList() const { return *std::get<ListPtr>(data_); }
  const RuleRecord& AsRecord() const { return *std::get<RecordPtr>(data_); }
  const TermPtr& AsTerm() const { return std::get<TermPtr>(data_); }
  const OpenIndexPtr& AsIndex() const { return std::get<OpenIndexPtr>(data_); }
  const OpenPackPtr& AsPack() const { return std::get<OpenPackPtr>(data_); }
  const Impossible& AsImpossible() const { return std::get<Impossible>(data_); }

  // It comes from an optional input or attribute, so that as a condition it
  // asks whether it was given.
  bool is_optional() const { return is_optional_; }
  RuleValue Optional() && {
    is_optional_ = true;
    return std::move(*this);
  }

  // "a number", "a list", ...: for messages.
  absl::string_view KindName() const;

 private:
  using ListPtr = std::shared_ptr<const RuleList>;
  using RecordPtr = std::shared_ptr<const RuleRecord>;
  std::variant<Absent, bool, Condition, Dim, Exact, std::string, DTypePtr,
               ListPtr, RecordPtr, TermPtr, OpenIndexPtr, OpenPackPtr,
               Impossible>
      data_;
  bool is_optional_ = false;
};

RuleValue DimList(const Shape& shape);
RuleValue FromStatic(const StaticValue& value);
// InvalidArgument where the value is not static, or holds an undecided
// condition or an open dtype.
absl::StatusOr<StaticValue> ToStatic(const RuleValue& value);
// The number of a static number: an integer if it is constant, or a real;
// nullopt for a symbolic extent and for what is no number.
std::optional<Exact> ToExact(const RuleValue& value);

// Names in scope; a scope sees its parent's.
class Scope {
 public:
  explicit Scope(const Scope* parent = nullptr) : parent_(parent) {}
  void Set(absl::string_view name, RuleValue value) {
    values_[std::string(name)] = std::move(value);
  }
  const RuleValue* Find(absl::string_view name) const;
  bool HasOwn(absl::string_view name) const {
    return values_.count(std::string(name)) > 0;
  }
  void CollectNames(std::vector<std::string>* names) const;

 private:
  const Scope* parent_;
  std::map<std::string, RuleValue> values_;
};

// The truth of a static condition: known, or a condition on sizes.
using Truth2 = std::variant<bool, Condition>;

inline RuleValue FromTruth(const Truth2& truth) {
  if (const bool* known = std::get_if<bool>(&truth)) return *known;
  return std::get<Condition>(truth);
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_ELABORATE_RULE_VALUE_H_
