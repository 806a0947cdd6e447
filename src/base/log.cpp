#include "elf/base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>

#include "elf/base/error.h"
#include "terminal_bar.h"

namespace elf {
namespace {

// Stderr and, when there is one, the file. They change while other threads write lines.
struct Outputs {
  Outputs() {
    terminal->set_pattern("%^%v%$");
    all->add_sink(terminal);
    logger.flush_on(spdlog::level::info);
  }
  const std::shared_ptr<spdlog::sinks::sink> terminal =
      std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  const std::shared_ptr<spdlog::sinks::dist_sink_mt> all = std::make_shared<spdlog::sinks::dist_sink_mt>();
  spdlog::logger logger{"elf", all};
};

Outputs& outputs() {
  static Outputs* const instance = new Outputs;  // never destroyed: threads may log while the process ends
  return *instance;
}

spdlog::logger& logger() {
  return outputs().logger;
}

// A bar is redrawn by its next update; the line takes its place until then.
void write(spdlog::level::level_enum level, const char* prefix, const std::string& message) {
  if (bar_on_screen && logger().should_log(level)) std::fputs("\r\033[K", stderr);
  logger().log(level, "{}{}", prefix, message);
}

}  // namespace

void set_log_level(LogLevel level) {
  static constexpr spdlog::level::level_enum kLevels[] = {
      spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err, spdlog::level::off};
  logger().set_level(kLevels[static_cast<int>(level)]);
}

LogLevel parse_log_level(const std::string& name) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error", "off"};
  for (int i = 0; i < 5; ++i) {
    if (name == kNames[i]) return static_cast<LogLevel>(i);
  }
  usage_error("log level '", name, "' is not one of debug, info, warning, error, off");
}

void log_to_file(const std::filesystem::path& path) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string(), /*truncate=*/false);
    sink->set_pattern("%Y-%m-%d %H:%M:%S %v");
    outputs().all->set_sinks({outputs().terminal, sink});
  } catch (const spdlog::spdlog_ex& e) {
    environment_error(path.string(), ": cannot write the log file: ", e.what());
  }
}

void end_log_file() {
  outputs().all->set_sinks({outputs().terminal});
}

void log_debug(const std::string& message) {
  write(spdlog::level::debug, "", message);
}
void log_info(const std::string& message) {
  write(spdlog::level::info, "", message);
}
void log_warning(const std::string& message) {
  write(spdlog::level::warn, "warning: ", message);
}
void log_error(const std::string& message) {
  write(spdlog::level::err, "error: ", message);
}

}  // namespace elf
