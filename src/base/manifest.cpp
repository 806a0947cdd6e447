#include "elf/base/manifest.h"

#include <nlohmann/json.hpp>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;

void write_manifest(const fs::path& folder, const std::vector<std::string>& files) {
  json listed = json::object();
  for (const std::string& name : files) {
    listed[name] = {{"bytes", fs::file_size(folder / name)}, {"digest", digest_of_file(folder / name)}};
  }
  write_file(folder / kManifestName, json{{"files", listed}}.dump(2) + "\n");
}

std::string manifest_problem(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return "is no folder";
  if (!fs::exists(folder / kManifestName, error))
    return cat("has no ", kManifestName, ": writing it was not finished");
  const json manifest = parse_json(read_file(folder / kManifestName));
  if (manifest.is_discarded() || !manifest.contains("files") || !manifest["files"].is_object()) {
    return cat(kManifestName, " is damaged");
  }
  for (const auto& [name, entry] : manifest["files"].items()) {
    const fs::path path = folder / name;
    if (!fs::is_regular_file(path, error)) return cat(name, " is missing");
    if (!entry.is_object()) return cat(kManifestName, " is damaged");
    const auto bytes = fs::file_size(path);
    const auto expected = entry.value("bytes", json(nullptr));
    if (expected != json(bytes)) return cat(name, " has ", bytes, " bytes, expected ", expected.dump());
    if (entry.value("digest", json(nullptr)) != digest_of_file(path))
      return cat(name, " is damaged: its digest is not that of the manifest");
  }
  return "";
}

std::string manifest_digest(const fs::path& folder) {
  return digest_of_file(folder / kManifestName);
}

}  // namespace elf
