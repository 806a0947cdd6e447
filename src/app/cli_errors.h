// What is wrong with a command line, in words that name the argument and the nearest one that exists.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace elf::app {

// Two lines for `error`, which parsing argv with `app` gave: the message, and which --help to read.
std::string explain_usage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv);

// "" or a message: an option that names an output was given an empty name.
std::string empty_output(const CLI::App& app);

}  // namespace elf::app
