// Verbs of the Python package. tools/cleave hands them to tools/python before
// this program is built: here they are listed, and whoever runs the program by
// itself learns where they are.

#include "absl/strings/str_cat.h"
#include "tools/command/command.h"
#include "tools/command/command_line.h"
#include "tools/command/load.h"

namespace cleave {
namespace {

struct PythonVerb {
  const char* name;
  const char* module;
  const char* verb;
  const char* package;
  const char* help;
};

constexpr PythonVerb kVerbs[] = {
    {"import", "cleave.onnx", "import", "onnx",
     "Write an ONNX model as rules and tensors."},
    {"export", "cleave.onnx", "export", "onnx",
     "Write a function as an ONNX model."},
    {"audit-onnx", "cleave.onnx", "audit", "onnx",
     "Hold the function bodies that ONNX ships to the rules."},
    {"audit-torch", "cleave.torch", "audit", "torch",
     "Hold PyTorch's decompositions and derivatives to the rules."},
};

}  // namespace

void AddPythonVerbs(CommandLine& line) {
  for (const PythonVerb& python : kVerbs) {
    Verb verb = line.AddVerb(python.name, python.help);
    verb.TakesAnything();
    verb.Runs([python] {
      return Complain(absl::StrCat(
          "`", python.name, "` is a part of the Python package: run ",
          "`tools/cleave ", python.name, "`, or `python -m ", python.module,
          " ", python.verb, "`; `tools/python --with ", python.package,
          "` installs what it needs"));
    });
  }
}

}  // namespace cleave
