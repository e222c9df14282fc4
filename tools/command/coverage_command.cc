// coverage: how each op gets each transform, known before anything runs.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/codegen/device.h"
#include "engine/codegen/numerics.h"
#include "engine/codegen/primitive_support.h"
#include "nlohmann/json.hpp"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "testing/glob.h"
#include "tools/command/command.h"
#include "tools/command/load.h"
#include "tools/command/show_batching.h"
#include "transforms/report/coverage.h"

namespace cleave {
namespace {

struct CoverageFlags {
  std::vector<std::string> paths;
  std::vector<std::string> ops;
  std::string glob = "*";
  bool batching = false;
  bool pairs = false;
  bool numerics = false;
  bool kernels = false;
  bool json = false;
};

// `given (file:line)`, `derived`, `impossible: why` or `not supported: why`.
std::string Describe(const Coverage& coverage) {
  const auto with_reason = [&](const std::string& kind) {
    // Reasons of the engine may begin with the kind themselves.
    return coverage.why.rfind(kind + ":", 0) == 0
               ? coverage.why
               : absl::StrCat(kind, ": ", coverage.why);
  };
  switch (coverage.kind) {
    case Coverage::Kind::kGiven:
      return absl::StrCat("given (", coverage.why, ")");
    case Coverage::Kind::kDerived:
      return "derived";
    case Coverage::Kind::kImpossible:
      return with_reason("impossible");
    case Coverage::Kind::kNotSupported:
      return with_reason("not supported");
  }
  return "";
}

struct Row {
  std::string op, vmap, jvp, vjp;
};

void PrintTable(const std::vector<Row>& rows) {
  size_t op = 2, vmap = 4, jvp = 3;
  for (const Row& row : rows) {
    op = std::max(op, row.op.size());
    vmap = std::max(vmap, row.vmap.size());
    jvp = std::max(jvp, row.jvp.size());
  }
  const auto print = [&](const Row& row) {
    std::cout << absl::StreamFormat("%-*s  %-*s  %-*s  %s\n", op, row.op, vmap,
                                    row.vmap, jvp, row.jvp, row.vjp);
  };
  print({"op", "vmap", "jvp", "vjp"});
  for (const Row& row : rows) print(row);
}

// Prints what the functions of f32 become inside a kernel.
int ShowNumerics(const CoverageFlags& flags) {
  const auto loaded = LoadRulePaths(flags.paths);
  if (!loaded) return kExitUsage;
  nlohmann::ordered_json primitives = nlohmann::ordered_json::object();
  for (int i = 0; i < kNumPrimitives; ++i) {
    const Primitive primitive = static_cast<Primitive>(i);
    if (ClassOf(primitive) != PrimitiveClass::kPointwise) continue;
    const auto numeric = FindNumeric(*loaded->rules, primitive, DType::kF32);
    if (!numeric.ok()) return Complain(numeric.status());
    std::string how;
    if (*numeric != nullptr) {
      how = absl::StrCat("numeric, within ", (*numeric)->ulp, " ulp");
    } else if (FloatSourceOf(primitive) == FloatSource::kLibrary) {
      how = "C library";
    } else if (FloatSourceOf(primitive) == FloatSource::kReference) {
      how = "reference kernel";
    } else {
      continue;
    }
    primitives[std::string(PrimitiveName(primitive))] = how;
  }
  if (flags.json) {
    const nlohmann::ordered_json json = {{"primitives", primitives}};
    std::cout << json.dump(2) << "\n";
    return kExitOk;
  }
  for (const auto& [name, how] : primitives.items()) {
    std::cout << absl::StreamFormat("%-10s  %s\n", name,
                                    how.get<std::string>());
  }
  return kExitOk;
}

// Prints what the primitives become, on each device.
int ShowKernels(const CoverageFlags& flags) {
  nlohmann::ordered_json primitives = nlohmann::ordered_json::object();
  for (int i = 0; i < kNumPrimitives; ++i) {
    const Primitive primitive = static_cast<Primitive>(i);
    const std::string name(PrimitiveName(primitive));
    for (const Device device : {Device::kCpu, Device::kOpenCl, Device::kCuda}) {
      const std::string how = DescribeSupport(primitive, device);
      if (how.empty()) continue;
      primitives[name][std::string(DeviceName(device))] = how;
    }
  }
  if (flags.json) {
    const nlohmann::ordered_json json = {{"primitives", primitives}};
    std::cout << json.dump(2) << "\n";
    return kExitOk;
  }
  for (const auto& [name, devices] : primitives.items()) {
    std::cout << absl::StreamFormat("%-20s", name);
    const std::string cpu = devices["cpu"].get<std::string>();
    std::cout << cpu;
    for (const char* device : {"opencl", "cuda"}) {
      const std::string how = devices[device].get<std::string>();
      if (how != cpu) std::cout << "; " << device << ": " << how;
    }
    std::cout << "\n";
  }
  return kExitOk;
}

// Each transform of what another gives.
int ShowPairs(const RuleSet& rules, const std::vector<std::string>& ops,
              bool as_json) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  std::map<std::string, int> counts;
  for (const std::string& op : ops) {
    ShowProgress(op);
    const auto pairs = TransformPairs(rules, op);
    if (!pairs.ok()) return Complain(pairs.status());
    for (const PairCoverage& pair : *pairs) {
      const std::string name = absl::StrCat(TransformName(pair.outer), " of ",
                                            TransformName(pair.inner));
      const std::string how = Describe(pair.coverage);
      json[op][name] = how;
      ++counts[how.substr(0, how.find(':'))];
    }
  }
  ShowProgress("");
  if (as_json) {
    std::cout << nlohmann::ordered_json{{"ops", json}}.dump(2) << "\n";
    return kExitOk;
  }
  // Each answer of an op that is no success, with the pairs that have it.
  for (const auto& [op, pairs] : json.items()) {
    std::map<std::string, std::vector<std::string>> by_answer;
    for (const auto& [name, how] : pairs.items()) {
      by_answer[how.get<std::string>()].push_back(name);
    }
    for (const auto& [how, names] : by_answer) {
      if (how == "derived") continue;
      std::cout << op << "  "
                << (names.size() == pairs.size() ? "all"
                                                 : absl::StrJoin(names, ", "))
                << "  " << how << "\n";
    }
  }
  std::vector<std::string> summary;
  for (const auto& [how, count] : counts) {
    summary.push_back(absl::StrCat(count, " ", how));
  }
  std::cout << "pairs of " << ops.size()
            << " ops: " << absl::StrJoin(summary, ", ") << "\n";
  return kExitOk;
}

int ShowCoverage(const CoverageFlags& flags) {
  const auto loaded = LoadRulePaths(flags.paths);
  if (!loaded) return kExitUsage;
  const auto names = OpNames(*loaded->rules, flags.ops);
  if (!names) return kExitUsage;
  std::vector<std::string> chosen;
  for (const std::string& name : *names) {
    if (flags.ops.empty() && !flags.paths.empty() && !loaded->Gives(name)) {
      continue;
    }
    if (MatchesGlob(flags.glob, name)) chosen.push_back(name);
  }
  if (chosen.empty()) {
    return Complain(flags.glob == "*"
                        ? "these files declare no op"
                        : absl::StrCat("no op matches `", flags.glob, "`"));
  }
  if (flags.batching) return ShowBatching(*loaded->rules, chosen, flags.json);
  if (flags.pairs) return ShowPairs(*loaded->rules, chosen, flags.json);
  std::vector<Row> rows;
  for (const std::string& name : chosen) {
    ShowProgress(name);
    const auto coverage = TransformCoverage(*loaded->rules, name);
    if (!coverage.ok()) return Complain(coverage.status());
    rows.push_back({name, Describe(coverage->vmap), Describe(coverage->jvp),
                    Describe(coverage->vjp)});
  }
  ShowProgress("");
  if (flags.json) {
    nlohmann::json ops = nlohmann::json::object();
    for (const Row& row : rows) {
      ops[row.op] = {{"vmap", row.vmap}, {"jvp", row.jvp}, {"vjp", row.vjp}};
    }
    const nlohmann::json json = {{"ops", std::move(ops)}};
    std::cout << json.dump(2) << "\n";
  } else {
    PrintTable(rows);
  }
  return kExitOk;
}

}  // namespace

