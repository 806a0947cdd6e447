# LibTorch from an unpacked archive or from a Python wheel, without an installed CUDA toolkit.
#
# Looked for in this order: -DLIBTORCH=DIR, the environment's LIBTORCH, the project's .venv, python3's torch.
# DIR is what holds include/ and lib/ (for a wheel: site-packages/torch).
#
# Defines the target LibTorch::LibTorch (libtorch_cpu and libc10) and LibTorch_LIBRARY_DIR, LibTorch_VERSION,
# LibTorch_CUDA (the version of CUDA it was built with, or "none"). libtorch_cuda is not linked: programs load it when a CUDA device is asked for
# (src/tensor/device.cpp), so that everything else starts fast and runs where no driver is.
#
# Its include folders come after all others (-idirafter): the wheel carries headers of fmt that must not hide the system's.

set(LIBTORCH "" CACHE PATH "Folder of LibTorch (holds include/ and lib/)")

function(_libtorch_ask_python python out)
  execute_process(
    COMMAND ${python} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0 AND folder)
    set(${out} ${folder} PARENT_SCOPE)
  endif()
endfunction()

set(_libtorch_dir "${LIBTORCH}")
if(NOT _libtorch_dir AND DEFINED ENV{LIBTORCH})
  set(_libtorch_dir "$ENV{LIBTORCH}")
endif()
if(NOT _libtorch_dir AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python3)
  _libtorch_ask_python(${PROJECT_SOURCE_DIR}/.venv/bin/python3 _libtorch_dir)
endif()
if(NOT _libtorch_dir)
  _libtorch_ask_python(python3 _libtorch_dir)
endif()

if(_libtorch_dir AND NOT EXISTS ${_libtorch_dir}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "LibTorch: ${_libtorch_dir} holds no lib/libtorch_cpu.so; give -DLIBTORCH=DIR, DIR being what holds include/ and lib/")
endif()

if(_libtorch_dir)
  set(LibTorch_LIBRARY_DIR ${_libtorch_dir}/lib)
  if(EXISTS ${_libtorch_dir}/version.py)
    file(READ ${_libtorch_dir}/version.py _text)
    string(REGEX MATCH "__version__ = '([^']+)'" _ "${_text}")
    set(LibTorch_VERSION ${CMAKE_MATCH_1})
    string(REGEX MATCH "cuda: [^=]*= '([^']+)'" _ "${_text}")
    set(LibTorch_CUDA "${CMAKE_MATCH_1}")
  elseif(EXISTS ${_libtorch_dir}/build-version)
    file(STRINGS ${_libtorch_dir}/build-version LibTorch_VERSION LIMIT_COUNT 1)
  endif()
  if(NOT LibTorch_CUDA)
    set(LibTorch_CUDA none)
    if(EXISTS ${LibTorch_LIBRARY_DIR}/libtorch_cuda.so)
      set(LibTorch_CUDA unknown)
    endif()
  endif()
  # The archive of before 2.8 came with two ABIs; the old one cannot be linked with the system's C++ libraries.
  execute_process(COMMAND sh -c "grep -c _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE ${LibTorch_LIBRARY_DIR}/libc10.so"
                  OUTPUT_VARIABLE _cxx11 OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(_cxx11 STREQUAL "0")
    message(FATAL_ERROR "LibTorch in ${_libtorch_dir} was built with the old C++ string ABI; take the cxx11-ABI archive or the wheel of 2.11")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_LIBRARY_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "run scripts/setup.sh, or give -DLIBTORCH=DIR (what holds include/ and lib/)")

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  if(NOT LibTorch_FIND_QUIETLY)
    message(STATUS "LibTorch ${LibTorch_VERSION}, CUDA ${LibTorch_CUDA}, C++11 ABI: ${_libtorch_dir}")
  endif()
  foreach(_name c10 torch_cpu)
    add_library(LibTorch::${_name} SHARED IMPORTED)
    set_target_properties(LibTorch::${_name} PROPERTIES IMPORTED_LOCATION ${LibTorch_LIBRARY_DIR}/lib${_name}.so)
  endforeach()
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_link_libraries(LibTorch::LibTorch INTERFACE LibTorch::torch_cpu LibTorch::c10)
  target_compile_options(LibTorch::LibTorch INTERFACE
    "SHELL:-idirafter ${_libtorch_dir}/include" "SHELL:-idirafter ${_libtorch_dir}/include/torch/csrc/api/include")
  target_link_options(LibTorch::LibTorch INTERFACE -Wl,-rpath,${LibTorch_LIBRARY_DIR})
endif()
