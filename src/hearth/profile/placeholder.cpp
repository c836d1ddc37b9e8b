namespace hearth::profile {}
