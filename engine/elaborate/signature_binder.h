// SignatureBinder: one call matched to its declaration. Internal to
// signature.h.

#ifndef CLEAVE_ENGINE_ELABORATE_SIGNATURE_BINDER_H_
#define CLEAVE_ENGINE_ELABORATE_SIGNATURE_BINDER_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/bind/library.h"
#include "engine/elaborate/elaborator.h"
#include "engine/elaborate/rule_value.h"
#include "engine/elaborate/signature.h"
#include "engine/lang/ast.h"

namespace cleave {

// Binds one call, in this order: attributes as given; axes, normalised; sizes,
// packs and dtypes of inputs; the other attributes with their defaults; lets;
// errors; results.
class SignatureBinder {
 public:
  SignatureBinder(const Callable& callable, const GivenArguments& arguments,
                  const BindOptions& options, Elaborator& elaborator)
      : callable_(callable),
        arguments_(arguments),
        options_(options),
        elaborator_(elaborator) {
    call_.callable = &callable;
  }

  absl::StatusOr<BoundCall> Run();

 private:
  // --- arguments, dtypes, errors, results (signature.cc)
  absl::Status Wrong(absl::string_view what) const;
  // Matches arguments to declared names.
  absl::Status Place();
  bool IsDeclared(const std::string& name) const;
  absl::StatusOr<RuleValue> AsInput(const InputDecl& input,
                                    const RuleValue& value);
  const RuleValue* Given(const std::string& name) const;
  // The tensors of an input, with their place in a variadic one.
  static std::vector<std::pair<int, TermPtr>> Tensors(const RuleValue& value);
  // Replaces a tensor of an input.
  void Replace(size_t input, int place, TermPtr term);
  bool IsDTypeVariable(const std::string& name) const;
  // Dtype variables: one per name, unified with the operands'.
  absl::Status BindDTypes();
  absl::Status UnifyInput(size_t i);
  absl::Status BindInputs();
  // The value of a static input: a number where no axes are declared
  // (`k: i64[]`), else the list of its elements. One element may be given as
  // either.
  absl::Status BindStatic(const InputDecl& input, RuleValue& value);
  absl::Status BindLets();
  absl::Status BindResults();
  // The extent of `new n`.
  Dim NewExtent(const std::string& name) const;
  // Adds the operands, and the node's attributes of layout and of extents known
  // only at run time.
  absl::Status Complete();

  // --- attributes (signature_attributes.cc)
  // Attributes of type dim and dim[]: a size or a pack of that name.
  absl::Status BindSizeAttributes();
  // Axis attributes, normalised: they split the packs of inputs.
  absl::Status BindAxes();
  absl::Status BindAttributes();
  absl::Status BindAttribute(const AttributeDecl& attribute);
  absl::StatusOr<RuleValue> AsList(const AttributeDecl& attribute,
                                   const RuleValue& value);
  absl::StatusOr<RuleValue> AsType(const AttributeDecl& attribute,
                                   const RuleValue& value);
  // The rank of an input, -1 if it is absent.
  int RankOf(const std::string& name) const;

  // --- shapes of inputs (signature_shapes.cc)
  // One axis of a declared type: what it wants, as far as it is bound.
  struct Wanted {
    const AxisExpr* axis;
    std::string single;          // a name to bind
    std::string pack;            // a name to bind
    std::optional<Shape> known;  // what it evaluates to
    int length = -1;
    // Without any of them: computed from names that the same shape binds.
  };

  absl::Status BindShapes();
  void PrepareIndexedNames(const InputDecl& input, size_t count);
  // False if packs are not settled yet.
  absl::StatusOr<bool> BindShape(const InputDecl& input, int place,
                                 const Shape& shape);
  // A name, or `n[i]` of a variadic input: (name, whether it is indexed).
  std::optional<std::pair<std::string, bool>> BindableName(
      const Expr& e, const InputDecl& input) const;
  // Whether the sizes in `e` are bound, or will be by axes of `input`.
  bool AllBound(const Expr& e, const InputDecl* input = nullptr) const;
  // Whether some input binds this name.
  bool IsSizeName(const std::string& name) const;
  static int OpenPacks(const std::vector<Wanted>& wanted);
  // Finds the lengths of packs: `n@axis` says where the axis stands, so that
  // one pack on either side of it can be open.
  bool Settle(std::vector<Wanted>& wanted, int rank) const;
  // Tells index notation how the axes of a tensor were declared.
  void WriteGroups(size_t i);
  // Lengths of the packs of a declared type, now that all names are bound.
  std::vector<AxisGroup> GroupsOf(const TypeExpr& type, int place);

  const Callable& callable_;
  const GivenArguments& arguments_;
  const BindOptions& options_;
  Elaborator& elaborator_;
  BoundCall call_;
  // Per input, what was given: a term, a list of terms, absent, or static.
  std::vector<RuleValue> inputs_;
  std::map<std::string, RuleValue> given_;
  std::map<std::string, RuleList> indexed_;  // `n[i]`, `S[i]` of variadics
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_ELABORATE_SIGNATURE_BINDER_H_
