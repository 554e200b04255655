# One call for each folder of src/:
#
#   hloom_library(passes DEPS base hlo interp [LLVM] [LIBRARIES ZLIB::ZLIB …])
#
# makes the static library hloom_passes from *.cc, and from *_test.cc the test program passes_test, each
# of whose tests CTest knows. *_bench.cc become passes_bench where Google Benchmark is found.

set(HLOOM_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror=switch
                   -Wnon-virtual-dtor -Wno-pedantic)
# No value may depend on how the compiler contracts.
add_compile_options(-ffp-contract=off)
option(HLOOM_WERROR "Treat warnings as errors" ON)
if(HLOOM_WERROR)
  list(APPEND HLOOM_WARNINGS -Werror)
endif()

function(hloom_library name)
  cmake_parse_arguments(ARG "LLVM" "" "DEPS;LIBRARIES;TEST_DEPS;EXCLUDE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  set(benches ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$")

  add_library(hloom_${name} STATIC ${sources})
  target_include_directories(hloom_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(hloom_${name} PRIVATE ${HLOOM_WARNINGS} -fno-exceptions)
  list(TRANSFORM ARG_DEPS PREPEND hloom_)
  target_link_libraries(hloom_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_LIBRARIES})
  if(ARG_LLVM)
    target_include_directories(hloom_${name} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
    target_link_libraries(hloom_${name} PUBLIC LLVM)
  endif()

  if(tests AND BUILD_TESTING)
    add_executable(${name}_test ${tests})
    list(TRANSFORM ARG_TEST_DEPS PREPEND hloom_)
    target_link_libraries(${name}_test PRIVATE hloom_${name} ${ARG_TEST_DEPS} ${ARG_LIBRARIES} GTest::gtest_main)
    target_compile_options(${name}_test PRIVATE ${HLOOM_WARNINGS})
    if(ARG_LLVM)
      target_include_directories(${name}_test SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
    endif()
    gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endif()
  if(benches AND TARGET benchmark::benchmark)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE hloom_${name} benchmark::benchmark_main)
    target_compile_options(${name}_bench PRIVATE ${HLOOM_WARNINGS})
  endif()
endfunction()
