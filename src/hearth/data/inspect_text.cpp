// What is inside a data set, for a terminal and as JSON.
#include <fmt/format.h>

#include "hearth/base/units.h"
#include "hearth/data/inspect.h"

namespace hearth::data {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
// Two shades in turn, so that tokens can be told apart.
constexpr std::string_view kTrained[2] = {"\x1b[30;42m", "\x1b[30;102m"};
constexpr std::string_view kContext[2] = {"\x1b[37;40m", "\x1b[37;100m"};

// Control characters as people see them; data must not steer a terminal.
std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    // U+0080 to U+009F: the second set of control characters.
    const bool second_set = byte == 0xC2 && i + 1 < text.size() &&
                            static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (second_set) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else if (c == '\n') {
      out += "⏎\n";
    } else if (c == '\t') {
      out += "⇥";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

std::string document_text(const DocumentView& d, bool color) {
  std::string out = fmt::format(
      "{} {} of {}: {} tokens, {} with loss{}\n", d.split, d.document, d.source,
      d.tokens, d.trained,
      d.shown.size() < d.tokens
          ? fmt::format(", the first {} shown", d.shown.size())
          : ""
  );
  bool open = false;
  for (std::size_t i = 0; i < d.shown.size(); ++i) {
    const auto& t = d.shown[i];
    if (color) {
      out += (t.trained ? kTrained : kContext)[i % 2];
      out += printable(t.text);
      out += kReset;
      continue;
    }
    if (t.trained != open) out += t.trained ? "«" : "»";
    open = t.trained;
    out += printable(t.text);
  }
  if (open) out += "»";
  return out + "\n\n";
}

std::string batch_text(const BatchView& b) {
  std::string out = fmt::format(
      "batch {}: {} rows of {}, {} tokens ({:.1f} % full), {} with loss\n",
      b.step, b.rows, b.length, b.tokens,
      100.0 * static_cast<double>(b.tokens) /
          (static_cast<double>(b.rows) * b.length),
      b.trained
  );
  for (const auto& row : b.map) out += "  |" + row + "|\n";
  if (b.map.size() < b.rows) {
    out += fmt::format("  and {} more rows\n", b.rows - b.map.size());
  }
  return out + "\n";
}

Json by_rows(const std::vector<std::int32_t>& ids, std::uint32_t length) {
  Json rows = Json::array();
  for (std::size_t at = 0; at + length <= ids.size() && length > 0;
       at += length) {
    rows.push_back(Json(std::span(ids).subspan(at, length)));
  }
  return rows;
}

}  // namespace

std::string inspection_to_text(const Inspection& in, bool color) {
  const auto& m = in.manifest;
  std::string out = fmt::format(
      "cache {}\n  key          {}\n  vocabulary   {}, mask {}, {} shards\n",
      in.folder, m.key, m.vocabulary, m.mask, m.shards.size()
  );
  out += m.report.to_text() + "\n";
  for (const auto& line : in.drift) out += "! " + line + "\n";
  if (!in.drift.empty()) out += "\n";
  for (const auto& d : in.documents) out += document_text(d, color);
  for (const auto& b : in.batches) out += batch_text(b);
  if (!in.batches.empty()) {
    out += "  . padding; a letter a document, capital where it has loss\n\n";
  }
  const auto& p = in.packing;
  out += fmt::format(
      "{} batches: {:.2f} % of the cells are tokens, {:.1f} % of those have "
      "loss; {} pieces of documents, {} cut, {} split, {} dropped, {} without "
      "loss\n",
      p.batches, 100 * p.efficiency(),
      p.tokens ? 100.0 * static_cast<double>(p.trained) /
                     static_cast<double>(p.tokens)
               : 0.0,
      p.documents, p.truncated, p.split, p.dropped, p.untrained
  );
  const std::string over = in.overlong.text(in.longest);
  if (!over.empty()) out += over + "\n";
  return out;
}

Json inspection_to_json(const Inspection& in) {
  Json json = Json::object();
  json["cache"] = in.folder;
  json["key"] = in.manifest.key;
  json["vocabulary"] = in.manifest.vocabulary;
  json["mask"] = in.manifest.mask;
  json["report"] = in.manifest.report.to_json();
  json["drift"] = in.drift;
  json["documents"] = Json::array();
  for (const auto& d : in.documents) {
    Json tokens = Json::array();
    for (const auto& t : d.shown) tokens.push_back({t.id, t.text, t.trained});
    json["documents"].push_back(
        {{"split", d.split},
         {"source", d.source},
         {"document", d.document},
         {"tokens", d.tokens},
         {"trained", d.trained},
         {"shown", tokens}}
    );
  }
  json["batches"] = Json::array();
  for (const auto& b : in.batches) {
    json["batches"].push_back(
        {{"step", b.step},
         {"rows", b.rows},
         {"length", b.length},
         {"tokens", b.tokens},
         {"trained", b.trained},
         {"map", b.map},
         {"ids", by_rows(b.ids, b.length)},
         {"targets", by_rows(b.targets, b.length)}}
    );
  }
  const auto& p = in.packing;
  json["packing"] = {{"batches", p.batches},    {"efficiency", p.efficiency()},
                     {"tokens", p.tokens},      {"padding", p.padding},
                     {"trained", p.trained},    {"truncated", p.truncated},
                     {"split", p.split},        {"dropped", p.dropped},
                     {"untrained", p.untrained}};
  const auto& o = in.overlong;
  json["overlong"] = {
      {"longest_row", in.longest},
      {"split", o.split},
      {"cut", o.cut},
      {"dropped", o.dropped},
      {"lost_tokens", o.lost_tokens}
  };
  return json;
}

}  // namespace hearth::data
