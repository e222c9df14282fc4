// StaticValue: a value known when a rule is expanded: an attribute, a size, a
// list, a record. Attributes of graph nodes are named StaticValues.

#ifndef CLEAVE_OPS_STATIC_VALUE_H_
#define CLEAVE_OPS_STATIC_VALUE_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/exact.h"

namespace cleave {

class Graph;  // engine/ir/graph.h: the body of a region

// A closed region owned by a node: equal where the canonical texts are. Made by
// MakeRegion (engine/ir/graph_text.h), which says how long it is valid.
struct Region {
  std::shared_ptr<const Graph> graph;
  std::string text;  // PrintGraph(*graph): the identity
};

class StaticValue {
 public:
  struct None {};
  using List = std::vector<StaticValue>;
  using Record = std::vector<std::pair<std::string, StaticValue>>;
  enum class Kind {
    kNone,
    kBool,
    kInt,
    kReal,
    kString,
    kDType,
    kList,
    kRecord,
    kRegion
  };

  StaticValue() : value_(None{}) {}
  StaticValue(bool v) : value_(v) {}              // NOLINT
  StaticValue(Dim v) : value_(std::move(v)) {}    // NOLINT
  StaticValue(int64_t v) : value_(Dim(v)) {}      // NOLINT
  StaticValue(int v) : value_(Dim(v)) {}          // NOLINT
  StaticValue(Exact v) : value_(std::move(v)) {}  // NOLINT
  // Strings and enum values are one kind: a string becomes the enum value of
  // its name.
  StaticValue(std::string v) : value_(std::move(v)) {}    // NOLINT
  StaticValue(const char* v) : value_(std::string(v)) {}  // NOLINT
  StaticValue(DType v) : value_(v) {}                     // NOLINT
  StaticValue(List v)                                     // NOLINT
      : value_(std::make_shared<const List>(std::move(v))) {}
  StaticValue(Record v)  // NOLINT
      : value_(std::make_shared<const Record>(std::move(v))) {}
  StaticValue(Region v) : value_(std::move(v)) {}  // NOLINT
  // Lists of integers and of Dims.
  static StaticValue Ints(const std::vector<int>& values);
  static StaticValue Ints(const std::vector<int64_t>& values);
  static StaticValue Dims(const std::vector<Dim>& values);

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool is_none() const { return kind() == Kind::kNone; }

  // CHECK on a value of another kind.
  bool AsBool() const;
  const Dim& AsDim() const;
  const Exact& AsReal() const;
  const std::string& AsString() const;
  DType AsDType() const;
  const List& AsList() const;
  const Record& AsRecord() const;
  const Region& AsRegion() const;
  // A constant integer, lists of them, lists of Dims; InvalidArgument else.
  absl::StatusOr<int64_t> ToInt() const;
  absl::StatusOr<std::vector<int64_t>> ToInts() const;
  absl::StatusOr<std::vector<Dim>> ToDims() const;

  // Structural equality; an int and a real are different values, and so are the
  // reals 0 and -0. NaN equals NaN.
  friend bool operator==(const StaticValue& a, const StaticValue& b);
  friend bool operator!=(const StaticValue& a, const StaticValue& b) {
    return !(a == b);
  }
  size_t Hash() const;
  template <typename H>
  friend H AbslHashValue(H h, const StaticValue& v) {
    return H::combine(std::move(h), v.Hash());
  }
  // `3`, `0.1`, `2.0` for the real 2, `true`, `none` for None, `"text"`, `f32`,
  // `[1, n]`,
  // `(a = 1)`, and `{...}` for a region. Parsed back by graph text.
  std::string ToString() const;

 private:
  std::variant<None, bool, Dim, Exact, std::string, DType,
               std::shared_ptr<const List>, std::shared_ptr<const Record>,
               Region>
      value_;
};

// Named values, sorted by name, each name once. An absent name and None are
// different: canonical attributes leave None out.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, StaticValue>> init);

  void Set(absl::string_view name, StaticValue value);
  // Null where there is none of that name.
  const StaticValue* Find(absl::string_view name) const;
  // CHECK that it is there.
  const StaticValue& Get(absl::string_view name) const;
  int64_t GetInt(absl::string_view name) const;
  bool GetBool(absl::string_view name) const;
  std::vector<int64_t> GetInts(absl::string_view name) const;
  std::vector<Dim> GetDims(absl::string_view name) const;
  const std::vector<std::pair<std::string, StaticValue>>& values() const {
    return values_;
  }
  bool empty() const { return values_.empty(); }
  friend bool operator==(const Attributes& a, const Attributes& b) {
    return a.values_ == b.values_;
  }
  template <typename H>
  friend H AbslHashValue(H h, const Attributes& a) {
    return H::combine(std::move(h), a.values_);
  }
  // `axis: 1, keepdims: true`.
  std::string ToString() const;

 private:
  std::vector<std::pair<std::string, StaticValue>> values_;
};

}  // namespace cleave

#endif  // CLEAVE_OPS_STATIC_VALUE_H_
