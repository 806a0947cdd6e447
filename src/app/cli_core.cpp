#include "cli_core.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "elf/app/tools.h"
#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/base/sanitizers.h"
#include "elf/version.h"

namespace elf::app {
namespace {

std::string version_text() {
  return cat("elf ", ELF_VERSION, " (revision ", ELF_GIT_REVISION, "), LibTorch ", ELF_LIBTORCH_VERSION,
             ", CUDA ", ELF_LIBTORCH_CUDA);
}

// What was printed is at its place, or it is said: `... > file` on a full disk.
void flush_output() {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || !std::cout || std::ferror(stdout) != 0)
    environment_error("standard output: writing failed; is the disk full?");
}

}  // namespace

void add_common_options(Command& app, CoreOptions& options) {
  app.add_option("--log-level", options.log_level, "debug, info, warning, error or off")
      ->capture_default_str();
  app.add_option("--device", options.device_name, "auto, cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--threads", options.threads, "Threads of one operation; 0 = all cores")
      ->not_negative()
      ->capture_default_str();
  app.set_version_flag("--version", version_text(), "Print versions and exit");
  app.fallthrough();
}

Command& with_examples(Command& app, const std::string& examples) {
  app.footer("\nExamples:\n" + examples);
  return app;
}

int run_core(Command& app, const CoreOptions& options, int argc, char** argv,
             const std::function<void()>& body) {
  if (const std::optional<int> code = app.parse(argc, argv)) return *code;
  try {
    set_log_level(parse_log_level(options.log_level));
    body();
    flush_output();
    return 0;
  } catch (const Error& error) {
    log_error(error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    log_error(error.what());
  }
  return 1;
}

void leave(int exit_code) {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
#ifdef ELF_SANITIZED
  std::exit(exit_code);  // the leak check runs at exit
#else
  std::_Exit(exit_code);
#endif
}

}  // namespace elf::app
