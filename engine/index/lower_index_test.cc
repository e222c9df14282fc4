// Index notation against nested loops, over expressions of real ops at random
// extents, 0 and 1 among them, known and symbolic.

#include "engine/index/lower_index.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "engine/index/index_testing.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

constexpr DType kF = DType::kF64;
constexpr int kRuns = 40;

// An expression: makes its inputs and checks itself.
struct Expression {
  const char* name;
  std::function<void(IndexTest&)> check;
};

// An extent, 0 and 1 among them.
Dim AnyExtent(IndexTest& t, const std::string& name, int64_t least = 0) {
  return t.Extent(name, t.Random(least, 4));
}

void LayerNorm(IndexTest& t) {
  const Dim b = AnyExtent(t, "b"), n = AnyExtent(t, "n"), m = AnyExtent(t, "m");
  const Array x = t.Input("x", kF, {b, n, m}), mean = t.Input("mean", kF, {b});
  const Array r = t.Input("r", kF, {b}), w = t.Input("w", kF, {n, m});
  const Index i("i", b), j("j", n), k("k", m);
  t.Check({i, j, k}, (x(i, j, k) - mean(i)) * r(i) * w(j, k) + w(j, k));
}

void SquaredDeviation(IndexTest& t) {
  const Dim b = AnyExtent(t, "b"), n = AnyExtent(t, "n");
  const Array x = t.Input("x", kF, {b, n}), mean = t.Input("mean", kF, {b});
  const Index i("i", b), j("j", n);
  const Elem d = x(i, j) - mean(i);
  t.Check({i}, Sum({j}, d * d));
}

void Permutation(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), b = AnyExtent(t, "b"), c = AnyExtent(t, "c");
  const Array x = t.Input("x", kF, {a, b, c});
  const Index i("i", a), j("j", b), k("k", c);
  t.Check({k, i, j}, x(i, j, k));
}

void Diagonal(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), b = AnyExtent(t, "b");
  const Array x = t.Input("x", kF, {a, b, a, a});
  const Index i("i", a), j("j", b);
  t.Check({i, j}, x(i, j, i, i));
}

void Column(IndexTest& t) {
  const Dim a = AnyExtent(t, "a");
  const Array x = t.Input("x", kF, {a, 3});
  const Index i("i", a);
  t.Check({i}, x(i, 2));
}

void OffsetAndStride(IndexTest& t) {
  const Dim a = AnyExtent(t, "a");
  const Array x = t.Input("x", kF, {a * 3 + 2, a});
  const Index i("i", a), j("j", a);
  t.Check({i, j}, x(i * 3 + 2, Size(a) - 1 - j));
}

void PastTheEnds(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), b = AnyExtent(t, "b");
  const Array x = t.Input("x", kF, {a, b});
  const Index i("i", a + 3), j("j", b * 2);
  t.Check({i, j}, x(i - 1, j * 2 - 3).Or(7));
}

void FillThatVaries(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), b = AnyExtent(t, "b");
  const Array x = t.Input("x", kF, {a}), y = t.Input("y", kF, {b});
  const Index i("i", a + b);
  t.Check({i}, y(i - a).Or(x(i).Or(0)));
}

void UncheckedRead(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), b = AnyExtent(t, "b");
  const Array x = t.Input("x", kF, {a}), y = t.Input("y", kF, {b});
  const Index i("i", b);
  t.Check({i}, x(i) * y(i));  // an error unless b <= a
}

void TopK(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), n = AnyExtent(t, "n", 2);
  const Array x = t.Input("x", kF, {a, n});
  const Index i("i", a), k("k", 2);
  t.Check({i, k}, x(i, k));
}

void Embedding(IndexTest& t) {
  const Dim v = AnyExtent(t, "v", 1), d = AnyExtent(t, "d");
  const Dim b = AnyExtent(t, "b"), l = AnyExtent(t, "l");
  const int64_t size = t.Random(1, 3);
  const Array w = t.Input("w", kF, {v + 3, d});
  const Array at = t.Input("at", DType::kI32, {b, l}, 0, size);
  const Index i("i", b), j("j", l), k("k", d);
  t.Check({i, j, k}, w(Convert(at(i, j), DType::kI64), k));
}

