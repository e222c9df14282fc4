// Factorizations of matrices that are known to be large go by panels, which the
// checker's samples are too small for: here they are held to the textbook's
// steps.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/graph.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/dtype.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"
#include "transforms/shipped_rules/shipped_rules.h"

namespace cleave {
namespace {

using Results = std::vector<Tensor>;

// The results of the op, in order. Panels show as products, of which the steps
// of small matrices have none.
absl::StatusOr<Results> Evaluate(
    const std::string& op,
    const std::vector<std::pair<std::string, Tensor>>& inputs,
    const Attributes& attributes, bool has_panels) {
  const auto rules = SharedShippedRules();
  if (!rules.ok()) return rules.status();
  GraphBuilder builder((*rules)->context());
  std::vector<Tensor> tensors;
  std::vector<Argument> arguments;
  for (const auto& [name, tensor] : inputs) {
    arguments.push_back({name, builder.Input(name, tensor.type())});
    tensors.push_back(tensor);
  }
  const auto called = (*rules)->Call(builder, op, arguments, attributes);
  if (!called.ok()) return called.status();
  std::vector<NamedValue> outputs;
  for (const std::optional<Value>& result : *called) {
    outputs.push_back({absl::StrCat("y", outputs.size()), *result});
  }
  const absl::StatusOr<Graph> graph = std::move(builder).Build(outputs);
  if (!graph.ok()) return graph.status();
  const absl::StatusOr<Graph> expanded = Expand(*graph, **rules);
  if (!expanded.ok()) return expanded.status();
  EXPECT_EQ(absl::StrContains(PrintGraph(*expanded), "dot_general"),
            has_panels);
  return Interpret(*expanded, tensors);
}

// Matrices of a kind: ordinary ones, whole numbers that repeat, and such whose
// ranks are less.
enum class Kind { kRandom, kIntegers, kSingular, kZeros };

Tensor Matrices(DType dtype, const std::vector<int64_t>& shape, Kind kind) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  Tensor a(dtype, shape);
  const int64_t n = shape.back();
  for (int64_t i = 0; i < a.size(); ++i) {
    double x = normal(random);
    if (kind == Kind::kIntegers) x = std::round(x);
    if (kind == Kind::kZeros || (kind == Kind::kSingular && i % n == 40)) x = 0;
    a.SetDouble(i, x);
    if (kind == Kind::kSingular && i % n == 7) {
      a.SetDouble(i, a.GetDouble(i - 2));
    }
  }
  return a;
}

struct Shape3 {
  int64_t batch, rows, columns;
};

// Gaussian elimination with partial pivoting, in f64.
struct Eliminated {
  std::vector<double> lu;
  std::vector<int64_t> pivots, order;
};
Eliminated Eliminate(const Tensor& a, int64_t matrix, int64_t m, int64_t n) {
  Eliminated e;
  for (int64_t i = 0; i < m * n; ++i) {
    e.lu.push_back(a.GetDouble(matrix * m * n + i));
  }
  for (int64_t i = 0; i < m; ++i) e.order.push_back(i);
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    int64_t top = k;
    for (int64_t i = k; i < m; ++i) {
      if (std::abs(e.lu[i * n + k]) > std::abs(e.lu[top * n + k])) top = i;
    }
    e.pivots.push_back(top);
    std::swap(e.order[k], e.order[top]);
    for (int64_t j = 0; j < n; ++j) {
      std::swap(e.lu[k * n + j], e.lu[top * n + j]);
    }
    if (e.lu[k * n + k] == 0) continue;
    for (int64_t i = k + 1; i < m; ++i) {
      const double l = e.lu[i * n + k] /= e.lu[k * n + k];
      for (int64_t j = k + 1; j < n; ++j) {
        e.lu[i * n + j] -= l * e.lu[k * n + j];
      }
    }
  }
  return e;
}

