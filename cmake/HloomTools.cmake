# Tools that make builds quicker, where they are installed: ccache and a fast linker. Nothing depends on them.

find_program(HLOOM_CCACHE ccache)
if(HLOOM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${HLOOM_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HLOOM_CCACHE})
endif()

include(CheckLinkerFlag)
foreach(linker mold lld)
  check_linker_flag(CXX -fuse-ld=${linker} HLOOM_HAS_${linker})
  if(HLOOM_HAS_${linker})
    add_link_options(-fuse-ld=${linker})
    break()
  endif()
endforeach()
