// Damage to the attributes of HDF5 files.
#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace elf::test {

// Sets, adds or (empty) removes an integer attribute of a finished file.
inline void set_attribute(const std::filesystem::path& path, const char* name, std::optional<int64_t> value) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  H5Adelete(file, name);
  if (value) {
    const hid_t space = H5Screate(H5S_SCALAR),
                attribute = H5Acreate2(file, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_INT64, &*value);
    H5Aclose(attribute);
    H5Sclose(space);
  }
  H5Fclose(file);
}

}  // namespace elf::test
