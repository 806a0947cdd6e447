// elf-eval-model: the commands of elf-eval that need networks. elf-eval starts it.
#include "eval_model.h"

#include <vector>

#include "elf/app/tools.h"

namespace elf::app {

int eval_model(int argc, char** argv) {
  Command app("Scores of generated texts, and of models.", "elf-eval");
  CommonOptions common;
  add_common_options(app, common);
  app.require_subcommand(1);
  const std::vector<EvalCommand> commands = {add_genppl_command(app, common), add_run_command(app, common)};
  return run(app, common, argc, argv, [&] {
    for (const auto& [command, run] : commands) {
      if (command->parsed()) run();
    }
  });
}

}  // namespace elf::app
