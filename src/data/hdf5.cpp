#include "hdf5.h"

#include <cstdlib>
#include <fstream>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"

namespace elf::hdf5 {
namespace fs = std::filesystem;
namespace {

// Turns HDF5's own printing off; each thread has its own error stack, hence before every file is opened or
// made.
void be_quiet() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Handle access_without_locks() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  if (const char* setting = std::getenv("HDF5_USE_FILE_LOCKING")) {
    log_debug(cat("HDF5_USE_FILE_LOCKING=", setting, " (from the environment) decides on file locks"));
  }
  H5Pset_file_locking(access.get(), /*use=*/false, /*ignore_when_disabled=*/true);
  // The format of HDF5 1.10: its own structures carry checksums, as our arrays do.
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
  return access;
}

Handle scalar() {
  return Handle(H5Screate(H5S_SCALAR), H5Sclose);
}

// Deflate packs no better than 1032 to one.
constexpr uint64_t kBestPacking = 1100;
constexpr size_t kLongestText = size_t{1} << 20;

[[noreturn]] void write_error(const std::string& what) {
  environment_error("HDF5 cannot write ", what, " (is the disk full?): ", reason());
}

Handle open_attribute(const Handle& file, const std::string& name, const std::string& path) {
  if (!has_attribute(file, name))
    usage_error(path, ": attribute '", name, "' is missing; is it a dataset of elf-prepare, finished?");
  Handle attribute(H5Aopen(file.get(), name.c_str(), H5P_DEFAULT), H5Aclose);
  const Handle space(attribute ? H5Aget_space(attribute.get()) : -1, H5Sclose);
  if (!space || H5Sget_simple_extent_npoints(space.get()) != 1)
    usage_error(path, ": attribute '", name, "' is no single value");
  return attribute;
}

}  // namespace

std::recursive_mutex& library_lock() {
  static std::recursive_mutex lock;
  return lock;
}

void Handle::reset() {
  close();
}

bool Handle::close() {
  if (id_ < 0) return true;
  const Guard guard(library_lock());
  return close_(std::exchange(id_, -1)) >= 0;
}

std::string reason() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned depth, const H5E_error2_t* error, void* data) -> herr_t {
        if (depth == 0 && error->desc) *static_cast<std::string*>(data) = error->desc;
        return 0;
      },
      &text);
  return text.empty() ? "no reason given" : text;
}

Handle open_file(const fs::path& path) {
  const Guard guard(library_lock());
  be_quiet();
  std::error_code none;
  if (!fs::exists(path, none)) usage_error(path.string(), ": no such file");
  if (fs::is_directory(path, none)) usage_error(path.string(), ": is a folder, expected an HDF5 dataset");
  std::string start(256, '\0');
  std::ifstream stream(path, std::ios::binary);
  if (!stream) environment_error(path.string(), ": cannot be read");
  start.resize(static_cast<size_t>(stream.read(start.data(), 256).gcount()));
  if (!start.starts_with("\x89HDF\r\n\x1a\n")) {
    const std::string look = what_bytes_look_like(start);
    usage_error(path.string(), ": no HDF5 file", look.empty() ? "" : ", but " + look,
                "; datasets are made by elf-prepare corpus or pairs");
  }
  const Handle access = access_without_locks();
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (!file)
    usage_error(path.string(), ": a damaged HDF5 file, perhaps cut short: ", reason(),
                "; make it again with elf-prepare");
  return file;
}

Handle create_file(const fs::path& path) {
  const Guard guard(library_lock());
  be_quiet();
  const Handle access = access_without_locks();
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation.get(), false);  // equal content, equal bytes
  Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose);
  if (!file) environment_error(path.string(), ": cannot be made: ", reason());
  return file;
}

bool has_attribute(const Handle& file, const std::string& name) {
  const Guard guard(library_lock());
  return H5Aexists(file.get(), name.c_str()) > 0;
}

int64_t read_integer(const Handle& file, const std::string& name, const std::string& path) {
  const Guard guard(library_lock());
  const Handle attribute = open_attribute(file, name, path);
  const Handle type(H5Aget_type(attribute.get()), H5Tclose);
  int64_t value = 0;
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) < 0) {
    usage_error(path, ": attribute '", name, "' is no integer");
  }
  return value;
}

std::string read_text(const Handle& file, const std::string& name, const std::string& path) {
  const Guard guard(library_lock());
  const Handle attribute = open_attribute(file, name, path);
  const Handle type(H5Aget_type(attribute.get()), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) > 0) {
    usage_error(path, ": attribute '", name, "' is no text of fixed length");
  }
  const size_t length = H5Tget_size(type.get());
  if (length > kLongestText)
    usage_error(path, ": attribute '", name, "' claims ", length, " bytes; the file is damaged");
  std::string value(length, '\0');
  if (H5Aread(attribute.get(), type.get(), value.data()) < 0)
    usage_error(path, ": attribute '", name, "' cannot be read: ", reason());
  value.resize(std::min(value.size(), value.find('\0')));
  return value;
}