void GatherThatFails(IndexTest& t) {
  const Dim v = AnyExtent(t, "v"), b = AnyExtent(t, "b");
  const Array w = t.Input("w", kF, {v});
  const Array at = t.Input("at", DType::kI64, {b}, -1, 4);
  const Index i("i", b);
  t.Check({i}, w(at(i)));
}

void GatherWithFill(IndexTest& t) {
  const Dim v = AnyExtent(t, "v"), b = AnyExtent(t, "b");
  const Array w = t.Input("w", kF, {v, b});
  const Array at = t.Input("at", DType::kI64, {b}, -1, 4);
  const Index i("i", b), j("j", 2);
  t.Check({j, i}, w(at(i) + j, i).Or(5));
}

void GatherAlongBatch(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), c = AnyExtent(t, "c"), b = AnyExtent(t, "b");
  const Array z = t.Input("z", kF, {a, c, b});
  const Array at = t.Input("at", DType::kI64, {a, b}, -1, 3);
  const Index i("i", a), j("j", b);
  t.Check({i, j}, z(i, at(i, j), j).Or(0));
}

void IndexTensors(IndexTest& t) {
  const Dim a = AnyExtent(t, "a", 3), b = AnyExtent(t, "b", 3);
  const Dim c = AnyExtent(t, "c"), r = AnyExtent(t, "r");
  const Array x = t.Input("x", kF, {a, b, c});
  const Array p = t.Input("p", DType::kI64, {r}, 0, 2);
  const Array q = t.Input("q", DType::kI64, {r}, 0, 2);
  const Index i("i", r), j("j", c);
  t.Check({i, j}, x(p(i), q(i), j));
}

void CumulativeSum(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), n = AnyExtent(t, "n"), b = AnyExtent(t, "b");
  const Array x = t.Input("x", kF, {a, n, b});
  const Index i("i", a), k("k", n), l("l", b), j("j", n);
  t.Check({i, k, l}, Sum({j}, x(i, j, l), j <= k));
}

void CumulativeOthers(IndexTest& t) {
  const Dim n = AnyExtent(t, "n");
  const Array x = t.Input("x", kF, {n});
  const Array ok = t.Input("ok", DType::kBool, {n}, 0, 1);
  const Index i("i", n), j("j", n);
  const Elem conditions[] = {j <= i,          j < i,      i <= j,        i < j,
                             i >= j && ok(j), i - 1 >= j, j > i && ok(j)};
  const Reduction reductions[] = {Reduction::kSum, Reduction::kProd,
                                  Reduction::kMax, Reduction::kMin};
  const Elem& condition = conditions[t.Random(0, 6)];
  t.Check({i}, Reduce(reductions[t.Random(0, 3)], {j}, x(j), condition));
}

// Reads that are out of range only where no i reaches are no errors.
void ExclusiveScanOfShifted(IndexTest& t) {
  const Dim n = AnyExtent(t, "n");
  const Array x = t.Input("x", kF, {n});
  const Index i("i", n), j("j", n);
  t.Check({i}, Sum({j}, x(j + 1), j < i));
}

void Pooling(IndexTest& t) {
  const int64_t kernel = t.Random(1, 3), stride = t.Random(1, 3);
  const Dim b = AnyExtent(t, "b"), h = AnyExtent(t, "h", kernel);
  const Dim padding = t.Random(0, kernel / 2);
  const Dim p = Dim::FloorDiv(h + padding * 2 - kernel + stride, stride);
  const Array x = t.Input("x", kF, {b, h});
  const Index i("i", b), j("j", p), k("k", kernel);
  t.Check({i, j}, Max({k}, x(i, j * Dim(stride) + k - padding)
                               .Or(-std::numeric_limits<double>::infinity())));
}

