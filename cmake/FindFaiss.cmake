# Debian's faiss (a static library): Faiss::Faiss, with the BLAS, LAPACK and OpenMP runtime that it needs.
find_path(Faiss_INCLUDE_DIR faiss/Clustering.h)
find_library(Faiss_LIBRARY faiss)
find_library(Faiss_BLAS_LIBRARY blas)
find_library(Faiss_LAPACK_LIBRARY lapack)
# LibTorch's own copy goes first: a program has one OpenMP runtime.
find_library(Faiss_OPENMP_LIBRARY NAMES libgomp.so.1 gomp NAMES_PER_DIR HINTS ${LibTorch_LIBRARY_DIR})
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Faiss
  REQUIRED_VARS Faiss_LIBRARY Faiss_INCLUDE_DIR Faiss_BLAS_LIBRARY Faiss_LAPACK_LIBRARY Faiss_OPENMP_LIBRARY
  REASON_FAILURE_MESSAGE "install libfaiss-dev (scripts/setup.sh does)")
if(Faiss_FOUND AND NOT TARGET Faiss::Faiss)
  add_library(Faiss::Faiss INTERFACE IMPORTED)
  target_include_directories(Faiss::Faiss SYSTEM INTERFACE ${Faiss_INCLUDE_DIR})
  target_link_libraries(Faiss::Faiss INTERFACE
    ${Faiss_LIBRARY} ${Faiss_LAPACK_LIBRARY} ${Faiss_BLAS_LIBRARY} ${Faiss_OPENMP_LIBRARY})
endif()
