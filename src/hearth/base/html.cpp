#include "hearth/base/html.h"

namespace hearth {

void append_html(std::string& out, char c) {
  switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&#34;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += c;
  }
}

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) append_html(out, c);
  return out;
}

}  // namespace hearth
