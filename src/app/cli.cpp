#include "cli.h"

#include "elf/base/error.h"
#include "elf/tensor/block_cache.h"

namespace elf::app {

int run(Command& app, const CommonOptions& options, int argc, char** argv,
        const std::function<void()>& body) {
  return run_core(app, options, argc, argv, [&] {
    try {
      use_block_cache();
      set_threads(options.threads);
      body();
    } catch (const c10::Error& error) {  // its own what() carries a stack trace
      environment_error(error.what_without_backtrace());
    }
  });
}

}  // namespace elf::app
