// The layer of host kernels: what it finds, what it shows, what it leaves out.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/check/check.h"
#include "testing/check/check_host_testing.h"
#include "testing/check/check_testing.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Results = absl::StatusOr<std::vector<Tensor>>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

constexpr char kAbs[] = "op checked(x: f32[n]) -> f32[n]\n  = abs(x)";
constexpr char kTwice[] =
    "op checked(x: T[S..]) -> T[S..]\n  where T: float\n  = 2 * x";

double Twice(double x) { return 2 * x; }

TEST(HostKernel, ShowsASmallCounterexample) {
  const Verdict verdict =
      CheckHost(kAbs, OfOne([](double x) { return std::fmax(x, 0.0); }));
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees);
  const Counterexample& example = *verdict.counterexample;
  EXPECT_EQ(example.call, "checked(x: f32[1])");
  EXPECT_EQ(example.inputs, "x = -1 (-0x1p+0)");
  EXPECT_EQ(example.what, "y[0] of the host kernel, in f32");
  EXPECT_THAT(example.expected, StartsWith("1 (0x1p+0), over the reals 1"));
  EXPECT_EQ(example.got, "0 (0x0p+0)");
  EXPECT_EQ(example.ulp, 0x1p23);
  EXPECT_LE(example.bound, 12);
  EXPECT_EQ(example.place, "test.rules:3");
  EXPECT_EQ(example.replay,
            "options.ops = \"checked\"; options.seed = 1; options.layers = "
            "{Layer::kHostKernel};");
}

TEST(HostKernel, ShrinksAxesAndExtents) {
  constexpr char kNegated[] =
      "op checked(x: T[A.., n@axis, B..], *, axis: axis(x))"
      " -> T[A.., n, B..]\n  where T: float\n"
      "  = x - reduce_sum(x, axes: [axis])";
  const Verdict verdict = CheckHost(
      kNegated, AlongAxis([](const std::vector<double>& x, const HostCall&) {
        double sum = 0;
        for (double v : x) sum += v;
        std::vector<double> y;
        for (size_t j = 0; j < x.size(); ++j) {
          y.push_back(x[j] - sum + (j == 1 ? 1 : 0));
        }
        return y;
      }));
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees) << Shown(verdict);
  EXPECT_THAT(
      verdict.counterexample->call,
      ::testing::MatchesRegex("checked\\(x: [a-z0-9]+\\[2\\], axis: 0\\)"));
  EXPECT_THAT(verdict.counterexample->inputs, HasSubstr("[0, 0]"));
}

// A loop over whole vectors that forgets the rest.
TEST(HostKernel, RefutesWhatIsWrongAtSomeLengthsAlone) {
  const Verdict verdict =
      CheckHost(kTwice, [](const HostCall& call) -> Results {
        Tensor y(call.inputs[0].dtype(), call.inputs[0].shape());
        const int64_t whole = y.size() < 16 ? y.size() : y.size() / 8 * 8;
        for (int64_t i = 0; i < whole; ++i) {
          y.SetDouble(i, 2 * call.inputs[0].GetDouble(i));
        }
        return std::vector<Tensor>{y};
      });
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees) << Shown(verdict);
  EXPECT_THAT(verdict.counterexample->call,
              ::testing::MatchesRegex(".*\\[(17|18|19|2[0-3])\\].*"));
}

TEST(HostKernel, RefutesWhatIsWrongAtLargeExtentsAlone) {
  constexpr char kSum[] =
      "op checked(x: f32[n, m]) -> f32[n]\n"
      "  = reduce_sum(x, axes: [1], keepdims: false)";
  const Verdict verdict = CheckHost(kSum, [](const HostCall& call) -> Results {
    const Tensor& x = call.inputs[0];
    const int64_t m = x.shape()[1];
    Tensor y(x.dtype(), {x.shape()[0]});
    for (int64_t i = 0; i < y.size(); ++i) {
      double sum = 0;
      for (int64_t j = 0; j < std::min<int64_t>(m, 8); ++j) {
        sum += x.GetDouble(i * m + j);
      }
      y.SetDouble(i, sum);
    }
    return std::vector<Tensor>{y};
  });
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees) << Shown(verdict);
  EXPECT_EQ(verdict.counterexample->call, "checked(x: f32[1, 9])");
}

