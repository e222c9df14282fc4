#include "engine/codegen/halide/kernel_testing.h"

#include <cstring>
#include <vector>

#include "Halide.h"
#include "ops/check.h"

namespace cleave {
namespace {

using Halide::Argument;
using Halide::Func;
using Halide::ImageParam;
using Halide::MemoryType;
using Halide::Module;
using Halide::Param;
using Halide::Pipeline;
using Halide::RDom;
using Halide::TailStrategy;
using Halide::Target;
using Halide::Var;

Target KernelTarget() {
  return Target("x86-64-linux-sse41-no_runtime-user_context");
}

Module Compile(Func func, const char* name, std::vector<Argument> arguments) {
  return Pipeline(func).compile_to_module(arguments, name, KernelTarget());
}

Module Marked() {
  Var x;
  Func out("marked");
  out(x) = Halide::Internal::make_const(Halide::UInt(64), kTestMark) +
           Halide::cast<uint64_t>(x);
  return Compile(out, "marked", {});
}

Module Smooth() {
  ImageParam in(Halide::Float(32), 1, "in");
  Var x, block;
  Func doubled("doubled");
  Func out("smooth");
  doubled(x) = in(x)*2;
  out(x) = doubled(x) + doubled(x + 2);
  out.split(x, block, x, 64, TailStrategy::GuardWithIf)
      .parallel(block)
      .vectorize(x, 4);
  doubled.compute_at(out, block)
      .store_in(MemoryType::Heap)
      .vectorize(x, 4, TailStrategy::GuardWithIf);
  return Compile(out, "smooth", {in});
}

Module Nested() {
  Param<int> width("width");
  Param<int> height("height");
  Var x, y, i;
  Func grid("grid");
  Func out("nested");
  grid(x, y) = 3 * (x + y * width);
  grid.compute_root()
      .bound(x, 0, width)
      .bound(y, 0, height)
      .parallel(y)
      .parallel(x);
  out(i) = grid(i % width, i / width);
  return Compile(out, "nested", {width, height});
}

Module HiddenLocks() {
  ImageParam in(Halide::Int(32), 1, "in");
  Var x;
  RDom r(0, in.width());
  Func both("both");
  Func out("hidden_locks");
  both(x) = Halide::Tuple(0, 0);
  both(r % 4) = Halide::Tuple(both(r % 4)[0] + in(r), both(r % 4)[1] + 1);
  both.compute_root().bound(x, 0, 4).update().atomic().parallel(r);
  RDom k(0, 4);
  Halide::Expr sum = 0;
  Halide::Expr count = 0;
  for (int i = 0; i < 4; ++i) {
    sum += both(i)[0];
    count += both(i)[1];
  }
  out(x) = Halide::select(x == 0, sum, count);
  return Compile(out, "hidden_locks", {in});
}

Module Waiting() {
  ImageParam in(Halide::Float(32), 1, "in");
  Var x;
  Func producer("producer");
  Func out("waiting");
  producer(x) = in(x)*2;
  out(x) = producer(x);
  producer.store_root().compute_at(out, x).async();
  return Compile(out, "waiting", {in});
}

std::string Bytes(const Module& module) {
  const Halide::Buffer<uint8_t> buffer = module.compile_to_buffer();
  return std::string(reinterpret_cast<const char*>(buffer.data()),
                     static_cast<size_t>(buffer.number_of_elements()));
}

}  // namespace

const std::string& TestRuntime() {
  static const auto* const object = new std::string(Bytes(
      Module("runtime", KernelTarget().without_feature(Target::NoRuntime))));
  return *object;
}

const std::string& TestKernels() {
  static const auto* const object = new std::string(Bytes(Halide::link_modules(
      "kernels", {Marked(), Smooth(), Nested(), HiddenLocks(), Waiting()})));
  return *object;
}

std::string MarkedKernels(uint64_t mark) {
  std::string object = TestKernels();
  const std::string old(reinterpret_cast<const char*>(&kTestMark),
                        sizeof(kTestMark));
  int count = 0;
  for (size_t at = object.find(old); at != std::string::npos;
       at = object.find(old, at + sizeof(mark))) {
    std::memcpy(&object[at], &mark, sizeof(mark));
    ++count;
  }
  CLEAVE_CHECK(count > 0) << "the mark is not in the code as it stands";
  return object;
}

}  // namespace cleave
