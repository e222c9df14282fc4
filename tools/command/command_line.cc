#include "tools/command/command_line.h"

#include <iostream>
#include <utility>

#include "CLI/CLI.hpp"
#include "ops/check.h"

namespace cleave {

Option& Option::Required() {
  option_->required();
  return *this;
}

Option& Option::OneOf(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Option& Option::Check(std::function<std::string(const std::string&)> why_not) {
  option_->check(std::move(why_not));
  return *this;
}

Option& Option::Positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option& Option::Between(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::Bytes() {
  option_->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  return *this;
}

Option& Option::CommaSeparated() {
  option_->delimiter(',');
  return *this;
}

Option& Option::OneEach() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::ShowDefault() {
  option_->capture_default_str();
  return *this;
}

Option& Option::Excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::Needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::Group(const std::string& heading) {
  option_->group(heading);
  return *this;
}

Option Verb::Add(const std::string& name, std::string& value,
                 const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Verb::Add(const std::string& name, std::vector<std::string>& value,
                 const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Verb::Add(const std::string& name, int& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Verb::Add(const std::string& name, int64_t& value,
                 const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Verb::Add(const std::string& name, uint64_t& value,
                 const std::string& help) {
  // CLI11 takes -1 for the largest number.
  return Option(
      app_->add_option(name, value, help)->check([](const std::string& text) {
        return !text.empty() && text[0] == '-'
                   ? "Value " + text + " is negative"
                   : std::string();
      }));
}

Option Verb::Add(const std::string& name, double& value,
                 const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Verb::AddFlag(const std::string& name, bool& value,
                     const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}

void Verb::TakesAnything() { app_->allow_extras()->fallthrough(false); }

void Verb::Runs(Action action) {
  CLEAVE_CHECK(chosen_ != nullptr);
  app_->callback(
      [action = std::move(action), chosen = chosen_] { *chosen = action; });
}

CommandLine::CommandLine(const std::string& program, const std::string& help,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(help, program)) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  // Verbs that are added later take it over.
  app_->fallthrough();
}

CommandLine::~CommandLine() = default;

Verb CommandLine::EveryVerb() { return Verb(app_.get(), /*chosen=*/nullptr); }

Verb CommandLine::AddVerb(const std::string& name, const std::string& help) {
  return Verb(app_->add_subcommand(name, help), &chosen_);
}

ParsedLine CommandLine::Parse(int argc, char** argv) {
  // CLI11 would miss a verb, and say nothing of the word that is none.
  if (argc > 1 && argv[1][0] != '-' &&
      app_->get_subcommands(
              [&](const CLI::App* verb) { return verb->check_name(argv[1]); })
          .empty()) {
    std::cerr << app_->get_name() << ": there is no verb `" << argv[1]
              << "`\nRun with --help for more information.\n";
    return {/*action=*/nullptr, kExitUsage};
  }
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return {/*action=*/nullptr, app_->exit(error) == 0 ? kExitOk : kExitUsage};
  }
  return {std::move(chosen_), kExitOk};
}

}  // namespace cleave
