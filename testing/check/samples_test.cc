// Rules that are wrong at few of the calls that their ops take: at a long axis,
// in one dtype, at one combination of attributes. Each is refuted at any seed,
// and its right form agrees.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

constexpr int kSeeds = 5;

struct Planted {
  const char* name;
  Layer layer;       // that refutes it
  const char* text;  // with `$` for what is wrong
  const char* wrong;
  const char* right;  // null where no form keeps the same claim
};

CheckReport Check(const Planted& planted, const char* part, uint64_t seed) {
  return CheckTextAt(
      "test.rules",
      absl::StrCat("language 1\n\n",
                   absl::StrReplaceAll(planted.text, {{"$", part}})),
      "checked", seed);
}

class SamplesTest : public testing::TestWithParam<Planted> {};

TEST_P(SamplesTest, IsRefutedAtEachSeed) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const CheckReport report = Check(GetParam(), GetParam().wrong, seed);
    ASSERT_EQ(report.ops.size(), 1u);
    EXPECT_EQ(report.ops[0].layers.at(GetParam().layer).kind,
              VerdictKind::kDisagrees)
        << report.ToString();
  }
}

TEST_P(SamplesTest, RightFormAgrees) {
  if (GetParam().right == nullptr) return;
  const CheckReport report = Check(GetParam(), GetParam().right, 1);
  ASSERT_EQ(report.ops.size(), 1u);
  for (const auto& [layer, verdict] : report.ops[0].layers) {
    EXPECT_TRUE(verdict.kind == VerdictKind::kAgrees ||
                verdict.kind == VerdictKind::kNotChecked)
        << LayerName(layer) << " of\n"
        << report.ToString();
  }
}

std::string Name(const testing::TestParamInfo<Planted>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(
    Extents, SamplesTest,
    testing::Values(
        Planted{"slope_at_one_size", Layer::kTransforms,
                R"(op checked(x: T[n]) -> T[]
  where T: float
  spec y = sum[i](x[i]^2)
  accuracy T within 2 ulp + 2 cond
{
  sum[i](x[i] * x[i])
  jvp x = $ * sum[i](x[i] * dx[i])
}
)",
                "select(n == 5, 4, 2)", "2"},
        Planted{"one_guard", Layer::kEdges,
                R"(op checked(x: T[n]) -> T[]
  where T: float
  spec y = sum[i](select(x[i] <= 1, 0, x[i]))
  accuracy T within 1 ulp + 1 cond
{
  sum[i](select(not x[i] $ 1, x[i], 0))
}
)",
                "<", "<="},
        Planted{"one_negative_number", Layer::kRounding,
                R"(op checked(x: T[S..], *, by: real = 1) -> T[S..]
  where T: float
  spec y[s..] = x[s..] * 2
  accuracy T within 1 ulp
  = if by == -inf then $ else x + x
)",
                "x", "2 * x"},
        Planted{"one_string", Layer::kRounding,
                R"(op checked(x: T[S..], *, how: str = "twice") -> T[S..]
  where T: float
  spec y[s..] = x[s..] * 2
  accuracy T within 1 ulp
  = if how == "added" then $ else x + x
)",
                "x", "2 * x"},
        Planted{"one_second_dtype", Layer::kRounding,
                R"(op checked(x: T[n], m: M[n]) -> T[n]
  where T: float, M: any
  error type "m must be bool or of x's type" if not (M is bool or M == T)
  spec y[i] = if M is bool then select(m[i], x[i], 0) else x[i] + m[i]
  accuracy T within 1 ulp
  = if M is bool then $ else x + m
)",
                "x", "select(not m, 0, x)"},
        Planted{"one_rank", Layer::kRounding,
                R"(op checked(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = exp(x[s..]) - 1
  accuracy T within 1.5 ulp
  = $
)",
                "if len(S) == 2 then expm1(x) + 1 else expm1(x)", "expm1(x)"},
        Planted{"one_size", Layer::kRounding,
                R"(op checked(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = exp(x[s..]) - 1
  accuracy T within 1.5 ulp
  = $
)",
                "select(size(S) == 5, expm1(x) + 1, expm1(x))", "expm1(x)"},
        Planted{"one_place", Layer::kRounding,
                R"(op checked(x: T[n]) -> T[n]
  where T: float
  spec y[i] = 2 * x[i]
  accuracy T within 1 ulp
{
  y[i] = x[i] + x[i]$
}
)",
                " + select(i == 5, 1, 0)", ""},
        Planted{"far_places", Layer::kRounding,
                R"(op checked(x: T[n]) -> T[n]
  where T: float
  spec y[i] = sum[j if j <= i](x[j])
  accuracy T within n eps * sum[j if j <= i](abs(x[j]))
{
  let all = linear_scan(1, x, init: 0, axis: 0)
  y[i] = all[i] + $
}
)",
                "select(i > 64, 0.1, 0)", "0"},
        Planted{"count_of_ties", Layer::kRounding,
                R"(op checked(x: T[n]) -> T[]
  where T: float
  error shape "the maximum of nothing" if n == 0
  spec {
    let m = max[i](x[i])
    1 / sum[i if x[i] == m](1)
  }
  accuracy T within 1 ulp
{
  let m = max[i](x[i])
  let c = sum[i](convert(x[i] == m, dtype: $))
  convert(1 / convert(c, dtype: f64), dtype: T)
}
)",
                "T", "i64"},
        Planted{"angles", Layer::kRounding,
                R"(op checked(x: T[n]) -> T[n]
  where T: float
  spec y[i] = x[i] * cos(i / 10)
  accuracy T within 4 ulp
{
  let angle = $
  x * convert(cos(angle), dtype: T)
}
)",
                "convert(iota(n), dtype: T) / 10", nullptr},
        Planted{"examples", Layer::kTransforms,
                R"(op checked(x: T[n]) -> T[n]
  where T: float
  spec y[i] = 2 * x[i]
  accuracy T within 1 ulp
{
  y[i] = x[i] + x[i]
  vmap (x) = 2 * x$
}
)",
                " + reshape(convert(iota(shape(x)[0]) > 255, dtype: T), shape: "
                "[shape(x)[0], 1])",
                ""}),
    Name);

