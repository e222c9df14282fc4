// SignatureSampler: calls of an op, drawn from its declaration: dtypes of each
// class, sizes and packs, attributes, optional and variadic inputs.

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_SIGNATURE_SAMPLER_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_SIGNATURE_SAMPLER_H_

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/lang/ast.h"
#include "testing/check/samples/attribute_values.h"
#include "testing/check/samples/large_axes.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

struct DrawOptions {
  // The dtype that variables take whose class it is in; others take any.
  // Nullopt: all take any.
  std::optional<DType> dtype;
  // All packs get this one shape, and all inputs are given.
  std::optional<Shape> shape;
  // Attributes with a default may take other values.
  bool vary_attributes = true;
  // No extent is 0.
  bool nonempty = false;
  // A choice for each factor (FactorSizes); nullopt: chosen at random.
  std::optional<std::vector<int>> row;
  // Extents of different names differ, as far as there are enough of them.
  bool distinct = false;
  // Sizes and extents of packs are mostly one: for an op that refuses most of
  // what differs (heads that divide heads, a mask that broadcasts).
  bool alike = false;
  // All other extents are then small.
  std::optional<LargeAxis> large;
  // The chance of each other size, and of each integer among the attributes, to
  // be as large: an op may refuse n > m, or a kernel beyond its input.
  double large_chance = 0;
  // Sizes are from 6 to 13, and integers of lists that must be given up to 5:
  // kernels of more than a few elements, and several windows side by side.
  bool middle = false;
  // The names that are drawn anew; all else, but for what `row` chooses, is
  // that of the last call. Nullopt: all is.
  std::optional<std::set<std::string>> redrawn;
};

class SignatureSampler {
 public:
  SignatureSampler(const Item& item, uint64_t seed);

  // Nothing is checked against the declared errors: the op may still reject the
  // call. Unimplemented where the declaration says what no sample is made for.
  absl::StatusOr<SampledCall> Draw(const DrawOptions& options);

  // The factors of a call: attributes that are one value, inputs that may be
  // absent, ranks of packs beside other axes (A and B of T[A.., n, B..]), and
  // of inputs that may be absent.
  // How many choices each has: the first is the default (the input is there),
  // and values that the op rejects are among the others.
  std::vector<int> FactorSizes() const;

  // The factors that decide on some names, and whether nothing else does.
  struct Blame {
    std::vector<int> factors;
    bool alone = false;
  };
  // Has the next call of `options` another value of one of `names`, since the
  // op refuses those of the last one: another choice in the row, but at the
  // factors in `kept`, or a name that is drawn anew. False where the choices at
  // `kept`, and what is given, decide on all of `names`.
  bool Move(const std::set<std::string>& names, const std::vector<int>& kept,
            DrawOptions& options, Blame& blame);

  // Whether attributes and inputs are the default in a row of choices.
  bool IsDefaults(const std::vector<int>& row) const;

  // The sizes of those names are these in all calls.
  void FixSizes(std::map<std::string, int64_t> sizes) {
    fixed_sizes_ = std::move(sizes);
  }

  // An extent as they are sampled: 0 to 5.
  int64_t DrawExtent();

  // Dtypes tried for `where` variables, all that their classes have but complex
  // ones, f64 first. Where there is no variable: the floats among the inputs'.
  std::vector<DType> DTypes() const;

  std::mt19937_64& random() { return random_; }

 private:
  struct Environment;
  enum class AxesChoice { kDefault, kAll, kFirst, kLast };
  enum class FactorKind { kAttribute, kInput, kPackRank };
  struct Factor {
    std::string name;
    FactorKind kind = FactorKind::kAttribute;
    // An attribute's; nullopt: it is not given.
    std::vector<std::optional<StaticValue>> values;
    // A list of axes has these instead of values: which of the axes there are.
    std::vector<AxesChoice> axes;
  };
  void AddPackRanks();
  // The choice of `options.row` for a factor; nullopt where it is none, or
  // there is no row.
  std::optional<int> ChoiceOf(const std::string& name, FactorKind kind,
                              const DrawOptions& options) const;
  // The rank that `options.row` gives a pack; nullopt as above.
  std::optional<int64_t> PackRankOf(const std::string& name,
                                    const DrawOptions& options) const;
  // A pack that is met first; `has_pack`: its type has another one before it.
  Shape NewPack(const std::string& name, bool has_pack, bool is_further,
                const DrawOptions& options, Environment& environment);
  // Who decides on a name that is no factor: the draw, the options, or
  // nothing, as where it is no name of the signature.
  enum class Decided { kDrawn, kGiven, kNothing };
  Decided WhatDecides(const std::string& name,
                      const DrawOptions& options) const;
  // Its value in the last call.
  std::optional<StaticValue> LastAttribute(const std::string& name) const;
  // The axes that packs are made from.
  Shape DrawBase(const DrawOptions& options, Environment& environment);
  absl::StatusOr<std::vector<Dim>> DrawAxes(const TypeExpr& type, int element,
                                            const std::string& element_index,
                                            const DrawOptions& options,
                                            Environment& environment);
  absl::StatusOr<int64_t> DrawSize(const Expr& expr, int element,
                                   const DrawOptions& options,
                                   Environment& environment);
  absl::StatusOr<DType> DrawDType(const TypeExpr& type,
                                  const Environment& environment);
  absl::StatusOr<std::optional<StaticValue>> DrawAttribute(
      const AttributeDecl& attribute, const SampledCall& call,
      const DrawOptions& options, Environment& environment);
  Shape DrawPack(int64_t rank, const DrawOptions& options,
                 Environment& environment);
  // The choice of `options.row` for a list of axes; nullopt as above.
  std::optional<AxesChoice> AxesChoiceOf(const std::string& name,
                                         const DrawOptions& options) const;
  // 2 to 5, none twice in one call as long as there are others.
  int64_t DistinctExtent(Environment& environment);
  int64_t Uniform(int64_t low, int64_t high);  // inclusive
  bool Chance(double probability);
  // 0 to 5, or mostly the one of `options.alike`.
  int64_t DrawExtent(const DrawOptions& options,
                     const Environment& environment);

  const Item& item_;
  std::mt19937_64 random_;
  // Attributes that the rule compares with constants, and those constants.
  const ComparedValues compared_;
  // Sizes that the op's errors want to be constants, and those constants.
  const std::map<std::string, std::vector<int64_t>> required_sizes_;
  // Classes that the rule asks of dtype variables.
  const std::map<std::string, std::vector<DTypeClass>> asked_;
  std::vector<Factor> factors_;
  std::map<std::string, int64_t> fixed_sizes_;
  // The call that was drawn last, and the values of its names.
  SampledCall last_;
  std::shared_ptr<const Environment> last_environment_;
};

// An attribute that is no number of an integer dtype which a variable of the
// call is, a fraction or -3 for u8: it may be a constant of that dtype.
bool HasNumberThatIntsLack(const SampledCall& call);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_SIGNATURE_SAMPLER_H_