// An error of 2^-16 at 3.7 and of less near there, between points of the grid.
TEST(HostKernel, SearchesNearLargeErrors) {
  constexpr char kExp[] = "op checked(x: f32[n]) -> f32[n]\n  = exp(x)";
  const auto bump = [](double size) {
    return Pointwise([=](const std::vector<double>& x, const HostCall&) {
      const double d = (x[0] - 3.7) / 0.002;
      return std::exp(x[0]) * (1 + size / (1 + d * d));
    });
  };
  const Verdict right = CheckHost(kExp, bump(0));
  EXPECT_EQ(right.kind, VerdictKind::kAgrees) << Shown(right);
  const Verdict wrong = CheckHost(kExp, bump(0x1p-16));
  EXPECT_EQ(wrong.kind, VerdictKind::kDisagrees) << Shown(wrong);
}

TEST(HostKernel, RefutesOtherTypesAndErrors) {
  const auto got = [](HostFunction kernel) {
    const Verdict verdict = CheckHost(kTwice, std::move(kernel));
    EXPECT_EQ(verdict.kind, VerdictKind::kDisagrees) << Shown(verdict);
    if (!verdict.counterexample) return std::string();
    EXPECT_EQ(verdict.counterexample->what, "what the host kernel returns");
    return verdict.counterexample->got;
  };
  EXPECT_THAT(
      got([](const HostCall& call) -> Results {
        std::vector<int64_t> shape = call.inputs[0].shape();
        shape.push_back(1);
        return std::vector<Tensor>{Tensor(call.inputs[0].dtype(), shape)};
      }),
      HasSubstr("for result 0, which is"));
  EXPECT_THAT(
      got([](const HostCall& call) -> Results {
        return std::vector<Tensor>{Tensor(DType::kI64, call.inputs[0].shape())};
      }),
      HasSubstr("`checked` gave i64["));
  EXPECT_THAT(got([](const HostCall& call) -> Results {
                return std::vector<Tensor>{call.inputs[0], call.inputs[0]};
              }),
              HasSubstr("gave 2 results, not 1"));
  EXPECT_THAT(got([](const HostCall&) -> Results {
                return absl::InternalError("the device is gone");
              }),
              HasSubstr("`checked`: the device is gone"));
  EXPECT_THAT(
      got([](const HostCall&) -> Results {
        return std::vector<Tensor>{Tensor::FromDoubles(DType::kF32, {2}, {1})};
      }),
      HasSubstr("result 0: 1 values for f32[2]"));
  EXPECT_THAT(got(nullptr), HasSubstr("is no function"));
}

TEST(HostKernel, RefutesWritesThatAreNotTheResults) {
  const auto what = [](HostFunction kernel) {
    const Verdict verdict = CheckHost(kTwice, std::move(kernel));
    EXPECT_EQ(verdict.kind, VerdictKind::kDisagrees) << Shown(verdict);
    return verdict.counterexample ? verdict.counterexample->what : "";
  };
  // In place: copies of a tensor share its elements.
  EXPECT_EQ(what([](const HostCall& call) -> Results {
              Tensor y = call.inputs[0];
              for (int64_t i = 0; i < y.size(); ++i) {
                y.SetDouble(i, 2 * y.GetDouble(i));
              }
              return std::vector<Tensor>{y};
            }),
            "input x, to which the host kernel wrote");
  EXPECT_EQ(what([](const HostCall& call) -> Results {
              Tensor x = call.inputs[0];
              if (x.size() > 0) {
                std::memset(x.mutable_data() + x.byte_size(), 0, 1);
              }
              return OfOne(Twice)(call);
            }),
            "memory around the input x, to which the host kernel wrote");
}

TEST(HostKernel, RefutesResultsThatAreNotWritten) {
  const auto kind = [](int64_t written_from_end) {
    return CheckHost(kTwice,
                     [=](const HostCall& call) -> Results {
                       Tensor y = *Tensor::CreateUninitialized(
                           call.inputs[0].dtype(), call.inputs[0].shape());
                       for (int64_t i = 0; i < y.size() - written_from_end;
                            ++i) {
                         y.SetDouble(i, 2 * call.inputs[0].GetDouble(i));
                       }
                       return std::vector<Tensor>{y};
                     })
        .kind;
  };
  EXPECT_EQ(kind(0), VerdictKind::kAgrees);
  EXPECT_EQ(kind(1), VerdictKind::kDisagrees);
}

TEST(HostKernel, RefutesBoolsThatAreNone) {
  const auto positive = [](std::byte yes) {
    return CheckHost("op checked(x: f32[n]) -> bool[n]\n  = x > 0",
                     [=](const HostCall& call) -> Results {
                       Tensor y(DType::kBool, call.inputs[0].shape());
                       for (int64_t i = 0; i < y.size(); ++i) {
                         if (call.inputs[0].GetDouble(i) > 0) {
                           y.mutable_data()[i] = yes;
                         }
                       }
                       return std::vector<Tensor>{y};
                     });
  };
  EXPECT_EQ(positive(std::byte{1}).kind, VerdictKind::kAgrees);
  const Verdict verdict = positive(std::byte{255});
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees);
  EXPECT_EQ(verdict.counterexample->got, "255");
}