INSTANTIATE_TEST_SUITE_P(
    DTypes, SamplesTest,
    testing::Values(
        Planted{"sum_in_u8", Layer::kRounding,
                R"(op checked(x: T[n]) -> i64[n]
  where T: int
  spec y[i] = sum[j if j <= i](convert(x[j], dtype: i64))
  = $
)",
                "convert(linear_scan(1, convert(x, dtype: u8), init: 0, axis: "
                "0), dtype: i64)",
                "linear_scan(1, convert(x, dtype: i64), init: 0, axis: 0)"},
        Planted{"ids_through_u8", Layer::kRounding,
                R"(op checked(w: T[n], ids: i64[m]) -> T[m]
  where T: float
  spec {
    let there[v < n] = 1
    y[i] = there[ids[i]] * sum[v if ids[i] == v](w[v])
  }
  accuracy T within 1 ulp
{
  let at = $
  y[i] = w[at[i]]
}
)",
                "convert(convert(ids, dtype: u8), dtype: i64)", "ids"},
        Planted{"one_int", Layer::kRounding,
                R"(op checked(x: T[S..]) -> T[S..]
  where T: real
  spec y = select(x < 1, 1, x)
{
  $
}
)",
                "if T == u8 then x else max(x, 1)", "max(x, 1)"},
        Planted{"slope_in_f32", Layer::kTransforms,
                R"(op checked(x: T[S..]) -> T[S..]
  where T: float
  spec y = x^3
  accuracy T within 2 ulp
{
  x * x * x
  jvp x = $ * x * x * dx
}
)",
                "(if T == f32 then 2 else 3)", "3"},
        Planted{"slope_in_f16", Layer::kTransforms,
                R"(op checked(x: T[S..]) -> T[S..]
  where T: float
  spec y = x^3
  accuracy T within 2 ulp
{
  x * x * x
  vjp (dy) = (x = $ * x * x * dy)
}
)",
                "(if T == f16 then 2 else 3)", "3"},
        Planted{"slope_of_a_sum_in_f32", Layer::kTransforms,
                R"(op checked(x: T[n]) -> T[]
  where T: float
  compute acc
  spec y = sum[i](x[i]^2)
  accuracy T within 2 ulp
{
  sum[i](x[i] * x[i])
  jvp x = $ * sum[i](x[i] * dx[i])
}
)",
                "(if T == f32 then 3 else 2)", "2"},
        Planted{"slope_of_a_sum_in_f16", Layer::kTransforms,
                R"(op checked(x: T[n]) -> T[]
  where T: float
  spec y = sum[i](x[i]^2)
  accuracy T within n ulp
{
  sum[i](x[i] * x[i])
  vjp (dy) = (x = $ * x * dy)
}
)",
                "(if T == f16 then 3 else 2)", "2"}),
    Name);

