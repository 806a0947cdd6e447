#include "elf/data/latent_cache.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "hdf5.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFormat = "elf-latents";
constexpr int64_t kVersion = 1;
constexpr int64_t kKeysChunk = int64_t{1} << 14;

std::vector<std::pair<const char*, int64_t LatentCacheInfo::*>> integer_fields() {
  using I = LatentCacheInfo;
  return {{"rows", &I::rows}, {"length", &I::length}, {"dim", &I::dim}, {"pad_id", &I::pad_id}};
}
std::vector<std::pair<const char*, std::string LatentCacheInfo::*>> text_fields() {
  using I = LatentCacheInfo;
  return {{"encoder", &I::encoder}, {"dtype", &I::dtype}, {"data_hash", &I::data_hash}};
}

// rows * length * dim; -1 where these are no sizes of an array.
int64_t elements_of(const LatentCacheInfo& info) {
  int64_t row = 0, all = 0;
  const bool good = info.rows >= 0 && info.length > 0 && info.dim > 0 &&
                    !__builtin_mul_overflow(info.length, info.dim, &row) &&
                    !__builtin_mul_overflow(info.rows, row, &all);
  return good ? all : -1;
}

bool is_bfloat16(const std::string& dtype) {
  if (dtype == "bfloat16") return true;
  if (dtype == "float32") return false;
  usage_error("latents of dtype '", dtype, "', expected float32 or bfloat16",
              dtype == "float16" ? ": T5 overflows in float16" : "");
}

hid_t element_type(const LatentCacheInfo& info) {
  return is_bfloat16(info.dtype) ? hdf5::uint16_type() : hdf5::float_type();
}

}  // namespace

std::vector<uint64_t> latent_keys(const at::Tensor& ids, const at::Tensor& mask) {
  const int64_t rows = ids.size(0), length = ids.size(1);
  if (mask.dim() != 3 || mask.size(0) != rows || mask.size(1) != length || mask.size(2) != length)
    usage_error("latent_keys: the mask must be [B=", rows, ", L=", length, ", L]; found ", mask.sizes());
  const at::Tensor seen = at::stack({ids, mask.sum(1), mask.sum(2)}, 1).cpu().contiguous();  // [B, 3, L]
  const auto bytes = static_cast<size_t>(3 * length) * sizeof(int64_t);
  std::vector<uint64_t> keys;
  for (int64_t row = 0; row < rows; ++row) {
    const auto* data = reinterpret_cast<const char*>(seen.data_ptr<int64_t>() + row * 3 * length);
    const std::string hash = digest({data, bytes});
    keys.push_back(std::strtoull(hash.substr(hash.find(':') + 1, 16).c_str(), nullptr, 16));
  }
  return keys;
}

int64_t latent_cache_bytes(int64_t rows, int64_t length, int64_t dim, const std::string& dtype) {
  return rows * (length * dim * (is_bfloat16(dtype) ? 2 : 4) + static_cast<int64_t>(sizeof(uint64_t)));
}

bool is_latent_cache(const fs::path& path) {
  try {
    const hdf5::Guard guard(hdf5::library_lock());
    const hdf5::Handle file = hdf5::open_file(path);
    return hdf5::has_attribute(file, "format") && hdf5::read_text(file, "format", path.string()) == kFormat;
  } catch (const Error&) {
    return false;
  }
}

struct LatentCache::Impl {
  LatentCacheInfo info;
  std::unordered_map<uint64_t, int64_t> row_of;
  hdf5::Handle file;
  std::optional<hdf5::Array> latents;
};

LatentCache LatentCache::open(const fs::path& path) {
  const std::string name = path.string();
  auto impl = std::make_shared<Impl>();
  const hdf5::Guard guard(hdf5::library_lock());
  impl->file = hdf5::open_file(path);
  const auto integer = [&](const char* key) { return hdf5::read_integer(impl->file, key, name); };
  if (!hdf5::has_attribute(impl->file, "format") || hdf5::read_text(impl->file, "format", name) != kFormat)
    usage_error(name, ": an HDF5 file, but not a cache of latents; elf-prepare latents makes one");
  if (!hdf5::has_attribute(impl->file, "complete") || integer("complete") != 1)
    usage_error(name, ": the cache is not complete; make it again with elf-prepare latents");
  if (const int64_t version = integer("format_version"); version != kVersion)
    usage_error(name, ": cache format ", version, ", this program reads ", kVersion);
  LatentCacheInfo& info = impl->info;
  info.path = path;
  for (const auto& [key, field] : integer_fields()) info.*field = integer(key);
  for (const auto& [key, field] : text_fields()) info.*field = hdf5::read_text(impl->file, key, name);
  const hdf5::Array keys(impl->file, "keys", name);
  impl->latents.emplace(impl->file, "latents", name);
  const int64_t width = is_bfloat16(info.dtype) ? 2 : 4;
  if (keys.size() != info.rows || impl->latents->size() != elements_of(info) ||
      impl->latents->element_bytes() != width) {
    usage_error(name, ": ", info.rows, " rows of ", info.length, " x ", info.dim, " ", info.dtype,
                " by its attributes, but its arrays have another size; the file is damaged");
  }
  std::vector<uint64_t> all(static_cast<size_t>(info.rows));
  keys.read(0, info.rows, hdf5::uint64_type(), all.data());
  for (size_t row = 0; row < all.size(); ++row) impl->row_of.emplace(all[row], static_cast<int64_t>(row));
  LatentCache cache;
  cache.impl_ = std::move(impl);
  return cache;
}

