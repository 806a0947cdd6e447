# The helpers that make this project's targets: compile flags once, one way to make a tool, one way to make a test.

# What tests of a build with sanitizers run with. LibTorch and the system's libraries are not instrumented.
set(ELF_SANITIZER_ENVIRONMENT
  "ASAN_OPTIONS=detect_odr_violation=0"
  "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0"
  "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp:ignore_noninstrumented_modules=1"
  "UBSAN_OPTIONS=print_stacktrace=1")

# Flags of every own target. All targets that share a precompiled header need the very same flags.
function(elf_flags target)
  target_compile_options(${target} PRIVATE -fPIC -Wall -Wextra -Werror)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${target} PRIVATE -Werror=invalid-pch)
  else()
    # g++ 12 sees dangling and uninitialised values inside headers of the standard library and of LibTorch.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-dangling-reference)
  endif()
  if(ELF_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${ELF_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined -fno-sanitize=vptr)
    target_link_options(${target} PRIVATE -fsanitize=${ELF_SANITIZE})
  endif()
  if(ELF_COVERAGE)
    # Counters live in the mapped file: tools leave by _exit, and tests kill some.
    target_compile_options(${target} PRIVATE -fprofile-instr-generate -fcoverage-mapping "SHELL:-mllvm -runtime-counter-relocation")
    target_link_options(${target} PRIVATE -fprofile-instr-generate)
  endif()
  if(ELF_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# elf_tool(NAME [CORE]): tools/NAME.cpp, a main of one screen; CORE links the torch-free half only.
function(elf_tool name)
  cmake_parse_arguments(arg "CORE" "" "" ${ARGN})
  add_executable(${name} ${name}.cpp)
  elf_flags(${name})
  if(arg_CORE)
    target_link_libraries(${name} PRIVATE elf_app_core)
  else()
    target_link_libraries(${name} PRIVATE elf)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  install(TARGETS ${name} RUNTIME)
endfunction()

# elf_cuda_plugin(NAME SOURCE): lib<NAME>.so, which alone needs libtorch_cuda; programs load it when they use a CUDA device (base/plugin.h).
function(elf_cuda_plugin name source)
  add_library(${name} MODULE ${source})
  elf_flags(${name})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_options(${name} PRIVATE -Wno-unused-parameter -Wno-sign-compare)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(${name} SYSTEM PRIVATE ${ELF_CUDA_INCLUDE_DIRS})
  target_link_libraries(${name} PRIVATE LibTorch::LibTorch ${LibTorch_LIBRARY_DIR}/libtorch_cuda.so ${LibTorch_LIBRARY_DIR}/libc10_cuda.so)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# elf_test_pch(NAME LIBRARY HEADER): HEADER compiled once, for all tests of LIBRARY; tests/pch.cpp is the source that a target has to have.
function(elf_test_pch name library header)
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/tests/pch.cpp)
  elf_flags(${name})
  target_link_libraries(${name} PRIVATE ${library} GTest::gmock GTest::gtest)
  target_precompile_headers(${name} PRIVATE ${header})
endfunction()

# elf_test(NAME LABEL unit|oracle|e2e [CORE] SOURCES a_test.cpp ... [TOOLS elf-train ...]): one test program; CORE links the torch-free half
# only; TOOLS: what it starts (tests/support/command.h).
function(elf_test name)
  cmake_parse_arguments(arg "CORE" "LABEL" "SOURCES;TOOLS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  elf_flags(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE ELF_TEST_DIR="${PROJECT_SOURCE_DIR}/tests")
  if(arg_CORE)
    target_link_libraries(${name} PRIVATE elf_app_core elf_core GTest::gmock GTest::gtest GTest::gtest_main)
    target_precompile_headers(${name} REUSE_FROM elf_core_test_headers)
  else()
    target_link_libraries(${name} PRIVATE elf GTest::gmock GTest::gtest GTest::gtest_main)
    target_precompile_headers(${name} REUSE_FROM elf_test_headers)
    set_target_properties(${name} PROPERTIES BUILD_RPATH ${PROJECT_BINARY_DIR}/bin)  # plugins
  endif()
  if(arg_TOOLS)
    target_compile_definitions(${name} PRIVATE ELF_TOOL_DIR="${PROJECT_BINARY_DIR}/bin"
                               ELF_KILL_AT_WRITE_LIBRARY="$<TARGET_FILE:kill_at_write>")
    add_dependencies(${name} ${arg_TOOLS} kill_at_write)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABEL}")
  if(ELF_SANITIZE)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${ELF_SANITIZER_ENVIRONMENT}")
  endif()
endfunction()

# Writes <build>/generated/elf/version.h: version, git revision, LibTorch.
function(elf_version_header)
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} describe --always --dirty --abbrev=12
                  OUTPUT_VARIABLE ELF_GIT_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT ELF_GIT_REVISION)
    set(ELF_GIT_REVISION unknown)
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/version.h.in ${PROJECT_BINARY_DIR}/generated/elf/version.h @ONLY)
endfunction()
