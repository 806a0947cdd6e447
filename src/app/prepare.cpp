#include "prepare.h"

#include "elf/app/tools.h"

namespace elf::app {

void add_prepare_commands(Command& app, Commands& commands) {
  add_tokenizer_command(app, commands);
  add_corpus_command(app, commands);
  add_pairs_command(app, commands);
  add_table_command(app, commands);
  add_statistics_command(app, commands);
  add_encoder_command(app, commands);
  add_latents_command(app, commands);
  add_benchmark_command(app, commands);
}

int prepare(int argc, char** argv) {
  Command app("Text in; tokenizers, HDF5 datasets and latent sources out.", "elf-prepare");
  CommonOptions options;
  Commands commands;
  add_common_options(app, options);
  add_prepare_commands(app, commands);
  add_recipe_command(app, commands);
  app.require_subcommand(1);
  with_examples(app,
                "  elf-prepare tokenizer --input train.txt --vocab-size 8000 --out tok\n"
                "  elf-prepare corpus --input train.txt --tokenizer tok --max-length 128 --out train.h5\n"
                "  elf-prepare pairs --source train.de --target train.en --tokenizer tok --max-input-length "
                "64 --max-length 128 "
                "--out train.h5\n"
                "  elf-prepare table --data train.h5 --kind svd --width 16 --out table\n"
                "  elf-prepare corpus --help");
  return run(app, options, argc, argv, [&] { commands.at(app.parsed_subcommand())(options); });
}

}  // namespace elf::app
