# What hloom is built with. LLVM and threads are needed; the others are asked for by the folders that use them.

find_package(LLVM 22.1 REQUIRED CONFIG PATHS /usr/lib/llvm-22 NO_DEFAULT_PATH)
find_package(Threads REQUIRED)
find_package(ZLIB QUIET)
find_package(benchmark QUIET)
if(BUILD_TESTING)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
find_library(OPENBLAS openblas)
