# Five functions make every target of this tree:
#
#   lockstep_add_library(name HDRS ... SRCS ... DEPS ... PRIVATE_DEPS ...)
#   lockstep_add_program(name SRCS ... DEPS ... [APART])
#   lockstep_add_benchmark(name SRCS ... DEPS ...)
#   lockstep_add_test(name SRCS ... DEPS ... LABELS ... [ARGS ...] [TIMEOUT s])
#   lockstep_add_fuzz_target(name SRCS ... DEPS ... CORPUS dir)
#
# A library `name` is the target lockstep_<name> and the alias lockstep::<name>.
# DEPS are what its headers need, PRIVATE_DEPS what only its sources need. Every
# header is compiled alone once (target all_verify_interface_header_sets).
#
# Target lockstep_programs builds the programs, and lockstep_tests_<tier> what
# the tests of one tier need; of tier bench, the benchmarks too; of threads,
# those unit tests that start threads; of threads-heavy, tests that the thread
# sanitizer need not watch at every landing; of rest, the tests above unit and
# integration that no sanitizer watches at every landing (but those of the label
# e2e-long are left to runs of the whole tier); of sanitized, those
# that asan watches and release leaves to it.
#
# Includes are relative to LOCKSTEP_ROOT, also when a part builds alone.

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH LOCKSTEP_ROOT)

include(${CMAKE_CURRENT_LIST_DIR}/LockstepUnity.cmake)

add_custom_target(lockstep_programs)
foreach(tier unit conformance integration e2e bench fuzz threads
             threads-heavy rest sanitized)
  add_custom_target(lockstep_tests_${tier})
endforeach()
add_dependencies(lockstep_tests_integration lockstep_programs)
add_dependencies(lockstep_tests_e2e lockstep_programs)
add_dependencies(lockstep_tests_bench lockstep_programs)
add_dependencies(lockstep_tests_rest lockstep_programs)
add_dependencies(lockstep_tests_sanitized lockstep_programs)
add_dependencies(lockstep_tests_threads-heavy lockstep_programs)

function(_lockstep_configure target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Wshadow-uncaptured-local>
    $<$<BOOL:${LOCKSTEP_WERROR}>:-Werror>)
  if(LOCKSTEP_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${LOCKSTEP_SANITIZE} -fno-sanitize-recover=all
      -fno-omit-frame-pointer
      -fsanitize-ignorelist=${LOCKSTEP_ROOT}/cmake/sanitizer_ignorelist.txt)
    target_link_options(${target} PRIVATE -fsanitize=${LOCKSTEP_SANITIZE})
    # The check of virtual tables asks through a pipe if an object can be read:
    # where there are no descriptors, it takes each object for a bad one. The
    # library's assertions see what sanitizers do not: an empty std::optional
    # that is read, an index beyond a container that lies within its memory.
    if(LOCKSTEP_SANITIZE MATCHES "undefined")
      target_compile_options(${target} PRIVATE -fno-sanitize=vptr)
      target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
    endif()
  endif()
endfunction()

# Lets shared objects be made of a library: Python's module, and the session for
# programs of users. Calls within a library stay direct. Programs are compiled in
# the same way (-fPIC, where CMake says -fPIE), or their sources could not use the
# precompiled headers of libraries.
function(_lockstep_position_independent target)
  if(NOT LOCKSTEP_SANITIZE)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-fPIC>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
    endif()
  endif()
endfunction()

# The libraries whose branches fuzzers see: those that read bytes from outside.
# To trace the others costs a sixth of their compile time. A fuzz target that
# names another library is refused.
set(_lockstep_traced "^lockstep_(common_|server_(calls|mirror|rpc|shard|state)|\
worker_(client|data|memory|tables)|cli_(logs|simulate|spans|status)|\
chief_(operators|page)|strategy_workers|golden)")

