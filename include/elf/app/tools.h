// The command-line tools as functions: each parses its arguments, wires objects and returns the exit code
// (0 done, 2 bad input, 3 numerical failure, kStoppedAfterSaving: by a signal, other: environment).
#pragma once

namespace elf::app {

constexpr int kStoppedAfterSaving = 85;

int prepare(int argc, char** argv);
int train(int argc, char** argv);
int sample(int argc, char** argv);
int eval(int argc, char** argv);
int convert(int argc, char** argv);
int eval_model(int argc, char** argv);  // the commands of elf-eval that work with networks
int inspect(int argc, char** argv);
int bench(int argc, char** argv);

// Ends a program of these tools: what was written is flushed, static objects are not destroyed. Taking down
// LibTorch's registries is a third of the time that a short program takes.
[[noreturn]] void leave(int exit_code);

}  // namespace elf::app
