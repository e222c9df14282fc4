// A model of eager tensors, by NumPy's rules and with no graph: storages as
// arrays of numbers, views as lists of places in them, and for ops that wait
// whether they depend on one that fails. The shadow of fuzz_eager_test.cc.

#ifndef CLEAVE_TESTING_FUZZ_EAGER_MODEL_H_
#define CLEAVE_TESTING_FUZZ_EAGER_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/eager/tensor.h"
#include "ops/dtype.h"

namespace cleave::functional {

using Extents = std::vector<int64_t>;

// One value of a storage; `fails` if it depends on an op that fails when it
// runs. `may_pass` if a simplification may find that it does not depend on that
// op at all: x - x of integers is 0, whatever x is.
struct ModelValue {
  std::vector<double> numbers;
  bool fails = false;
  bool may_pass = false;
};

// The values since the last run, the present one last.
struct ModelStorage {
  std::vector<ModelValue> values;
  const ModelValue& now() const { return values.back(); }
};

// A view of a storage: element i stands at places[i].
struct ModelTensor {
  std::shared_ptr<ModelStorage> storage;
  DType dtype = DType::kF32;
  Extents shape;
  std::vector<int64_t> places;
  bool is_broadcast = false;

  static ModelTensor Make(DType dtype, Extents shape, ModelValue value);
  ModelValue Read() const;
};

int64_t CountOf(const Extents& shape);
// NumPy's right-aligned broadcasting; nullopt where shapes do not fit.
std::optional<Extents> BroadcastOf(const Extents& a, const Extents& b);

// Views; nullopt for a mistake.
std::optional<ModelTensor> BroadcastTo(const ModelTensor& x,
                                       const Extents& shape);
std::optional<ModelTensor> Reshape(const ModelTensor& x, Extents shape);
std::optional<ModelTensor> Transpose(const ModelTensor& x,
                                     const std::vector<int>& axes);
std::optional<ModelTensor> Reverse(const ModelTensor& x,
                                   const std::vector<int>& axes);

struct ModelIndex {
  enum class Kind { kElement, kSlice, kEllipsis, kNewAxis };
  Kind kind = Kind::kElement;
  int64_t element = 0;
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  int64_t step = 1;

  Index ToIndex() const;
};
std::optional<ModelTensor> At(const ModelTensor& x,
                              const std::vector<ModelIndex>& indices);

// The elements of x + y, x - y or x * y; nullopt where types do not fit.
std::optional<ModelTensor> Combine(char op, const ModelTensor& x,
                                   const ModelTensor& y);
// x = y, or x = x op y for an op other than '='. False where it is refused.
// Where ops run at once, one that fails writes nothing.
bool Write(char op, const ModelTensor& x, const ModelTensor& y, bool at_once);
enum class Settled { kValue, kLost, kUnknown };
// The outcome of ops that waited; kUnknown if a value of the storage may pass.
Settled Settle(ModelStorage& storage);

}  // namespace cleave::functional

#endif  // CLEAVE_TESTING_FUZZ_EAGER_MODEL_H_
