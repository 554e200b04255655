# Installs the build into a folder of its own, builds examples/decode against that with find_package(hloom), runs it,
# and checks what it prints.
#   cmake -DBUILD=… -DSOURCE=… -DWORK=… -DCXX=… -P tests/install.cmake

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed with ${status}: ${ARGV}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed)
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples/decode -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/installed
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/installed/bin/hloom run ${SOURCE}/examples/decode)
run(${WORK}/build/decode ${SOURCE}/examples/decode)
foreach(expected "Of cabbages--and kings--" "peak memory" "in place")
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "the example does not print: ${expected}")
  endif()
endforeach()
if(output MATCHES "copied, because")
  message(FATAL_ERROR "the cache is copied")
endif()
