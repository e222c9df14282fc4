// Each parameter of AotFunction, and calls that give what the function gives.

#include "transforms/aot/aot_function.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/eager/call.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/aot/aot_function_testing.h"
#include "transforms/aot/replay.h"
#include "transforms/partition/min_cut.h"

namespace cleave::aot {
namespace {

using functional::CallOne;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Layer {
  functional::Tensor weight;
  functional::Tensor bias;
};
CLEAVE_TREE(Layer, weight, bias);

functional::Tensor SinCos(functional::Tensor x) { return Cos(Sin(x)); }

class AotFunctionTest : public AotFunctionTesting {};

TEST_F(AotFunctionTest, BehavesAsTheFunctionAndHasABackward) {
  const auto f = AotFunction::Make(SinCos, Interpreting(), rules());
  ASSERT_OK(f);
  const functional::Tensor x = Vector({-1, 0.5, 2});
  const auto y = (*f)(x);
  ASSERT_OK(y);
  ExpectNear(Leaf(y->outputs), SinCos(x));
  const auto dx = y->backward(Vector({1, 1, 2}));
  ASSERT_OK(dx);
  // -sin(sin(x)) cos(x), in the order in which reverse mode multiplies.
  ExpectNear(Leaf(dx->outputs), Vector({1, 1, 2}) * (-Sin(Sin(x))) * Cos(x));
  EXPECT_EQ(f->traces(), 1);
  ASSERT_OK((*f)(Vector({1, 2, 3})));
  EXPECT_EQ(f->traces(), 1);
}

TEST_F(AotFunctionTest, TakesAndReturnsTrees) {
  const auto fn = [](const Layer& layer,
                     const std::map<std::string, functional::Tensor>& in) {
    functional::Tensor h = in.at("x") * layer.weight + layer.bias;
    return std::make_pair(h, std::vector<functional::Tensor>{Sin(h), h + 1});
  };
  const auto f = AotFunction::Make(fn, Interpreting(), rules());
  ASSERT_OK(f);
  const Layer layer{Vector({1, 2}), Vector({0.5, 0.25})};
  const std::map<std::string, functional::Tensor> in = {{"x", Vector({3, 4})}};
  const auto y = (*f)(layer, in);
  ASSERT_OK(y);
  using Result = std::pair<functional::Tensor, std::vector<functional::Tensor>>;
  const auto result = functional::FromTree<Result>(y->outputs);
  ASSERT_OK(result);
  ExpectEqual(result->first, Vector({3.5, 8.25}));
  ExpectEqual(result->second[1], Vector({4.5, 9.25}));
  const auto gradients = y->backward(functional::ToTree(
      Result(Vector({1, 1}), {functional::Tensor(), functional::Tensor()})));
  ASSERT_OK(gradients);
  using Arguments = std::pair<Layer, std::map<std::string, functional::Tensor>>;
  const auto given = functional::FromTree<Arguments>(gradients->outputs);
  ASSERT_OK(given);
  ExpectEqual(given->first.weight, Vector({3, 4}));
  ExpectEqual(given->first.bias, Vector({1, 1}));
  ExpectEqual(given->second.at("x"), Vector({1, 2}));
}

// The parameters, one by one.

TEST_F(AotFunctionTest, BwCompilerCompilesTheBackward) {
  std::vector<std::string> seen;
  AotOptions options;
  options.bw_compiler = Spy("bw", &seen);
  const auto f = AotFunction::Make(SinCos, Spy("fw", &seen), rules(), options);
  ASSERT_OK(f);
  ASSERT_OK((*f)(Vector({1})));
  EXPECT_THAT(seen, ElementsAre("fw forward", "bw backward"));
}

TEST_F(AotFunctionTest, InferenceCompilerRunsWhereNoGradientIsNeeded) {
  std::vector<std::string> seen;
  AotOptions options;
  options.inference_compiler = Spy("inference", &seen);
  const auto f = AotFunction::Make(SinCos, Spy("fw", &seen), rules(), options);
  ASSERT_OK(f);
  ASSERT_OK(f->Inference(Vector({1})));
  EXPECT_THAT(seen, ElementsAre("inference inference"));
  AotCallOptions none;
  none.requires_gradient = std::vector<bool>{false};
  const auto y = f->Call(Vector({1}), none);
  ASSERT_OK(y);
  EXPECT_FALSE(y->backward.exists());
  EXPECT_THAT(y->backward(Vector({1})).status().message(),
              HasSubstr("no input of this call needs a gradient"));
  // Without one, the forward compiler does it.
  const auto g = AotFunction::Make(SinCos, Spy("fw", &seen), rules());
  ASSERT_OK(g);
  ASSERT_OK(g->Inference(Vector({1})));
  EXPECT_THAT(seen, ElementsAre("inference inference", "fw inference"));
}

TEST_F(AotFunctionTest, RequiresGradientChoosesInputs) {
  const auto f = AotFunction::Make(
      [](functional::Tensor x, functional::Tensor w) { return Sin(x) * w; },
      Interpreting(), rules());
  ASSERT_OK(f);
  AotCallOptions options;
  options.requires_gradient = std::vector<bool>{false, true};
  const Tree arguments = AotFunction::ArgumentTree(Vector({1}), Vector({2}));
  const auto y = f->Call(arguments, options);
  ASSERT_OK(y);
  const auto gradients = y->backward(Vector({1}));
  ASSERT_OK(gradients);
  EXPECT_FALSE(functional::Flatten(gradients->outputs)[0].valid());
  ExpectEqual(functional::Flatten(gradients->outputs)[1], Sin(Vector({1})));
  options.requires_gradient = std::vector<bool>{true};
  EXPECT_THAT(f->Call(arguments, options).status().message(),
              HasSubstr("has 1 entries, the arguments have 2"));
}

TEST_F(AotFunctionTest, PartitionFnCutsTheJointGraph) {
  AotOptions options;
  options.partition_fn = [this](const JointGraph& joint) {
    return MinCutRematerializationPartition(joint, *rules());
  };
  const auto saved = [&](const AotOptions& with) {
    AotOptions logged = with;
    logged.enable_log = true;
    const auto f = AotFunction::Make(SinCos, Interpreting(), rules(), logged);
    EXPECT_OK(f);
    const auto y = (*f)(Vector({1, 2}));
    EXPECT_OK(y);
    const auto dx = y->backward(Vector({1, 1}));
    EXPECT_OK(dx);
    ExpectNear(Leaf(dx->outputs),
               (-Sin(Sin(Vector({1, 2})))) * Cos(Vector({1, 2})));
    return f->log().traces[0].saved;
  };
  EXPECT_EQ(saved({}), 2);
  EXPECT_EQ(saved(options), 1);  // x, of which all else follows
  // A user's own that does not fit is refused.
  options.partition_fn =
      [](const JointGraph& joint) -> absl::StatusOr<Partition> {
    CLEAVE_ASSIGN_OR_RETURN(Partition partition, DefaultPartition(joint));
    partition.backward = partition.forward;
    return partition;
  };
  const auto f = AotFunction::Make(SinCos, Interpreting(), rules(), options);
  ASSERT_OK(f);
  EXPECT_FALSE((*f)(Vector({1})).ok());
}

TEST_F(AotFunctionTest, OffloadedResidualsGoThroughTheHook) {
  int stored = 0;
  int loaded = 0;
  AotOptions options;
  options.partition_fn =
      [](const JointGraph& joint) -> absl::StatusOr<Partition> {
    CLEAVE_ASSIGN_OR_RETURN(Partition partition, DefaultPartition(joint));
    partition.offloaded = {0};
    return partition;
  };
  const auto refused =
      AotFunction::Make(SinCos, Interpreting(), rules(), options);
  ASSERT_OK(refused);
  EXPECT_THAT((*refused)(Vector({1})).status().message(),
              HasSubstr("there is no offload hook"));
  options.offload.store = [&](const cleave::Tensor& tensor)
      -> absl::StatusOr<std::shared_ptr<const void>> {
    ++stored;
    return std::make_shared<const cleave::Tensor>(tensor);
  };
  options.offload.load = [&](const std::shared_ptr<const void>& there)
      -> absl::StatusOr<cleave::Tensor> {
    ++loaded;
    return *static_cast<const cleave::Tensor*>(there.get());
  };
  const auto f = AotFunction::Make(SinCos, Interpreting(), rules(), options);
  ASSERT_OK(f);
  const auto y = (*f)(Vector({1}));
  ASSERT_OK(y);
  EXPECT_EQ(stored, 1);
  ASSERT_OK(y->backward(Vector({1})));
  ASSERT_OK(y->backward(Vector({2})));
  EXPECT_EQ(loaded, 2);
}

TEST_F(AotFunctionTest, DecompositionsAreOfItsTracesAlone) {
  const auto fn = [](functional::Tensor x) { return CallOne("softplus", {x}); };
  std::string printed;
  AotOptions options;
  options.decompositions.by_op["softplus"] = OwnBody();
  const auto text = [&](const AotOptions& with) {
    std::ostringstream out;
    const auto f = AotFunction::Make(fn, PrintCompiler(&out, Interpreting()),
                                     rules(), with);
    EXPECT_OK(f);
    EXPECT_OK((*f)(Vector({1})));
    return out.str();
  };
  EXPECT_THAT(text({}), HasSubstr("softplus("));
  EXPECT_THAT(text(options), Not(HasSubstr("softplus(")));
  options.decompositions.preserve = {"softplus"};
  EXPECT_THAT(text(options), HasSubstr("softplus("));
  options = {};
  options.expand = true;
  EXPECT_THAT(text(options), Not(HasSubstr("softplus(")));
  options = {};
  options.decompositions.by_op["no_such_op"] = OwnBody();
  EXPECT_THAT(AotFunction::Make(fn, Interpreting(), rules(), options)
                  .status()
                  .message(),
              HasSubstr("no_such_op"));
}

TEST_F(AotFunctionTest, NumParamsBuffersAreStatic) {
  const auto fn = [](functional::Tensor w, functional::Tensor x) {
    return Sin(w) * x;
  };
  std::vector<bool> is_static;
  AotOptions options;
  options.num_params_buffers = 1;
  options.partition_fn = [&](const JointGraph& joint) {
    is_static = joint.is_static;
    return DefaultPartition(joint);
  };
  // Their extents stay numbers under `dynamic`.
  options.dynamic = true;
  options.enable_log = true;
  const auto f = AotFunction::Make(fn, Interpreting(), rules(), options);
  ASSERT_OK(f);
  ASSERT_OK((*f)(Vector({1, 2}), Matrix(3, 2)));
  ASSERT_OK((*f)(Vector({1, 2}), Matrix(4, 2)));
  EXPECT_EQ(f->traces(), 1);
  EXPECT_THAT(f->log().traces[0].why, HasSubstr("with extents 2 as numbers"));
  EXPECT_THAT(is_static, ElementsAre(true, false));
  EXPECT_EQ(f->Guards(), "x0: f64[2]; x1: f64[s0, 2]\n");
  options.num_params_buffers = 3;
  const auto wrong = AotFunction::Make(fn, Interpreting(), rules(), options);
  ASSERT_OK(wrong);
  EXPECT_THAT((*wrong)(Vector({1}), Vector({1})).status().message(),
              HasSubstr("num_params_buffers is 3"));
}

TEST_F(AotFunctionTest, KeepInferenceInputMutationsWritesInTheGraph) {
  const auto fn = [](functional::Tensor x) {
    x += 1;
    return x * 2;
  };
  for (const bool keep : {false, true}) {
    AotOptions options;
    options.keep_inference_input_mutations = keep;
    const auto f = AotFunction::Make(fn, Interpreting(), rules(), options);
    ASSERT_OK(f);
    functional::Tensor base = Vector({1, 2, 3, 4});
    functional::Tensor middle = base[{{1, 3}}];
    const auto y = f->Inference(middle);
    ASSERT_OK(y);
    ExpectEqual(Leaf(*y), Vector({6, 8}));
    ExpectEqual(base, Vector({1, 3, 4, 4}));
    EXPECT_EQ(f->last_program()->mutations[0],
              keep ? MutationKind::kInGraph : MutationKind::kOutOfGraph);
    // The graph has the whole storage, or what the leaf shows of it.
    EXPECT_EQ(f->last_program()
                  ->graph.type(f->last_program()->graph.inputs()[0].value)
                  .shape[0],
              keep ? 4 : 2);
  }
}

TEST_F(AotFunctionTest, DisableFunctionalizationRefusesWrites) {
  AotOptions options;
  options.disable_functionalization = true;
  const auto f = AotFunction::Make(
      [](functional::Tensor x) {
        x += 1;
        return x;
      },
      Interpreting(), rules(), options);
  ASSERT_OK(f);
  functional::Tensor x = Vector({1});
  EXPECT_THAT((*f)(x).status().message(),
              HasSubstr("the function writes to x, and functionalization is "
                        "disabled"));
  ExpectEqual(x, Vector({1}));
  // A function may write a tensor that it made itself, as nobody else sees it.
  const auto g = AotFunction::Make(
      [](functional::Tensor x) {
        functional::Tensor y = x.Clone();
        y += 1;
        return y;
      },
      Interpreting(), rules(), options);
  ASSERT_OK(g);
  EXPECT_OK((*g)(x));
}

TEST_F(AotFunctionTest, DynamicCompilesOnceForAllSizesThatItsGuardsAdmit) {
  const auto fn = [](functional::Tensor x, functional::Tensor y) {
    return Sin(x) * y;
  };
  AotOptions options;
  options.enable_log = true;
  options.dynamic = true;
  const auto f = AotFunction::Make(fn, Interpreting(), rules(), options);
  ASSERT_OK(f);
  for (const int64_t n : {3, 5, 0, 7}) {
    const auto y = (*f)(Iota(n), Iota(n));
    ASSERT_OK(y);
    ExpectEqual(Leaf(y->outputs), Sin(Iota(n)) * Iota(n));
    const auto gradients = y->backward(Iota(n));
    ASSERT_OK(gradients);
    ExpectEqual(functional::Flatten(gradients->outputs)[1],
                Iota(n) * Sin(Iota(n)));
  }
  EXPECT_EQ(f->traces(), 1);
  EXPECT_EQ(f->Guards(), "x0: f64[s0]; x1: f64[s0]\n");
  // Two extents that were equal, and are not any more, the one stretching.
  const auto y = (*f)(Iota(4), Iota(1));
  ASSERT_OK(y);
  ExpectEqual(Leaf(y->outputs), Sin(Iota(4)) * Iota(1));
  EXPECT_EQ(f->traces(), 2);
  EXPECT_THAT(f->log().traces[1].why, HasSubstr("axis 0 of tensor 1"));
  // And what does not fit is the function's own mistake.
  EXPECT_THAT(std::string((*f)(Iota(4), Iota(3)).status().message()),
              HasSubstr("cannot broadcast 4 and 3"));

  // Without it, each size has a trace, and is kept.
  const auto g = AotFunction::Make(fn, Interpreting(), rules());
  ASSERT_OK(g);
  for (const int64_t n : {3, 5, 3, 5}) ASSERT_OK((*g)(Iota(n), Iota(n)));
  EXPECT_EQ(g->traces(), 2);
}

TEST_F(AotFunctionTest, SizesThatAreAskedForBecomeGuards) {
  AotOptions options;
  options.enable_log = true;
  options.dynamic = true;
  const auto f = AotFunction::Make(
      [](functional::Tensor x) -> absl::StatusOr<functional::Tensor> {
        CLEAVE_ASSIGN_OR_RETURN(const int64_t n, SizeOf(x.extent(0)));
        return n > 4 ? Sin(x) : Cos(x);
      },
      Interpreting(), rules(), options);
  ASSERT_OK(f);
  for (const int64_t n : {3, 6, 3}) {
    const auto y = (*f)(Iota(n));
    ASSERT_OK(y);
    ExpectEqual(Leaf(y->outputs), n > 4 ? Sin(Iota(n)) : Cos(Iota(n)));
  }
  EXPECT_EQ(f->traces(), 2);
  EXPECT_THAT(f->Guards(), HasSubstr("s0 == 3: \"the function asked for its "
                                     "size\""));
  EXPECT_THAT(f->log().traces[1].why, HasSubstr("s0"));
}

TEST_F(AotFunctionTest, EnableLogKeepsWhatCanBeReplayed) {
  AotOptions options;
  options.enable_log = true;
  const auto f = AotFunction::Make(SinCos, Interpreting(), rules(), options);
  ASSERT_OK(f);
  ASSERT_OK((*f)(Vector({1})));
  ASSERT_EQ(f->log().traces.size(), 1);
  EXPECT_EQ(f->log().traces[0].why, "first call");
  const auto report = Replay(f->log(), rules());
  ASSERT_OK(report);
  EXPECT_TRUE(report->same) << report->ToString();
  options.enable_log = false;
  const auto g = AotFunction::Make(SinCos, Interpreting(), rules(), options);
  ASSERT_OK(g);
  ASSERT_OK((*g)(Vector({1})));
  EXPECT_TRUE(g->log().traces.empty());
}

TEST_F(AotFunctionTest, ModulesHaveTheirParametersInFront) {
  const Layer layer{Vector({1, 2}), Vector({0, 1})};
  const auto f = AotModule(
      layer,
      [](const Layer& l, functional::Tensor x) {
        return CallOne("reduce_sum", {x * l.weight + l.bias},
                       {{"axes", StaticValue::Ints(std::vector<int>{0})}});
      },
      Interpreting(), rules());
  ASSERT_OK(f);
  const auto both =
      ComputeGradAndValue(*f, AotFunction::ArgumentTree(layer, Vector({3, 4})));
  ASSERT_OK(both);
  ExpectEqual(both->value,
              functional::Tensor(cleave::Tensor::Scalar(DType::kF64, 12)));
  ExpectEqual(functional::Flatten(both->gradients)[0], Vector({3, 4}));
  EXPECT_THAT(
      ComputeGradAndValue(*AotFunction::Make(SinCos, Interpreting(), rules()),
                          Vector({1, 2}))
          .status()
          .message(),
      HasSubstr("a float scalar"));
}

TEST_F(AotFunctionTest, RandomnessIsAnInput) {
  const auto f = AotFunction::Make(
      [](functional::Tensor key, functional::Tensor x) {
        return x * CallOne("random_uniform", {key},
                           {{"shape", StaticValue::Dims({Dim(3)})},
                            {"dtype", DType::kF64}});
      },
      Interpreting(), rules());
  ASSERT_OK(f);
  const functional::Tensor key =
      cleave::Tensor::FromInts(DType::kKey, {}, {42});
  const auto once = (*f)(key, Vector({1, 1, 1}));
  const auto again = (*f)(key, Vector({1, 1, 1}));
  ASSERT_OK(once);
  ASSERT_OK(again);
  ExpectEqual(Leaf(once->outputs), Leaf(again->outputs));
  // The backward draws, or has saved, the same numbers.
  const auto gradients = once->backward(Vector({1, 1, 1}));
  ASSERT_OK(gradients);
  ExpectEqual(functional::Flatten(gradients->outputs)[1], Leaf(once->outputs));
}

TEST_F(AotFunctionTest, CapturedTensorsAreReadAtEachCall) {
  functional::Tensor scale = Vector({2, 2});
  const auto f = AotFunction::Make(
      [&](functional::Tensor x) { return x * scale; }, Interpreting(), rules());
  ASSERT_OK(f);
  ExpectEqual(Leaf((*f)(Vector({1, 2}))->outputs), Vector({2, 4}));
  scale += 1;
  ExpectEqual(Leaf((*f)(Vector({1, 2}))->outputs), Vector({3, 6}));
  EXPECT_EQ(f->traces(), 1);
  const auto writes = AotFunction::Make(
      [&](functional::Tensor x) {
        scale += x;
        return x;
      },
      Interpreting(), rules());
  ASSERT_OK(writes);
  EXPECT_FALSE((*writes)(Vector({1, 2})).ok());
}

TEST_F(AotFunctionTest, MistakesAreErrors) {
  const auto f = AotFunction::Make(SinCos, Interpreting(), rules());
  ASSERT_OK(f);
  EXPECT_THAT((*f)(functional::Tensor(1.0)).status().message(),
              HasSubstr("argument x is a number"));
  EXPECT_THAT((*f)(functional::Tensor()).status().message(),
              HasSubstr("argument x: "));
  EXPECT_FALSE((*f)(functional::Tensor(cleave::Tensor(DType::kI64, {2}))).ok());
  const auto y = (*f)(Vector({1, 2}));
  ASSERT_OK(y);
  EXPECT_THAT(y->backward(Vector({1})).status().message(),
              HasSubstr("the output f64[2]"));
  EXPECT_THAT(y->backward(Tree::List({Vector({1, 2})})).status().message(),
              HasSubstr("the cotangents"));
  EXPECT_THAT(
      y->backward(Vector({1, 2}), {{0, Vector({1, 2})}}).status().message(),
      HasSubstr("does not write tensor 0"));
  EXPECT_THAT(AotFunction::Make(SinCos, nullptr, rules()).status().message(),
              HasSubstr("no fw_compiler"));
}

}  // namespace
}  // namespace cleave::aot
