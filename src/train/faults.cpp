#include "faults.h"

#include <ATen/ATen.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/dist/launch.h"

namespace elf {
namespace {

struct Fault {
  std::string name;
  int64_t first = 0, last = 0;
  int64_t rank = -1, restart = -1;  // -1: any
  double value = 0;
};

Fault parse(const std::string& text) {
  Fault fault;
  try {
    std::istringstream parts(text);
    std::string part;
    std::getline(parts, part, ':');
    const size_t at = part.find('@'), dash = part.find('-', at);
    fault.name = part.substr(0, at);
    fault.first = std::stoll(part.substr(at + 1));
    fault.last = dash == std::string::npos ? fault.first : std::stoll(part.substr(dash + 1));
    while (std::getline(parts, part, ':')) {
      const std::string key = part.substr(0, part.find('=')), value = part.substr(key.size() + 1);
      if (key == "rank") fault.rank = std::stoll(value);
      if (key == "restart") fault.restart = std::stoll(value);
      if (key == "value") fault.value = std::stod(value);
    }
  } catch (const std::exception&) {
    usage_error("ELF_FAULTS: '", text, "': expected NAME@STEP[-STEP][:rank=R][:restart=N][:value=X]");
  }
  return fault;
}

std::vector<Fault> read_faults() {
  std::vector<Fault> faults;
  const char* text = std::getenv("ELF_FAULTS");
  if (text == nullptr || *text == '\0') return faults;
  const Launch launch = read_launch();
  std::istringstream list(text);
  for (std::string one; std::getline(list, one, ',');) {
    const Fault fault = parse(one);
    if (fault.rank >= 0 && fault.rank != launch.rank) continue;
    if (fault.restart >= 0 && fault.restart != launch.restart) continue;
    faults.push_back(fault);
  }
  log_warning(cat("ELF_FAULTS is set: this run is a test of faults (", text, ")"));
  return faults;
}

}  // namespace

std::optional<double> fault_at(std::string_view name, int64_t step) {
  static const std::vector<Fault> faults = read_faults();
  for (const Fault& fault : faults) {
    if (fault.name == name && fault.first <= step && step <= fault.last) return fault.value;
  }
  return std::nullopt;
}

void fault_point(std::string_view place, int64_t step) {
  const std::string name(place);
  if (const auto seconds = fault_at("sleep_" + name, step))
    std::this_thread::sleep_for(std::chrono::duration<double>(*seconds));
  if (fault_at("throw_" + name, step)) environment_error("a fault was asked for in ", name);
  if (const auto signal = fault_at("kill_" + name, step))
    ::kill(::getpid(), *signal > 0 ? static_cast<int>(*signal) : SIGKILL);
}

Loss spoilt(const Loss& loss) {
  Loss bad = loss;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  bad.total = loss.total * nan;
  bad.l2_sum = loss.l2_sum * nan;
  return bad;
}

}  // namespace elf
