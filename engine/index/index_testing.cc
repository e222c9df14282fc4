#include "engine/index/index_testing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/str_join.h"
#include "engine/index/lower_index.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gtest/gtest.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Extents = std::map<std::string, int64_t>;
using Inputs = std::map<const Term*, Tensor>;

int64_t FloorDivide(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

// Evaluates terms one element at a time.
class Oracle {
 public:
  Oracle(const Extents& extents, const Inputs& inputs)
      : extents_(extents), inputs_(inputs) {}

  int64_t ExtentOf(const Dim& dim) const { return *dim.Evaluate(extents_); }

  absl::StatusOr<double> Value(const Term& e) {
    switch (e.kind) {
      case TermKind::kIndex:
        return static_cast<double>(places_.at(e.indices[0].get()));
      case TermKind::kNumber:
        return e.number.ToDouble();
      case TermKind::kDim:
        return static_cast<double>(ExtentOf(e.dim));
      case TermKind::kPointwise:
        return Pointwise(e);
      case TermKind::kRead:
        return Read(e);
      case TermKind::kReduce:
        return Reduced(e);
      default:
        return absl::UnimplementedError("the oracle lacks this term");
    }
  }

  // Calls `body` for all values of the indices, row by row.
  absl::Status ForEach(const std::vector<IndexPtr>& indices,
                       const std::function<absl::Status()>& body,
                       size_t from = 0) {
    if (from == indices.size()) return body();
    const int64_t extent = ExtentOf(indices[from]->extent);
    const IndexVariable* index = indices[from].get();
    const std::map<const IndexVariable*, int64_t> before = places_;
    for (int64_t place = 0; place < extent; ++place) {
      places_[index] = place;
      CLEAVE_RETURN_IF_ERROR(ForEach(indices, body, from + 1));
    }
    places_ = before;
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<double> Pointwise(const Term& e) {
    std::vector<double> v;
    for (const TermPtr& child : e.children) {
      CLEAVE_ASSIGN_OR_RETURN(const double value, Value(*child));
      v.push_back(value);
    }
    const int64_t a = IsInt(ResolvedDType(e)) ? std::llround(v[0]) : 0;
    switch (e.primitive) {
      case Primitive::kAdd:
        return v[0] + v[1];
      case Primitive::kSub:
        return v[0] - v[1];
      case Primitive::kMul:
        return v[0] * v[1];
      case Primitive::kDiv:
        return v[0] / v[1];
      case Primitive::kFloorDiv:
        return FloorDivide(a, std::llround(v[1]));
      case Primitive::kFloorMod:
        return a - FloorDivide(a, std::llround(v[1])) * std::llround(v[1]);
      case Primitive::kMax:
        return std::max(v[0], v[1]);
      case Primitive::kMin:
        return std::min(v[0], v[1]);
      case Primitive::kNeg:
        return -v[0];
      case Primitive::kAbs:
        return std::abs(v[0]);
      case Primitive::kFloor:
        return std::floor(v[0]);
      case Primitive::kConvert:
        return v[0];
      case Primitive::kSelect:
        return v[0] != 0 ? v[1] : v[2];
      case Primitive::kEq:
        return v[0] == v[1];
      case Primitive::kNe:
        return v[0] != v[1];
      case Primitive::kLt:
        return v[0] < v[1];
      case Primitive::kLe:
        return v[0] <= v[1];
      case Primitive::kGt:
        return v[0] > v[1];
      case Primitive::kGe:
        return v[0] >= v[1];
      case Primitive::kAnd:
        return v[0] != 0 && v[1] != 0;
      case Primitive::kOr:
        return v[0] != 0 || v[1] != 0;
      case Primitive::kNot:
        return v[0] == 0;
      default:
        return absl::UnimplementedError("the oracle lacks this primitive");
    }
  }

  absl::StatusOr<double> Read(const Term& read) {
    const Term& array = *read.children[0];
    std::vector<int64_t> places;
    bool in_range = true;
    for (size_t d = 0; d + 1 < read.children.size(); ++d) {
      CLEAVE_ASSIGN_OR_RETURN(const double place, Value(*read.children[d + 1]));
      places.push_back(std::llround(place));
      in_range = in_range && places.back() >= 0 &&
                 places.back() < ExtentOf(array.shape[d]);
    }
    if (!in_range) {
      if (read.fill != nullptr) return Value(*read.fill);
      return absl::OutOfRangeError("a read is out of range");
    }
    if (array.kind == TermKind::kValue) {
      int64_t offset = 0;
      const Tensor& tensor = inputs_.at(&array);
      for (size_t d = 0; d < places.size(); ++d) {
        offset = offset * tensor.shape()[d] + places[d];
      }
      return tensor.GetDouble(offset);
    }
    CLEAVE_CHECK(array.kind == TermKind::kComprehension) << "unknown array";
    // Closed: only its own indices matter.
    std::map<const IndexVariable*, int64_t> own;
    for (size_t d = 0; d < places.size(); ++d) {
      own[array.indices[d].get()] = places[d];
    }
    std::swap(own, places_);
    absl::StatusOr<double> value = Value(*array.children[0]);
    std::swap(own, places_);
    return value;
  }

  absl::StatusOr<double> Reduced(const Term& reduce) {
    const Reduction r = reduce.reduction;
    const bool arg = r == Reduction::kArgmax || r == Reduction::kArgmin;
    const bool max = r == Reduction::kMax || r == Reduction::kArgmax;
    const DType dtype = ResolvedDType(*reduce.children[0]);
    double lowest = -std::numeric_limits<double>::infinity();
    double highest = -lowest;
    if (IsInt(dtype)) {
      highest = std::exp2(8 * ByteSize(dtype) - (IsSigned(dtype) ? 1 : 0)) - 1;
      lowest = IsSigned(dtype) ? -highest - 1 : 0;
    }
    double value = 0;
    if (r == Reduction::kProd || r == Reduction::kAll) value = 1;
    if (r == Reduction::kMax) value = lowest;
    if (r == Reduction::kMin) value = highest;
    int64_t number = 0;
    int64_t best = -1;
    CLEAVE_RETURN_IF_ERROR(ForEach(reduce.indices, [&]() -> absl::Status {
      const int64_t here = number++;
      if (reduce.children.size() > 1) {
        CLEAVE_ASSIGN_OR_RETURN(const double c, Value(*reduce.children[1]));
        if (c == 0) return absl::OkStatus();
      }
      CLEAVE_ASSIGN_OR_RETURN(const double e, Value(*reduce.children[0]));
      const bool nan_before = best >= 0 && std::isnan(value);
      switch (r) {
        case Reduction::kSum:
          value += e;
          break;
        case Reduction::kProd:
          value *= e;
          break;
        case Reduction::kAny:
          value = value != 0 || e != 0;
          break;
        case Reduction::kAll:
          value = value != 0 && e != 0;
          break;
        default:
          if (nan_before) break;
          if ((arg && best < 0) || std::isnan(e) ||
              (max ? e > value : e < value)) {
            value = e;
            best = here;
          }
      }
      return absl::OkStatus();
    }));
    if (!arg) return value;
    if (best < 0) return absl::OutOfRangeError("argmax of nothing");
    return static_cast<double>(best);
  }

  const Extents& extents_;
  const Inputs& inputs_;
  std::map<const IndexVariable*, int64_t> places_;
};

class TestLowering : public TermLowering {
 public:
  explicit TestLowering(std::shared_ptr<Context> context)
      : builder_(std::move(context)) {}

  GraphBuilder& builder() override { return builder_; }

  absl::StatusOr<Value> Lower(const TermPtr& array) override {
    if (array->kind == TermKind::kValue) return array->value;
    CLEAVE_CHECK(array->kind == TermKind::kComprehension) << "unknown array";
    const auto it = done_.find(array.get());
    if (it != done_.end()) return it->second;
    CLEAVE_ASSIGN_OR_RETURN(const Value value,
                            LowerComprehension(*array, *this));
    done_[array.get()] = value;
    return value;
  }

  absl::StatusOr<Value> CallElementwise(
      const Term& call, absl::Span<const Value> arguments) override {
    return absl::UnimplementedError("no composite ops in this test");
  }

 private:
  GraphBuilder builder_;
  std::map<const Term*, Value> done_;
};

Elem Binary(Primitive primitive, const Elem& a, const Elem& b) {
  return {PointwiseTerm(primitive, a.dtype(), {a.term, b.term})};
}

Elem Compared(Primitive primitive, const Elem& a, const Elem& b) {
  return {PointwiseTerm(primitive, DType::kBool, {a.term, b.term})};
}

std::vector<IndexPtr> Variables(const std::vector<Index>& indices) {
  std::vector<IndexPtr> variables;
  for (const Index& index : indices) variables.push_back(index.index);
  return variables;
}

// A term of these parts, which bind `indices`.
TermPtr Binder(TermKind kind, const std::vector<Index>& indices,
               std::vector<TermPtr> children, Term term) {
  term.kind = kind;
  term.indices = Variables(indices);
  std::vector<const IndexVariable*> free;
  for (const TermPtr& child : children) {
    for (const IndexVariable* v : child->free) {
      const bool bound =
          std::any_of(term.indices.begin(), term.indices.end(),
                      [v](const IndexPtr& own) { return own.get() == v; });
      if (!bound) free.push_back(v);
    }
  }
  std::sort(free.begin(), free.end());
  free.erase(std::unique(free.begin(), free.end()), free.end());
  term.free = std::move(free);
  term.children = std::move(children);
  return std::make_shared<const Term>(std::move(term));
}

}  // namespace

Elem Elem::Or(const Elem& fill) const {
  CLEAVE_CHECK(term->kind == TermKind::kRead) << "only reads are filled";
  Term read = *term;
  read.fill = fill.term;
  read.free.insert(read.free.end(), fill.term->free.begin(),
                   fill.term->free.end());
  std::sort(read.free.begin(), read.free.end());
  read.free.erase(std::unique(read.free.begin(), read.free.end()),
                  read.free.end());
  return {std::make_shared<const Term>(std::move(read))};
}

Elem Elem::Or(double fill) const { return Or(Num(fill, dtype())); }

Index::Index(const std::string& name, const Dim& extent)
    : index(
          std::make_shared<const IndexVariable>(IndexVariable{name, extent})) {
  term = IndexTerm(index);
}

Elem Array::Read(const std::vector<Elem>& indices) const {
  CLEAVE_CHECK(indices.size() == term->shape.size()) << "one index per axis";
  Term read;
  read.dtype = term->dtype;
  std::vector<TermPtr> children = {term};
  for (const Elem& index : indices) children.push_back(index.term);
  return {Binder(TermKind::kRead, {}, std::move(children), std::move(read))};
}

Elem Num(double value, DType dtype) {
  return {NumberTerm(Exact::FromDouble(value), dtype)};
}

Elem Size(const Dim& dim, DType dtype) { return {DimTerm(dim, dtype)}; }

Elem Convert(const Elem& a, DType dtype) {
  return {ConvertTerm(a.term, dtype)};
}

Elem Select(const Elem& c, const Elem& a, const Elem& b) {
  return {
      PointwiseTerm(Primitive::kSelect, a.dtype(), {c.term, a.term, b.term})};
}

Elem Apply(Primitive primitive, const Elem& a) {
  return {PointwiseTerm(primitive, a.dtype(), {a.term})};
}

Elem Reduce(Reduction reduction, const std::vector<Index>& indices,
            const Elem& element, const std::optional<Elem>& condition) {
  Term reduce;
  reduce.reduction = reduction;
  const bool arg =
      reduction == Reduction::kArgmax || reduction == Reduction::kArgmin;
  reduce.dtype = arg ? DTypeVariable::Known(DType::kI64) : element.term->dtype;
  std::vector<TermPtr> children = {element.term};
  if (condition.has_value()) children.push_back(condition->term);
  return {Binder(TermKind::kReduce, indices, std::move(children),
                 std::move(reduce))};
}

Array Comprehension(const std::vector<Index>& indices, const Elem& element) {
  Term comprehension;
  comprehension.dtype = element.term->dtype;
  for (const Index& index : indices) {
    comprehension.shape.push_back(index.index->extent);
  }
  return {Binder(TermKind::kComprehension, indices, {element.term},
                 std::move(comprehension))};
}

#define CLEAVE_ELEM_OPERATOR(op, function, primitive)  \
  Elem operator op(const Elem& a, const Elem& b) {     \
    return function(primitive, a, b);                  \
  }                                                    \
  Elem operator op(const Elem& a, const Dim& b) {      \
    return function(primitive, a, Size(b, a.dtype())); \
  }                                                    \
  Elem operator op(const Elem& a, int b) {             \
    return function(primitive, a, Num(b, a.dtype()));  \
  }
CLEAVE_ELEM_OPERATOR(+, Binary, Primitive::kAdd)
CLEAVE_ELEM_OPERATOR(-, Binary, Primitive::kSub)
CLEAVE_ELEM_OPERATOR(*, Binary, Primitive::kMul)
CLEAVE_ELEM_OPERATOR(/, Binary, Primitive::kFloorDiv)
CLEAVE_ELEM_OPERATOR(%, Binary, Primitive::kFloorMod)
CLEAVE_ELEM_OPERATOR(==, Compared, Primitive::kEq)
CLEAVE_ELEM_OPERATOR(!=, Compared, Primitive::kNe)
CLEAVE_ELEM_OPERATOR(<, Compared, Primitive::kLt)
CLEAVE_ELEM_OPERATOR(<=, Compared, Primitive::kLe)
CLEAVE_ELEM_OPERATOR(>, Compared, Primitive::kGt)
CLEAVE_ELEM_OPERATOR(>=, Compared, Primitive::kGe)
#undef CLEAVE_ELEM_OPERATOR

Elem operator&&(const Elem& a, const Elem& b) {
  return Compared(Primitive::kAnd, a, b);
}
Elem operator||(const Elem& a, const Elem& b) {
  return Compared(Primitive::kOr, a, b);
}

struct IndexTest::Impl {
  Impl(bool symbolic, uint32_t seed)
      : symbolic(symbolic),
        random(seed),
        lowering(std::make_unique<TestLowering>(std::make_shared<Context>())) {}

  bool symbolic;
  std::mt19937 random;
  std::unique_ptr<TestLowering> lowering;
  Extents extents;
  Inputs inputs;
  std::vector<TermPtr> terms;   // of the inputs, in order
  std::vector<Tensor> tensors;  // of the inputs, in order
  Graph graph;                  // of the last run
};

IndexTest::IndexTest(bool symbolic, uint32_t seed)
    : impl_(std::make_unique<Impl>(symbolic, seed)) {}
IndexTest::~IndexTest() = default;

Dim IndexTest::Extent(const std::string& name, int64_t value) {
  if (!impl_->symbolic) return value;
  impl_->extents[name] = value;
  return Dim::Variable(name);
}

int64_t IndexTest::Random(int64_t least, int64_t greatest) {
  const uint64_t count = static_cast<uint64_t>(greatest - least + 1);
  return least + static_cast<int64_t>(impl_->random() % count);
}

Array IndexTest::Input(const std::string& name, DType dtype, const Shape& shape,
                       int64_t least, int64_t greatest) {
  std::vector<int64_t> extents;
  for (const Dim& dim : shape) {
    extents.push_back(*dim.Evaluate(impl_->extents));
  }
  Tensor tensor(dtype, extents);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetDouble(i, static_cast<double>(Random(least, greatest)));
  }
  return Input(name, shape, tensor);
}

