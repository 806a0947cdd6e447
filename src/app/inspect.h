// What elf-inspect finds out about a path, and the runs of network and encoder on given tensors.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cli.h"
#include "elf/tensor/safetensors_shapes.h"

namespace elf::app {

struct InspectOptions {
  std::string path, tokenizer;
  int64_t show = 0;  // datasets: so many rows as text
  bool verify = false, as_json = false;
};

// An object with `kind`, `path`, `complete`, for what is not whole `problem`, and what fits the kind (the
// table of fields is in docs/MODELS.md). Throws Error (usage) for a path that is nothing this project knows.
nlohmann::ordered_json describe_path(const InspectOptions& options);

// Its parts (src/app/inspect_files.cpp, inspect_folders.cpp).
nlohmann::ordered_json describe_file(const InspectOptions& options);
nlohmann::ordered_json describe_folder(const InspectOptions& options);
nlohmann::ordered_json describe_tokenizer(const std::filesystem::path& path);
// name -> dtype and shape as `tensors`, and their number of elements as `parameters`.
void add_tensors(const std::map<std::string, TensorShape>& shapes, nlohmann::ordered_json& object);
// The same of a safetensors file, with its metadata.
void describe_safetensors(const std::filesystem::path& path, nlohmann::ordered_json& object);

// {kind, path, complete: true} and what `fill` adds; when `fill` throws an Error, `complete` is false and
// `problem` its message.
nlohmann::ordered_json described(const char* kind, const std::filesystem::path& path,
                                 const std::function<void(nlohmann::ordered_json&)>& fill);

// The object as lines of text.
std::string as_text(const nlohmann::ordered_json& object);

// The subcommands forward and encode (src/app/inspect_run.cpp).
using InspectCommands = std::map<std::string, std::function<void(const CommonOptions&)>>;
void add_forward_command(Command& app, InspectCommands& commands);
void add_encode_command(Command& app, InspectCommands& commands);

}  // namespace elf::app
