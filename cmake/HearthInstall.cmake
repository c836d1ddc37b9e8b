# find_package(Hearth) for programs that build on the library.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

add_library(hearth_all INTERFACE)
set_target_properties(hearth_all PROPERTIES EXPORT_NAME Hearth)
add_library(Hearth::Hearth ALIAS hearth_all)
get_property(areas GLOBAL PROPERTY HEARTH_AREAS)
set(targets hearth_all)
foreach(area IN LISTS areas)
  if(NOT area STREQUAL "cli")
    target_link_libraries(hearth_all INTERFACE hearth_${area})
    list(APPEND targets hearth_${area})
  endif()
endforeach()
install(TARGETS ${targets} EXPORT HearthTargets FILE_SET HEADERS)
if(TARGET hearth)
  install(TARGETS hearth)
  install(DIRECTORY profiles DESTINATION ${CMAKE_INSTALL_DATADIR}/hearth)
endif()

install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/hearth)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Hearth)
install(EXPORT HearthTargets NAMESPACE Hearth:: DESTINATION ${package_dir})
configure_package_config_file(cmake/HearthConfig.cmake.in
  ${PROJECT_BINARY_DIR}/HearthConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/HearthConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/HearthConfig.cmake
  ${PROJECT_BINARY_DIR}/HearthConfigVersion.cmake DESTINATION ${package_dir})