// max_pool2d_with_indices: the window is one index, the reads go through lets.
void MaxPool2d(IndexTest& t) {
  const Dim b = AnyExtent(t, "b"), h = AnyExtent(t, "h", 1);
  const Dim w = AnyExtent(t, "w", 1);
  const Dim kernel = 2, padding = t.Random(0, 1);
  const Dim p = h + padding * 2 - 1, q = w + padding * 2 - 1;
  const Array x = t.Input("x", kF, {b, h, w}, -1, 1);
  const Index i("i", b), ip("p", p), iq("q", q), m("m", 4);
  const Index rp("p", p), rm("m", 4), cq("q", q), cm("m", 4);
  const Array r = Comprehension({rp, rm}, rp - padding + rm / kernel);
  const Array c = Comprehension({cq, cm}, cq - padding + cm % kernel);
  const Index op("p", p), oq("q", q), om("m", 4);
  const Array ok =
      Comprehension({op, oq, om}, r(op, om) >= 0 && r(op, om) < h &&
                                      c(oq, om) >= 0 && c(oq, om) < w);
  const Array at = Comprehension(
      {i, ip, iq},
      Reduce(Reduction::kArgmax, {m}, x(i, r(ip, m), c(iq, m)), ok(ip, iq, m)));
  const Index j("i", b), jp("p", p), jq("q", q);
  const Elem k = at(j, jp, jq);
  if (t.Random(0, 1) == 0) {
    t.Check({j, jp, jq}, x(j, r(jp, k), c(jq, k)));
  } else {
    t.Check({j, jp, jq}, r(jp, k) * w + c(jq, k));
  }
}

void Convolution(IndexTest& t) {
  const int64_t groups = t.Random(1, 2), stride = t.Random(1, 2);
  const int64_t dilation = t.Random(1, 2), padding = t.Random(0, 2);
  const int64_t o = groups * t.Random(1, 2), k = t.Random(1, 3);
  const Dim n = AnyExtent(t, "n"), i = AnyExtent(t, "i");
  const Dim h = t.Extent("h", t.Random(1, 3) + dilation * (k - 1));
  const Dim p =
      Dim::FloorDiv(h + 2 * padding - dilation * (k - 1) - 1, stride) + 1;
  const Array x = t.Input("x", kF, {n, i * groups, h});
  const Array w = t.Input("w", kF, {o, i, k}), bias = t.Input("bias", kF, {o});
  const Index in("n", n), io("o", o), ip("p", p), ii("i", i), ik("k", k);
  const Elem channel = io / static_cast<int>(o / groups) * i + ii;
  const Elem place = ip * Dim(stride) + ik * Dim(dilation) - Dim(padding);
  t.Check(
      {in, io, ip},
      bias(io) + Sum({ii, ik}, w(io, ii, ik) * x(in, channel, place).Or(0)));
}

void Einsum(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), b = AnyExtent(t, "b"), c = AnyExtent(t, "c");
  const Dim d = AnyExtent(t, "d");
  const Array x = t.Input("x", kF, {a, b, c}), y = t.Input("y", kF, {c, a, d});
  const Index i("i", a), j("j", b), k("k", c), l("l", d);
  t.Check({l, i, j}, Sum({k}, Num(1, kF) * x(i, j, k) * y(k, i, l)));
}

void EinsumOfDiagonals(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), b = AnyExtent(t, "b");
  const Array x = t.Input("x", kF, {a, a, b}), y = t.Input("y", kF, {b, 1});
  const Index i("i", a), k("k", b);
  t.Check({i}, Sum({k}, x(i, i, k) * y(k, 0)));
}

void GroupedHeads(IndexTest& t) {
  const Dim g = t.Random(1, 3), share = t.Random(1, 3), h = g * share;
  const Dim l = AnyExtent(t, "l"), s = AnyExtent(t, "s"), e = AnyExtent(t, "e");
  const Array q = t.Input("q", kF, {h, l, e}), k = t.Input("k", kF, {g, s, e});
  const Index ih("h", h), il("l", l), is("s", s), ie("e", e);
  t.Check({ih, il, is}, Sum({ie}, q(ih, il, ie) * k(ih / share, is, ie)));
}