TEST(HostKernel, LeavesOutWhatAKernelDoesNotDo) {
  const auto only = [](DType dtype) {
    return CheckHost(kTwice, [=](const HostCall& call) -> Results {
      if (call.inputs[0].dtype() != dtype) {
        return absl::UnimplementedError("other dtypes");
      }
      return OfOne(Twice)(call);
    });
  };
  const Verdict some = only(DType::kF32);
  EXPECT_EQ(some.kind, VerdictKind::kAgrees) << Shown(some);
  EXPECT_THAT(some.notes, ::testing::Contains(HasSubstr(
                              "samples that the kernel does not do: the host "
                              "kernel of `checked`: other dtypes")));
  const Verdict none = only(DType::kI8);
  EXPECT_EQ(none.kind, VerdictKind::kInconclusive) << Shown(none);
  EXPECT_THAT(none.why, HasSubstr("the kernel does no sampled call"));
}

TEST(HostKernel, SaysWhereZerosHaveAnotherSign) {
  constexpr char kNegated[] =
      "op checked(x: T[S..]) -> T[S..]\n  where T: float\n  = -x";
  const HostFunction difference = OfOne([](double x) { return 0 - x; });
  const Verdict verdict = CheckHost(kNegated, difference);
  EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << Shown(verdict);
  EXPECT_THAT(verdict.notes,
              ::testing::Contains(HasSubstr("zeros of the other sign")));
  CheckOptions options = WithKernel(difference);
  options.host_tolerance.signed_zeros = true;
  EXPECT_EQ(CheckHost(kNegated, options).kind, VerdictKind::kDisagrees);
  options = WithKernel(OfOne([](double x) { return -x; }));
  options.host_tolerance.signed_zeros = true;
  EXPECT_EQ(CheckHost(kNegated, options).kind, VerdictKind::kAgrees);
}

TEST(HostKernel, MayLeaveOutSpecialValues) {
  const HostFunction clears =
      OfOne([](double x) { return std::isfinite(x) ? 2 * x : 0; });
  EXPECT_EQ(CheckHost(kTwice, clears).kind, VerdictKind::kDisagrees);
  CheckOptions options = WithKernel(clears);
  options.host_tolerance.special_values = false;
  const Verdict verdict = CheckHost(kTwice, options);
  EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << Shown(verdict);
  EXPECT_THAT(verdict.notes, ::testing::Contains(
                                 HasSubstr("infinities or NaN, not compared")));
  // NaN for a number is wrong all the same.
  options = WithKernel(OfOne([](double x) { return x == 1 ? kNaN : 2 * x; }));
  options.host_tolerance.special_values = false;
  EXPECT_EQ(CheckHost(kTwice, options).kind, VerdictKind::kDisagrees);
}

TEST(HostKernel, HoldsToTheTolerance) {
  // A relative error of 1e-6: 8 to 17 ulp.
  const HostFunction near = OfOne([](double x) { return 2.000002 * x; });
  CheckOptions options = WithKernel(near);
  options.dtypes = {DType::kF32};
  options.host_tolerance.input_ulp = 0;
  EXPECT_EQ(CheckHost(kTwice, options).kind, VerdictKind::kDisagrees);
  options.host_tolerance.ulp = 18;
  EXPECT_EQ(CheckHost(kTwice, options).kind, VerdictKind::kAgrees);
  // Numbers that are none do not open it.
  options.host_tolerance.ulp = kNaN;
  EXPECT_EQ(CheckHost(kTwice, options).kind, VerdictKind::kDisagrees);

  constexpr char kSine[] = "op checked(x: f32[n]) -> f32[n]\n  = sin(x)";
  options = WithKernel(OfOne([](double x) { return std::sin(x) + 1e-4; }));
  EXPECT_EQ(CheckHost(kSine, options).kind, VerdictKind::kDisagrees);
  options.host_tolerance.absolute = 2e-4;
  const Verdict verdict = CheckHost(kSine, options);
  EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << Shown(verdict);
}

// A value that overflows on the way is what the body gives, if not what it
// means.
TEST(HostKernel, TakesWhatTheBodyGivesInFloatingPoint) {
  constexpr char kNaive[] = "op checked(x: f32[n]) -> f32[n]\n  = sqrt(x * x)";
  const Verdict same = CheckHost(
      kNaive, OfOne([](double x) {
        const float square = static_cast<float>(x) * static_cast<float>(x);
        return static_cast<double>(std::sqrt(square));
      }));
  EXPECT_EQ(same.kind, VerdictKind::kAgrees) << Shown(same);
  EXPECT_THAT(
      same.notes,
      ::testing::Contains(HasSubstr("what the body gives in floating point")));
  const Verdict better =
      CheckHost(kNaive, OfOne([](double x) { return std::abs(x); }));
  EXPECT_EQ(better.kind, VerdictKind::kAgrees) << Shown(better);
}

