// The commands of elf-eval that work with networks (elf-eval-model): see eval.cpp for why they are apart.
#pragma once

#include "cli.h"
#include "eval_common.h"

namespace elf::app {

EvalCommand add_genppl_command(Command& eval, const CommonOptions& common);
EvalCommand add_run_command(Command& eval, const CommonOptions& common);

}  // namespace elf::app
