#include "engine/codegen/halide/device_code.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "engine/codegen/library_function.h"

namespace cleave {
namespace {

using Halide::Expr;
using Halide::Int;
using Halide::Type;
using Halide::UInt;
using Halide::Internal::as_const_float;
using Halide::Internal::AssertStmt;
using Halide::Internal::Call;
using Halide::Internal::Cast;
using Halide::Internal::equal;
using Halide::Internal::Evaluate;
using Halide::Internal::FloatImm;
using Halide::Internal::For;
using Halide::Internal::ForType;
using Halide::Internal::IfThenElse;
using Halide::Internal::IRMutator;
using Halide::Internal::IRVisitor;
using Halide::Internal::LetStmt;
using Halide::Internal::Load;
using Halide::Internal::make_const;
using Halide::Internal::Stmt;
using Halide::Internal::Store;
using Halide::Internal::Variable;

Expr Extern(const Type& type, const std::string& name,
            std::vector<Expr> arguments) {
  return Call::make(type, name, std::move(arguments), Call::PureExtern);
}

// Halide counts the bytes of a block's memory on the host, in arrays there.
bool LiesOnHost(const std::string& array) {
  return absl::EndsWith(array, ".shared_size");
}

// Whether an expression loads from the device, or names one of `loaded`.
class Loads : public IRVisitor {
 public:
  Loads(const Expr& e, const std::set<std::string>& loaded) : loaded_(loaded) {
    e.accept(this);
  }
  bool found() const { return found_; }

 protected:
  using IRVisitor::visit;
  void visit(const Load* op) override {
    found_ = found_ || !LiesOnHost(op->name);
    IRVisitor::visit(op);
  }
  void visit(const Variable* op) override {
    found_ = found_ || loaded_.count(op->name) > 0;
  }

 private:
  const std::set<std::string>& loaded_;
  bool found_ = false;
};

// Calls in the loops of a device.
class DeviceCalls : public IRMutator {
 public:
  DeviceCalls(bool cuda, std::set<std::string> outputs)
      : cuda_(cuda), outputs_(std::move(outputs)) {}

  Stmt mutate(const Stmt& body) override {
    ++depth_;
    Stmt result = IRMutator::mutate(body);
    if (--depth_ == 0 && !outputs_.empty()) {
      throw Halide::InternalError(
          absl::StrCat("nothing computes ", *outputs_.begin()));
    }
    return result;
  }

 protected:
  using IRMutator::mutate;
  using IRMutator::visit;

  Stmt visit(const For* op) override {
    const bool device =
        op->for_type == ForType::GPUBlock || op->for_type == ForType::GPUThread;
    const bool launch = device && inside_ == 0;
    inside_ += device;
    Stmt result = IRMutator::visit(op);
    inside_ -= device;
    // Drivers refuse a launch of no blocks.
    return launch ? IfThenElse::make(op->extent > 0, result) : result;
  }

  // Halide asserts on the host that a gather reads what its operand has. A
  // gather of one element names the element of its index there, which lies on
  // the device. Indices are clamped: the assertion holds.
  Stmt visit(const LetStmt* op) override {
    if (inside_ > 0 || !Loads(op->value, loaded_).found()) {
      return IRMutator::visit(op);
    }
    loaded_.insert(op->name);
    return mutate(op->body);
  }

  Stmt visit(const AssertStmt* op) override {
    if (inside_ > 0 || !Loads(op->condition, loaded_).found()) {
      return IRMutator::visit(op);
    }
    return Evaluate::make(0);
  }

  Stmt visit(const Store* op) override {
    if (inside_ == 0 && !LiesOnHost(op->name)) {
      throw Halide::InternalError(
          absl::StrCat("a loop over ", op->name, " is left on the host"));
    }
    outputs_.erase(op->name);
    return IRMutator::visit(op);
  }

  // Halide writes numbers of OpenCL as f32: those of f64 go by their bits.
  Expr visit(const FloatImm* op) override {
    const double number = op->value;
    if (cuda_ || inside_ == 0 || op->type != Halide::Float(64) ||
        static_cast<double>(static_cast<float>(number)) == number) {
      return op;
    }
    uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    return Extern(op->type, "as_double", {make_const(UInt(64), bits)});
  }

  Expr visit(const Call* op) override {
    if (inside_ == 0 || !op->type.is_scalar()) return IRMutator::visit(op);
    if (cuda_) {
      const Expr clamped = Clamped(op);
      if (clamped.defined()) return IRMutator::mutate(clamped);
    }
    std::vector<Expr> arguments;
    for (const Expr& argument : op->args) arguments.push_back(mutate(argument));
    const Type type = arguments.empty() ? op->type : arguments[0].type();
    if (absl::StartsWith(op->name, "llvm.fma.f")) {
      return Fma(type, arguments[0], arguments[1], arguments[2]);
    }
    if (op->call_type == Call::PureExtern && IsLibraryFunction(op->name)) {
      return Library(op->type, op->name, std::move(arguments));
    }
    if (cuda_ && type.is_float()) {
      const Expr strict = CudaCall(op, type, arguments);
      if (strict.defined()) return strict;
    }
    return Call::make(op->type, op->name, arguments, op->call_type, op->func,
                      op->value_index, op->image, op->param);
  }

