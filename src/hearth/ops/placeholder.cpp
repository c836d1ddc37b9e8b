namespace hearth::ops {}
