// The `cleave` command: stdout is data, stderr is diagnostics; exits 0, 1 (a
// verdict against) or 2 (usage or bad input).

#include <iostream>
#include <string>

#include "CLI/CLI.hpp"

int main(int argc, char** argv) {
  CLI::App app("Checks, transforms and runs operator rules.", "cleave");
  app.set_version_flag("--version", std::string("cleave 0.1"));
  app.require_subcommand(1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return 0;
}