TEST(Panels, EliminateAsTheTextbookDoes) {
  for (const auto& [batch, m, n] :
       {Shape3{1, 64, 64}, Shape3{2, 65, 65}, Shape3{1, 100, 70},
        Shape3{1, 70, 130}, Shape3{1, 40, 40}}) {
    for (const Kind kind :
         {Kind::kRandom, Kind::kIntegers, Kind::kSingular, Kind::kZeros}) {
      const Tensor a = Matrices(DType::kF64, {batch, m, n}, kind);
      ASSERT_OK_AND_ASSIGN(const Results y,
                           Evaluate("lu_factor", {{"a", a}}, {},
                                    /*has_panels=*/std::min(m, n) >= 64));
      for (int64_t b = 0; b < batch; ++b) {
        const Eliminated want = Eliminate(a, b, m, n);
        for (int64_t k = 0; k < std::min(m, n); ++k) {
          ASSERT_EQ(y[1].GetInt(b * std::min(m, n) + k), want.pivots[k])
              << m << " x " << n << ", step " << k;
        }
        for (int64_t i = 0; i < m; ++i) {
          ASSERT_EQ(y[2].GetInt(b * m + i), want.order[i]);
        }
        for (int64_t i = 0; i < m * n; ++i) {
          ASSERT_NEAR(y[0].GetDouble(b * m * n + i), want.lu[i], 1e-10)
              << m << " x " << n << ", row " << i / n << ", column " << i % n;
        }
      }
    }
  }
}

// A A' + n I, whose factor has the same shape.
Tensor Definite(const Tensor& a, int64_t batch, int64_t n) {
  Tensor s(a.dtype(), a.shape());
  for (int64_t at = 0; at < batch * n * n; ++at) {
    const int64_t j = at % n;
    const int64_t first = at - at % (n * n);
    const int64_t i = (at - first) / n;
    double sum = i == j ? static_cast<double>(n) : 0;
    for (int64_t k = 0; k < n; ++k) {
      sum += a.GetDouble(first + i * n + k) * a.GetDouble(first + j * n + k);
    }
    s.SetDouble(at, sum);
  }
  return s;
}

TEST(Panels, FactorDefiniteMatrices) {
  for (const auto& [batch, n, bad] :
       {Shape3{1, 64, -1}, Shape3{2, 65, -1}, Shape3{1, 100, 50},
        Shape3{1, 100, 98}, Shape3{1, 40, -1}}) {
    Tensor a =
        Definite(Matrices(DType::kF64, {batch, n, n}, Kind::kRandom), batch, n);
    if (bad >= 0) a.SetDouble(bad * n + bad, -1);
    ASSERT_OK_AND_ASSIGN(const Results y, Evaluate("cholesky", {{"a", a}}, {},
                                                   /*has_panels=*/n >= 64));
    const Tensor& l = y[0];
    for (int64_t at = 0; at < l.size(); ++at) {
      const int64_t j = at % n;
      const int64_t first = at - at % (n * n);
      const int64_t i = (at - first) / n;
      // From the column on where the matrix is not definite.
      if (bad >= 0 && j >= bad) {
        EXPECT_EQ(std::isnan(l.GetDouble(at)), i >= j) << i << ", " << j;
        continue;
      }
      if (i < j) {
        ASSERT_EQ(l.GetDouble(at), 0) << i << ", " << j;
        continue;
      }
      double sum = 0;
      for (int64_t k = 0; k <= j; ++k) {
        sum += l.GetDouble(first + i * n + k) * l.GetDouble(first + j * n + k);
      }
      ASSERT_NEAR(sum, a.GetDouble(at), 1e-10) << i << ", " << j;
    }
  }
}

TEST(Panels, SolveTriangles) {
  for (const auto& [batch, n, k] :
       {Shape3{1, 64, 64}, Shape3{2, 65, 70}, Shape3{1, 100, 3}}) {
    for (const bool upper : {false, true}) {
      for (const bool unit : {false, true}) {
        Tensor a = Matrices(DType::kF64, {batch, n, n}, Kind::kRandom);
        for (int64_t i = 0; i < a.size(); ++i) {
          const double x = a.GetDouble(i) / static_cast<double>(n);
          a.SetDouble(i, i % (n * n) % (n + 1) == 0 ? x + 2 : x);
        }
        const Tensor b = Matrices(DType::kF64, {batch, n, k}, Kind::kRandom);
        Attributes attributes;
        attributes.Set("upper", upper);
        attributes.Set("unit", unit);
        ASSERT_OK_AND_ASSIGN(
            const Results x,
            Evaluate("solve_triangular", {{"a", a}, {"b", b}}, attributes,
                     /*has_panels=*/k >= 64));
        for (int64_t at = 0; at < b.size(); ++at) {
          const int64_t c = at % k;
          const int64_t i = at / k % n;
          const int64_t matrix = at / k / n;
          double sum = 0;
          for (int64_t j = 0; j < n; ++j) {
            if (upper ? j < i : j > i) continue;
            const double t =
                unit && i == j ? 1 : a.GetDouble((matrix * n + i) * n + j);
            sum += t * x[0].GetDouble((matrix * n + j) * k + c);
          }
          ASSERT_NEAR(sum, b.GetDouble(at), 1e-11) << i << ", " << c;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cleave
