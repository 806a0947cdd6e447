#include "zip_archive.h"

#include <zip.h>

#include "elf/base/error.h"

namespace elf {
namespace fs = std::filesystem;

struct ZipArchive::Impl {
  ~Impl() { zip_discard(archive); }
  std::string file;
  uint64_t file_size = 0;
  zip_t* archive = nullptr;
};

ZipArchive::ZipArchive(const fs::path& path) : impl_(std::make_unique<Impl>()) {
  impl_->file = path.string();
  impl_->file_size = fs::file_size(path);
  int code = 0;
  impl_->archive = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (!impl_->archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    usage_error(impl_->file, ": a zip archive that is cut short or damaged (", reason, ")");
  }
  const zip_int64_t count = zip_get_num_entries(impl_->archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    if (const char* name = zip_get_name(impl_->archive, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW))
      names_.emplace_back(name);
  }
}

ZipArchive::~ZipArchive() = default;

std::optional<uint64_t> ZipArchive::size(const std::string& name) const {
  zip_stat_t stat;
  if (zip_stat(impl_->archive, name.c_str(), ZIP_FL_ENC_RAW, &stat) != 0) return std::nullopt;
  const zip_uint64_t needed =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  const bool plain = (stat.valid & needed) == needed && stat.comp_method == ZIP_CM_STORE &&
                     stat.encryption_method == ZIP_EM_NONE && stat.size == stat.comp_size;
  if (!plain)
    usage_error(impl_->file, ": member '", name, "' is compressed; torch.save stores them as they are");
  if (stat.size > impl_->file_size) {
    usage_error(impl_->file, ": member '", name, "' has ", stat.size,
                " bytes by the directory, the file has ", impl_->file_size, "; it is damaged");
  }
  return stat.size;
}

void ZipArchive::read(const std::string& name, void* to, uint64_t bytes) const {
  zip_file_t* member = zip_fopen(impl_->archive, name.c_str(), ZIP_FL_ENC_RAW);
  const std::string opening = member ? "" : zip_strerror(impl_->archive);
  if (!member) usage_error(impl_->file, ": member '", name, "' cannot be read: ", opening);
  // The checksum is compared when the end is met: one read beyond the last byte.
  const zip_int64_t got = zip_fread(member, to, bytes);
  char beyond = 0;
  const zip_int64_t rest = got == static_cast<zip_int64_t>(bytes) ? zip_fread(member, &beyond, 1) : -1;
  const std::string reason = zip_file_strerror(member);
  zip_fclose(member);
  if (rest != 0) usage_error(impl_->file, ": member '", name, "' is damaged (", reason, ")");
}

std::string ZipArchive::text(const std::string& name) const {
  const std::optional<uint64_t> bytes = size(name);
  if (!bytes) usage_error(impl_->file, ": has no member '", name, "'");
  std::string content(*bytes, '\0');
  read(name, content.data(), *bytes);
  return content;
}

}  // namespace elf
