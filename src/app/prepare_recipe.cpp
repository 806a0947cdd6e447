// elf-prepare recipe: the steps of a YAML file, each a subcommand of elf-prepare with its options.
#include <yaml-cpp/yaml.h>

#include <deque>
#include <filesystem>
#include <memory>
#include <set>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "prepare.h"

namespace elf::app {
namespace {

namespace fs = std::filesystem;

struct Step {
  std::string command, place, out;  // place: "file:line"
  std::vector<std::string> arguments;
};

std::string place_of(const std::string& file, const YAML::Node& node) {
  return cat(file, ":", node.Mark().line + 1);
}

// "--key value ..." of one option; true is a bare flag, false its negation.
void add_option(Step& step, const std::string& key, const YAML::Node& value) {
  if (value.IsMap() || value.IsNull())
    usage_error(step.place, ": ", key, ": expected a value or a list of values");
  const std::string text = value.IsScalar() ? value.Scalar() : "";
  if (text == "true" || text == "false") {
    step.arguments.push_back((text == "true" ? "--" : "--no-") + key);
    return;
  }
  step.arguments.push_back("--" + key);
  for (const YAML::Node& each : value.IsSequence() ? value : YAML::Node()) {
    if (!each.IsScalar()) usage_error(step.place, ": ", key, ": expected a list of values");
    step.arguments.push_back(each.Scalar());
  }
  if (value.IsScalar()) step.arguments.push_back(text);
  if (key == "out") step.out = text;
}

std::vector<Step> read_recipe(const std::string& file) {
  YAML::Node root;
  try {
    root = YAML::Load(read_file(file));
  } catch (const YAML::Exception& error) {
    usage_error(file, ":", error.mark.line + 1, ": no YAML: ", error.msg);
  }
  const YAML::Node steps = root.IsMap() ? root["steps"] : YAML::Node();
  if (!steps || !steps.IsSequence() || root.size() != 1)
    usage_error(file, ": expected one key, steps: a list of - SUBCOMMAND: {option: value, ...}");
  std::vector<Step> result;
  for (const YAML::Node& node : steps) {
    Step step;
    step.place = place_of(file, node);
    if (!node.IsMap() || node.size() != 1 || !node.begin()->second.IsMap())
      usage_error(step.place, ": expected - SUBCOMMAND: {option: value, ...}");
    step.command = node.begin()->first.Scalar();
    const YAML::Node options = node.begin()->second;  // of its own: what the iterator points to ends with it
    std::set<std::string> keys;
    for (const auto& option : options) {
      const std::string key = option.first.Scalar();
      if (!keys.insert(key).second)
        usage_error(place_of(file, option.first), ": ", key, " stands here twice");
      add_option(step, key, option.second);
    }
    result.push_back(std::move(step));
  }
  return result;
}

// The work of a step whose options are read.
class ParsedStep {
 public:
  explicit ParsedStep(const Step& step) : step_(step) {
    add_prepare_commands(app_, commands_);
    app_.require_subcommand(1);
    std::vector<std::string> arguments = {step.command};
    arguments.insert(arguments.end(), step.arguments.begin(), step.arguments.end());
    try {
      app_.parse(arguments);
    } catch (const Error& error) {
      usage_error(step.place, ": ", step.command, ": ", error.what());
    }
  }
  const Step& step() const { return step_; }
  void run(const CommonOptions& common) const { commands_.at(step_.command)(common); }

 private:
  const Step& step_;
  Command app_{"", "elf-prepare"};
  Commands commands_;
};

// A mistake in any step is told before the first one works.
void run_recipe(const std::string& file, bool again, const CommonOptions& common) {
  const std::vector<Step> steps = read_recipe(file);
  std::deque<ParsedStep> parsed;
  for (const Step& step : steps) parsed.emplace_back(step);
  for (const ParsedStep& each : parsed) {
    const Step& step = each.step();
    if (!again && !step.out.empty() && fs::exists(step.out)) {
      log_info(cat(step.place, ": ", step.command, ": ", step.out, " is there already"));
      continue;
    }
    log_info(cat(step.place, ": ", step.command, step.out.empty() ? "" : " -> " + step.out));
    each.run(common);
  }
}

}  // namespace

void add_recipe_command(Command& app, Commands& commands) {
  struct State {
    std::string file;
    bool again = false;
  };
  const auto state = std::make_shared<State>();
  Command& sub = *app.add_subcommand(
      "recipe", "The steps of a YAML file (configs/data), each a subcommand with its options");
  sub.add_option("file", state->file, "steps: a list of - SUBCOMMAND: {option: value, ...}")->required();
  sub.add_flag("--again", state->again, "Also the steps whose output is there");
  with_examples(sub, "  elf-prepare recipe configs/data/wmt14-de-en.yaml");
  commands["recipe"] = [state](const CommonOptions& common) {
    run_recipe(state->file, state->again, common);
  };
}

}  // namespace elf::app
