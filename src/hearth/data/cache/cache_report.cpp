#include "hearth/data/cache/cache_report.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "hearth/base/units.h"
#include "hearth/data/read/dataset_shape.h"

namespace hearth::data {
namespace {

// One list of the counters, for both directions.
template <class Report, class Visit>
void counters(Report& r, Visit visit) {
  visit("records", r.records);
  visit("documents", r.documents);
  visit("valid_documents", r.valid_documents);
  visit("tokens", r.tokens);
  visit("trained_tokens", r.trained_tokens);
  visit("valid_tokens", r.valid_tokens);
  visit("bytes", r.bytes);
  visit("bad_lines", r.bad_lines);
  visit("replaced_characters", r.replaced_characters);
  visit("truncated", r.truncated);
  visit("empty", r.empty);
  visit("untrained", r.untrained);
  visit("duplicates", r.duplicates);
  visit("longest", r.longest);
}

// Those that the reports of older caches do not have.
template <class Report, class Visit>
void newer_counters(Report& r, Visit visit) {
  visit("empty_prompts", r.empty_prompts);
  visit("unread_tools", r.unread_tools);
}
template <class Report, class Visit>
void tables(Report& r, Visit visit) {
  visit("forms", r.forms);
  visit("unused", r.unused);
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "0";
  return fmt::format(
      "{} ({:.2f} %)", part,
      100.0 * static_cast<double>(part) / static_cast<double>(whole)
  );
}

}  // namespace

void CacheReport::count_length(std::uint64_t count) {
  longest = std::max(longest, count);
  const auto bucket =
      count <= 1 ? 0 : static_cast<std::size_t>(std::bit_width(count - 1));
  ++lengths[std::min(bucket, kBuckets - 1)];
}

void CacheReport::add_bad_line(BadLine line) {
  ++bad_lines;
  if (first_bad_lines.size() < kKeptBadLines) {
    first_bad_lines.push_back(std::move(line));
  }
}

void CacheReport::add_unused(const std::string& field) {
  const bool room = unused.size() < kKeptNames || unused.contains(field);
  ++unused[room ? field : "(others)"];
}

std::vector<CacheReport::Remark> CacheReport::remarks() const {
  std::vector<Remark> out;
  for (const auto& [form, count] : forms) {
    out.push_back({fmt::format("{} ({} of {} records)", form, count, records)});
  }
  // What sounds like a part of an example is a loss, an id is none.
  std::string lost, other;
  for (const auto& [field, count] : unused) {
    std::string& list = is_known_field(field) ? lost : other;
    list += fmt::format(
        "{}\"{}\" ({})", list.empty() ? "" : ", ", field.substr(0, 40), count
    );
  }
  if (!lost.empty()) {
    out.push_back(
        {"fields that are not used: " + lost +
             "; data.fields names what is to be read",
         true}
    );
  }
  if (!other.empty()) out.push_back({"fields that are not used: " + other});
  if (empty_prompts > 0) {
    out.push_back(
        {fmt::format("{} of {} prompts are empty", empty_prompts, records),
         true}
    );
  }
  if (unread_tools > 0) {
    out.push_back(
        {fmt::format(
             "{} documents have tools, which the chat template does not read: "
             "data.template=chatml does",
             unread_tools
         ),
         true}
    );
  }
  return out;
}

Json CacheReport::to_json() const {
  Json json = Json::object();
  counters(*this, [&](const char* name, std::uint64_t v) { json[name] = v; });
  newer_counters(*this, [&](const char* name, std::uint64_t v) {
    json[name] = v;
  });
  tables(*this, [&](const char* name, const auto& t) { json[name] = t; });
  json["lengths"] = lengths;
  Json lines = Json::array();
  for (const auto& l : first_bad_lines) {
    lines.push_back({{"file", l.file}, {"line", l.line}, {"what", l.what}});
  }
  json["first_bad_lines"] = lines;
  return json;
}

CacheReport CacheReport::from_json(const Json& json) {
  CacheReport r;
  counters(r, [&](const char* name, std::uint64_t& v) {
    v = json.at(name).get<std::uint64_t>();
  });
  newer_counters(r, [&](const char* name, std::uint64_t& v) {
    v = json.value(name, std::uint64_t{0});
  });
  tables(r, [&](const char* name, auto& t) {
    if (json.contains(name)) json.at(name).get_to(t);
  });
  r.lengths = json.at("lengths").get<decltype(r.lengths)>();
  for (const auto& l : json.at("first_bad_lines")) {
    r.first_bad_lines.push_back(
        {l.at("file").get<std::string>(), l.at("line").get<std::uint64_t>(),
         l.at("what").get<std::string>()}
    );
  }
  return r;
}

std::string CacheReport::to_text() const {
  std::string out;
  auto line = [&](std::string_view name, const std::string& value) {
    out += fmt::format("  {:<12} {}\n", name, value);
  };
  line("documents", fmt::format("{} ({} valid)", documents, valid_documents));
  line("tokens", fmt::format("{} ({} valid)", tokens, valid_tokens));
  line("with loss", share(trained_tokens, tokens));
  line("text", format_bytes(bytes));
  line("duplicates", share(duplicates, documents));
  if (truncated) line("max_tokens", share(truncated, documents) + " cut");
  if (untrained) line("no loss", share(untrained, documents));
  if (empty) line("empty", share(empty, documents));
  if (replaced_characters) {
    line("bad UTF-8", fmt::format("{} replaced", replaced_characters));
  }
  if (bad_lines) line("bad lines", fmt::format("{} skipped", bad_lines));
  for (const auto& r : remarks()) line(r.loss ? "warning" : "note", r.text);
  for (const auto& b : first_bad_lines) {
    out += fmt::format("    {}:{}: {}\n", b.file, b.line, b.what);
  }
  out += fmt::format("  lengths      longest {}\n", longest);
  const auto top = *std::max_element(lengths.begin(), lengths.end());
  for (std::size_t i = 0; i < kBuckets; ++i) {
    if (lengths[i] == 0) continue;
    const auto width = static_cast<int>((lengths[i] * 40 + top - 1) / top);
    out += fmt::format(
        "    <= {:>9} {:>10} {}\n", std::uint64_t{1} << i, lengths[i],
        std::string(static_cast<std::size_t>(width), '#')
    );
  }
  return out;
}

}  // namespace hearth::data