void AddCoverage(CommandLine& line) {
  Verb verb =
      line.AddVerb("coverage",
                   "Print how each op gets each transform: given, derived, or "
                   "impossible and why.");
  auto flags = std::make_shared<CoverageFlags>();
  verb.Add("FILE", flags->paths,
           "Rule files, or folders of them, whose ops to show (all)");
  verb.Add("--op", flags->ops, "Only these ops").CommaSeparated();
  verb.Add("--ops", flags->glob, "Only ops that this glob matches");
  const Option batching =
      verb.AddFlag("--batching", flags->batching,
                   "Print instead, for each op and subset of batched inputs, "
                   "whether vmap keeps the op one call, and why not");
  const Option pairs =
      verb.AddFlag("--pairs", flags->pairs,
                   "Print instead which pairs of transforms, one of the other, "
                   "an op does not have, and why")
          .Excludes(batching);
  const Option numerics =
      verb.AddFlag(
              "--numerics", flags->numerics,
              "Print instead what each function of f32 becomes in a kernel: "
              "a numeric of the rules or a call of the C library")
          .Excludes(batching)
          .Excludes(pairs);
  verb.AddFlag("--kernels", flags->kernels,
               "Print instead which primitives have code in kernels on each "
               "device, and why others run by reference kernels or the CPU")
      .Excludes(numerics)
      .Excludes(batching)
      .Excludes(pairs);
  verb.AddFlag("--json", flags->json, "As JSON");
  verb.Runs([flags] {
    if (flags->kernels) return ShowKernels(*flags);
    return flags->numerics ? ShowNumerics(*flags) : ShowCoverage(*flags);
  });
}

}  // namespace cleave
