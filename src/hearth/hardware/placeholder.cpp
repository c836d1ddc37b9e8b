namespace hearth::hardware {}
