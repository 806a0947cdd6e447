// Reading zip archives whose members are stored as they are, as torch.save writes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace elf {

class ZipArchive {
 public:
  // Throws Error (usage): no zip archive, cut short, damaged directory.
  explicit ZipArchive(const std::filesystem::path& path);
  ~ZipArchive();

  const std::vector<std::string>& names() const { return names_; }
  // Bytes of a member, at most those of the file; nothing when there is none. Throws Error (usage) for a
  // compressed or encrypted one.
  std::optional<uint64_t> size(const std::string& name) const;
  // The whole member, `bytes` = size(name). Throws Error (usage) when its CRC-32 is not that of the
  // directory.
  void read(const std::string& name, void* to, uint64_t bytes) const;
  std::string text(const std::string& name) const;  // throws Error (usage) when there is none

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::vector<std::string> names_;
};

}  // namespace elf
