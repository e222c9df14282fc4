// Random element terms against nested loops: what no table of expressions
// thinks of.

#include <optional>
#include <vector>

#include "engine/index/index_testing.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

constexpr DType kF = DType::kF64;
constexpr DType kI = DType::kI64;
constexpr int kSeeds = 800;

// Makes elements over the indices in scope. Extents are at least 1: what does
// not depend on an index is evaluated even where that index has no values.
class RandomElements {
 public:
  explicit RandomElements(IndexTest& t) : t_(t) {
    for (const char* name : {"a", "b", "c"}) {
      extents_.push_back(t_.Extent(name, t_.Random(1, 4)));
    }
    const Dim a = extents_[0], b = extents_[1], c = extents_[2];
    arrays_ = {t_.Input("x", kF, {a, b, c}), t_.Input("y", kF, {b, a}),
               t_.Input("z", kF, {c}), t_.Input("w", kF, {a * 2 + 1, 6})};
    places_ = {t_.Input("p", kI, {a}, -1, 4), t_.Input("q", kI, {b, c}, 0, 3)};
    for (int i = 0; i < 3; ++i) {
      Index index("i", AnyExtent());
      indices_.push_back(index);
      scope_.push_back(index);
    }
  }

  const std::vector<Index>& indices() const { return indices_; }

  // A number.
  Elem Number(int depth) {
    switch (t_.Random(0, depth > 0 ? 6 : 1)) {
      case 0:
        return Convert(Place(0), kF);
      case 1:
        return Num(static_cast<double>(t_.Random(-2, 2)), kF);
      case 2:
        return Number(depth - 1) + Number(depth - 1);
      case 3:
        return Number(depth - 1) * Number(depth - 1);
      case 4:
        return Select(Condition(depth - 1), Number(depth - 1),
                      Number(depth - 1));
      case 5:
        return ReadOf(arrays_[t_.Random(0, 3)], depth - 1, kF);
      default:
        return Reduction(depth - 1);
    }
  }

 private:
  Dim AnyExtent() {
    const int64_t which = t_.Random(0, 4);
    if (which < 3) return extents_[which];
    if (which == 3) return extents_[0] * 2;
    return t_.Random(1, 6);
  }

  Index AnyIndex() {
    return scope_[t_.Random(0, static_cast<int64_t>(scope_.size()) - 1)];
  }

  // An integer, most often affine.
  Elem Place(int depth) {
    switch (t_.Random(0, depth > 0 ? 8 : 2)) {
      case 0:
      case 1:
        return AnyIndex();
      case 2:
        return Num(static_cast<double>(t_.Random(-1, 3)), kI);
      case 3:
        return Place(depth - 1) + Place(depth - 1);
      case 4:
        return AnyIndex() * static_cast<int>(t_.Random(-2, 3)) +
               Place(depth - 1);
      case 5:
        return AnyIndex() / static_cast<int>(t_.Random(1, 3));
      case 6:
        return AnyIndex() % static_cast<int>(t_.Random(1, 3));
      case 7:
        return Place(depth - 1) - Size(extents_[t_.Random(0, 2)]);
      default:
        return ReadOf(places_[t_.Random(0, 1)], depth - 1, kI);
    }
  }

  Elem ReadOf(const Array& array, int depth, DType dtype) {
    std::vector<Elem> at;
    for (size_t d = 0; d < array.term->shape.size(); ++d) {
      at.push_back(Place(depth));
    }
    const Elem read = array.Read(at);
    switch (t_.Random(in_condition_ ? 1 : 0, 7)) {
      case 0:
        return read;  // often an error
      case 1:
        return read.Or(dtype == kI ? Place(0) : Number(0));
      default:
        return read.Or(static_cast<double>(t_.Random(-1, 1)));
    }
  }

  // Without errors: a condition that is decided leaves others unevaluated.
  Elem Condition(int depth) {
    const bool outer = in_condition_;
    in_condition_ = true;
    const Elem condition = AnyCondition(depth);
    in_condition_ = outer;
    return condition;
  }

  Elem AnyCondition(int depth) {
    const Elem a = Place(depth), b = Place(depth);
    switch (t_.Random(0, depth > 0 ? 6 : 4)) {
      case 0:
        return a <= b;
      case 1:
        return a < b;
      case 2:
        return a == b;
      case 3:
        return a >= b;
      case 4:
        return a != b;
      case 5:
        return Condition(depth - 1) && Condition(depth - 1);
      default:
        return Condition(depth - 1) || Condition(depth - 1);
    }
  }

  // A read at indices, or of windows: p * s + k * d - q.
  Elem PlainRead() {
    const Array& array = arrays_[t_.Random(0, 3)];
    std::vector<Elem> at;
    for (size_t d = 0; d < array.term->shape.size(); ++d) {
      Elem place = AnyIndex();
      if (t_.Random(0, 2) == 0) {
        place = place * static_cast<int>(t_.Random(1, 2)) +
                scope_.back() * static_cast<int>(t_.Random(1, 2)) -
                static_cast<int>(t_.Random(0, 2));
      }
      at.push_back(place);
    }
    return array.Read(at).Or(0);
  }

  // A reduction: as often one that has a lowering of its own as any other.
  Elem Reduction(int depth) {
    const Index outer = AnyIndex();
    std::vector<Index> reduced;
    const int64_t count = t_.Random(1, 2);
    for (int64_t i = 0; i < count; ++i) {
      reduced.emplace_back(
          "j", t_.Random(0, 1) == 0 ? outer.index->extent : AnyExtent());
      scope_.push_back(reduced.back());
    }
    const Index j = reduced.back();
    const cleave::Reduction kinds[] = {
        cleave::Reduction::kSum,    cleave::Reduction::kProd,
        cleave::Reduction::kMax,    cleave::Reduction::kMin,
        cleave::Reduction::kArgmax, cleave::Reduction::kArgmin};
    cleave::Reduction kind = kinds[t_.Random(0, 5)];
    std::optional<Elem> element;
    std::optional<Elem> condition;
    switch (t_.Random(0, 4)) {
      case 0:
        kind = cleave::Reduction::kSum;
        element = PlainRead() * PlainRead();
        break;
      case 1: {
        const Elem orders[] = {j <= outer, j < outer, outer <= j, outer < j};
        condition = orders[t_.Random(0, 3)];
        break;
      }
      case 2:
        condition = places_[0](j).Or(0) == outer;
        break;
      case 3:
        condition = Condition(depth);
        break;
      default:
        break;
    }
    if (condition.has_value() && t_.Random(0, 2) == 0) {
      condition = *condition && Condition(depth);
    }
    if (!element.has_value()) element = Number(depth);
    scope_.resize(scope_.size() - reduced.size(), outer);
    const Elem result = Reduce(kind, reduced, *element, condition);
    return result.dtype() == kF ? result : Convert(result, kF);
  }

  IndexTest& t_;
  std::vector<Dim> extents_;
  std::vector<Array> arrays_;
  std::vector<Array> places_;
  std::vector<Index> indices_;
  std::vector<Index> scope_;
  bool in_condition_ = false;
};

TEST(RandomElement, IsTheSameByLoops) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    IndexTest t(/*symbolic=*/seed % 2 == 0, seed);
    RandomElements elements(t);
    t.Check(elements.indices(), elements.Number(4));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace cleave