Array IndexTest::Input(const std::string& name, const Shape& shape,
                       Tensor value) {
  Term term;
  term.kind = TermKind::kValue;
  term.dtype = DTypeVariable::Known(value.dtype());
  term.shape = shape;
  term.value = impl_->lowering->builder().Input(name, {value.dtype(), shape});
  const TermPtr result = std::make_shared<const Term>(std::move(term));
  impl_->inputs.emplace(result.get(), value);
  impl_->terms.push_back(result);
  impl_->tensors.push_back(std::move(value));
  return {result};
}

absl::StatusOr<Tensor> IndexTest::Run(const Array& array) {
  CLEAVE_ASSIGN_OR_RETURN(const Value value,
                          impl_->lowering->Lower(array.term));
  // The builder is used up; a test runs once.
  impl_->graph = *std::move(impl_->lowering->builder()).Build({{"y", value}});
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                          Interpret(impl_->graph, impl_->tensors));
  return results[0];
}

absl::StatusOr<Tensor> IndexTest::Expected(const Array& array) {
  Oracle oracle(impl_->extents, impl_->inputs);
  std::vector<int64_t> shape;
  for (const Dim& dim : array.term->shape) {
    shape.push_back(oracle.ExtentOf(dim));
  }
  Tensor result(ResolvedDType(*array.term), shape);
  int64_t place = 0;
  CLEAVE_RETURN_IF_ERROR(
      oracle.ForEach(array.term->indices, [&]() -> absl::Status {
        CLEAVE_ASSIGN_OR_RETURN(const double value,
                                oracle.Value(*array.term->children[0]));
        if (IsInt(result.dtype())) {
          result.SetInt(place++, value >= 0x1p63
                                     ? std::numeric_limits<int64_t>::max()
                                     : static_cast<int64_t>(value));
        } else {
          result.SetDouble(place++, value);
        }
        return absl::OkStatus();
      }));
  return result;
}

