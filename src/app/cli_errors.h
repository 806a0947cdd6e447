// What is wrong with a command line, in words that name the argument and the nearest one that exists.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace elf::app {

// What is wrong, and the (sub)command that was meant: "elf-prepare corpus".
struct UsageProblem {
  std::string message, command;
};

// Of `error`, which parsing these arguments (those after the program's name) with `app` gave.
UsageProblem usage_problem(const CLI::App& app, const CLI::ParseError& error,
                           const std::vector<std::string>& arguments);

// "" or a message: an option that names an output was given an empty name.
std::string empty_output(const CLI::App& app);

}  // namespace elf::app
