// The command line of a program with verbs, `cleave check rules --seed 2`: each
// verb names the options that it takes, and the variable that each one sets.
//
//   struct Flags {
//     std::vector<std::string> paths;
//     uint64_t seed = 1;
//   };
//   CommandLine line("cleave", "Checks rules.", "cleave 0.1");
//   auto flags = std::make_shared<Flags>();
//   Verb check = line.AddVerb("check", "Check ops against their specs.");
//   check.Add("PATH", flags->paths, "Rule files").Required();
//   check.Add("--seed", flags->seed, "Draws other samples").ShowDefault();
//   check.Runs([flags] { return Check(*flags); });
//   const ParsedLine parsed = line.Parse(argc, argv);
//   return parsed.action ? parsed.action() : parsed.exit_status;
//
// CLI11, which does the work, is in command_line.cc alone: each file that
// declares options by its templates takes seconds more to compile.

#ifndef CLEAVE_TOOLS_COMMAND_COMMAND_LINE_H_
#define CLEAVE_TOOLS_COMMAND_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cleave {

enum ExitStatus { kExitOk = 0, kExitVerdict = 1, kExitUsage = 2 };

// The action of a verb; returns the exit status.
using Action = std::function<int()>;

// An option that a verb has. A handle: copies stand for the same option.
class Option {
 public:
  // A line without it is a mistake.
  Option& Required();
  // The value, or each of several, is one of `words`.
  Option& OneOf(const std::vector<std::string>& words);
  // `why_not` returns what is wrong with a value: "" where nothing is.
  Option& Check(std::function<std::string(const std::string&)> why_not);
  // A number above 0.
  Option& Positive();
  // A number in [least, most].
  Option& Between(double least, double most);
  // A number of bytes: `2GB` for 2^31.
  Option& Bytes();
  // `a,b` gives two values.
  Option& CommaSeparated();
  // Each of several values stands behind the name again: `--uses a --uses b`.
  Option& OneEach();
  // The help shows the value that the variable has now.
  Option& ShowDefault();
  // A line with both is a mistake.
  Option& Excludes(const Option& other);
  // A line without the other one is a mistake.
  Option& Needs(const Option& other);
  // The heading of the help under which it stands.
  Option& Group(const std::string& heading);

 private:
  friend class Verb;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;  // of the CommandLine
};

// A handle: copies stand for the same verb.
class Verb {
 public:
  // An option `--seed`, `-o` or `-i,--in-place`; a name without dashes is of an
  // argument by position. `value` outlives the parsing. A vector takes as many
  // values as stand there.
  Option Add(const std::string& name, std::string& value,
             const std::string& help);
  Option Add(const std::string& name, std::vector<std::string>& value,
             const std::string& help);
  Option Add(const std::string& name, int& value, const std::string& help);
  Option Add(const std::string& name, int64_t& value, const std::string& help);
  Option Add(const std::string& name, uint64_t& value, const std::string& help);
  Option Add(const std::string& name, double& value, const std::string& help);
  // An option without a value, which sets `value` to true.
  Option AddFlag(const std::string& name, bool& value, const std::string& help);

  // Arguments that no option declares are no mistake.
  void TakesAnything();

  // Sets the action of a line with this verb.
  void Runs(Action action);

 private:
  friend class CommandLine;
  Verb(CLI::App* app, Action* chosen) : app_(app), chosen_(chosen) {}

  CLI::App* app_;   // of the CommandLine
  Action* chosen_;  // the CommandLine's; null for what every verb takes
};

struct ParsedLine {
  // Null where nothing is to be done: the help, the version or what is wrong
  // with the line has been printed.
  Action action;
  int exit_status = kExitOk;  // where `action` is null
};

class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& help,
              const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // The options that every verb takes, before its name or behind it.
  Verb EveryVerb();

  // The help lists verbs in the order in which they were added.
  Verb AddVerb(const std::string& name, const std::string& help);

  // Sets the variables of the options that the line has. Once.
  ParsedLine Parse(int argc, char** argv);

 private:
  const std::unique_ptr<CLI::App> app_;
  Action chosen_;
};

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_COMMAND_LINE_H_
