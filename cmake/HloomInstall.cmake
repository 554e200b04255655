# hloom_install(): installs the headers, one static library of all folders but the doors, and the command line, and
# writes what find_package(hloom) reads. Users link the one target hloom::hloom.

include(CMakePackageConfigHelpers)

# The folders that go into the library, and the libraries outside hloom that these need.
function(hloom_library_parts objects_result libraries_result)
  get_property(folders GLOBAL PROPERTY HLOOM_FOLDERS)
  list(REMOVE_ITEM folders cli pjrt python)
  foreach(folder ${folders})
    get_target_property(sources hloom_${folder} SOURCES)
    if(sources)
      list(APPEND objects $<TARGET_OBJECTS:hloom_${folder}>)
    endif()
    get_property(needed GLOBAL PROPERTY HLOOM_LIBRARIES_${folder})
    list(APPEND libraries ${needed})
  endforeach()
  list(REMOVE_DUPLICATES libraries)
  set(${objects_result} ${objects} PARENT_SCOPE)
  set(${libraries_result} ${libraries} PARENT_SCOPE)
endfunction()

function(hloom_install)
  hloom_library_parts(objects libraries)
  add_library(hloom_all STATIC ${objects})
  add_library(hloom::hloom ALIAS hloom_all)
  set_target_properties(hloom_all PROPERTIES OUTPUT_NAME hloom EXPORT_NAME hloom LINKER_LANGUAGE CXX)
  target_compile_features(hloom_all INTERFACE cxx_std_20)
  target_include_directories(hloom_all INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(hloom_all INTERFACE ${libraries} $<BUILD_INTERFACE:LLVM> $<INSTALL_INTERFACE:hloom::llvm>)

  set(packages ${libraries})
  list(FILTER packages INCLUDE REGEX "::")
  list(TRANSFORM packages REPLACE "::.*" "")
  list(REMOVE_DUPLICATES packages)
  set(HLOOM_DEPENDENCIES ${packages})
  set(HLOOM_LLVM_LIBRARY_DIR ${LLVM_LIBRARY_DIR})
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hloom)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/hloomConfig.cmake.in ${PROJECT_BINARY_DIR}/hloomConfig.cmake
                                INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/hloomConfigVersion.cmake COMPATIBILITY SameMinorVersion)

  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hloom DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
  install(TARGETS hloom_all EXPORT hloom ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT hloom NAMESPACE hloom:: FILE hloomTargets.cmake DESTINATION ${package_dir})
  install(FILES ${PROJECT_BINARY_DIR}/hloomConfig.cmake ${PROJECT_BINARY_DIR}/hloomConfigVersion.cmake
          DESTINATION ${package_dir})
  if(TARGET hloom)
    install(TARGETS hloom RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()