void IndexTest::Check(const std::vector<Index>& indices, const Elem& element) {
  Check(Comprehension(indices, element));
}

void IndexTest::Check(const Array& array) {
  const absl::StatusOr<Tensor> expected = Expected(array);
  const absl::StatusOr<Tensor> actual = Run(array);
  const std::string graph = GraphText();
  ASSERT_EQ(expected.ok(), actual.ok())
      << "expected "
      << (expected.ok() ? expected->ToString() : expected.status().ToString())
      << ", got "
      << (actual.ok() ? actual->ToString() : actual.status().ToString()) << "\n"
      << graph;
  if (!expected.ok()) {
    EXPECT_TRUE(actual.status().code() == absl::StatusCode::kOutOfRange ||
                actual.status().code() == absl::StatusCode::kFailedPrecondition)
        << actual.status();
    return;
  }
  ASSERT_EQ(expected->shape(), actual->shape()) << graph;
  ASSERT_EQ(expected->dtype(), actual->dtype()) << graph;
  for (int64_t i = 0; i < expected->size(); ++i) {
    const double a = expected->GetDouble(i);
    const double b = actual->GetDouble(i);
    // Products outgrow what is exact.
    ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)) ||
                std::abs(a - b) <= 1e-12 * std::abs(a))
        << "element " << i << "\nexpected " << expected->ToString()
        << "\ngot      " << actual->ToString() << "\n"
        << graph;
  }
}

std::string IndexTest::Structure() const {
  std::vector<absl::string_view> names;
  for (uint32_t id = 0; id < impl_->graph.size(); ++id) {
    const Primitive primitive = ToPrimitive(impl_->graph.node(Value{id}).op);
    const PrimitiveClass kind = ClassOf(primitive);
    if (kind == PrimitiveClass::kLeaf || kind == PrimitiveClass::kPointwise) {
      continue;
    }
    names.push_back(PrimitiveName(primitive));
  }
  return absl::StrJoin(names, " ");
}

std::string IndexTest::GraphText() const {
  return impl_->graph.context() == nullptr ? "no graph"
                                           : PrintGraph(impl_->graph);
}

}  // namespace cleave
