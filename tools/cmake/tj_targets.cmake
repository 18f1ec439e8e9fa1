# How our targets are compiled: one place for the standard, the warnings, sanitizers and ccache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(TJ_CCACHE ccache)
if(TJ_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/ccache ${CMAKE_SOURCE_DIR})
endif()

add_library(tj_flags INTERFACE)
target_include_directories(tj_flags INTERFACE ${CMAKE_SOURCE_DIR})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # clang compiles for sanitizers alone; its own warnings are clang-tidy's work
  target_compile_options(tj_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror
    -Wno-missing-field-initializers  # designated initialisers name what matters, the rest has defaults
    # False alarms of GCC 12 inside std::string and std::optional (GCC bugs 105329, 105651, 80635).
    -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-maybe-uninitialized)
  if(TJ_BATCH GREATER 1)
    target_compile_options(tj_flags INTERFACE -Wno-subobject-linkage)  # it takes a source of a batch for a header
  endif()
  add_compile_options("SHELL:--param ggc-min-heapsize=1048576")  # KB before GCC collects garbage, which took 7 % of a compilation
endif()
target_compile_options(tj_flags INTERFACE -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(TJ_SANITIZE STREQUAL "address")
  # What the tests and the fuzzers link is compiled once: it counts edges for libFuzzer (nobody reads them in a test), and has
  # the library's own assertions, which find an index out of its range where it is used. What no fuzzer links counts none: that
  # takes a quarter of its time to compile, and half of its objects.
  set(tj_sanitizer -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow -fno-sanitize-recover=all
    -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS)
  set(tj_uncounted -fno-sanitize=fuzzer-no-link)  # clang refuses a precompiled header that was made without it
elseif(TJ_SANITIZE STREQUAL "thread")
  # ThreadSanitizer does not see fences; Asio's queues are ordered by their mutex as well.
  set(tj_sanitizer -fsanitize=thread -DBOOST_ASIO_DISABLE_FENCED_BLOCK)
elseif(TJ_SANITIZE)
  message(FATAL_ERROR "TJ_SANITIZE is \"${TJ_SANITIZE}\"; it must be address, thread or empty")
endif()
set(tj_not_fuzzed_options -O0 ${tj_uncounted})
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # ccache takes no precompiled header that has one
  add_compile_definitions(BOOST_ASIO_HAS_CO_AWAIT BOOST_ASIO_HAS_STD_COROUTINE)  # Boost 1.74 looks for what clang has no longer
endif()
# What is not shipped is linked by mold: a quarter of the time, and a build from full caches is little else.
find_program(TJ_MOLD mold)
if(TJ_MOLD)
  set(tj_fast_linker -fuse-ld=mold)
endif()
if(tj_sanitizer)
  add_compile_options(${tj_sanitizer})
  add_link_options(${tj_sanitizer} ${tj_fast_linker})
endif()

# A target's sources in batches of TJ_BATCH at most, each compiled as one: headers are read, and templates made, once for all of
# them (docs/adr/0031-sources-in-batches.md). A source with flags of its own stays alone. A batch names its sources from the
# root, so that ccache knows it again in another checkout.
function(tj_batch target)
  get_target_property(sources ${target} SOURCES)
  set(units)  # what is compiled: sources that stay alone, and batches
  set(together)
  foreach(source ${sources})
    get_property(is_made SOURCE ${source} PROPERTY GENERATED)
    get_property(options SOURCE ${source} PROPERTY COMPILE_OPTIONS)
    get_property(definitions SOURCE ${source} PROPERTY COMPILE_DEFINITIONS)
    if(is_made OR options OR definitions OR NOT source MATCHES "\\.cc$")
      list(APPEND units ${source})
    else()
      list(APPEND together ${source})
    endif()
  endforeach()
  list(LENGTH together count)
  if(count LESS 2)
    return()
  endif()
  execute_process(COMMAND ${CMAKE_SOURCE_DIR}/tools/cmake/batches ${TJ_BATCH} ${together} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    OUTPUT_VARIABLE numbers OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" numbers "${numbers}")
  set(used)
  foreach(source number IN ZIP_LISTS together numbers)
    if(number STREQUAL "-")
      list(APPEND units ${source})
      continue()
    endif()
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
    string(APPEND text_${number} "#include \"${source}\"\n")
    list(APPEND used ${number})
  endforeach()
  list(REMOVE_DUPLICATES used)
  foreach(number ${used})
    set(batch ${CMAKE_CURRENT_BINARY_DIR}/${target}.batches/${number}.cc)
    file(CONFIGURE OUTPUT ${batch} CONTENT "${text_${number}}" @ONLY)
    list(APPEND units ${batch})
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${units})
endfunction()

# Where the folder's CMakeLists.txt ends, when the flags of all sources are known.
function(tj_batch_later target)
  if(TJ_BATCH GREATER 1)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL tj_batch ${target})")
  endif()
