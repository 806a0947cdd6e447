// A folder written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace elf {

// Write into temporary(), a folder beside the final one; commit() flushes every file to disk and gives it its
// final name. Without commit() the temporary folder is removed.
class AtomicFolder {
 public:
  // Throws Error (usage) when the final folder exists, is not empty and may not be replaced (so before the
  // long work), or is a file.
  explicit AtomicFolder(std::filesystem::path final_path, bool replace = false);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const std::filesystem::path& temporary() const { return temporary_; }
  void commit();  // throws Error (environment): no space, no permission

 private:
  std::filesystem::path final_, temporary_;
  bool committed_ = false;
};

// Gives the folder `made` the name `place`, beside it, and removes what had that name before. Where the file
// system can exchange two names there is a whole folder of that name at every moment. Throws Error
// (environment); the old folder then has its name still, or the message says which one.
void put_in_place(const std::filesystem::path& made, const std::filesystem::path& place);

// True for what a put_in_place() that was cut short kept of the folder it replaced, when the new one has its
// name. (Without it this is all that is left, and stays.)
bool is_replaced_folder(const std::filesystem::path& path);

// True when `folder` exists and holds nothing but files and folders of these names: what the same command
// wrote before, and may replace.
bool holds_only(const std::filesystem::path& folder, const std::vector<std::string>& names);

}  // namespace elf
