# xxHash: XxHash::XxHash.
find_path(XxHash_INCLUDE_DIR xxhash.h)
find_library(XxHash_LIBRARY xxhash)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(XxHash REQUIRED_VARS XxHash_LIBRARY XxHash_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libxxhash-dev (scripts/setup.sh does)")
if(XxHash_FOUND AND NOT TARGET XxHash::XxHash)
  add_library(XxHash::XxHash INTERFACE IMPORTED)
  target_include_directories(XxHash::XxHash SYSTEM INTERFACE ${XxHash_INCLUDE_DIR})
  target_link_libraries(XxHash::XxHash INTERFACE ${XxHash_LIBRARY})
endif()
