# How every target of the project is compiled.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(hearth_flags INTERFACE)
target_compile_options(hearth_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror
  # A designated initialiser leaves the other fields at their defaults: that is
  # its point.
  -Wno-missing-field-initializers
  # The same arithmetic on every platform: no fused multiply-add behind our back.
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False positives of GCC 12 inside the standard library and fmt.
  target_compile_options(hearth_flags INTERFACE
    -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds -Wno-restrict)
endif()
if(HEARTH_SANITIZE)
  target_compile_options(hearth_flags INTERFACE
    -fsanitize=${HEARTH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(hearth_flags INTERFACE -fsanitize=${HEARTH_SANITIZE})
endif()

find_program(HEARTH_CCACHE ccache)
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/timed_compile.sh)
  if(HEARTH_CCACHE)
    list(APPEND CMAKE_CXX_COMPILER_LAUNCHER ${HEARTH_CCACHE})
  endif()
endif()