TEST(HostKernel, IsDeterminedByTheSeed) {
  // The inputs that the kernel was given, as one number.
  const auto digest = [](uint64_t seed) {
    uint64_t hash = 0;
    CheckOptions options = WithKernel([&](const HostCall& call) -> Results {
      for (int64_t i = 0; i < call.inputs[0].size(); ++i) {
        hash = (hash ^ std::hash<double>()(call.inputs[0].GetDouble(i))) *
               1099511628211u;
      }
      return OfOne(Twice)(call);
    });
    options.seed = seed;
    const Verdict verdict = CheckHost(kTwice, options);
    EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << Shown(verdict);
    return std::pair(hash, verdict.ToString());
  };
  EXPECT_EQ(digest(1), digest(1));
  EXPECT_NE(digest(1).first, digest(2).first);
}

TEST(HostKernel, WithoutABodyHoldsToTheSpec) {
  constexpr char kSpec[] =
      "op checked(x: f64[n], w: f64[n]) -> f64[]\n"
      "  spec y = sum[i](x[i] * w[i])";
  const auto dot = [](double factor) -> HostFunction {
    return [=](const HostCall& call) -> Results {
      double sum = 0;
      for (int64_t i = 0; i < call.inputs[0].size(); ++i) {
        sum += call.inputs[0].GetDouble(i) * call.inputs[1].GetDouble(i);
      }
      return std::vector<Tensor>{Tensor::Scalar(DType::kF64, factor * sum)};
    };
  };
  EXPECT_EQ(CheckHost(kSpec, dot(1)).kind, VerdictKind::kAgrees)
      << Shown(CheckHost(kSpec, dot(1)));
  EXPECT_EQ(CheckHost(kSpec, dot(2)).kind, VerdictKind::kDisagrees);
}

TEST(HostKernel, WithoutABodyAndASpecIsNotChecked) {
  const Verdict verdict =
      CheckHost("op checked(x: f32[n]) -> f32[n]", OfOne(Twice));
  EXPECT_EQ(verdict.kind, VerdictKind::kNotChecked);
  EXPECT_EQ(verdict.why, "no body and no spec");
}

// The column is there where it is asked for, or a kernel is.
TEST(HostKernel, IsALayerOfOpsWithKernels) {
  const auto rules =
      LoadText("test.rules",
               absl::StrCat("language 1\n\n", kAbs,
                            "\n\nop other(x: f32[n]) -> f32[n]\n  = -x\n"));
  ASSERT_NE(rules, nullptr);
  CheckOptions options;
  options.ops = "*e*";  // also "jvp exp"
  options.layers = {Layer::kForm, Layer::kHostKernel};
  options.host_kernels.Set("checked",
                           OfOne([](double x) { return std::abs(x); }));
  CheckReport report = CheckedRules(rules, options);
  EXPECT_EQ(report.Find("checked")->layers.at(Layer::kHostKernel).kind,
            VerdictKind::kAgrees);
  EXPECT_EQ(report.Find("other")->layers.at(Layer::kHostKernel).why,
            "no host kernel");
  EXPECT_THAT(report.ToString(), HasSubstr("host"));
  EXPECT_THAT(report.ToJson(), HasSubstr("\"host\": {"));
  options.layers = {Layer::kForm};
  report = CheckedRules(rules, options);
  EXPECT_EQ(report.Find("checked")->layers.count(Layer::kHostKernel), 0u);
  EXPECT_THAT(report.ToString(), ::testing::Not(HasSubstr("host")));
}

TEST(HostKernel, RefusesKernelsOfNoOp) {
  const auto rules =
      LoadText("test.rules",
               absl::StrCat("language 1\n\n", kAbs,
                            "\n\nfn f(x: f32[n]) -> f32[n] = checked(x)\n"));
  ASSERT_NE(rules, nullptr);
  for (const char* name : {"chekced", "f", "sin", ""}) {
    CheckOptions options;
    options.ops = "checked";
    options.host_kernels.Set(name, OfOne(Twice));
    EXPECT_THAT(CheckRules(rules, options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("the host kernel of `", name,
                                                "` is for no op of these "
                                                "rules"))));
  }
  EXPECT_THAT(CheckRules(nullptr, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no rules to check")));
}

}  // namespace
}  // namespace cleave
