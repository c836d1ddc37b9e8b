namespace hearth::data {}
