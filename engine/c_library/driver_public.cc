// The functions of the header, which call the driver.

#include "absl/strings/str_cat.h"
#include "engine/c_library/driver.h"

namespace cleave::internal_aot {

std::string PublicFunctions(const CInterface& interface) {
  std::string text =
      absl::StrCat("\n", interface.Prototype(),
                   " {\n  const int64_t cleave_dims[CLEAVE_DIMS + 1] = {");
  for (const CInterface::Dimension& dim : interface.dims) {
    absl::StrAppend(&text, dim.name, ", ");
  }
  absl::StrAppend(&text, "0};\n",
                  "  const void *const cleave_inputs[CLEAVE_INPUTS + 1] = {");
  for (const CInterface::Array& array : interface.inputs) {
    absl::StrAppend(&text, array.name, ", ");
  }
  absl::StrAppend(&text, "NULL};\n",
                  "  void *const cleave_results[CLEAVE_OUTPUTS + 1] = {");
  for (const CInterface::Array& array : interface.outputs) {
    absl::StrAppend(&text, array.name, ", ");
  }
  absl::StrAppend(
      &text, "NULL};\n",
      "  return cleave_run(cleave_dims, cleave_inputs, cleave_results);\n}\n");
  absl::StrAppend(&text, "\nconst char *", interface.function,
                  "_error(int code) {", R"c(
  switch (code) {
    case CLEAVE_OK:
      return "no error";
    case CLEAVE_BAD_DIMS:
      return "a size is negative or above 2^31 - 1, or the sizes do not fit "
             "together";
    case CLEAVE_TOO_LARGE:
      return "an array is larger than 2^31 - 1 bytes";
    case CLEAVE_BAD_ARRAY:
      return "an array that has elements is NULL, or two outputs overlap";
    case CLEAVE_BAD_INDEX:
      return "an index is out of range";
    case CLEAVE_OUT_OF_MEMORY:
      return "out of memory";
    case CLEAVE_UNSUPPORTED_CPU:
      return "the CPU lacks vector instructions that the library needs";
    case CLEAVE_INTERNAL:
      return "a kernel failed: a mistake of Cleave";
    case CLEAVE_NOT_FINITE:
      return "not supported: a weight of a padded convolution is infinite or "
             "NaN";
    case CLEAVE_DIVIDED_BY_ZERO:
      return "an integer is divided by 0";
    case CLEAVE_TOO_MANY_STEPS:
      return "a loop would take more steps than it may";
    default:
      return "no code of Cleave";
  }
}
)c");
  return text;
}

}  // namespace cleave::internal_aot