void MultiHead(IndexTest& t) {
  const Dim l = AnyExtent(t, "l"), h = AnyExtent(t, "h"), d = AnyExtent(t, "d");
  const Array x = t.Input("x", kF, {l, h * d}), bias = t.Input("bias", kF, {d});
  const Array scale = t.Input("scale", kF, {h});
  const Index i("i", l), j("j", h), k("k", d);
  t.Check({j, i, k}, x(i, j * d + k) * scale(j) + bias(k));
}

void SumOfConstants(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), b = AnyExtent(t, "b");
  const Array x = t.Input("x", kF, {a, b}), y = t.Input("y", kF, {a, b});
  const Index i("i", a), j("j", b);
  t.Check({i}, Sum({j}, Num(1, kF), x(i, j) != y(i, j)));
}

void Unique(IndexTest& t) {
  const Dim n = AnyExtent(t, "n"), m = AnyExtent(t, "m");
  const Array rank = t.Input("rank", DType::kI64, {n, m}, -1, 4);
  const Index i("i", n), j("j", m), k("k", n + 1);
  t.Check({k}, Sum({i, j}, Num(1, DType::kI64), rank(i, j) == k));
}

void UniqueFirst(IndexTest& t) {
  const Dim n = AnyExtent(t, "n");
  const Array x = t.Input("x", kF, {n}, 0, 2);
  const Index i("i", n);
  t.Check({i}, i == 0 || x(i) != x(i - 1).Or(0));
}

void EmbeddingBag(IndexTest& t) {
  const Dim v = t.Extent("v", 3), d = AnyExtent(t, "d");
  const Dim l = AnyExtent(t, "l"), b = AnyExtent(t, "b");
  const Array w = t.Input("w", kF, {v, d}),
              bag = t.Input("bag", DType::kI64, {l}, -1, 4);
  // Out of range where it does not count.
  const Array at = t.Input("at", DType::kI64, {l}, 0, 3);
  const Index j("j", l), k("k", d), ib("b", b);
  const Array scale = t.Input("scale", kF, {b});
  const Elem row = w(at(j), k);
  const Reduction reductions[] = {Reduction::kSum, Reduction::kProd,
                                  Reduction::kMax, Reduction::kMin};
  t.Check({ib, k}, Reduce(reductions[t.Random(0, 3)], {j}, row,
                          bag(j) == ib && at(j) != 3) *
                       scale(ib));
}

void ScatterInBatches(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), n = AnyExtent(t, "n");
  const Dim c = AnyExtent(t, "c", 1);
  const Array f = t.Input("f", DType::kI64, {a, n}, -1, 3);
  const Array g = t.Input("g", DType::kI64, {n}, -1, 3);
  const Array x = t.Input("x", kF, {n, a, c});
  const Index i("i", a), j("j", n), k("k", c), p("p", 3), q("q", 2);
  t.Check({k, p, i, q},
          Sum({j}, x(j, i, k), p == f(i, j) && g(j) == q && x(j, i, 0) > 0));
}

void Ctc(IndexTest& t) {
  const Dim n = AnyExtent(t, "n"), s = AnyExtent(t, "s");
  const double inf = std::numeric_limits<double>::infinity();
  const Array a = t.Input("a", kF, {n, s * 2 + 1});
  const Array target = t.Input("target", DType::kI64, {n, s}, 0, 3);
  const Index ln("n", n), ls("s", s * 2 + 1);
  const Array label = Comprehension(
      {ln, ls},
      Select(ls % 2 == 1, target(ln, ls / 2).Or(0), Num(0, DType::kI64)));
  const Index jn("n", n), js("s", s * 2 + 1);
  const Array jump = Comprehension(
      {jn, js}, js % 2 == 1 && label(jn, js) != label(jn, js - 2).Or(0));
  const Index in("n", n), is("s", s * 2 + 1), k("k", 3);
  t.Check({in, is, k},
          Select(k < 2 || jump(in, is), a(in, is - k).Or(-inf), Num(-inf, kF)));
}

