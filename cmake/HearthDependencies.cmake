# What we lean on. Versions of the downloaded parts are in tools/pins.txt.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
find_package(OpenSSL REQUIRED)
find_package(CURL REQUIRED)

# yaml-cpp 0.7 exports a plain name, later ones a namespaced target.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

if(HEARTH_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

set(HEARTH_MLX_VERSION 0.32.4)
if(HEARTH_WITH_MLX)
  # -DMLX_ROOT=... wins, then the wheels that ./dev unpacked, then the system's.
  set(_hearth_wheels ${PROJECT_SOURCE_DIR}/.deps/mlx/mlx)
  if(NOT MLX_ROOT AND NOT MLX_DIR AND EXISTS ${_hearth_wheels}/share/cmake/MLX/MLXConfig.cmake)
    set(MLX_ROOT ${_hearth_wheels})
  endif()
  find_package(MLX CONFIG)
  if(NOT MLX_FOUND)
    message(FATAL_ERROR "MLX ${HEARTH_MLX_VERSION} was not found: run ./dev build, "
      "or give -DMLX_ROOT=<folder that holds share/cmake/MLX>")
  endif()
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" _have "${MLX_VERSION}")
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" _want "${HEARTH_MLX_VERSION}")
  if(NOT _have STREQUAL _want)
    message(FATAL_ERROR "MLX must be ${_want}.x (custom primitives use its internals), "
      "found ${MLX_VERSION} in ${MLX_DIR}")
  endif()
  message(STATUS "MLX ${MLX_VERSION} from ${MLX_DIR}")
  if(APPLE)
    # The wheel names Apple's frameworks by their place on the machine that made
    # it. The library knows them itself, and we call none.
    set_target_properties(mlx PROPERTIES INTERFACE_LINK_LIBRARIES "")
  endif()
endif()