INSTANTIATE_TEST_SUITE_P(
    Attributes, SamplesTest,
    testing::Values(
        Planted{
            "kept_axes", Layer::kTransforms,
            R"(op checked(x: T[S..], *, axes: axes(x), keepdims: bool = false) -> T[R..]
  where T: float
  let R = if keepdims then keep(S, axes) else drop(S, axes)
  spec y = reduce_sum(x^2, axes: axes, keepdims: keepdims)
  accuracy T within 2 ulp + 2 cond
{
  -reduce_sum(x * -x, axes: axes, keepdims: keepdims)
  jvp x = 2 * reduce_sum(x * dx, axes: axes, keepdims: $)
}
)",
            "false", "keepdims"},
        Planted{"negative_diagonal", Layer::kRounding,
                R"(op checked(x: T[M, N], *, k: int = 0) -> T[M, N]
  where T: any
  spec y[i, j] = select(j - i <= k, x[i, j], 0)
{
  y[i, j] = select(j <= i + $, x[i, j], 0)
}
)",
                "max(k, 0)", "k"},
        Planted{
            "two_factors", Layer::kRounding,
            R"(op checked(x: T[S..], *, alpha: real = 1, scale: real = 1) -> T[S..]
  where T: float
  spec y = scale * select(x > 0, x, alpha * (exp(x) - 1))
  accuracy T within 4 ulp
{
  let a = $
  select(x > 0, scale * x, scale * a * expm1(min(x, 0) @tie(first)))
}
)",
            "if scale != 1 and alpha != 1 then 1 else alpha", "alpha"},
        Planted{
            "beta_of_a_sum", Layer::kReals,
            R"(op checked(x: T[n], *, beta: real = 1, reduction: {mean, sum} = mean) -> T[]
  where T: float
  compute acc
  error value "beta must be positive" if beta <= 0
  error shape "the mean of nothing" if n == 0
  spec y = sum[i](select(abs(x[i]) < beta, x[i]^2 / (2 * beta), abs(x[i]) - beta / 2))
    / (if reduction == sum then 1 else n)
  accuracy T within 2 ulp + 1 cond
{
  let b = $
  let e = select(abs(x) < beta, x * (x / (2 * b)), abs(x) - b / 2)
  let s = sum[i](e[i])
  if reduction == sum then s else s / n
}
)",
            "if reduction == sum then 1 else beta", "beta"},
        Planted{"fractional_correction", Layer::kReals,
                R"(op checked(x: T[n], *, correction: real = 1) -> T[]
  where T: float
  compute acc
  domain correction < n
    or reduce_all(x == 0 or abs(x) > 0.0001, axes: [0], keepdims: false)
  spec y = sum[i](x[i]^2) / max(n - correction, 0)
  accuracy T within 2 ulp
{
  sum[i](x[i] * x[i]) / max(n - $, 0)
}
)",
                "floor(correction)", "correction"},
        Planted{"unequal_lengths", Layer::kReals,
                R"(op checked(x: T[L, S], *, causal: bool = false) -> T[L, S]
  where T: float
  spec y[i, j] = if causal then select(j > i + S - L, 0, x[i, j]) else x[i, j]
  accuracy T within 1 ulp
{
  y[i, j] = if causal then select(j - i <= $, x[i, j], 0) else x[i, j]
}
)",
                "0", "S - L"},
        Planted{"forgotten_mode", Layer::kTransforms,
                R"(op checked(x: T[n], *, mode: {once, twice} = once) -> T[n]
  where T: float
  spec y[i] = exp(x[i]) * (if mode == twice then 2 else 1)
  accuracy T within 2 ulp
{
  let f = if mode == twice then 2 else 1
  f * exp(x)
  jvp x = $ * exp(x) * dx
}
)",
                "1", "f"},
        Planted{"forgotten_offset", Layer::kTransforms,
                R"(op checked(x: T[n], *, offset: int = 0) -> T[n]
  where T: float
  spec y[i] = x[i]^2 * cos((i + offset) / 10)
  accuracy T within (4 + n * n) ulp + 4 cond
{
  let c[i < n] = convert(cos(convert(i + offset, dtype: f64) / 10), dtype: T)
  let d[i < n] = convert(cos(convert(i + $, dtype: f64) / 10), dtype: T)
  x * x * c
  jvp x = 2 * x * d * dx
}
)",
                "0", "offset"}),
    Name);