void CtcEnd(IndexTest& t) {
  const Dim n = AnyExtent(t, "n"), s = AnyExtent(t, "s");
  const Array a = t.Input("a", kF, {n, s * 2 + 1});
  const Array length = t.Input("length", DType::kI64, {n}, 0, 4);
  const Index in("n", n), k("k", 2);
  t.Check({in, k}, a(in, length(in) * 2 - k).Or(-9));
}

void GridSampler(IndexTest& t) {
  const Dim n = AnyExtent(t, "n"), c = AnyExtent(t, "c"), h = AnyExtent(t, "h");
  const Dim w = AnyExtent(t, "w"), p = AnyExtent(t, "p");
  const Array x = t.Input("x", kF, {n, c, h, w});
  const Array i = t.Input("i", DType::kI64, {n, p}, -2, 4);
  const Array j = t.Input("j", DType::kI64, {n, p}, -2, 4);
  const Array v = t.Input("v", kF, {n, p});
  const Index in("n", n), ic("c", c), ip("p", p), a("a", 2), b("b", 2);
  const Elem tap = Select(a == 0, Num(1, kF) - v(in, ip), v(in, ip)) *
                   Select(b == 0, Num(1, kF) - v(in, ip), v(in, ip));
  t.Check({in, ic, ip},
          Sum({a, b}, tap * x(in, ic, i(in, ip) + a, j(in, ip) + b).Or(0)));
}

void CircularPad(IndexTest& t) {
  const Dim n = AnyExtent(t, "n", 1);
  const Array x = t.Input("x", kF, {n});
  const Index i("i", n + 5);
  t.Check({i}, x((i - 2) % n));
}

void Tiled(IndexTest& t) {
  const Dim n = AnyExtent(t, "n", 1), m = AnyExtent(t, "m");
  const Array x = t.Input("x", kF, {n, m});
  const Index i("i", n * 3), j("j", m * 2);
  t.Check({j, i}, x(i % n, j / 2));
}

void Quantile(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), n = AnyExtent(t, "n");
  const Array x = t.Input("x", kF, {a, n});
  const Index i("i", a), j("j", n), k("k", n), l("l", n);
  const Array upto =
      Comprehension({i, j}, Sum({l}, Num(1, DType::kI64), x(i, l) <= x(i, j)));
  const Index ri("i", a), rj("j", n);
  t.Check({ri, k}, Reduce(Reduction::kMin, {rj}, x(ri, rj), upto(ri, rj) > k));
}

void ArgmaxOfTwo(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), n = AnyExtent(t, "n"), m = AnyExtent(t, "m");
  const Array x = t.Input("x", kF, {m, a, n}, 0, 2);
  const Index i("i", a), j("j", n), k("k", m);
  const Reduction r =
      t.Random(0, 1) == 0 ? Reduction::kArgmax : Reduction::kArgmin;
  t.Check({i}, Reduce(r, {j, k}, x(k, i, j), std::nullopt));
}

void ConditionalArgmax(IndexTest& t) {
  const Dim a = AnyExtent(t, "a"), n = AnyExtent(t, "n");
  const Array x = t.Input("x", kF, {a, n}, 0, 2);
  const Array ok = t.Input("ok", DType::kI64, {n}, 0, 3);
  const Index i("i", a), j("j", n);
  const Reduction r =
      t.Random(0, 1) == 0 ? Reduction::kArgmax : Reduction::kArgmin;
  t.Check({i}, Reduce(r, {j}, x(i, j), ok(j) > 0));
}

void MaskedReads(IndexTest& t) {
  const Dim n = AnyExtent(t, "n"), m = AnyExtent(t, "m");
  const Array x = t.Input("x", kF, {n});
  const Array at = t.Input("at", DType::kI64, {m}, -1, 4);
  const Index i("i", 2), j("j", m);
  // In range only if 4 is never read and n is large enough.
  t.Check({i}, Sum({j}, x(at(j)), at(j) >= 0 && at(j) + i != 4));
}

void IndicesAsNumbers(IndexTest& t) {
  const Dim n = AnyExtent(t, "n");
  const Array x = t.Input("x", DType::kF32, {n});
  const Index i("i", n), j("j", n);
  t.Check({i}, x(i) * Convert(i, DType::kF32) + Size(n, DType::kF32) -
                   Sum({j}, Convert(j, DType::kF32)));
}

