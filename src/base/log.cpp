#include "elf/base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "elf/base/error.h"

namespace elf {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    sink->set_pattern("%^%v%$");
    auto made = std::make_shared<spdlog::logger>("elf", sink);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_log_level(LogLevel level) {
  static constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                          spdlog::level::warn, spdlog::level::err,
                                                          spdlog::level::off};
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
    logger().sinks().push_back(sink);
  } catch (const spdlog::spdlog_ex& e) {
    environment_error(path.string(), ": cannot write the log file: ", e.what());
  }
}

void log_debug(const std::string& message) { logger().debug("{}", message); }
void log_info(const std::string& message) { logger().info("{}", message); }
void log_warning(const std::string& message) { logger().warn("warning: {}", message); }
void log_error(const std::string& message) { logger().error("error: {}", message); }

}  // namespace elf
