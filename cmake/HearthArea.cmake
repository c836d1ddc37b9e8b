# hearth_area(NAME [MLX] [DEPENDS area...] [LINK library...] [PRECOMPILE header...])
#
# One static library of every source in this folder and below. Sources are
# globbed (and checked again at every build), so adding a file edits no list:
#   *_test.cpp             go to the area's one test binary, ctest unit.NAME
#   *_isa.cpp              are left to hearth_isa(), once per instruction set
#   *_mac.cpp              only on macOS;  *_linux.cpp only on Linux
#   *_x86.cpp, *_arm.cpp   only on that processor
#   *_impl.h, *_test.h     are not installed
# PRECOMPILE names the headers that most of the area's time goes into.
function(hearth_area name)
  cmake_parse_arguments(arg "MLX" "" "DEPENDS;LINK;PRECOMPILE" ${ARGN})
  if(arg_MLX AND NOT HEARTH_WITH_MLX)
    return()
  endif()
  _hearth_glob(sources *.cpp)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(_test|_isa|/main)\\.cpp$")
  _hearth_platform(sources)
  _hearth_platform(tests)

  add_library(hearth_${name} STATIC ${sources})
  add_library(Hearth::${name} ALIAS hearth_${name})
  set_target_properties(hearth_${name} PROPERTIES
    EXPORT_NAME ${name} LINKER_LANGUAGE CXX VERIFY_INTERFACE_HEADER_SETS ON)
  target_compile_features(hearth_${name} PUBLIC cxx_std_20)
  target_include_directories(hearth_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:include>)
  target_link_libraries(hearth_${name} PRIVATE $<BUILD_INTERFACE:hearth_flags>)
  foreach(area IN LISTS arg_DEPENDS)
    target_link_libraries(hearth_${name} PUBLIC hearth_${area})
  endforeach()
  target_link_libraries(hearth_${name} PUBLIC ${arg_LINK})
  if(arg_MLX)
    target_link_libraries(hearth_${name} PUBLIC mlx)
  endif()
  target_precompile_headers(hearth_${name} PRIVATE ${arg_PRECOMPILE})
  _hearth_unity(hearth_${name} "${sources}" 18)

  _hearth_glob(headers *.h)
  list(FILTER headers EXCLUDE REGEX "_(impl|test)\\.h$")
  target_sources(hearth_${name} PUBLIC FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${headers})
  set_property(GLOBAL APPEND PROPERTY HEARTH_AREAS ${name})
  if(HEARTH_BUILD_TESTS AND tests)
    _hearth_unit_tests(${name} "${tests}")
  endif()
endfunction()

function(_hearth_glob out)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${patterns})
  set(${out} ${found} PARENT_SCOPE)
endfunction()

function(_hearth_platform list)
  if(NOT APPLE)
    list(FILTER ${list} EXCLUDE REGEX "_mac\\.cpp$")
  endif()
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    list(FILTER ${list} EXCLUDE REGEX "_linux\\.cpp$")
  endif()
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(FILTER ${list} EXCLUDE REGEX "_x86\\.cpp$")
  endif()
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    list(FILTER ${list} EXCLUDE REGEX "_arm\\.cpp$")
  endif()
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()

# Compiles files of an area together, up to `size` at a time: most of a small
# file's time goes into its headers. tools/unity_groups.py says which may be.
function(_hearth_unity target sources size)
  find_program(HEARTH_PYTHON python3)
  if(NOT HEARTH_UNITY OR NOT HEARTH_PYTHON)
    return()
  endif()
  execute_process(COMMAND ${HEARTH_PYTHON} ${PROJECT_SOURCE_DIR}/tools/unity_groups.py
      ${size} ${sources}
    OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" groups "${lines}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(count 0)
  foreach(group IN LISTS groups)
    math(EXPR count "${count} + 1")
    string(REPLACE "|" ";" files "${group}")
    set_source_files_properties(${files} PROPERTIES UNITY_GROUP ${count})
  endforeach()
endfunction()

# Seconds a test binary may take; sanitizers and an emulator make some of them
# ten times slower.
set(HEARTH_TEST_LIMIT 600)
if(HEARTH_SANITIZE)
  set(HEARTH_TEST_LIMIT 1800)
elseif(CMAKE_CROSSCOMPILING)
  set(HEARTH_TEST_LIMIT 3600)
endif()

function(_hearth_unit_tests name tests)
  add_executable(hearth_${name}_tests ${tests})
  _hearth_unity(hearth_${name}_tests "${tests}" 4)
  target_link_libraries(hearth_${name}_tests PRIVATE
    hearth_${name} hearth_flags GTest::gtest GTest::gtest_main)
  # Compiled more often than run for long: a quarter less time.
  target_compile_options(hearth_${name}_tests PRIVATE $<$<CONFIG:Release>:-O1>)
  target_compile_definitions(hearth_${name}_tests PRIVATE
    HEARTH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME unit.${name} COMMAND hearth_${name}_tests
    --gtest_brief=1 --gtest_output=xml:${PROJECT_BINARY_DIR}/results/unit.${name}.xml)
  set_tests_properties(unit.${name} PROPERTIES LABELS "unit;${name}" TIMEOUT ${HEARTH_TEST_LIMIT})
endfunction()
