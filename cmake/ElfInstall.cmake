# make install: tools, libraries, headers, configurations, and the package that find_package(elf) reads.
include(CMakePackageConfigHelpers)

get_filename_component(LibTorch_DIR_USED ${LibTorch_LIBRARY_DIR} DIRECTORY)
set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/elf)

install(TARGETS elf elf_app_core elf_core EXPORT elfTargets ARCHIVE)
install(EXPORT elfTargets NAMESPACE elf:: DESTINATION ${_package_dir})
install(DIRECTORY include/elf TYPE INCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/generated/elf/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/elf)
install(DIRECTORY configs data DESTINATION ${CMAKE_INSTALL_DATADIR}/elf)
configure_package_config_file(cmake/elfConfig.cmake.in ${PROJECT_BINARY_DIR}/elfConfig.cmake INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/elfConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/elfConfig.cmake ${PROJECT_BINARY_DIR}/elfConfigVersion.cmake
  cmake/FindLibTorch.cmake cmake/FindSentencepiece.cmake cmake/FindXxHash.cmake cmake/FindHdf5Serial.cmake cmake/FindLibZip.cmake DESTINATION ${_package_dir})
