// How texts come out of noise, as one picture.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace elf::app {

// An SVG: the first samples (three at the most), a line for each of some of their steps with the time at its
// left, tokens the fainter the less sure they are. `steps`: objects of step_json (elf/sample/trajectory.h),
// steps of a sample in order.
std::string trajectory_picture(const std::vector<nlohmann::ordered_json>& steps, const std::string& caption);

}  // namespace elf::app
