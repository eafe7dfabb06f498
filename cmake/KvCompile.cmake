# Compiler settings that the results depend on, and two helpers: kv_library, kv_test.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# Same bytes everywhere: no contraction, no value-changing optimisation, no host-specific code in
# result paths. Files that want AVX2 ask for it one by one and agree bit for bit with the portable
# path.
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -Werror=return-type
                    -ffp-contract=off -fno-fast-math -fno-math-errno -fno-trapping-math
                    -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
include_directories(${CMAKE_SOURCE_DIR})

option(KV_SANITIZE "Build host code with AddressSanitizer and UBSan" OFF)
if(KV_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# A fuzzer runs the device and the reference some ten thousand instructions for each one of its own;
# ci/checks/asan runs their tests with both sanitizers.
option(KV_PLAIN_DEVICE "Build the CPU device and the reference without sanitizers" OFF)

find_program(KV_CCACHE ccache)
if(KV_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${KV_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${KV_CCACHE})
endif()
find_program(KV_MOLD mold)
if(KV_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

find_package(GTest REQUIRED)
find_package(Threads REQUIRED)

# kv_library(name SOURCES a.cpp b.cpp USES kv_core): the static library of one room.
function(kv_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_USES})
endfunction()

# kv_test(name SOURCES a_test.cpp USES kv_core [LABELS smoke]): one GoogleTest program, one CTest
# entry. Tests labelled `smoke` are also run by `ci/run smoke`.
function(kv_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;USES;LABELS;ENVIRONMENT;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_USES} GTest::gtest_main Threads::Threads)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_compile_definitions(${name} PRIVATE KV_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                             KV_BUILD_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                       ENVIRONMENT "${ARG_ENVIRONMENT}" SKIP_RETURN_CODE 77)
endfunction()
