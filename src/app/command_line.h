// Command lines: what this project uses of CLI11, which only command_line.cpp and cli_errors.cpp see. Its headers
// cost seconds in every file that includes them. Names are CLI11's where it has them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace elf::app {

// An option, a flag or a positional argument; its Command owns it. What tells how it is given returns it.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}
  Option(const Option&) = delete;
  Option& operator=(const Option&) = delete;

  Option* required();
  Option* needs(Option* other);     // given without it: refused
  Option* excludes(Option* other);  // given with it: refused
  Option* expected(int values);
  Option* delimiter(char between);       // a list can be one argument: "1,2,3"
  Option* allow_extra_args(bool allow);  // false: a list takes one value each time that the option is given
  Option* capture_default_str();         // --help shows what the variable holds now; a list as [1,2]
  Option* default_str(const std::string& text);  // --help shows this as the default

  // What values are taken; others are refused before anything runs.
  Option* one_of(const std::vector<std::string>& values);
  Option* positive();
  Option* not_negative();
  // Both included. T: int, int64_t, double.
  template <typename T>
  Option* between(T least, T most);

  size_t count() const;  // how often it was given

 private:
  CLI::Option& option_;
};

// A program or one of its subcommands. Variables that are bound to options outlive the parsing. Adding what is
// there already, or under a name that CLI11 does not take, throws its error: a fault of the program.
class Command {
 public:
  explicit Command(const std::string& description = "", const std::string& name = "");
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // The subcommand belongs to this command, as its options do.
  Command* add_subcommand(const std::string& name, const std::string& description);
  void require_subcommand(int number);
  void fallthrough();  // subcommands take this command's options, too
  void footer(const std::string& text);

  // name: "--name", or "name" of a positional argument. T: a type in the list at the end of command_line.cpp; with
  // another, linking fails.
  template <typename T>
  Option* add_option(const std::string& name, T& variable, const std::string& description);
  Option* add_option_function(const std::string& name, const std::function<void(const std::string&)>& take,
                              const std::string& description);

  // name: "--name", or "--name,!--no-name" of one that can be taken back.
  Option* add_flag(const std::string& name, bool& variable, const std::string& description);
  Option* add_flag(const std::string& name, const std::string& description);
  Option* add_flag_callback(const std::string& name, const std::function<void()>& act,
                            const std::string& description);
  void set_version_flag(const std::string& name, const std::string& version, const std::string& description);

  // Sets the variables. A value: the exit code of a program that has nothing more to do, because --help or
  // --version was printed, or because what is wrong was said on stderr.
  std::optional<int> parse(int argc, char** argv);
  // The same of the arguments that follow the program's name. Throws Error (usage) in place of printing.
  void parse(const std::vector<std::string>& arguments);

  // What was given.
  bool parsed() const;                          // this subcommand
  std::string parsed_subcommand() const;        // the name of the first; "" without one
  size_t count(const std::string& name) const;  // how often the option

 private:
  explicit Command(CLI::App& subcommand);
  Option* keep(CLI::Option* option);

  std::unique_ptr<CLI::App> program_;  // null of a subcommand
  CLI::App* app_;
  std::vector<std::unique_ptr<Command>> subcommands_;
  std::vector<std::unique_ptr<Option>> options_;
};

}  // namespace elf::app
