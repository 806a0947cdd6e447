// Log lines to stderr and, when asked, to a file as well. Results never go through here: they go to stdout or
// --output.
#pragma once

#include <filesystem>
#include <string>

namespace elf {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// Lines below `level` are not written.
void set_log_level(LogLevel level);

// From "debug", "info", "warning", "error" or "off"; throws Error (usage) for anything else.
LogLevel parse_log_level(const std::string& name);

// Also append every line from now on, with its time, to `path`, and no longer to the file of a call before.
// Throws Error (environment) when it cannot be opened.
void log_to_file(const std::filesystem::path& path);
// To stderr alone again.
void end_log_file();

void log_debug(const std::string& message);
void log_info(const std::string& message);
void log_warning(const std::string& message);
void log_error(const std::string& message);

}  // namespace elf
