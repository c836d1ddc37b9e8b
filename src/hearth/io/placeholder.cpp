namespace hearth::io {}
