#include "resumable_writer.h"

#include <filesystem>
#include <sstream>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "sample_io.h"

namespace elf::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The settings in `record`, a file of ours; null when it says nothing of them.
Json settings_in(const std::string& record) {
  if (!fs::exists(record)) return nullptr;
  const Json json = parse_json<Json>(read_file(record));
  return json.is_object() && json.contains("settings") ? json["settings"] : Json(nullptr);
}

}  // namespace

ResumableWriter::ResumableWriter(std::string path, Json settings, bool resume)
    : path_(std::move(path)), partial_(path_ + ".partial") {
  make_folder_of(path_);
  if (resume) {
    take_over(fs::exists(partial_) ? partial_ : path_, settings);
  } else if (fs::exists(partial_)) {
    log_warning(partial_ + ": what an interrupted run left there is removed; --resume would go on with it");
    std::error_code error;
    if (!fs::remove(partial_, error)) environment_error(partial_, ": cannot be removed: ", error.message());
  }
  write_file(partial_ + ".json", Json{{"settings", settings}}.dump(2) + "\n");
}

ResumableWriter::~ResumableWriter() {
  if (finished_ || written_ || !kept_lines_.empty()) return;
  std::error_code ignored;
  fs::remove(partial_, ignored);
  fs::remove(partial_ + ".json", ignored);
}

void ResumableWriter::take_over(const std::string& file, const Json& settings) {
  if (!fs::exists(file)) return;
  Json theirs = settings_in(file + ".json");
  if (theirs.is_null())
    theirs = settings_in(partial_ + ".json");  // stopped between the two names of finish()
  if (theirs.is_null()) {
    log_warning(
        cat(file, ": nothing beside it says what it was made with; going on as if with these settings"));
  } else {
    for (const auto& [key, value] : settings.items()) {
      const Json found = theirs.contains(key) ? theirs[key] : Json(nullptr);
      if (found != value)
        usage_error(file, ": was made with ", key, " ", found.dump(), ", now it is ", value.dump(),
                    "; resume with the same settings, or leave --resume out to start anew");
    }
  }
  std::istringstream text(read_file(file));
  for (std::string line; std::getline(text, line) && !text.eof();) {  // a last line without its end is broken
    nlohmann::json record = parse_json(line);
    if (!record.is_object() || !record.contains("index")) break;
    kept_.push_back(std::move(record));
    kept_lines_.push_back(line);
  }
}

void ResumableWriter::keep(size_t count) {
  if (count >= kept_.size()) return;
  kept_.resize(count);
  kept_lines_.resize(count);
}

// The records kept are written anew: that cuts a broken end, and brings those of a finished file along.
void ResumableWriter::open() {
  std::string text;
  for (const std::string& line : kept_lines_) text += line + "\n";
  if (!text.empty()) write_file(partial_, text);
  stream_.open(partial_,
               text.empty() ? std::ios::binary | std::ios::trunc : std::ios::binary | std::ios::app);
  if (!stream_) environment_error(partial_, ": cannot be written");
}

void ResumableWriter::write(const std::string& line) {
  if (!stream_.is_open()) open();
  stream_ << line << '\n';
  written_ = true;
}

void ResumableWriter::flush() {
  if (stream_.is_open() && !stream_.flush())
    environment_error(partial_, ": writing failed; is the disk full? --resume goes on from what is there");
}

void ResumableWriter::finish() {
  if (!stream_.is_open()) open();
  flush();
  stream_.close();
  if (!stream_) environment_error(partial_, ": closing failed; is the disk full?");
  sync_to_disk(partial_);
  // Whenever this ends, no records stand beside the settings of others.
  std::error_code error;
  fs::remove(path_ + ".json", error);
  fs::rename(partial_, path_, error);
  if (error) environment_error(path_, ": cannot get its name from ", partial_, ": ", error.message());
  fs::rename(partial_ + ".json", path_ + ".json", error);
  sync_to_disk(fs::absolute(path_).parent_path());
  finished_ = true;
}

}  // namespace elf::app
