#pragma once
// Text inside a page of HTML.
#include <string>
#include <string_view>

namespace hearth {

// Appends `c` so that HTML shows it as text, in attributes too: the five
// characters that mean something to HTML become entities, any other byte stays.
void append_html(std::string& out, char c);
std::string html_escaped(std::string_view text);

}  // namespace hearth
