// SignatureSampler: calls of an op, drawn from its declaration: dtypes of each
// class, sizes and packs, attributes, optional and variadic inputs.

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_SIGNATURE_SAMPLER_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_SIGNATURE_SAMPLER_H_

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/lang/ast.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

struct DrawOptions {
  // The float dtype that float-like variables take; others of their class if
  // it is not in it. Nullopt: any.
  std::optional<DType> dtype;
  // All packs get this one shape, and all inputs are given.
  std::optional<Shape> shape;
  // Attributes with a default may take other values.
  bool vary_attributes = true;
  // No extent is 0.
  bool nonempty = false;
};

class SignatureSampler {
 public:
  SignatureSampler(const Item& item, uint64_t seed);

  // Nothing is checked against the declared errors: the op may still reject the
  // call. Unimplemented where the declaration says what no sample is made for.
  absl::StatusOr<SampledCall> Draw(const DrawOptions& options);

  // The values tried for attributes: all defaults, then one attribute at a
  // time. Values that the op rejects are among them.
  absl::StatusOr<std::vector<Attributes>> AttributeVariants();

  // An extent as they are sampled: 0 to 5.
  int64_t DrawExtent();

  // Dtypes tried for `where` variables: of the classes, f64 first.
  std::vector<DType> DTypes() const;

 private:
  struct Environment;
  absl::StatusOr<std::vector<Dim>> DrawAxes(const TypeExpr& type, int element,
                                            const std::string& element_index,
                                            const DrawOptions& options,
                                            Environment& environment);
  absl::StatusOr<int64_t> DrawSize(const Expr& expr, int element,
                                   const DrawOptions& options,
                                   Environment& environment);
  absl::StatusOr<DType> DrawDType(const TypeExpr& type,
                                  const Environment& environment);
  std::vector<StaticValue> Alternatives(const AttributeDecl& attribute) const;
  absl::StatusOr<std::optional<StaticValue>> DrawAttribute(
      const AttributeDecl& attribute, const SampledCall& call,
      const DrawOptions& options, Environment& environment);
  int64_t Uniform(int64_t low, int64_t high);  // inclusive
  bool Chance(double probability);

  const Item& item_;
  std::mt19937_64 random_;
  // Attributes that the rule compares with constants, and those constants.
  std::map<std::string, std::vector<StaticValue>> compared_;
};

// An attribute that is a fraction, in a call whose variables are not all
// floats: there it may have no dtype.
bool HasFractionForInts(const SampledCall& call);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_SIGNATURE_SAMPLER_H_