 private:
  Expr Fma(const Type& type, const Expr& a, const Expr& b,
           const Expr& c) const {
    if (!cuda_) return Extern(type, "fma", {a, b, c});
    return Nvvm(type, "fma.rn", {a, b, c});
  }

  // OpenCL overloads the names; CUDA's have prefixes.
  Expr Library(const Type& type, const std::string& name,
               std::vector<Expr> arguments) const {
    if (cuda_) return Extern(type, "__nv_" + name, std::move(arguments));
    const bool single = type.bits() == 32;
    return Extern(type,
                  single ? std::string(absl::StripSuffix(name, "f")) : name,
                  std::move(arguments));
  }

  static Expr Nvvm(const Type& type, const std::string& operation,
                   std::vector<Expr> arguments) {
    return Extern(
        type,
        absl::StrCat("llvm.nvvm.", operation, type.bits() == 32 ? ".f" : ".d"),
        std::move(arguments));
  }

  // Undefined where the call may stay as it is. Comparisons go by the bits:
  // those of floats are compiled for numbers that are not NaN.
  Expr CudaCall(const Call* op, const Type& type,
                const std::vector<Expr>& arguments) const {
    if (op->is_intrinsic(Call::strict_add)) {
      return Nvvm(type, "add.rn", arguments);
    }
    if (op->is_intrinsic(Call::strict_sub)) {
      return Nvvm(type, "add.rn", {arguments[0], Negated(arguments[1])});
    }
    if (op->is_intrinsic(Call::strict_mul)) {
      return Nvvm(type, "mul.rn", arguments);
    }
    if (op->is_intrinsic(Call::strict_div)) {
      return Quotient(type, arguments[0], arguments[1]);
    }
    if (op->name == "sqrt_f32" || op->name == "sqrt_f64") {
      return Nvvm(type, "sqrt.rn", arguments);
    }
    if (op->name == "is_nan_f32" || op->name == "is_nan_f64") {
      return IsNan(arguments[0]);
    }
    if (op->is_intrinsic(Call::strict_lt)) {
      return IsLess(arguments[0], arguments[1]);
    }
    if (op->is_intrinsic(Call::strict_eq)) {
      return IsEqual(arguments[0], arguments[1]);
    }
    return Expr();
  }

  // A power of two has an exact reciprocal, whose product rounds as the
  // quotient. The quotient of 1 takes fewer steps than others.
  static Expr Quotient(const Type& type, const Expr& a, const Expr& b) {
    const std::optional<double> divisor = as_const_float(b);
    int exponent = 0;
    if (divisor.has_value() && std::frexp(*divisor, &exponent) == 0.5 &&
        std::abs(exponent) < 100) {
      return Nvvm(type, "mul.rn", {a, make_const(type, 1 / *divisor)});
    }
    const std::optional<double> dividend = as_const_float(a);
    if (dividend.has_value() && *dividend == 1) {
      return Nvvm(type, "rcp.rn", {b});
    }
    return Nvvm(type, "div.rn", {a, b});
  }

  // The lesser or the larger of a number x and c, as one instruction; undefined
  // where the choice is none of these. Rules write them by a comparison, which
  // says what is chosen where x is NaN. Where c is 0 the instruction could give
  // the other zero.
  static Expr Clamped(const Call* op) {
    if (!op->is_intrinsic(Call::mux) || op->args.size() != 3 ||
        op->type != Halide::Float(32)) {
      return Expr();
    }
    const auto* condition = op->args[0].as<Cast>();
    const Call* less =
        condition == nullptr ? nullptr : condition->value.as<Call>();
    if (less == nullptr || !less->is_intrinsic(Call::strict_lt)) return Expr();
    const Expr &a = less->args[0], &b = less->args[1];
    const Expr &otherwise = op->args[1], &then = op->args[2];
    const bool lesser = equal(then, a) && equal(otherwise, b);
    if (!lesser && (!equal(then, b) || !equal(otherwise, a))) return Expr();
    const std::optional<double> bound = as_const_float(IsNumber(a) ? a : b);
    if (!bound.has_value() || std::isnan(*bound) || *bound == 0) return Expr();
    // A comparison with NaN is false.
    const std::string nan = IsNumber(otherwise) ? "" : ".nan";
    return Nvvm(op->type, absl::StrCat(lesser ? "fmin" : "fmax", nan), {a, b});
  }

  static bool IsNumber(const Expr& a) {
    const std::optional<double> number = as_const_float(a);
    return number.has_value() && !std::isnan(*number);
  }

  static Expr IsEqual(const Expr& a, const Expr& b) {
    // A NaN is in the order beside no number.
    if (IsNumber(a) || IsNumber(b)) return Order(a) == Order(b);
    return !IsNan(a) && Order(a) == Order(b);
  }