void write_attribute(const Handle& file, const std::string& name, int64_t value) {
  const Guard guard(library_lock());
  const Handle space = scalar();
  const Handle attribute(
      H5Acreate2(file.get(), name.c_str(), H5T_STD_I64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute || H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value) < 0) write_error("attribute " + name);
}

void write_attribute(const Handle& file, const std::string& name, const std::string& value) {
  const Guard guard(library_lock());
  const Handle space = scalar();
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), value.size() + 1);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  const Handle attribute(
      H5Acreate2(file.get(), name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute || H5Awrite(attribute.get(), type.get(), value.c_str()) < 0)
    write_error("attribute " + name);
}

void flush(const Handle& file) {
  const Guard guard(library_lock());
  if (H5Fflush(file.get(), H5F_SCOPE_GLOBAL) < 0) write_error("data");
}

hid_t uint8_type() {
  return H5T_NATIVE_UINT8;
}
hid_t uint16_type() {
  return H5T_NATIVE_UINT16;
}
hid_t uint32_type() {
  return H5T_NATIVE_UINT32;
}
hid_t uint64_type() {
  return H5T_NATIVE_UINT64;
}
hid_t float_type() {
  return H5T_NATIVE_FLOAT;
}

GrowingArray::GrowingArray(const Handle& file, const std::string& name, hid_t type, int64_t chunk,
                           bool packed)
    : type_(type) {
  const Guard guard(library_lock());
  const hsize_t none = 0, unlimited = H5S_UNLIMITED, chunk_size = static_cast<hsize_t>(chunk);
  const Handle space(H5Screate_simple(1, &none, &unlimited), H5Sclose);
  const Handle layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(layout.get(), 1, &chunk_size);
  if (packed) {
    H5Pset_shuffle(layout.get());
    H5Pset_deflate(layout.get(), 1);
  }
  H5Pset_fletcher32(layout.get());
  H5Pset_obj_track_times(layout.get(), false);  // equal content, equal bytes
  array_ =
      Handle(H5Dcreate2(file.get(), name.c_str(), type, space.get(), H5P_DEFAULT, layout.get(), H5P_DEFAULT),
             H5Dclose);
  if (!array_) write_error("array " + name);
}

void GrowingArray::append(const void* data, int64_t count) {
  if (count == 0) return;
  const Guard guard(library_lock());
  const auto start = static_cast<hsize_t>(size_), length = static_cast<hsize_t>(count),
             total = start + length;
  bool good = H5Dset_extent(array_.get(), &total) >= 0;
  const Handle file_space(H5Dget_space(array_.get()), H5Sclose),
      memory(H5Screate_simple(1, &length, nullptr), H5Sclose);
  good =
      good && H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, &start, nullptr, &length, nullptr) >= 0;
  good = good && H5Dwrite(array_.get(), type_, memory.get(), file_space.get(), H5P_DEFAULT, data) >= 0;
  if (!good) write_error("data");
  size_ += count;
}

Array::Array(const Handle& file, const std::string& name, const std::string& path)
    : name_(name), path_(path) {
  const Guard guard(library_lock());
  be_quiet();
  if (H5Lexists(file.get(), name.c_str(), H5P_DEFAULT) > 0)
    array_ = Handle(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!array_) usage_error(path, ": array '/", name, "' is missing");
  const Handle space(H5Dget_space(array_.get()), H5Sclose);
  if (H5Sget_simple_extent_ndims(space.get()) != 1)
    usage_error(path, ": array '/", name, "' is not one-dimensional");
  const Handle type(H5Dget_type(array_.get()), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.get());
  element_bytes_ = static_cast<int64_t>(H5Tget_size(type.get()));
  if ((kind != H5T_INTEGER && kind != H5T_FLOAT) || element_bytes_ < 1 || element_bytes_ > 8)
    usage_error(path, ": array '/", name, "' does not hold numbers");
  const Handle layout(H5Dget_create_plist(array_.get()), H5Pclose);
  if (H5Pget_layout(layout.get()) != H5D_CHUNKED)  // others may name further files
    usage_error(path, ": array '/", name, "' is not chunked; the file was not written by elf-prepare");
  hsize_t size = 0;
  H5Sget_simple_extent_dims(space.get(), &size, nullptr);
  const uint64_t stored = H5Dget_storage_size(array_.get());
  if (size / kBestPacking > stored / static_cast<uint64_t>(element_bytes_))
    usage_error(path, ": array '/", name, "' claims ", size, " elements, but has ", stored,
                " bytes; the file is damaged");
  size_ = static_cast<int64_t>(size);
}

void Array::read(int64_t first, int64_t count, hid_t type, void* data) const {
  if (count == 0) return;
  const Guard guard(library_lock());
  be_quiet();
  const auto start = static_cast<hsize_t>(first), length = static_cast<hsize_t>(count);
  const Handle file_space(H5Dget_space(array_.get()), H5Sclose),
      memory(H5Screate_simple(1, &length, nullptr), H5Sclose);
  const bool good =
      H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, &start, nullptr, &length, nullptr) >= 0 &&
      H5Dread(array_.get(), type, memory.get(), file_space.get(), H5P_DEFAULT, data) >= 0;
  if (!good) usage_error(path_, ": array '/", name_, "' is damaged: ", reason());
}

}  // namespace elf::hdf5