# Lets a fuzzer see which branches of the target its inputs reach.
function(_lockstep_trace_branches target)
  if(LOCKSTEP_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# Sets OUT to what the headers of a target are made of, found by what it links:
# "grpc", or "templates" (JSON, flags, HTTP), or "plain". What a library of ours
# has in its own headers, and so in those of its dependents, stands in its
# property LOCKSTEP_HEADERS.
function(_lockstep_kind_of_headers out)
  set(found plain)
  foreach(dependency ${ARGN})
    set(kind "")
    if(dependency MATCHES "^gRPC::")
      set(kind grpc)
    elseif(dependency MATCHES "^(lockstep::cli11|nlohmann_json::)")
      set(kind templates)
    elseif(TARGET ${dependency})
      get_target_property(kind ${dependency} LOCKSTEP_HEADERS)
    endif()
    if(kind STREQUAL "grpc" OR (kind STREQUAL "templates" AND
                                NOT found STREQUAL "grpc"))
      set(found ${kind})
    endif()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# Large templates take three times as long to optimise as to compile, and are not
# where the time of a test under sanitizers goes.
function(_lockstep_optimise_little target kind)
  if(LOCKSTEP_SANITIZE AND NOT kind STREQUAL "plain")
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# Tests take longer to optimise than to run, above all where sanitizers check each
# access; what computes much is in the libraries. Their lines cost a sixth of their compile time, and the report of a
# sanitizer has the name of the test without them.
function(_lockstep_compile_quickly target)
  target_compile_options(${target} PRIVATE -O0)
  if(LOCKSTEP_SANITIZE)
    target_compile_options(${target} PRIVATE -g0)
  endif()
endfunction()

# Most of what a compiler does here is to parse these headers, so it parses them
# once for all targets of a use and a kind (see above). Uses: "library", also of
# programs; "traced", for libraries that fuzzers see; and "test".
# Debug builds do without, and find what a source forgot to include. So do sources
# that are compiled with other rules of arithmetic: SKIP_PRECOMPILE_HEADERS.
function(_lockstep_precompile_headers target use kind)
  if(NOT LOCKSTEP_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Debug")
    return()
  endif()
  set(headers lockstep_${use}_${kind}_headers)
  if(NOT TARGET ${headers})
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${headers}.cc CONTENT "\n")
    add_library(${headers} OBJECT ${PROJECT_BINARY_DIR}/${headers}.cc)
    target_link_libraries(${headers} PRIVATE absl::statusor absl::strings)
    _lockstep_configure(${headers})
    # A compiler cache knows them again only without their time.
    target_compile_options(${headers} PRIVATE -pthread
      $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
    _lockstep_optimise_little(${headers} ${kind})
    target_precompile_headers(${headers} PRIVATE
      <algorithm> <condition_variable> <filesystem> <functional> <map> <memory>
      <optional> <string> <thread> <vector> <absl/container/flat_hash_map.h>
      <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/time/time.h>)
    if(use STREQUAL "test")
      target_link_libraries(${headers} PRIVATE GTest::gmock GTest::gtest)
      target_precompile_headers(${headers} PRIVATE
        <fstream> <gmock/gmock.h> <gtest/gtest.h> <random>)
      _lockstep_compile_quickly(${headers})
    else()
      _lockstep_position_independent(${headers})
    endif()
    if(use STREQUAL "traced")
      _lockstep_trace_branches(${headers})
    endif()
    if(kind STREQUAL "grpc")
      target_link_libraries(${headers} PRIVATE gRPC::grpc++)
      target_precompile_headers(${headers} PRIVATE
        <google/protobuf/duration.pb.h> <grpcpp/grpcpp.h>
        <grpcpp/impl/codegen/proto_utils.h>)
      # GCC, which compiles the optimised builds, reads all that it has
      # precompiled, and a source then takes longer; Clang reads what it needs.
      if(LOCKSTEP_SANITIZE)
        target_link_libraries(${headers} PRIVATE lockstep::proto
          lockstep::cli11 nlohmann_json::nlohmann_json)
        target_precompile_headers(${headers} PRIVATE
          <lockstep/v1/coordinator.grpc.pb.h> <lockstep/v1/group.grpc.pb.h>
          <lockstep/v1/mirror.grpc.pb.h> <lockstep/v1/parameter.grpc.pb.h>
          <lockstep/v1/shard_control.grpc.pb.h> <lockstep/v1/sync.grpc.pb.h>
          <lockstep/v1/trace.grpc.pb.h> <CLI/CLI.hpp> <nlohmann/json.hpp>)
      endif()
    elseif(kind STREQUAL "templates")
      target_link_libraries(${headers} PRIVATE
        lockstep::cli11 nlohmann_json::nlohmann_json)
      target_precompile_headers(${headers} PRIVATE
        <CLI/CLI.hpp> <nlohmann/json.hpp>)
    endif()
  endif()
  # With one option set for all: some link what asks for -pthread, others not.
  target_compile_options(${target} PRIVATE -pthread)
  target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()

function(lockstep_add_library name)
  cmake_parse_arguments(ARG "" "" "HDRS;SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  set(target lockstep_${name})
  if(ARG_SRCS)
    add_library(${target} STATIC ${ARG_SRCS})
    target_link_libraries(${target} PUBLIC ${ARG_DEPS}
                                    PRIVATE ${ARG_PRIVATE_DEPS})
    target_include_directories(${target} PUBLIC ${LOCKSTEP_ROOT})
    target_sources(${target} PUBLIC FILE_SET HEADERS
                   BASE_DIRS ${LOCKSTEP_ROOT} FILES ${ARG_HDRS})
    _lockstep_configure(${target})
    _lockstep_compile_together(${target} ${ARG_SRCS})
    _lockstep_position_independent(${target})
    _lockstep_kind_of_headers(kind ${ARG_DEPS})
    set_target_properties(${target} PROPERTIES LOCKSTEP_HEADERS ${kind})
    _lockstep_kind_of_headers(kind ${ARG_DEPS} ${ARG_PRIVATE_DEPS})
    _lockstep_optimise_little(${target} ${kind})
    if(target MATCHES "${_lockstep_traced}" AND LOCKSTEP_FUZZ)
      _lockstep_trace_branches(${target})
      _lockstep_precompile_headers(${target} traced ${kind})
    else()
      _lockstep_precompile_headers(${target} library ${kind})
    endif()
  else()
    add_library(${target} INTERFACE)
    _lockstep_kind_of_headers(kind ${ARG_DEPS})
    set_target_properties(${target} PROPERTIES LOCKSTEP_HEADERS ${kind})
    target_link_libraries(${target} INTERFACE ${ARG_DEPS})
    target_include_directories(${target} INTERFACE ${LOCKSTEP_ROOT})
    target_sources(${target} INTERFACE FILE_SET HEADERS
                   BASE_DIRS ${LOCKSTEP_ROOT} FILES ${ARG_HDRS})
  endif()
  set_target_properties(${target} PROPERTIES
                        VERIFY_INTERFACE_HEADER_SETS ON)
  add_library(lockstep::${name} ALIAS ${target})
endfunction()

function(_lockstep_add_executable name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  _lockstep_configure(${name})
  _lockstep_compile_together(${name} ${ARG_SRCS})
  _lockstep_kind_of_headers(kind ${ARG_DEPS})
  _lockstep_optimise_little(${name} ${kind})
  _lockstep_position_independent(${name})
  _lockstep_precompile_headers(${name} library ${kind})
endfunction()

# APART: not one of lockstep_programs.
function(lockstep_add_program name)
  cmake_parse_arguments(PROGRAM "APART" "" "" ${ARGN})
  _lockstep_add_executable(${name} ${PROGRAM_UNPARSED_ARGUMENTS})
  if(NOT PROGRAM_APART)
    add_dependencies(lockstep_programs ${name})
  endif()
endfunction()

function(lockstep_add_benchmark name)
  _lockstep_add_executable(${name} ${ARGN})
  add_dependencies(lockstep_tests_bench ${name})
endfunction()

# Sets `starts` if a test of these labels starts threads: its sources do, or those
# of the room that it is the unit test of.
function(_lockstep_starts_threads starts labels)
  set(${starts} FALSE PARENT_SCOPE)
  if(NOT labels MATCHES "unit")
    return()
  endif()
  set(room_sources)
  file(RELATIVE_PATH room ${PROJECT_SOURCE_DIR}/tests/unit
       ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "^deploy/" "" room ${room})
  string(REPLACE / _ room lockstep_${room})
  if(TARGET ${room})
    get_target_property(sources ${room} SOURCES)
    get_target_property(headers ${room} HEADER_SET)
    get_target_property(folder ${room} SOURCE_DIR)
    list(APPEND room_sources ${sources} ${headers})
    list(FILTER room_sources EXCLUDE REGEX NOTFOUND)
    list(TRANSFORM room_sources PREPEND ${folder}/ REGEX "^[^/]")
  endif()
  foreach(source ${ARGN} ${room_sources})
    get_filename_component(source ${source} ABSOLUTE)
    if(EXISTS ${source})
      file(STRINGS ${source} found REGEX "std::thread|std::async" LIMIT_COUNT 1)
      if(found)
        set(${starts} TRUE PARENT_SCOPE)
      endif()
    endif()
  endforeach()
endfunction()

# Sets `out` to the filter of GoogleTest that selects the tests of the sources.
function(_lockstep_filter_of out)
  set(filter)
  foreach(source ${ARGN})
    # A suite that comes later must come into the filter.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} tests REGEX "^TEST(_F|_P)?[(][A-Za-z0-9_]+,")
    if(NOT tests)
      message(FATAL_ERROR "${source} begins no line with TEST(SUITE,")
    endif()
    list(TRANSFORM tests REPLACE "^[^(]*[(]([A-Za-z0-9_]+).*" "\\1")
    list(REMOVE_DUPLICATES tests)
    foreach(suite ${tests})
      list(APPEND filter ${suite}.* */${suite}.*)
    endforeach()
  endforeach()
  list(JOIN filter : filter)
  set(${out} ${filter} PARENT_SCOPE)
endfunction()

# Compiles what a test program is made of, once all its sources are known.
function(_lockstep_finish_test_program program)
  get_target_property(sources ${program} SOURCES)
  _lockstep_compile_together(${program} ${sources})
  get_target_property(dependencies ${program} LINK_LIBRARIES)
  _lockstep_kind_of_headers(kind ${dependencies})
  get_target_property(optimised ${program} LOCKSTEP_OPTIMISED)
  # Without precompiled headers, which are for sources that are not optimised.
  if(optimised AND NOT LOCKSTEP_SANITIZE)
    return()
  endif()
  _lockstep_compile_quickly(${program})
  _lockstep_precompile_headers(${program} test ${kind})
endfunction()

# Tests of the tiers unit, conformance and integration link gtest_main; a test
# program that has a main of its own names it in SRCS and is none the worse.
#
# THREADS: the test starts threads, though neither its sources nor its room do;
# those that start threads are what the thread sanitizer can say something of.
# OPTIMISED: the test calls libraries for so long that templates matter, which a
# linker takes from a test's own objects before those of libraries.
# PROGRAM: the sources belong to this test program, which several tests of one
# folder share, and the test is the part that they define. A test alone is a
# program of its name. The command of a test is kept in the global property
# lockstep_command_of_NAME.
# A test whose filter or arguments select nothing fails.
# LOCKSTEP_ONLY_SKIPPED, for SKIP_REGULAR_EXPRESSION: GoogleTest's last lines if
# tests were skipped and none has failed.
set(LOCKSTEP_ONLY_SKIPPED "listed below:\n(\\[  SKIPPED \\][^\n]*\n)+$")
function(lockstep_add_test name)
  cmake_parse_arguments(ARG "THREADS;OPTIMISED" "TIMEOUT;PROGRAM"
                        "SRCS;DEPS;LABELS;ARGS" ${ARGN})
  _lockstep_starts_threads(starts_threads "${ARG_LABELS}" ${ARG_SRCS})
  if(ARG_THREADS OR starts_threads)
    list(APPEND ARG_LABELS threads)
  endif()
  if("e2e" IN_LIST ARG_LABELS AND NOT "e2e-heavy" IN_LIST ARG_LABELS)
    list(APPEND ARG_LABELS sanitized)
  endif()
  set(program ${name})
  if(ARG_PROGRAM)
    set(program ${ARG_PROGRAM})
    _lockstep_filter_of(filter ${ARG_SRCS})
    list(PREPEND ARG_ARGS --gtest_filter=${filter})
  endif()
  if(NOT TARGET ${program})
    add_executable(${program} ${ARG_SRCS})
    _lockstep_configure(${program})
    set_target_properties(${program} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
      LOCKSTEP_OPTIMISED "${ARG_OPTIMISED}")
    # A deferred call reads its variables late; this names the program now.
    cmake_language(EVAL CODE "cmake_language(
      DEFER CALL _lockstep_finish_test_program [[${program}]])")
  else()
    target_sources(${program} PRIVATE ${ARG_SRCS})
  endif()
  target_link_libraries(${program} PRIVATE
    ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${program} ${ARG_ARGS})
  set_property(GLOBAL PROPERTY lockstep_command_of_${name}
               ${program} ${ARG_ARGS})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)  # many times what any takes on a quiet machine
  endif()
  set_tests_properties(${name} PROPERTIES
                       LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
                       FAIL_REGULAR_EXPRESSION "Running 0 tests from 0")
  foreach(label ${ARG_LABELS})
    if(TARGET lockstep_tests_${label})
      add_dependencies(lockstep_tests_${label} ${program})
    endif()
  endforeach()
  if(NOT ARG_LABELS MATCHES "unit|integration|sanitized")
    add_dependencies(lockstep_tests_rest ${program})
  endif()
endfunction()

# Each fuzz target runs for LOCKSTEP_FUZZ_SECONDS over a copy of its corpus, so
# that a run leaves the tree as it was.
set(LOCKSTEP_FUZZ_SECONDS 5 CACHE STRING "Seconds that each fuzz target runs")
function(lockstep_add_fuzz_target name)
  if(NOT LOCKSTEP_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS" "SRCS;DEPS" ${ARGN})
  set(rooms ${ARG_DEPS})
  list(FILTER rooms INCLUDE REGEX "^lockstep::")
  # Generated code, and what inputs are made with.
  list(REMOVE_ITEM rooms lockstep::proto lockstep::http2_peer
       lockstep::test_certificates)
  list(TRANSFORM rooms REPLACE "::" "_")
  list(FILTER rooms EXCLUDE REGEX "${_lockstep_traced}")
  if(rooms)
    message(FATAL_ERROR "${name} sees no branches of ${rooms}: "
                        "add it to _lockstep_traced")
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  _lockstep_configure(${name})
  _lockstep_trace_branches(${name})
  _lockstep_kind_of_headers(kind ${ARG_DEPS})
  _lockstep_optimise_little(${name} ${kind})
  _lockstep_precompile_headers(${name} traced ${kind})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set(scratch ${PROJECT_BINARY_DIR}/fuzz/${name})
  file(MAKE_DIRECTORY ${scratch})
  add_test(NAME ${name}
    COMMAND ${name} -max_total_time=${LOCKSTEP_FUZZ_SECONDS} -seed=1
            -rss_limit_mb=2048 -timeout=10 ${scratch} ${ARG_CORPUS})
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 300)
  add_dependencies(lockstep_tests_fuzz ${name})
endfunction()
