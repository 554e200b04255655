# One call for each folder of src/:
#
#   hloom_library(passes DEPS base hlo interp [LLVM] [LIBRARIES ZLIB::ZLIB …] [TEST_DEPS text …])
#
# makes the static library hloom_passes from *.cc, and from *_test.cc the test program passes_test, each
# of whose tests CTest knows as passes.Suite.Name, with the label passes. *_bench.cc become passes_bench where
# Google Benchmark is found. Each x_fuzz.cc becomes the program x_fuzz, and the test passes.x_fuzz, which runs the
# files of fuzz/seeds/x.

set(HLOOM_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror=switch -Wnon-virtual-dtor)
# No value may depend on how the compiler contracts.
add_compile_options(-ffp-contract=off)
option(HLOOM_WERROR "Treat warnings as errors" ON)
option(HLOOM_FUZZER "Link fuzz targets with libFuzzer, which only clang has" OFF)
if(HLOOM_WERROR)
  list(APPEND HLOOM_WARNINGS -Werror)
endif()

function(hloom_library name)
  cmake_parse_arguments(ARG "LLVM" "" "DEPS;LIBRARIES;TEST_DEPS;EXCLUDE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  set(benches ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$")
  foreach(excluded ${ARG_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${excluded})
  endforeach()

  add_library(hloom_${name} STATIC ${sources})
  target_include_directories(hloom_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(hloom_${name} PRIVATE ${HLOOM_WARNINGS} -fno-exceptions)
  list(TRANSFORM ARG_DEPS PREPEND hloom_)
  target_link_libraries(hloom_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_LIBRARIES})
  if(ARG_LLVM)
    target_include_directories(hloom_${name} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
    target_link_libraries(hloom_${name} PUBLIC LLVM)
  endif()
  # The install rule packs these folders into one library.
  set_property(GLOBAL APPEND PROPERTY HLOOM_FOLDERS ${name})
  set_property(GLOBAL PROPERTY HLOOM_LIBRARIES_${name} ${ARG_LIBRARIES})

  list(TRANSFORM ARG_TEST_DEPS PREPEND hloom_)
  if(tests AND BUILD_TESTING)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE hloom_${name} ${ARG_TEST_DEPS} ${ARG_LIBRARIES} GTest::gmock
                                               GTest::gtest_main)
    target_compile_options(${name}_test PRIVATE ${HLOOM_WARNINGS})
    target_compile_definitions(${name}_test PRIVATE HLOOM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    if(ARG_LLVM)
      target_include_directories(${name}_test SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
    endif()
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTIES LABELS ${name} TIMEOUT 300)
  endif()
  if(benches AND TARGET benchmark::benchmark)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE hloom_${name} ${ARG_TEST_DEPS} benchmark::benchmark_main)
    target_compile_options(${name}_bench PRIVATE ${HLOOM_WARNINGS})
    target_compile_definitions(${name}_bench PRIVATE HLOOM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  endif()
  if(BUILD_TESTING)
    foreach(source ${fuzzers})
      hloom_fuzzer(${name} ${source} hloom_${name} ${ARG_TEST_DEPS})
    endforeach()
  endif()
endfunction()

# `source` defines LLVMFuzzerTestOneInput. With libFuzzer it draws inputs without end; without, and under CTest
# always, the program runs the files it is given.
function(hloom_fuzzer folder source)
  cmake_path(GET source STEM target)
  string(REGEX REPLACE "_fuzz$" "" seeds ${target})
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE ${HLOOM_WARNINGS})
  set(run ${target})
  if(HLOOM_FUZZER)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    list(APPEND run -runs=0)
  else()
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/fuzz/run_seeds.cc)
  endif()
  add_test(NAME ${folder}.${target} COMMAND ${run} ${PROJECT_SOURCE_DIR}/fuzz/seeds/${seeds})
  set_tests_properties(${folder}.${target} PROPERTIES LABELS ${folder} TIMEOUT 300)
endfunction()
