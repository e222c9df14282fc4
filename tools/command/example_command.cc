// example: programs of a page each, to read and to run.

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/command/command.h"
#include "tools/command/load.h"
#include "tools/examples/examples.h"

namespace cleave {
namespace {

struct ExampleOptions {
  std::string name;
  bool no_times = false;
};

int ListExamples() {
  size_t width = 0;
  for (const Example& example : Examples()) {
    width = std::max(width, std::string(example.name).size());
  }
  for (const Example& example : Examples()) {
    std::cout << absl::StrFormat("%-*s  %s\n", static_cast<int>(width),
                                 example.name, example.what);
  }
  return kExitOk;
}

int RunExample(const ExampleOptions& options) {
  ExampleContext context;
  context.times = !options.no_times;
  for (const auto& [variable, folder] :
       {std::pair("CLEAVE_RULES", &context.rules),
        std::pair("CLEAVE_EXAMPLES", &context.folder)}) {
    const char* value = std::getenv(variable);
    if (value == nullptr) {
      return Complain(
          absl::StrCat(variable, " is not set: it names the folder of the ",
                       folder == &context.rules ? "shipped rules" : "examples",
                       " (tools/cleave sets it)"));
    }
    *folder = value;
  }
  std::vector<std::string> names;
  for (const Example& example : Examples()) {
    if (options.name == example.name) {
      const absl::Status status = example.run(context, std::cout);
      return status.ok() ? kExitOk : Complain(status);
    }
    names.push_back(example.name);
  }
  return Complain(absl::StrCat("there is no example `", options.name, "`",
                               DidYouMean(options.name, names)));
}

}  // namespace

void AddExample(CommandLine& line) {
  auto options = std::make_shared<ExampleOptions>();
  Verb verb = line.AddVerb("example",
                           "Run an example of tools/examples, or list them.");
  verb.Add("NAME", options->name, "The example; none: list them");
  verb.AddFlag("--no-times", options->no_times,
               "Leave out times, which differ from run to run");
  verb.Runs([options] {
    return options->name.empty() ? ListExamples() : RunExample(*options);
  });
}

}  // namespace cleave
