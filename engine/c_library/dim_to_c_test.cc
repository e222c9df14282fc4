#include "engine/c_library/dim_to_c.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "engine/runtime/program.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

constexpr int kVariables = 3;
const char* const kNames[kVariables] = {"a", "b", "c.d"};

TEST(DimToC, ReadsAsItIsWritten) {
  const std::map<std::string, std::string> names = {{"n", "n"}, {"m", "s[1]"}};
  const auto text = [&](absl::string_view dim) {
    return DimToC(*Dim::Parse(dim), names);
  };
  EXPECT_EQ(text("0"), "0");
  EXPECT_EQ(text("-7"), "-7");
  EXPECT_EQ(text("4294967296"), "INT64_C(4294967296)");
  EXPECT_EQ(text("m"), "s[1]");
  EXPECT_EQ(text("n // 4"), "cleave_floor_divide(n, 4, bad)");
  EXPECT_EQ(text("n % m"), "cleave_modulo(n, s[1], bad)");
  EXPECT_EQ(text("2*n + 1"),
            "cleave_narrow(cleave_plus(cleave_times(2, n, bad), 1, bad), bad)");
  EXPECT_EQ(text("n*n"), "cleave_narrow(cleave_times(n, n, bad), bad)");
  EXPECT_EQ(text("min(n, m, 3)"), "cleave_min(cleave_min(s[1], n), 3)");
}

// Any of what Dims are made of, some with no value for some numbers.
Dim RandomDim(std::mt19937& random, int depth) {
  const auto pick = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  if (depth == 0 || pick(6) == 0) {
    if (pick(3) > 0) return Dim::Variable(kNames[pick(kVariables)]);
    const int64_t numbers[] = {
        0, 1, 2, 3, 7, -1, -5, int64_t{1} << 31, int64_t{3} << 60};
    return Dim(numbers[pick(9)]);
  }
  const Dim a = RandomDim(random, depth - 1);
  const Dim b = RandomDim(random, depth - 1);
  const auto combine = [&]() -> absl::StatusOr<Dim> {
    switch (pick(7)) {
      case 0:
        return Dim::CheckedAdd(a, b);
      case 1:
        return Dim::CheckedSub(a, b);
      case 2:
        return Dim::CheckedMul(a, b);
      case 3:
        return Dim::CheckedFloorDiv(a, b);
      case 4:
        return Dim::CheckedMod(a, b);
      case 5:
        return Dim::CheckedMin({a, b, RandomDim(random, 0)});
      default:
        return Dim::CheckedMax({a, b, RandomDim(random, 0)});
    }
  };
  const absl::StatusOr<Dim> result = combine();
  return result.ok() ? *result : a;  // beyond the limits of Dims
}

// The C compiler's opinion of many expressions at many numbers.
TEST(DimToC, ComputesWhatEvaluateDoes) {
  std::mt19937 random(1);
  std::map<std::string, std::string> names;
  for (int v = 0; v < kVariables; ++v) {
    names.emplace(kNames[v], absl::StrCat("x[", v, "]"));
  }
  std::vector<Dim> dims;
  std::string source =
      absl::StrCat("#include <stdint.h>\n", kDimFunctions,
                   "int64_t evaluate(int i, const int64_t *x, int *bad) {\n"
                   "  switch (i) {\n");
  for (int i = 0; i < 400; ++i) {
    dims.push_back(RandomDim(random, 1 + i % 4));
    absl::StrAppend(&source, "    case ", i, ": return ",
                    DimToC(dims.back(), names), ";\n");
  }
  absl::StrAppend(&source, "  }\n  return 0;\n}\n");
  const std::string base =
      absl::StrCat(::testing::TempDir(), "/dim_to_c_", getpid());
  ASSERT_OK(WriteFileAtomically(base + ".c", source));
  const std::string compiler = FindProgram("cc");
  ASSERT_NE(compiler, "");
  ASSERT_OK_AND_ASSIGN(
      const pid_t child,
      StartProgram({compiler, "-std=c99", "-Wall", "-Wextra", "-Werror",
                    "-pedantic", "-shared", "-fPIC", "-fsanitize=undefined",
                    "-fsanitize-undefined-trap-on-error", "-o", base + ".so",
                    base + ".c"},
                   {}, STDERR_FILENO));
  ASSERT_EQ(WaitForProgram(child), "");
  void* const library = dlopen((base + ".so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto evaluate =
      reinterpret_cast<int64_t (*)(int, const int64_t*, int*)>(
          dlsym(library, "evaluate"));
  ASSERT_NE(evaluate, nullptr);
  const int64_t numbers[] = {
      0, 1, 2, 3, 5, 64, 1 << 20, INT32_MAX, int64_t{1} << 40, INT64_MAX};
  int values = 0;
  int failures = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    for (int trial = 0; trial < 50; ++trial) {
      int64_t x[kVariables];
      std::map<std::string, int64_t> named;
      for (int v = 0; v < kVariables; ++v) {
        x[v] = numbers[random() % 10];
        named.emplace(kNames[v], x[v]);
      }
      int bad = 0;
      const int64_t got = evaluate(static_cast<int>(i), x, &bad);
      const absl::StatusOr<int64_t> want = dims[i].Evaluate(named);
      const std::string what =
          absl::StrCat(dims[i].ToString(), " at ", x[0], ", ", x[1], ", ", x[2],
                       ": ", DimToC(dims[i], names));
      ASSERT_EQ(bad == 0, want.ok()) << what << "\n" << want.status();
      if (want.ok()) {
        ASSERT_EQ(got, *want) << what;
        ++values;
      } else {
        ++failures;
      }
    }
  }
  // Both kinds of answers are tested.
  EXPECT_GT(values, 5000);
  EXPECT_GT(failures, 500);
  dlclose(library);
  std::remove((base + ".c").c_str());
  std::remove((base + ".so").c_str());
}

}  // namespace
}  // namespace cleave
