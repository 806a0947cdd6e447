// The subcommands of elf-prepare. Each add_... function declares its arguments on `app` and puts what it does
// into `commands` under the subcommand's name; prepare() runs the one that was typed, after log level and
// threads are set.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cli.h"

namespace elf::app {

using Commands = std::map<std::string, std::function<void(const CommonOptions&)>>;

// All but recipe, which runs them.
void add_prepare_commands(Command& app, Commands& commands);
void add_recipe_command(Command& app, Commands& commands);  // src/app/prepare_recipe.cpp

// Text (src/app/prepare_text.cpp).
void add_tokenizer_command(Command& app, Commands& commands);
void add_corpus_command(Command& app, Commands& commands);
void add_pairs_command(Command& app, Commands& commands);

// Latent sources (src/app/prepare_encoder.cpp, prepare_latents.cpp, prepare_cache.cpp).
void add_encoder_command(Command& app, Commands& commands);
void add_table_command(Command& app, Commands& commands);
void add_statistics_command(Command& app, Commands& commands);
void add_latents_command(Command& app, Commands& commands);

// Reading (src/app/prepare_benchmark.cpp).
void add_benchmark_command(Command& app, Commands& commands);

}  // namespace elf::app
