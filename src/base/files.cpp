#include "elf/base/files.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "elf/base/error.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

File open_for_reading(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) usage_error(path.string(), ": no such file");
  if (fs::is_directory(path, ignored)) usage_error(path.string(), ": is a folder, expected a file");
  if (fs::is_character_file(path, ignored) || fs::is_block_file(path, ignored))  // /dev/zero never ends
    usage_error(path.string(), ": is a device, expected a file");
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) environment_error(path.string(), ": cannot be read: ", std::strerror(errno));
  return file;
}

// Calls use(data, size) for each piece of the file.
template <class Use>
void for_each_piece(const fs::path& path, Use use) {
  File file = open_for_reading(path);
  std::vector<char> buffer(1 << 20);
  size_t count;
  while ((count = std::fread(buffer.data(), 1, buffer.size(), file.get())) > 0) use(buffer.data(), count);
  if (std::ferror(file.get())) environment_error(path.string(), ": reading failed: ", std::strerror(errno));
}

std::string hexadecimal(XXH128_hash_t hash) {
  char text[40];
  std::snprintf(text, sizeof text, "xxh128:%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

}  // namespace

std::string read_file(const fs::path& path) {
  std::string content;
  for_each_piece(path, [&](const char* data, size_t size) { content.append(data, size); });
  return content;
}

AtomicFile::AtomicFile(fs::path final_path) : final_(std::move(final_path)) {
  if (!final_.has_filename()) {
    usage_error("'", final_.string(), "': expected the name of a file to write",
                final_.empty() ? ", found an empty one" : "");
  }
  // A link keeps standing and its target is written. What is no regular file must not be replaced by one.
  std::error_code error;
  if (fs::is_symlink(final_, error)) final_ = fs::weakly_canonical(final_, error);
  if (fs::is_directory(final_, error))
    usage_error(final_.string(), ": is a folder, expected the name of a file to write");
  if (fs::exists(final_, error) && !fs::is_regular_file(final_, error)) {
    usage_error(final_.string(), ": is a device or pipe, expected the name of a file to write");
  }
  const fs::path folder = final_.has_parent_path() ? final_.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error)) {
    usage_error(final_.string(), ": cannot be written: ", folder.string(),
                fs::exists(folder, error) ? " is no folder" : " does not exist; make that folder first");
  }
  temporary_ = final_.parent_path() / cat(".", final_.filename().string(), ".", ::getpid(), ".tmp");
}

AtomicFile::~AtomicFile() {
  std::error_code ignored;
  if (!committed_) fs::remove(temporary_, ignored);
}

void AtomicFile::commit() {
  sync_to_disk(temporary_);
  std::error_code error;
  fs::rename(temporary_, final_, error);
  if (error) environment_error(final_.string(), ": cannot be put in place: ", error.message());
  committed_ = true;
  sync_to_disk(final_.has_parent_path() ? final_.parent_path() : fs::path("."));
}

void write_file(const fs::path& path, std::string_view content) {
  AtomicFile target(path);
  File file(std::fopen(target.temporary().c_str(), "wb"));
  if (!file) path_error(path, "cannot be written", {errno, std::generic_category()});
  const bool written = std::fwrite(content.data(), 1, content.size(), file.get()) == content.size();
  // Network file systems may say only at the end that there is no space.
  if (!written || std::fflush(file.get()) != 0 || std::fclose(file.release()) != 0)
    environment_error(path.string(), ": writing failed: ", std::strerror(errno));
  target.commit();
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && !fs::is_directory(path, error)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) path_error(path, "cannot be made", error);
}

void path_error(const fs::path& path, const std::string& what, const std::error_code& error) {
  bool mistake = false;
  for (const std::errc code : {std::errc::not_a_directory, std::errc::is_a_directory, std::errc::file_exists,
                               std::errc::no_such_file_or_directory, std::errc::filename_too_long,
                               std::errc::too_many_symbolic_link_levels, std::errc::invalid_argument}) {
    mistake = mistake || error == code;
  }
  throw Error(mistake ? ErrorKind::kUsage : ErrorKind::kEnvironment,
              cat(path.string(), ": ", what, ": ", error.message()));
}

void sync_to_disk(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  if (descriptor < 0) environment_error(path.string(), ": cannot be opened: ", std::strerror(errno));
  const int status = ::fsync(descriptor);
  const int code = errno;
  ::close(descriptor);
  // Some file systems refuse to sync a folder; what they can promise has then been done.
  if (status != 0 && code != EINVAL && code != ENOTSUP) {
    environment_error(path.string(), ": cannot be flushed to disk: ", std::strerror(code));
  }
}

void sync_all_to_disk(const fs::path& path) {
  if (fs::is_directory(path)) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
      sync_to_disk(entry.path());
  }
  sync_to_disk(path);
}

std::string digest(std::string_view bytes) {
  return hexadecimal(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string digest_of_file(const fs::path& path) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for_each_piece(path, [&](const char* data, size_t size) { XXH3_128bits_update(state.get(), data, size); });
  return hexadecimal(XXH3_128bits_digest(state.get()));
}

std::string what_bytes_look_like(std::string_view first) {
  if (first.starts_with("version https://git-lfs"))
    return "a Git LFS pointer; fetch the real file with `git lfs pull`";
  const size_t start = first.find_first_not_of(" \t\r\n");
  const std::string_view body = start == std::string_view::npos ? "" : first.substr(start);
  if (body.starts_with("<!DOCTYPE") || body.starts_with("<!doctype") || body.starts_with("<html") ||
      body.starts_with("<HTML")) {
    return "an HTML page, not the file it should be; download it again";
  }
  if (first.starts_with("\x1f\x8b")) return "gzip-compressed; unpack it first";
  if (first.empty()) return "an empty file";
  return "";
}

}  // namespace elf