INSTANTIATE_TEST_SUITE_P(
    Magnitudes, SamplesTest,
    testing::Values(Planted{"largest_term_alone", Layer::kRounding,
                            R"(op checked(x: T[n]) -> T[]
  where T: float
  compute acc
  error shape "the sum of nothing" if n == 0
  spec y = log(sum[i](exp(x[i])))
  accuracy T within 2 ulp + 1 cond
{
  let at = argmax(x, axes: [0], keepdims: false)
  let rest = sum[i](select(i == at, 0, exp(x[i] - x[at])))
  x[at] + $
}
)",
                            "log(rest + 1)", nullptr},
                    Planted{"fixed_dtype", Layer::kRounding,
                            R"(op checked(a: f32[S..], b: f32[S..]) -> f32[S..]
  spec y = a * a - b * b
  accuracy f32 within 3 ulp
{
  $
}
)",
                            "a * a - b * b", nullptr},
                    Planted{"sum_of_small_terms", Layer::kRounding,
                            R"(op checked(d: T[n]) -> T[]
  where T: float
  spec y = sum[i]((exp(d[i]) - 1 - d[i] + d[i]^2) / 2)
  accuracy T within (4 + n) ulp + 2 cond
{
  sum[i]((expm1(d[i]) - d[i] + d[i] * d[i]) / 2)
}
)",
                            "", nullptr}),
    Name);

INSTANTIATE_TEST_SUITE_P(
    Indices, SamplesTest,
    testing::Values(
        Planted{
            "ignored_index", Layer::kRounding,
            R"(op checked(x: T[C], t: i64[n], *, ignored: int = -100) -> T[n]
  where T: float
  error value "no place to ignore" if ignored >= 0
  spec {
    let there[c < C] = 1
    y[i] = select(t[i] == ignored, 0, there[select(t[i] == ignored, 0, t[i])]
      * sum[c if c == t[i]](x[c]))
  }
  accuracy T within 1 ulp
{
  let at = $
  y[i] = select(t[i] == ignored, 0, x[at[i]])
}
)",
            "t", "select(t == ignored, 0, t)"},
        Planted{"index_from_the_end", Layer::kRounding,
                R"(op checked(x: T[C, n], t: i64[n]) -> T[n]
  where T: float
  spec {
    let there[c < C] = 1
    y[i] = there[t[i]] * sum[c if c == t[i]](x[c, i])
  }
  accuracy T within 1 ulp
{
  y[i] = x[$, i]
}
)",
                "min(t[i], n - 1)", "t[i]"}),
    Name);

