# The libraries we lean on, as headers alone: for compiling where the libraries
# themselves are not (`./dev lint mac`). HEARTH_HEADERS is a folder with those
# headers and nothing of the C library's.
set(_hearth_header_packages fmt nlohmann_json yaml-cpp CLI11 ZLIB PkgConfig OpenSSL CURL GTest)

function(_hearth_headers name)
  add_library(${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${name} SYSTEM INTERFACE ${HEARTH_HEADERS})
endfunction()

# CMake asks this function before it looks for a package.
function(hearth_provide_headers method package)
  if(NOT package IN_LIST _hearth_header_packages)
    return()
  endif()
  set(${package}_FOUND TRUE PARENT_SCOPE)
  if(package STREQUAL "OpenSSL")
    _hearth_headers(OpenSSL::SSL)
    _hearth_headers(OpenSSL::Crypto)
  elseif(package STREQUAL "CURL")
    _hearth_headers(CURL::libcurl)
  elseif(package STREQUAL "GTest")
    _hearth_build_gtest()
  elseif(package STREQUAL "PkgConfig")
    return()
  else()
    _hearth_headers(${package}::${package})
  endif()
endfunction()

# pkg_check_modules(NAME REQUIRED IMPORTED_TARGET module)
function(pkg_check_modules name)
  _hearth_headers(PkgConfig::${name})
endfunction()

# GoogleTest has main(), so it is compiled, from the sources that come with its
# package.
function(_hearth_build_gtest)
  set(root ${HEARTH_GTEST}/googletest)
  add_library(hearth_gtest STATIC ${root}/src/gtest-all.cc ${root}/src/gtest_main.cc)
  target_include_directories(hearth_gtest SYSTEM PUBLIC ${root}/include PRIVATE ${root})
  target_compile_features(hearth_gtest PUBLIC cxx_std_20)
  add_library(GTest::gtest ALIAS hearth_gtest)
  add_library(GTest::gtest_main ALIAS hearth_gtest)
endfunction()

cmake_language(SET_DEPENDENCY_PROVIDER hearth_provide_headers SUPPORTED_METHODS FIND_PACKAGE)
