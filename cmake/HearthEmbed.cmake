# hearth_embed(OUT AREA HEADER FUNCTION FILES...): writes a C++ file whose
# hearth::AREA::FUNCTION() holds the files' text, as hearth/AREA/HEADER
# declares it. A file that changes rewrites it at the next build.
function(hearth_embed out area header function)
  set(text "#include \"hearth/${area}/${header}\"\n\n")
  string(APPEND text "namespace hearth::${area} {\n\n")
  string(APPEND text "std::span<const BuiltinFile> ${function}() {\n")
  string(APPEND text "  static constexpr BuiltinFile kFiles[] = {\n")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} content)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    string(APPEND text "      {\"${name}\", R\"~~(${content})~~\"},\n")
  endforeach()
  string(APPEND text "  };\n  return kFiles;\n}\n\n}  // namespace hearth::${area}\n")
  file(CONFIGURE OUTPUT ${out} CONTENT "${text}" @ONLY)
endfunction()
