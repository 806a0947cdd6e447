#include "command_line.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <type_traits>

#include "cli_errors.h"
#include "elf/base/error.h"

namespace elf::app {
namespace {

// CLI11's own such checks tell the range up to the largest double, in 309 digits.
CLI::Validator number(const char* name, const char* expected, bool (*good)(double)) {
  return CLI::Validator(
      [=](const std::string& text) {
        double value = 0;
        const bool fine = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && good(value);
        return fine ? std::string() : cat("expected ", expected, ", found '", text, "'");
      },
      name);
}

// What a value of T is written as: CLI11 alone takes 010 for eight, 0x10 for sixteen, -1 for the largest uint64_t.
template <typename T>
std::string expected_number(const std::string& text) {
  T value{};
  const bool plus = text.starts_with('+');
  const char *begin = text.data() + (plus ? 1 : 0), *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range) return cat("found ", text, ", which is out of range");
  if constexpr (std::is_integral_v<T>) {
    const size_t sign = text.starts_with('-') || plus ? 1 : 0;
    const bool leading_zero = text.size() > sign + 1 && text[sign] == '0';
    if (error == std::errc() && stop == end && !leading_zero) return "";
    return cat("expected ", std::is_signed_v<T> ? "an integer" : "an integer from 0 on", ", found '", text,
               "'");
  } else {
    return error == std::errc() && stop == end ? "" : cat("expected a number, found '", text, "'");
  }
}

template <typename T>
struct Number {
  using type = T;
};
template <typename T>
struct Number<std::optional<T>> : Number<T> {};
template <typename T>
struct Number<std::vector<T>> : Number<T> {};

// Of an option that is bound to a number, to one that may be missing or to a list.
template <typename T>
void check_number(CLI::Option& option) {
  using One = typename Number<T>::type;
  if constexpr (std::is_arithmetic_v<One>) option.check(CLI::Validator(expected_number<One>, ""));
}

}  // namespace

Option* Option::required() {
  option_.required();
  return this;
}

Option* Option::needs(Option* other) {
  option_.needs(&other->option_);
  return this;
}

Option* Option::excludes(Option* other) {
  option_.excludes(&other->option_);
  return this;
}

Option* Option::expected(int values) {
  option_.expected(values);
  return this;
}

Option* Option::delimiter(char between) {
  option_.delimiter(between);
  return this;
}

Option* Option::allow_extra_args(bool allow) {
  option_.allow_extra_args(allow);
  return this;
}

Option* Option::capture_default_str() {
  option_.capture_default_str();
  return this;
}

Option* Option::default_str(const std::string& text) {
  option_.default_str(text);
  return this;
}

Option* Option::one_of(const std::vector<std::string>& values) {
  option_.check(CLI::IsMember(values));
  return this;
}

Option* Option::positive() {
  option_.check(number("POSITIVE", "a positive number", [](double value) { return value > 0; }));
  return this;
}

Option* Option::not_negative() {
  option_.check(number("NONNEGATIVE", "zero or a positive number", [](double value) { return value >= 0; }));
  return this;
}

template <typename T>
Option* Option::between(T least, T most) {
  option_.check(CLI::Range(least, most));
  return this;
}
template Option* Option::between(int, int);
template Option* Option::between(int64_t, int64_t);
template Option* Option::between(double, double);

size_t Option::count() const {
  return option_.count();
}

Command::Command(const std::string& description, const std::string& name)
    : program_(std::make_unique<CLI::App>(description, name)), app_(program_.get()) {}

Command::Command(CLI::App& subcommand) : app_(&subcommand) {}

Command::~Command() = default;

Command* Command::add_subcommand(const std::string& name, const std::string& description) {
  subcommands_.emplace_back(
      new Command(*app_->add_subcommand(name, description)));  // not make_unique: private
  return subcommands_.back().get();
}

void Command::require_subcommand(int number) {
  app_->require_subcommand(number);
}

void Command::fallthrough() {
  app_->fallthrough();
}

void Command::footer(const std::string& text) {
  app_->footer(text);
}

Option* Command::keep(CLI::Option* option) {
  return options_.emplace_back(std::make_unique<Option>(*option)).get();
}

template <typename T>
Option* Command::add_option(const std::string& name, T& variable, const std::string& description) {
  CLI::Option* option = app_->add_option(name, variable, description);
  check_number<T>(*option);
  return keep(option);
}

Option* Command::add_option_function(const std::string& name,
                                     const std::function<void(const std::string&)>& take,
                                     const std::string& description) {
  return keep(app_->add_option_function<std::string>(name, take, description));
}

Option* Command::add_flag(const std::string& name, bool& variable, const std::string& description) {
  return keep(app_->add_flag(name, variable, description));
}

Option* Command::add_flag(const std::string& name, const std::string& description) {
  return keep(app_->add_flag(name, description));
}

Option* Command::add_flag_callback(const std::string& name, const std::function<void()>& act,
                                   const std::string& description) {
  return keep(app_->add_flag_callback(name, act, description));
}

void Command::set_version_flag(const std::string& name, const std::string& version,
                               const std::string& description) {
  app_->set_version_flag(name, version, description);
}

std::optional<int> Command::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    const std::string problem = empty_output(*app_);
    if (problem.empty()) return std::nullopt;
    std::cerr << "error: " << problem << "\n";
    return 2;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      const int code = app_->exit(error);
      if (std::cout.flush()) return code;
      std::cerr << "error: standard output: writing failed; is the disk full?\n";
      return 1;
    }
    const UsageProblem problem = usage_problem(*app_, error, {argv + 1, argv + argc});
    std::cerr << "error: " << problem.message << "\nTry: " << problem.command << " --help\n";
    return 2;
  }
}

void Command::parse(const std::vector<std::string>& arguments) {
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // as CLI11 wants them
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) usage_error("--help and --version are for the command line");
    usage_error(usage_problem(*app_, error, arguments).message);
  }
  if (const std::string problem = empty_output(*app_); !problem.empty()) usage_error(problem);
}

bool Command::parsed() const {
  return app_->parsed();
}

std::string Command::parsed_subcommand() const {
  const std::vector<CLI::App*> parsed = app_->get_subcommands();
  return parsed.empty() ? "" : parsed.front()->get_name();
}

size_t Command::count(const std::string& name) const {
  return app_->count(name);
}

template Option* Command::add_option(const std::string&, std::string&, const std::string&);
template Option* Command::add_option(const std::string&, std::filesystem::path&, const std::string&);
template Option* Command::add_option(const std::string&, int&, const std::string&);
template Option* Command::add_option(const std::string&, int64_t&, const std::string&);
template Option* Command::add_option(const std::string&, uint32_t&, const std::string&);
template Option* Command::add_option(const std::string&, uint64_t&, const std::string&);
template Option* Command::add_option(const std::string&, double&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<int64_t>&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<uint64_t>&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<int64_t>&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<uint64_t>&, const std::string&);

}  // namespace elf::app