void BoolsAndIntegers(IndexTest& t) {
  const Dim n = AnyExtent(t, "n"), m = AnyExtent(t, "m");
  const Array x = t.Input("x", DType::kI32, {n, m});
  const Index i("i", n), j("j", m);
  const Reduction r = t.Random(0, 1) == 0 ? Reduction::kAny : Reduction::kAll;
  t.Check({i},
          Reduce(r, {j}, x(i, j) / 2 == 1 || x(i, j) % 3 == 2, x(i, j) != 0));
}

void ExtremesOfNothing(IndexTest& t) {
  const Dim n = AnyExtent(t, "n");
  const DType dtypes[] = {DType::kF32, DType::kI8, DType::kU16, DType::kI32};
  const Array x = t.Input("x", dtypes[t.Random(0, 3)], {n, n}, 0, 3);
  const Index i("i", n), j("j", n);
  t.Check({i}, Reduce(t.Random(0, 1) == 0 ? Reduction::kMax : Reduction::kMin,
                      {j}, x(i, j), x(j, i) > 2));
}

void NestedReductions(IndexTest& t) {
  const Dim n = AnyExtent(t, "n"), m = AnyExtent(t, "m");
  const Array x = t.Input("x", kF, {n, m}), y = t.Input("y", kF, {m});
  const Index i("i", n), j("j", m), k("k", m);
  t.Check({i}, Sum({j}, Max({k}, x(i, k) + y(j), k <= j), y(j) > 0));
}

const Expression kExpressions[] = {
#define EXPRESSION(name) \
  { #name, name }
    EXPRESSION(LayerNorm),
    EXPRESSION(SquaredDeviation),
    EXPRESSION(Permutation),
    EXPRESSION(Diagonal),
    EXPRESSION(Column),
    EXPRESSION(OffsetAndStride),
    EXPRESSION(PastTheEnds),
    EXPRESSION(FillThatVaries),
    EXPRESSION(UncheckedRead),
    EXPRESSION(TopK),
    EXPRESSION(Embedding),
    EXPRESSION(GatherThatFails),
    EXPRESSION(GatherWithFill),
    EXPRESSION(GatherAlongBatch),
    EXPRESSION(IndexTensors),
    EXPRESSION(CumulativeSum),
    EXPRESSION(CumulativeOthers),
    EXPRESSION(ExclusiveScanOfShifted),
    EXPRESSION(Pooling),
    EXPRESSION(MaxPool2d),
    EXPRESSION(Convolution),
    EXPRESSION(Einsum),
    EXPRESSION(EinsumOfDiagonals),
    EXPRESSION(GroupedHeads),
    EXPRESSION(MultiHead),
    EXPRESSION(SumOfConstants),
    EXPRESSION(Unique),
    EXPRESSION(UniqueFirst),
    EXPRESSION(EmbeddingBag),
    EXPRESSION(ScatterInBatches),
    EXPRESSION(Ctc),
    EXPRESSION(CtcEnd),
    EXPRESSION(GridSampler),
    EXPRESSION(CircularPad),
    EXPRESSION(Tiled),
    EXPRESSION(Quantile),
    EXPRESSION(ArgmaxOfTwo),
    EXPRESSION(ConditionalArgmax),
    EXPRESSION(MaskedReads),
    EXPRESSION(IndicesAsNumbers),
    EXPRESSION(BoolsAndIntegers),
    EXPRESSION(ExtremesOfNothing),
    EXPRESSION(NestedReductions),
#undef EXPRESSION
};

class AgainstLoops : public ::testing::TestWithParam<Expression> {};

TEST_P(AgainstLoops, GivesTheSame) {
  for (uint32_t seed = 0; seed < kRuns; ++seed) {
    for (const bool symbolic : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << "seed " << seed << ", symbolic " << symbolic);
      IndexTest t(symbolic, seed);
      GetParam().check(t);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Litmus, AgainstLoops,
                         ::testing::ValuesIn(kExpressions),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace cleave
