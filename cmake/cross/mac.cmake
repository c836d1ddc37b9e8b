# Compiles for an Apple Silicon Mac on Linux: zig brings clang, macOS's C
# headers, libSystem and a libc++ (tools/pins.txt). `./dev lint mac` uses it.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_VERSION 23.0)  # the kernel of macOS 14
set(CMAKE_SYSTEM_PROCESSOR arm64)
# CMake asks a Mac's sw_vers before it sets this; there is none, so this file is
# read again after CMake's own.
set(CMAKE_SHARED_LIBRARY_RUNTIME_C_FLAG "-Wl,-rpath,")
set(CMAKE_USER_MAKE_RULES_OVERRIDE_CXX ${CMAKE_CURRENT_LIST_FILE})
set(CMAKE_CXX_COMPILER ${CMAKE_CURRENT_LIST_DIR}/mac-clang++)
set(CMAKE_AR ${CMAKE_CURRENT_LIST_DIR}/mac-ar)
# The archiver writes the index; nothing is installed, so no path is changed.
set(CMAKE_RANLIB :)
set(CMAKE_INSTALL_NAME_TOOL :)
# None of the checks that zig adds to what it compiles without optimisation.
# And precompiled headers that are the same bytes each time, for the compiler cache.
set(CMAKE_CXX_FLAGS_INIT "-fno-sanitize=all -Xclang -fno-pch-timestamp")
# Of the libraries only the headers are here. What the programs leave open is
# held against a list by tools/check_macho.py.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-undefined,dynamic_lookup")
# MLX's wheel for macOS says itself where its files are; programs are Linux's.
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY NEVER)
