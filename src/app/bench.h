// The subcommands of elf-bench; each add_... function declares its arguments on `app` and puts what it does
// into `commands` under the subcommand's name; it returns
// the exit code.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cli.h"

namespace elf::app {

using BenchCommands = std::map<std::string, std::function<int(const CommonOptions&)>>;

void add_speed_command(Command& app, BenchCommands& commands);     // src/app/bench_speed.cpp
void add_ablation_command(Command& app, BenchCommands& commands);  // src/app/bench_ablation.cpp
void add_report_command(Command& app, BenchCommands& commands);    // src/app/bench_report.cpp

}  // namespace elf::app
