#include "bench.h"

#include "elf/app/tools.h"

namespace elf::app {

int bench(int argc, char** argv) {
  Command app("Measures speed; runs and reports the ablations.", "elf-bench");
  CommonOptions options;
  BenchCommands commands;
  add_common_options(app, options);
  add_speed_command(app, commands);
  add_ablation_command(app, commands);
  add_report_command(app, commands);
  app.require_subcommand(1);
  with_examples(app,
                "  elf-bench speed train --preset elf-b --batch 8 --length 128 --threads 2\n"
                "  elf-bench speed sample --preset elf-b --sampling-steps 8 --condition 64 --cfg 2 --json\n"
                "  elf-bench speed train --config configs/nano-verses.yaml --steps 20\n"
                "  elf-bench ablation configs/ablations/optimiser.yaml --dry-run\n"
                "  elf-bench report runs/ablations --out report.html\n");
  int code = 0;
  const int failed =
      run(app, options, argc, argv, [&] { code = commands.at(app.parsed_subcommand())(options); });
  return failed != 0 ? failed : code;
}

}  // namespace elf::app