endfunction()

# Compiles the common headers with an empty source, as NAME, for all that tj_precompile() names from here on in this folder and below.
macro(tj_shared_headers name source)
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE tj_flags)
  target_precompile_headers(${name} PRIVATE ${tj_common_headers})
  set(tj_headers_in_use ${name})
endmacro()

# No fuzzer tries a million inputs on what follows in this folder and below. Under a sanitizer it is not optimised: instrumented code of
# Asio's coroutines compiles in two fifths of the time then.
macro(tj_not_fuzzed)
  if(TJ_SANITIZE)
    add_compile_options(${tj_not_fuzzed_options})
    set(tj_headers_in_use tj_unoptimised_headers)
  endif()
endmacro()

# For what speaks JSON; torch has a precompiled header of its own (trainer/). A target of one source needs none.
function(tj_precompile target)
  target_precompile_headers(${target} REUSE_FROM ${tj_headers_in_use})
endfunction()

# tj_library(NAME SOURCES... [LINK targets...]) and tj_program alike: the sources are listed, never globbed.
function(tj_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  tj_batch_later(${name})
  target_link_libraries(${name} PUBLIC tj_flags ${arg_LINK})
endfunction()

function(tj_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  tj_batch_later(${name})
  target_link_libraries(${name} PRIVATE tj_flags ${arg_LINK})
endfunction()

# A program that goes to machines without our libraries' packages: it needs none but the C and C++ libraries, and what Debian
# has no archive of. --as-needed leaves out what a target links for others.
function(tj_standalone program)
  set_target_properties(${program} PROPERTIES RULE_LAUNCH_LINK ${CMAKE_SOURCE_DIR}/tools/cmake/link_static)
  target_link_options(${program} PRIVATE -Wl,--as-needed)
endfunction()

# Where the trainer's programs, plug-ins and libraries lie once installed: in one folder, so that they find each other there.
set(tj_trainer_folder lib/trainingjob)

# Tests are compiled more often than they are run: this halves it. _FORTIFY_SOURCE is for code that is optimised.
set(tj_test_options -O0 -g1 -U_FORTIFY_SOURCE ${tj_uncounted})

# tj_test(NAME SOURCES... LINK targets... [LABELS ...] [HEADERS_FROM target] [PARTS n]): one gtest binary and its CTest entries,
# NAME.0 and so on, n of them (1), which share its tests out. Not an entry for each test: a process takes 0.2 s of CPU time under
# AddressSanitizer, or where it loads torch, before its first test. Its precompiled header is that of all tests, or of `target`.
function(tj_test name)
  cmake_parse_arguments(arg "" "HEADERS_FROM;PARTS" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE tj_flags tj_test_places GTest::gtest_main GTest::gmock ${arg_LINK})
  target_link_options(${name} PRIVATE ${tj_fast_linker})
  tj_batch_later(${name})
  if(NOT arg_HEADERS_FROM)
    set(arg_HEADERS_FROM tj_test_headers)
    target_compile_options(${name} PRIVATE ${tj_test_options})
  endif()
  target_precompile_headers(${name} REUSE_FROM ${arg_HEADERS_FROM})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)  # an empty one would be lost, and take COST's name with it
  endif()
  if(NOT arg_PARTS)
    set(arg_PARTS 1)
  endif()
  math(EXPR last "${arg_PARTS} - 1")
  foreach(part RANGE ${last})
    add_test(NAME ${name}.${part} COMMAND ${name})
    set_tests_properties(${name}.${part} PROPERTIES LABELS "${arg_LABELS}" COST 50
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_PARTS};GTEST_SHARD_INDEX=${part}")
  endforeach()
endfunction()

# A trainer whose engine has a workload of a test's own: `trainer` takes the engine that lies beside it.
function(tj_test_engine name)
  tj_program(${name} SOURCES ${ARGN} LINK tj_workloads)
  target_precompile_headers(${name} REUSE_FROM tj_trainer_torch)
  target_compile_options(${name} PRIVATE -g1)
  set_target_properties(${name} PROPERTIES OUTPUT_NAME trainer-engine ENABLE_EXPORTS ON)
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:trainer> $<TARGET_FILE_DIR:${name}>)
  add_dependencies(${name} trainer)
endfunction()
