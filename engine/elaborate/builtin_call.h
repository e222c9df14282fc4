// BuiltinCall: what a call of a builtin is given, matched to its signature in
// engine/bind/builtin.def. Internal to the elaborator.

#ifndef CLEAVE_ENGINE_ELABORATE_BUILTIN_CALL_H_
#define CLEAVE_ENGINE_ELABORATE_BUILTIN_CALL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/bind/builtins.h"
#include "engine/elaborate/elaborator.h"

namespace cleave {

// Each function takes what it names off the arguments; a mistake is a
// diagnostic at the call. Attributes are among those of the signature.
class BuiltinCall {
 public:
  using Result = Elaborator::Result;

  BuiltinCall(const Builtin& builtin, const GivenArguments& arguments,
              SourceRange range, absl::string_view tie, Elaborator& elaborator)
      : name(builtin.name),
        builtin_(builtin),
        arguments_(arguments),
        range_(range),
        tie_(tie),
        elaborator_(elaborator) {}

  // Whether what is given is in the signature.
  absl::Status Check() const;

  const std::vector<RuleValue>& operands() const {
    return arguments_.positional;
  }
  absl::StatusOr<TermPtr> Tensor(size_t operand);
  absl::StatusOr<RuleList> List(size_t operand);
  // A list of lists of sizes.
  absl::StatusOr<std::vector<Shape>> Shapes(size_t operand);
  // The places in a list of so many elements that a number or list names, from
  // its end where they are negative.
  absl::StatusOr<std::vector<int>> Places(size_t operand, size_t count);

  // Whether an attribute is given.
  bool Has(absl::string_view key) const;
  absl::StatusOr<RuleValue> Attribute(absl::string_view key) const;
  absl::StatusOr<Dim> Size(absl::string_view key) const;
  absl::StatusOr<Shape> Dims(absl::string_view key) const;
  // One size, or one for each of `count` axes.
  absl::StatusOr<Shape> DimsPerAxis(absl::string_view key, size_t count) const;
  // Normalised axes of a tensor.
  absl::StatusOr<std::vector<int>> Axes(absl::string_view key, int rank) const;
  absl::StatusOr<int> Axis(int rank) const;
  absl::StatusOr<bool> Flag(absl::string_view key) const;
  absl::StatusOr<DTypePtr> DTypeOf(absl::string_view key) const;
  absl::StatusOr<DType> KnownDType(absl::string_view key) const;
  // `@tie(first)` behind the call; "even".
  std::string tie() const;

  TermMaker& terms() { return elaborator_.terms(); }
  absl::StatusOr<TermPtr> ToTerm(const RuleValue& value);
  // `a op b` of static numbers.
  Result Combine(absl::string_view op, const RuleValue& a, const RuleValue& b);
  absl::Status UnifyDTypes(const std::vector<TermPtr>& terms);
  // An extent that is known only when the graph runs.
  Dim NewExtent();

  // "`conv` what".
  absl::Status Wrong(absl::string_view what) const;
  absl::Status At(const absl::Status& status,
                  DiagnosticKind kind = DiagnosticKind::kShape) const;
  Result Done(absl::StatusOr<TermPtr> term) const;

  const std::string name;

 private:
  const Builtin& builtin_;
  const GivenArguments& arguments_;
  SourceRange range_;
  absl::string_view tie_;
  Elaborator& elaborator_;
};

using BuiltinFunction = BuiltinCall::Result (*)(BuiltinCall& call);

// `sum` of a list: of tensors it is an op.
BuiltinCall::Result SumOfList(BuiltinCall& call);

// Null where there is none of that name.
BuiltinFunction FindStaticBuiltin(absl::string_view name);
BuiltinFunction FindTensorBuiltin(absl::string_view name);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_ELABORATE_BUILTIN_CALL_H_
