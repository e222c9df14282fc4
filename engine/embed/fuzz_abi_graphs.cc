// The calls of fuzz_abi on rules, graphs, transforms and builders.

#include "engine/embed/fuzz_abi.h"

namespace cleave::fuzz_abi {
namespace {

const char* const kSources[] = {
    "language 1\n\nop twice(x: T[S..]) -> T[S..]\n  where T: number\n"
    "  = 2 * x\n\nfn f(x: f32[3, 4]) -> f32[3] = sum(twice(x), axes: [1])\n",
    "language 1\n\n/// Doc.\nop pair(x: T[n]) -> (a: T[n], b: T[])\n"
    "  where T: float\n{\n  (a = exp(x), b = sum(x))\n}\n"
    "fn g(x: f64[n]) -> f64[n] = pair(x).a\n",
    "language 1\n\noverride relu\n{\n  jvp x (t) = t * 2\n}\n",
    "language 1\n\nrewrite r: x + 0 => x where x: float\n",
    "{\"language\": 1, \"items\": []}",
    "language 2\n",
    "",
};

const char* const kNames[] = {"softmax", "matmul", "topk", "twice",
                              "exp",     "add",    "sum",  "f",
                              "g",       "cat",    "mean", "relu",
                              "dropout", "",       "\xff", "aten.add.Tensor",
                              "reshape", "while",  "none"};
const char* const kNumbers[] = {"0", "0.5", "-1",  "1e400", "nan", "inf",
                                "x", "",    "0x1", "true",  "1/3"};

}  // namespace

// ------------------------------------------------------ Rules and graphs --

void Fuzzer::Load() {
  Trace("extend");
  cleave_source sources[3] = {};
  const size_t count = static_cast<size_t>(Below(4));
  for (size_t i = 0; i < count; ++i) {
    sources[i].struct_size = sizeof(cleave_source);
    sources[i].name = OneIn(9) ? nullptr : OneIn(5) ? "a.json" : "a.rules";
    sources[i].text = Mutated(Any(kSources));
  }
  cleave_rules* made = nullptr;
  cleave_status* const status = cleave_rules_extend(
      AnyOf(rules_), OneIn(30) ? nullptr : sources, count, Options(), &made);
  Keep(status, made, &rules_, cleave_rules_release);
}

void Fuzzer::Describe() {
  const cleave_rules* const rules = AnyOf(rules_);
  const char* const name = OneIn(4) ? "f" : Mutated(Any(kNames));
  cleave_text* text = nullptr;
  switch (Below(3)) {
    case 0:
      Trace("names");
      return Take(cleave_rules_names(rules, &text), &text);
    case 1:
      Trace("describe");
      return Take(cleave_rules_describe(rules, name, &text), &text);
    default:
      Trace("of_function");
      cleave_graph* made = nullptr;
      cleave_status* const status =
          cleave_graph_of_function(rules, name, &made);
      return KeepGraph(status, made);
  }
}

void Fuzzer::Report() {
  const cleave_rules* const rules = AnyOf(rules_);
  const char* const name = Mutated(Any(kNames));
  cleave_text* text = nullptr;
  if (OneIn(2)) {
    Trace("coverage");
    return Take(cleave_rules_coverage(rules, name, Options(), &text), &text);
  }
  Trace("derive");
  const char* const transforms[] = {"vmap", "jvp", "vjp", "", "grad"};
  return Take(
      cleave_rules_derive(rules, name, Any(transforms), Options(), &text),
      &text);
}

void Fuzzer::Check() {
  Trace("check");
  cleave_check_options check = {};
  check.struct_size = sizeof(check);
  const char* const ops[] = {"relu", "softsign", "nothing", "re?u", ""};
  const char* const layers[] = {"L0", "L1,L2", "L9", "", "host"};
  const char* const dtypes[] = {"f32", "f33", "", "bool,f64"};
  check.ops = OneIn(2) ? "relu" : Any(ops);
  check.layers = OneIn(2) ? "L0" : Any(layers);
  check.dtypes = OneIn(2) ? "f32" : Any(dtypes);
  check.threads = OneIn(4) ? -1 : 1;
  check.host_kernels = AnyOf(hosts_);
  cleave_text* text = nullptr;
  // All options, always: a check of all ops takes minutes.
  Take(cleave_rules_check(AnyOf(rules_), &check, Options(), &text), &text);
}

void Fuzzer::ParseOrPrint() {
  cleave_graph* const graph = AnyOf(graphs_);
  cleave_graph* made = nullptr;
  cleave_text* text = nullptr;
  cleave_status* status = nullptr;
  switch (Below(7)) {
    case 0:
    case 1: {
      Trace("parse");
      status = cleave_graph_parse(AnyOf(rules_), Mutated(Any(kGraphs)), &made);
      return KeepGraph(status, made);
    }
    case 2:
      Trace("print");
      return Take(
          cleave_graph_print(graph, static_cast<int32_t>(Below(6)) - 1, &text),
          &text);
    case 3:
      Trace("signature");
      if (cleave_graph_input_count(graph) > 1000000) Broken("input_count");
      if (cleave_graph_output_count(graph) > 1000000) Broken("output_count");
      return Take(cleave_graph_signature(graph, &text), &text);
    case 4: {
      Trace("substitute");
      const char* names[2] = {Mutated("n"), Mutated("m")};
      const char* sizes[2] = {Mutated("4"), Mutated("2*k + 1")};
      status =
          cleave_graph_substitute(graph, OneIn(30) ? nullptr : names, sizes,
                                  static_cast<size_t>(Below(3)), &made);
      return KeepGraph(status, made);
    }
    case 5:
      Trace("to_rule");
      return Take(cleave_graph_to_rule(graph, Mutated("an_op"), &text), &text);
    default:
      Trace("with_rules");
      status = cleave_graph_with_rules(graph, AnyOf(rules_), &made);
      return KeepGraph(status, made);
  }
}

// ----------------------------------------------------------- Transforms --

void Fuzzer::Transform() {
  cleave_graph* const graph = AnyOf(graphs_);
  cleave_graph *made = nullptr, *second = nullptr, *third = nullptr;
  cleave_text* text = nullptr;
  cleave_status* status = nullptr;
  size_t count = graph == nullptr ? 0 : cleave_graph_input_count(graph);
  const size_t outputs =
      graph == nullptr ? 0 : cleave_graph_output_count(graph);
  if (OneIn(20)) count = static_cast<size_t>(Below(64));
  uint8_t flags[256];
  uint8_t tangents[256];
  for (uint8_t& flag : flags) flag = OneIn(40) ? 7 : Below(2);
  if (count > 256 || outputs > 256) return;
  const uint8_t* const active = OneIn(40) ? nullptr : flags;
  switch (Below(10)) {
    case 0: {
      Trace("vmap");
      int32_t in[256], out[256];
      // Mostly axes that a call can have.
      const int64_t least = OneIn(4) ? -3 : -1;
      const int64_t many = OneIn(4) ? 6 : 2;
      for (int32_t& axis : in) {
        axis = static_cast<int32_t>(Below(many) + least);
      }
      in[0] = OneIn(9) ? in[0] : 0;
      for (int32_t& axis : out) axis = static_cast<int32_t>(Below(2));
      if (OneIn(20)) in[0] = std::numeric_limits<int32_t>::max();
      const char* const sizes[] = {"b", "3", "2*k", "-1", "n", "0", "2*", ""};
      const bool given = OneIn(3);
      status =
          cleave_vmap(graph, OneIn(40) ? nullptr : in, count,
                      OneIn(2) ? nullptr : Any(sizes), given ? out : nullptr,
                      given ? outputs : 0, Options(), &made);
      return KeepGraph(status, made);
    }
    case 1:
      Trace("jvp");
      status = cleave_jvp(graph, active, count, Options(),
                          OneIn(2) ? nullptr : tangents, &made);
      return KeepGraph(status, made);
    case 2:
      Trace("vjp");
      status = cleave_vjp(graph, active, count, Options(), &made);
      return KeepGraph(status, made);
    case 3:
      Trace("grad");
      status = cleave_grad(graph, active, count, static_cast<int32_t>(Below(2)),
                           Options(), &made);
      return KeepGraph(status, made);
    case 4:
      Trace("jacobian");
      status =
          cleave_jacobian(graph, static_cast<size_t>(Below(5)) * Below(9),
                          static_cast<int32_t>(Below(5)) - 1, Options(), &made);
      return KeepGraph(status, made);
    case 5: {
      Trace("linearize");
      size_t residuals = 0;
      status = cleave_linearize(graph, active, count, Options(), &made,
                                OneIn(40) ? nullptr : &second,
                                OneIn(40) ? nullptr : &residuals);
      if (second != nullptr) cleave_graph_release(second);
      return KeepGraph(status, made);
    }
    case 6:
      Trace("transpose");
      status = cleave_transpose(graph, active, count, Options(), &made);
      return KeepGraph(status, made);
    case 7: {
      Trace("expand");
      const char* names[2] = {Mutated("softmax"), Mutated("twice")};
      const char* only[1] = {Mutated("softmax")};
      status = cleave_expand(graph, names, static_cast<size_t>(Below(3)), only,
                             static_cast<size_t>(Below(2)), Options(), &made);
      return KeepGraph(status, made);
    }
    case 8:
      Trace("simplify");
      status = cleave_simplify(graph, static_cast<int32_t>(Below(3)), Options(),
                               &made);
      return KeepGraph(status, made);
    default: {
      Trace("aot");
      cleave_aot_options aot = {};
      aot.struct_size = sizeof(aot);
      const char* const partitions[] = {"default", "min-cut", "max-cut", ""};
      const char* const policies[] = {"everything", "nothing", "dots", "?"};
      const char* names[1] = {Mutated("softmax")};
      const double budgets[] = {0, 0.5, 1, -1, 1e300, 0.0 / 0.0};
      aot.partition = OneIn(3) ? nullptr : Any(partitions);
      if (OneIn(4)) aot.policy = Any(policies);
      if (OneIn(4)) aot.budget = Any(budgets);
      aot.names = names;
      aot.name_count = OneIn(6) ? 1 : 0;
      aot.decompose = names;
      aot.decompose_count = OneIn(6) ? 1 : 0;
      aot.expand = static_cast<int32_t>(Below(2));
      if (OneIn(6)) aot.parameters = static_cast<int32_t>(Below(6)) - 2;
      status =
          cleave_aot(graph, active, count, Sized(&aot), Options(), &made,
                     OneIn(3) ? nullptr : &second, OneIn(3) ? nullptr : &third,
                     OneIn(3) ? nullptr : &text);
      cleave_graph_release(second);
      cleave_graph_release(third);
      cleave_text_free(text);
      return KeepGraph(status, made);
    }
  }
}

// -------------------------------------------------------------- Builders --

void Fuzzer::Build() {
  if (builders_.empty() || OneIn(100)) {
    Trace("builder_new");
    cleave_builder* made = nullptr;
    cleave_status* const status = cleave_builder_new(AnyOf(rules_), &made);
    if (Done(status)) {
      if (!builders_.empty()) cleave_builder_free(builders_.front());
      builders_.assign(1, made);
      values_.clear();
      // Something for later calls to succeed with.
      for (const char* name : {"first", "second"}) {
        cleave_value input = CLEAVE_ABSENT;
        Expect(cleave_builder_input(made, name, "f32[3, 4]", &input));
        values_.push_back(input);
      }
    }
    return;
  }
  cleave_builder* const builder = AnyOf(builders_);
  const auto value = [&]() -> uint32_t {
    if (OneIn(30)) return CLEAVE_ABSENT;
    if (OneIn(30)) return static_cast<uint32_t>(random_());
    if (values_.empty()) return 0;
    return values_[static_cast<size_t>(
        Below(static_cast<int64_t>(values_.size())))];
  };
  cleave_value made[8];
  for (cleave_value& v : made) v = CLEAVE_ABSENT;
  const auto remember = [&](size_t count) {
    for (size_t i = 0; i < count && i < 8; ++i) {
      if (made[i] != CLEAVE_ABSENT) values_.push_back(made[i]);
    }
  };
  switch (Below(7)) {
    case 0: {
      Trace("builder_input");
      const char* const names[] = {"x", "y", "a.b", "", "1", "x y", "z"};
      if (Done(cleave_builder_input(builder, Mutated(Any(names)),
                                    Mutated(Any(kTypes)), made))) {
        remember(1);
      }
      return;
    }
    case 1:
      Trace("builder_constant");
      if (Done(cleave_builder_constant(builder, Mutated(Any(kNumbers)),
                                       Mutated(Any(kTypes)), made))) {
        remember(1);
      }
      return;
    case 2: {
      // A call that is right, but for its types perhaps.
      Trace("builder_call");
      const char* const ops[] = {"exp", "relu", "softmax", "neg", "add", "mul"};
      const int64_t op = Below(6);
      cleave_value operands[2] = {value(), value()};
      cleave_argument arguments[2] = {};
      for (int i = 0; i < 2; ++i) {
        arguments[i].struct_size = sizeof(arguments[i]);
        arguments[i].values = &operands[i];
        arguments[i].count = 1;
      }
      size_t count = 0;
      if (Done(cleave_builder_call(builder, ops[op], arguments, op < 4 ? 1 : 2,
                                   nullptr, made, 8, &count))) {
        remember(count);
      }
      return;
    }
    case 3: {
      Trace("builder_call");
      cleave_argument arguments[4] = {};
      cleave_value lists[4][3];
      for (int i = 0; i < 4; ++i) {
        for (cleave_value& v : lists[i]) v = value();
        arguments[i].struct_size =
            OneIn(30) ? static_cast<size_t>(Below(99)) : sizeof(arguments[0]);
        arguments[i].name = OneIn(9) ? Mutated("x") : nullptr;
        arguments[i].kind = OneIn(5) ? static_cast<int32_t>(Below(5)) - 1 : 0;
        arguments[i].values = OneIn(40) ? nullptr : lists[i];
        arguments[i].count = arguments[i].kind == 0 && !OneIn(20)
                                 ? 1
                                 : static_cast<size_t>(Below(4));
      }
      size_t count = 0;
      const size_t capacity = static_cast<size_t>(Below(9));
      if (Done(cleave_builder_call(
              builder, Mutated(Any(kNames)), OneIn(40) ? nullptr : arguments,
              static_cast<size_t>(Below(4)), Mutated(Any(kAttributes)), made,
              capacity, &count))) {
        if (count > capacity) Broken("builder_call: more than its room");
        remember(count);
      }
      return;
    }
    case 4: {
      Trace("builder_inline");
      cleave_value arguments[4];
      for (cleave_value& v : arguments) v = value();
      if (Done(cleave_builder_inline(builder, AnyOf(graphs_), arguments,
                                     static_cast<size_t>(Below(4)), made, 8))) {
        remember(8);
      }
      return;
    }
    case 5: {
      Trace("builder_type");
      cleave_text* text = nullptr;
      return Take(cleave_builder_type(builder, value(), &text), &text);
    }
    default: {
      if (!OneIn(4)) return;
      Trace("builder_finish");
      const char* names[3] = {Mutated("y"), Mutated("z"), "y"};
      cleave_value outputs[3] = {value(), value(), value()};
      cleave_graph* graph = nullptr;
      cleave_status* const status =
          cleave_builder_finish(builder, OneIn(40) ? nullptr : names, outputs,
                                static_cast<size_t>(Below(4)), &graph);
      if (status == nullptr) values_.clear();
      return KeepGraph(status, graph);
    }
  }
}

}  // namespace cleave::fuzz_abi