const LatentCacheInfo& LatentCache::info() const {
  return impl_->info;
}

bool LatentCache::contains(uint64_t key) const {
  return impl_->row_of.contains(key);
}

at::Tensor LatentCache::read(const std::vector<uint64_t>& keys) const {
  const LatentCacheInfo& info = impl_->info;
  const bool narrow = is_bfloat16(info.dtype);
  const at::Tensor rows = at::empty({static_cast<int64_t>(keys.size()), info.length, info.dim},
                                    narrow ? at::kBFloat16 : at::kFloat);
  const int64_t elements = info.length * info.dim;
  auto* bytes = static_cast<char*>(rows.data_ptr());
  for (const uint64_t key : keys) {
    const auto found = impl_->row_of.find(key);
    if (found == impl_->row_of.end())
      usage_error(info.path.string(), ": a row that it does not have was asked for");
    impl_->latents->read(found->second * elements, elements, element_type(info), bytes);
    bytes += elements * (narrow ? 2 : 4);
  }
  return rows.to(at::kFloat);
}

void LatentCache::verify() const {
  for (const auto& [key, row] : impl_->row_of) {
    if (!at::isfinite(read({key})).all().item<bool>())
      usage_error(info().path.string(), ": row ", row,
                  " holds numbers that are not finite; the file is damaged");
  }
}

struct LatentCacheWriter::Impl {
  Impl(const fs::path& path, const LatentCacheInfo& given)
      : target(path), file(hdf5::create_file(target.temporary())), info(given) {
    latents.emplace(file, "latents", element_type(info), info.length * info.dim, /*packed=*/false);
    keys.emplace(file, "keys", hdf5::uint64_type(), kKeysChunk);
  }

  AtomicFile target;  // outlives the handles below
  hdf5::Handle file;
  LatentCacheInfo info;
  std::optional<hdf5::GrowingArray> latents, keys;
  std::vector<uint64_t> in_order;
  std::unordered_set<uint64_t> known;
};

LatentCacheWriter::LatentCacheWriter(const fs::path& path, const LatentCacheInfo& info) {
  LatentCacheInfo start = info;
  start.path = path;
  start.rows = 0;
  impl_ = std::make_unique<Impl>(path, start);
}

LatentCacheWriter::~LatentCacheWriter() = default;

void LatentCacheWriter::add(uint64_t key, const at::Tensor& latents) {
  Impl& w = *impl_;
  if (latents.dim() != 2 || latents.size(0) != w.info.length || latents.size(1) != w.info.dim)
    usage_error("latents of a row must be [", w.info.length, ", ", w.info.dim, "]; found ", latents.sizes());
  if (!w.known.insert(key).second) return;
  if (!at::isfinite(latents).all().item<bool>())
    numerical_error(w.info.path.string(), ": the encoder's output for row ", w.info.rows, " is not finite");
  const at::Tensor bits =
      latents.to(at::kCPU, is_bfloat16(w.info.dtype) ? at::kBFloat16 : at::kFloat).contiguous();
  w.latents->append(bits.data_ptr(), bits.numel());
  w.in_order.push_back(key);
  ++w.info.rows;
}

LatentCacheInfo LatentCacheWriter::finish() {
  Impl& w = *impl_;
  w.keys->append(w.in_order.data(), w.info.rows);
  hdf5::write_attribute(w.file, "format", kFormat);
  hdf5::write_attribute(w.file, "format_version", kVersion);
  for (const auto& [key, field] : integer_fields()) hdf5::write_attribute(w.file, key, w.info.*field);
  for (const auto& [key, field] : text_fields()) hdf5::write_attribute(w.file, key, w.info.*field);
  hdf5::flush(w.file);  // what cannot be written shows here, before the file says that it is complete
  hdf5::write_attribute(w.file, "complete", int64_t{1});
  hdf5::flush(w.file);
  w.latents.reset();
  w.keys.reset();
  if (!w.file.close()) environment_error(w.info.path.string(), ": cannot be written: ", hdf5::reason());
  w.target.commit();
  return w.info;
}

}  // namespace elf
