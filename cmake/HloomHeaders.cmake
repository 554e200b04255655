# hloom_check_headers(): every header of src/ and include/ compiles alone, or the build fails. Each gets a source
# file that includes it, twice, and nothing else.

function(hloom_check_headers)
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src/*/*.h
       ${PROJECT_SOURCE_DIR}/include/hloom/*.h)
  set(sources)
  foreach(header ${headers})
    string(REGEX REPLACE "^(src|include)/" "" name ${header})
    set(source ${PROJECT_BINARY_DIR}/headers/${name}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"@name@\"\n#include \"@name@\"\n" @ONLY)
    list(APPEND sources ${source})
  endforeach()
  add_library(headers_alone OBJECT ${sources})
  target_include_directories(headers_alone PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(headers_alone SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_compile_options(headers_alone PRIVATE ${HLOOM_WARNINGS} -fno-exceptions -O0 -g0)
endfunction()