  static Expr IsLess(const Expr& a, const Expr& b) {
    Expr less = Order(a) < Order(b);
    if (!IsNumber(b)) less = !IsNan(b) && less;
    return IsNumber(a) ? less : !IsNan(a) && less;
  }

  static Expr Magnitude(const Expr& a) {
    const int bits = a.type().bits();
    return Halide::reinterpret(UInt(bits), a) &
           make_const(UInt(bits), (uint64_t{1} << (bits - 1)) - 1);
  }

  static Expr Negated(const Expr& a) {
    const int bits = a.type().bits();
    return Halide::reinterpret(
        a.type(), Halide::reinterpret(UInt(bits), a) ^
                      make_const(UInt(bits), uint64_t{1} << (bits - 1)));
  }

  static Expr IsNan(const Expr& a) {
    const int bits = a.type().bits();
    const uint64_t infinity =
        bits == 32 ? 0x7f800000 : uint64_t{0x7ff0000000000000};
    return Magnitude(a) > make_const(UInt(bits), infinity);
  }

  // Integers in the order of the numbers, -0 and 0 the same.
  static Expr Order(const Expr& a) {
    const Type type = Int(a.type().bits());
    const Expr magnitude = Halide::reinterpret(type, Magnitude(a));
    return Halide::select(Halide::reinterpret(type, a) < make_const(type, 0),
                          make_const(type, 0) - magnitude, magnitude);
  }

  const bool cuda_;
  std::set<std::string> outputs_;  // that no store was seen of yet
  std::set<std::string> loaded_;   // of the host's, left out: they need loads
  int depth_ = 0;
  int inside_ = 0;
};

// The device's sources and its state, in buffers beside the code.
class Sources : public IRMutator {
 public:
  explicit Sources(const std::string& prefix) : prefix_(prefix) {}

  Halide::Buffer<> Rename(const Halide::Buffer<>& buffer) {
    const auto [it, first] = renamed_.try_emplace(buffer.name());
    if (!first) return it->second;
    if (absl::StrContains(buffer.name(), "_gpu_source_kernels")) {
      auto* const begin = static_cast<char*>(buffer.data());
      const std::string source(begin, buffer.size_in_bytes());
      const std::string strict = Strict(source);
      if (strict.size() != source.size()) {
        throw Halide::InternalError("a device's source changed its length");
      }
      std::copy(strict.begin(), strict.end(), begin);
    }
    Halide::Runtime::Buffer<> same = *buffer.get();
    it->second = Halide::Buffer<>(std::move(same), prefix_ + buffer.name());
    return it->second;
  }

 protected:
  using IRMutator::visit;
  Expr visit(const Variable* op) override {
    if (!op->image.defined()) return op;
    return Variable::make(op->type, prefix_ + op->name, Rename(op->image));
  }

 private:
  static std::string Strict(const std::string& source) {
    if (absl::StartsWith(source, "/*OpenCL")) return StrictOpenCl(source);
    // PTX: `add.ftz.f32 %f1` is `add.f32     %f1` without the flushing.
    std::string strict;
    size_t at = 0;
    while (true) {
      const size_t flush = source.find(".ftz", at);
      if (flush == std::string::npos) break;
      const size_t end = source.find_first_of(" \t", flush);
      if (end == std::string::npos) break;
      strict.append(source, at, flush - at);
      strict.append(source, flush + 4, end - flush - 4);
      strict.append(4, ' ');
      at = end;
    }
    strict.append(source, at, std::string::npos);
    return strict;
  }

  static std::string StrictOpenCl(const std::string& source) {
    const std::string allowed = "#pragma OPENCL FP_CONTRACT ON\n";
    const std::string forbidden = "#pragma STDC FP_CONTRACT OFF \n";
    if (!absl::StrContains(source, allowed)) {
      throw Halide::InternalError("OpenCL code without FP_CONTRACT");
    }
    return absl::StrReplaceAll(source, {{allowed, forbidden}});
  }

  const std::string prefix_;
  std::map<std::string, Halide::Buffer<>> renamed_;
};

}  // namespace

void MakeDeviceCallsStrict(Halide::Pipeline& pipeline,
                           const std::vector<Halide::Func>& outputs,
                           const Halide::Target& target) {
  std::set<std::string> stored;
  for (const Halide::Func& output : outputs) {
    const size_t count = output.types().size();
    for (size_t i = 0; i < count; ++i) {
      stored.insert(count == 1 ? output.name()
                               : absl::StrCat(output.name(), ".", i));
    }
  }
  pipeline.add_custom_lowering_pass(new DeviceCalls(
      target.has_feature(Halide::Target::CUDA), std::move(stored)));
}

void AppendStrict(const Halide::Module& module, const std::string& prefix,
                  Halide::Module& all) {
  Sources sources(prefix);
  for (Halide::Internal::LoweredFunc function : module.functions()) {
    function.body = sources.mutate(function.body);
    all.append(function);
  }
  for (const Halide::Buffer<>& buffer : module.buffers()) {
    all.append(sources.Rename(buffer));
  }
}

}  // namespace cleave