INSTANTIATE_TEST_SUITE_P(
    Types, SamplesTest,
    testing::Values(
        Planted{"refused_in_one_dtype", Layer::kTypes,
                R"(op checked(x: T[A..], y: T[B..]) -> T[broadcast([A, B])..]
  where T: float
  spec z = 2 * x + 2 * y
  accuracy T within 1 ulp + 2 cond
{
  2 * (if T == f64 then $ else x + y)
}
)",
                "reshape(x, shape: A ++ [2]) + y", "x + y"},
        // Shapes of one list that broadcast, and differ.
        Planted{"shapes_of_one_list", Layer::kTypes,
                R"(op checked(xs[i]: T[S[i]..]) -> T[P..]
  where T: float
  let P = broadcast([S[i] for i in 0..len(xs)])
  spec {
    let all = [broadcast_to(xs[i], shape: P) for i in 0..len(xs)]
    y[p.. < P] = fold(e = -inf, i in 0..len(xs)) { max(e, all[i][p..]) }
  }
{
  let all = [$ for i in 0..len(xs)]
  y[p.. < P] = fold(e = -inf, i in 0..len(xs)) { max(e, all[i][p..]) }
}
)",
                "-(-xs[i])", "broadcast_to(-(-xs[i]), shape: P)"}),
    Name);

INSTANTIATE_TEST_SUITE_P(
    LargeNumbers, SamplesTest,
    testing::Values(Planted{"as_many_groups_as_channels", Layer::kRounding,
                            R"(op checked(x: T[C], *, groups: int = 1) -> T[C]
  where T: float
  error shape "no such groups" if groups < 1 or C % max(groups, 1) != 0
  spec y[c] = 2 * x[c]
  accuracy T within 1 ulp
{
  let size = C // groups
  y[c] = 2 * x[c] + select(c // size > $, 1, 0)
}
)",
                            "40", "5000"},
                    Planted{"window_of_the_whole_axis", Layer::kRounding,
                            R"(op checked(x: T[n], *, window: int) -> T[n]
  where T: float
  error value "no such window" if window < 1 or window > n
  spec y[i] = max[j if j <= i and j > i - window](x[j])
{
  y[i] = max[k < n if k <= i and k < min(window, $)](x[i - k] ?? 0)
}
)",
                            "40", "n"}),
    Name);

INSTANTIATE_TEST_SUITE_P(
    Laws, SamplesTest,
    testing::Values(
        Planted{"law_at_a_long_axis", Layer::kExamples,
                R"(op checked(x: T[n]) -> T[n]
  where T: float
  spec y[n - 1 - i] == x[i]
{
  y[i] = $
}
)",
                "x[if n > 64 then i else n - 1 - i] + select(n > 64, 1, 0)",
                "x[n - 1 - i]"},
        // Only calls of as many rows have so many columns.
        Planted{"law_at_two_long_axes", Layer::kExamples,
                R"(op checked(x: T[m, n]) -> T[n, m]
  where T: float
  error shape "there are fewer rows than columns" if m < n
  spec y[j, i] == x[i, j]
{
  y[j, i] = $
}
)",
                "x[i, j] + select(n > 64, 1, 0)", "x[i, j]"},
        // In bf16 its tolerance is as large as all that is added.
        Planted{"law_with_a_tolerance", Layer::kExamples,
                R"(op checked(x: T[n]) -> T[]
  where T: float
  compute acc
  spec not abs(y - sum[i](x[i])) > 8 * n * sum[i](abs(x[i]))
    * (if T == f64 then 2^-52 else if T == f32 then 2^-23
       else if T == f16 then 2^-10 else 2^-7)
{
  sum[i](x[i]) * (1 + $)
}
)",
                "select(n > 32, 1, 0)", "0"},
        // Its places are none: the law has no value there.
        Planted{"law_that_reads_outside", Layer::kExamples,
                R"(op checked(x: T[n]) -> (values: T[n], at: i64[n])
  where T: float
  spec values[i] == x[at[i]]
{
  let s = sort(x, axis: 0)
  (values = s.values, at = $)
}
)",
                "s.indices + 1", "s.indices"}),
    Name);

}  // namespace
}  // namespace cleave
