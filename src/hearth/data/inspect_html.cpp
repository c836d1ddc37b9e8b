// What is inside a data set, as a page.
#include <fmt/format.h>

#include "hearth/base/html.h"
#include "hearth/data/inspect.h"

namespace hearth::data {
namespace {

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--t:#b9e6c1;--t2:#9fd8ab;--c:#e8e8ec;--c2:#d9d9e0;
--ink:#1c1c22;--pad:#fff}
@media(prefers-color-scheme:dark){:root{--t:#1f5a33;--t2:#28703f;--c:#2c2c33;
--c2:#3a3a44;--ink:#e8e8ee;--pad:#16161a}body{background:#16161a}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);max-width:70rem;
margin:2rem auto;padding:0 1rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.8}
.d span{background:var(--c)}.d span:nth-child(even){background:var(--c2)}
.d .t{background:var(--t)}.d .t:nth-child(even){background:var(--t2)}
.m{font:12px/1 monospace;white-space:pre;overflow-x:auto}
.m b{background:var(--t);font-weight:400}.m i{background:var(--c);
font-style:normal}.w{border-left:4px solid #d33;padding-left:.7rem}
)";

// The five characters, and control characters as their pictures.
std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '\n':
        out += "⏎\n";
        break;
      case '\t':
        out += "⇥\t";
        break;
      default:
        if (byte < 0x20 || byte == 0x7F) {
          out += fmt::format("\\x{:02x}", byte);
        } else {
          append_html(out, c);
        }
    }
  }
  return out;
}

std::string document_html(const DocumentView& d) {
  std::string out = fmt::format(
      "<h3>{} {} of {}</h3><p>{} tokens, {} with loss</p><pre class=d>",
      escape(d.split), d.document, escape(d.source), d.tokens, d.trained
  );
  for (const auto& t : d.shown) {
    out += fmt::format(
        "<span{} title=\"{}\">{}</span>", t.trained ? " class=t" : "", t.id,
        escape(t.text)
    );
  }
  return out + "</pre>\n";
}

// Runs of equal letters share one element.
std::string row_html(const std::string& row) {
  std::string out;
  for (std::size_t i = 0; i < row.size();) {
    std::size_t end = row.find_first_not_of(row[i], i);
    if (end == std::string::npos) end = row.size();
    const std::string_view run = std::string_view(row).substr(i, end - i);
    if (row[i] == '.') {
      out += run;
    } else {
      const char* tag = row[i] <= 'Z' ? "b" : "i";
      out += fmt::format("<{0}>{1}</{0}>", tag, run);
    }
    i = end;
  }
  return out + "\n";
}

std::string batch_html(const BatchView& b) {
  std::string out = fmt::format(
      "<h3>batch {}</h3><p>{} rows of {}, {} tokens, {} with loss</p>"
      "<div class=m>",
      b.step, b.rows, b.length, b.tokens, b.trained
  );
  for (const auto& row : b.map) out += row_html(row);
  return out + "</div>\n";
}

}  // namespace

std::string inspection_to_html(const Inspection& in) {
  std::string out = fmt::format(
      "<!doctype html><html lang=en><meta charset=utf-8>"
      "<meta name=viewport content=\"width=device-width\">"
      "<title>Data: {0}</title><style>{1}</style><h1>{0}</h1>\n",
      escape(in.folder), kStyle
  );
  for (const auto& line : in.drift) {
    out += fmt::format("<p class=w>{}</p>\n", escape(line));
  }
  const auto& m = in.manifest;
  out += fmt::format(
      "<p>key {}, vocabulary {}, mask {}, {} shards</p><pre>", escape(m.key),
      m.vocabulary, escape(m.mask), m.shards.size()
  );
  std::string report = m.report.to_text();
  for (std::size_t at = 0; at < report.size();) {
    const auto end = std::min(report.find('\n', at), report.size());
    out += escape(std::string_view(report).substr(at, end - at)) + "\n";
    at = end + 1;
  }
  out += "</pre>\n<h2>Documents</h2>\n";
  for (const auto& d : in.documents) out += document_html(d);
  out += fmt::format(
      "<h2>Batches</h2><p>{:.2f} % of the cells of {} batches are tokens; {} "
      "documents were cut, {} split, {} dropped.</p>\n",
      100 * in.packing.efficiency(), in.packing.batches, in.packing.truncated,
      in.packing.split, in.packing.dropped
  );
  const std::string over = in.overlong.text(in.longest);
  if (!over.empty()) out += fmt::format("<p class=w>{}</p>\n", escape(over));
  for (const auto& b : in.batches) out += batch_html(b);
  return out + "</html>\n";
}

}  // namespace hearth::data
