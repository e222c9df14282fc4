#include "engine/codegen/library_function.h"

#include "absl/strings/strip.h"

namespace cleave {
namespace {

struct Entry {
  Primitive primitive;
  const char* name;
};

constexpr Entry kFunctions[] = {
    {Primitive::kExp, "exp"},     {Primitive::kExpm1, "expm1"},
    {Primitive::kLog, "log"},     {Primitive::kLog1p, "log1p"},
    {Primitive::kCbrt, "cbrt"},   {Primitive::kSin, "sin"},
    {Primitive::kCos, "cos"},     {Primitive::kTan, "tan"},
    {Primitive::kAsin, "asin"},   {Primitive::kAcos, "acos"},
    {Primitive::kAtan, "atan"},   {Primitive::kSinh, "sinh"},
    {Primitive::kCosh, "cosh"},   {Primitive::kTanh, "tanh"},
    {Primitive::kAsinh, "asinh"}, {Primitive::kAcosh, "acosh"},
    {Primitive::kAtanh, "atanh"}, {Primitive::kErf, "erf"},
    {Primitive::kErfc, "erfc"},   {Primitive::kLgamma, "lgamma"},
    {Primitive::kPow, "pow"},     {Primitive::kAtan2, "atan2"},
    {Primitive::kRem, "fmod"},
};

}  // namespace

const char* LibraryFunction(Primitive primitive) {
  for (const Entry& entry : kFunctions) {
    if (entry.primitive == primitive) return entry.name;
  }
  return nullptr;
}

bool IsLibraryFunction(absl::string_view name) {
  const absl::string_view without_f = absl::StripSuffix(name, "f");
  for (const Entry& entry : kFunctions) {
    if (name == entry.name || without_f == entry.name) return true;
  }
  return name == "ldexp";
}

}  // namespace cleave
