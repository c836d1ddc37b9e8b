namespace hearth::bench {}
