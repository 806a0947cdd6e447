#include "cli_errors.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <vector>

#include "elf/base/error.h"
#include "elf/metrics/edit_distance.h"

namespace elf::app {
namespace {

// The subcommand that the arguments lead to, the program itself when they name none.
struct Walk {
  const CLI::App* command;
  std::string path;                  // "elf-prepare corpus"
  std::string unknown_option;        // the first option that neither it nor those above it have
  std::vector<std::string> leading;  // words that can be nothing but a subcommand's name
};

// An argument that can only be an option: "-5" and "-" are values.
bool is_option(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-' &&
         !std::isdigit(static_cast<unsigned char>(argument[1])) && argument[1] != '.';
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* inner : app.get_subcommands(nullptr)) {
    if (inner->get_name() == name) return inner;
  }
  return nullptr;
}

bool knows(const CLI::App& command, const std::string& option) {
  if (command.get_option_no_throw(option)) return true;
  const CLI::App* parent = command.get_parent();
  return parent && knows(*parent, option);
}

// Whether a word can be an argument of `command` itself, in place of a subcommand's name.
bool takes_words(const CLI::App& command) {
  return std::ranges::any_of(command.get_options(),
                             [](const CLI::Option* option) { return option->get_positional(); });
}

// How many of the words behind `argument`, an option, are its values: of an unknown one, one.
int values_of(const CLI::App& command, const std::string& argument) {
  if (argument.find('=') != std::string::npos) return 0;
  for (const CLI::App* each = &command; each; each = each->get_parent()) {
    if (const CLI::Option* option = each->get_option_no_throw(argument))
      return option->get_items_expected_max();
  }
  return 1;
}

Walk walk(const CLI::App& app, const std::vector<std::string>& arguments) {
  Walk found{&app, app.get_name(), "", {}};
  int values = 0;  // so many words yet belong to an option
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (is_option(argument)) {
      const std::string name = argument.substr(0, argument.find('='));
      if (found.unknown_option.empty() && !knows(*found.command, name)) found.unknown_option = name;
      values = values_of(*found.command, argument);
    } else if (values > 0) {
      --values;
    } else if (const CLI::App* inner = find_command(*found.command, argument)) {
      found.command = inner;
      found.path += " " + argument;
    } else if (!takes_words(*found.command)) {
      found.leading.push_back(argument);
    }
  }
  return found;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* each = &command; each; each = each->get_parent()) {
    for (const CLI::Option* option : each->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* inner : command.get_subcommands(nullptr)) names.push_back(inner->get_name());
  return names;
}

// "" where none is near.
std::string nearest(const std::string& wanted, const std::vector<std::string>& names) {
  const std::u32string typed(wanted.begin(), wanted.end());
  std::string best;
  int64_t least = 0;
  for (const std::string& name : names) {
    int64_t distance = edit_distance(typed, std::u32string(name.begin(), name.end()));
    if (name.starts_with(wanted)) distance = 1;  // cut short: one slip
    if (best.empty() || distance < least) {
      best = name;
      least = distance;
    }
  }
  return least <= static_cast<int64_t>(std::max<size_t>(2, typed.size() / 3)) ? best : "";
}

std::string unknown(const char* what, const std::string& given, const std::vector<std::string>& names) {
  const std::string best = nearest(given, names);
  return cat("unknown ", what, " '", given, "'",
             best.empty() ? "" : "; the nearest known one is '" + best + "'");
}

std::string message(const CLI::App& app, const CLI::ParseError& error, const Walk& place) {
  const std::vector<std::string> commands = command_names(*place.command);
  if (!commands.empty() && !place.leading.empty()) return unknown("command", place.leading[0], commands);
  if (!place.unknown_option.empty() && knows(*place.command, place.unknown_option))
    return cat("option '", place.unknown_option, "' belongs behind the command: ", place.path, " ",
               place.unknown_option);
  if (!place.unknown_option.empty())
    return unknown("option", place.unknown_option, option_names(*place.command));
  if (!commands.empty() && dynamic_cast<const CLI::RequiredError*>(&error)) {
    std::string list;
    for (const std::string& name : commands) list += (list.empty() ? "" : ", ") + name;
    return cat("a command is missing: one of ", list);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    std::string list;
    for (const std::string& argument : app.remaining(/*recurse=*/true)) list += " '" + argument + "'";
    return cat("not expected:", list);
  }
  return error.what();
}

}  // namespace

UsageProblem usage_problem(const CLI::App& app, const CLI::ParseError& error,
                           const std::vector<std::string>& arguments) {
  const Walk place = walk(app, arguments);
  return {message(app, error, place), place.path};
}

std::string empty_output(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const auto& given = option->results();
    if (name.find("out") != std::string::npos && std::find(given.begin(), given.end(), "") != given.end())
      return cat(name, ": found an empty name, expected a file or folder");
  }
  for (const CLI::App* inner : app.get_subcommands()) {
    if (std::string found = empty_output(*inner); !found.empty()) return found;
  }
  return "";
}

}  // namespace elf::app
