#pragma once
// What the output streams are, asked once: a terminal or a file, colour or
// none.
namespace hearth {

bool stdout_is_terminal();
bool stderr_is_terminal();
// Colour on that stream: a terminal, NO_COLOR not set, TERM not dumb.
bool color_on_stdout();
bool color_on_stderr();
// Columns of the terminal behind stderr; 80 when it is none.
int terminal_width();

}  // namespace hearth
