// elf-inspect: what a file or folder is and holds, whether it is whole; network and encoder on given tensors.
#include "inspect.h"

#include <iostream>

#include "elf/app/tools.h"
#include "elf/base/error.h"

namespace elf::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "  elf-inspect runs/verses                       # its newest checkpoint, step, configuration, is it "
    "whole\n"
    "  elf-inspect train.h5 --verify --show 5 --tokenizer tok\n"
    "  elf-inspect checkpoint.pt --json\n"
    "  elf-inspect forward --model models/elf-b --inputs in.safetensors --output out.safetensors\n"
    "  elf-inspect encode --encoder t5-small --inputs in.safetensors --output out.safetensors\n"
    "Exit code 2 when what is there is not whole.\n";

// "dtype [2, 3]" for each tensor; other objects and lists as JSON on one line.
void append_lines(const Json& object, std::string& text) {
  for (const auto& [key, value] : object.items()) {
    if (key == "tensors") {
      text += "tensors:\n";
      for (const auto& [name, tensor] : value.items())
        text += cat("  ", name, "  ", tensor.at("dtype").get<std::string>(), " ", tensor.at("shape").dump(),
                    "\n");
    } else if (key == "config" || key == "sample_rows") {
      text += key + ":\n";
      for (const auto& [name, inner] : value.items())
        text += cat("  ", value.is_object() ? name + " = " : "",
                    inner.is_string() ? inner.get<std::string>() : inner.dump(), "\n");
    } else {
      text += cat(key, ": ", value.is_string() ? value.get<std::string>() : value.dump(), "\n");
    }
  }
}

void inspect_path(const InspectOptions& options) {
  if (options.path.empty()) usage_error("give a PATH, or one of the commands forward and encode");
  if (options.show < 0) usage_error("--show: found ", options.show, ", expected a number from 0");
  const Json object = describe_path(options);
  if (options.as_json) {
    std::cout << object.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    std::cout << as_text(object);
  }
  std::cout.flush();
  if (!object.at("complete").get<bool>())
    usage_error(options.path, " is not whole: ", object.at("problem").get<std::string>());
}

}  // namespace

Json describe_path(const InspectOptions& options) {
  std::error_code error;
  if (!fs::exists(options.path, error)) usage_error(options.path, ": no such file or folder");
  return fs::is_directory(options.path, error) ? describe_folder(options) : describe_file(options);
}

Json described(const char* kind, const fs::path& path, const std::function<void(Json&)>& fill) {
  Json object = {{"kind", kind}, {"path", path.string()}, {"complete", true}};
  try {
    fill(object);
  } catch (const Error& error) {
    if (error.exit_code() != 2) throw;
    object["complete"] = false;
    object["problem"] = error.what();
  }
  return object;
}

std::string as_text(const Json& object) {
  std::string text;
  append_lines(object, text);
  return text;
}

int inspect(int argc, char** argv) {
  Command app(
      "What a checkpoint, model directory, dataset, encoder, tokenizer or file of tensors holds, and is it "
      "whole.",
      "elf-inspect");
  InspectOptions options;
  CommonOptions common;
  InspectCommands commands;
  app.add_option(
      "path", options.path,
      "Run, checkpoint, model directory, encoder, GPT-2, table, tokenizer, dataset or latents (.h5), "
      ".safetensors, .pt, statistics (.json)");
  app.add_flag("--json", options.as_json, "One JSON object");
  app.add_flag("--verify", options.verify,
               "Datasets: read every row and compare the hash of the content; latents: read every row");
  app.add_option("--show", options.show, "Datasets: print so many rows, spread over the file");
  app.add_option("--tokenizer", options.tokenizer, "Datasets: rows as text by this tokenizer");
  add_common_options(app, common);
  add_forward_command(app, commands);
  add_encode_command(app, commands);
  with_examples(app, kExamples);
  return run(app, common, argc, argv, [&] {
    if (app.parsed_subcommand().empty()) return inspect_path(options);
    commands.at(app.parsed_subcommand())(common);
  });
}

}  // namespace elf::app
