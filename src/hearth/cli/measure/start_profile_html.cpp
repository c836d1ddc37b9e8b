// The timeline of a start as one page: phases and shards as bars over the
// memory of the process.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/html.h"
#include "hearth/base/units.h"
#include "hearth/cli/measure/start_profile.h"

namespace hearth::cli {
namespace {

constexpr double kLeft = 190, kWidth = 780, kRow = 24, kMemory = 160;

constexpr const char* kHead = R"(<!doctype html><html lang="en"><head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>hearth profile load</title><style>
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1000px;padding:0 1em;
color:#222;background:#fff}svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#222}
.read{fill:#4477aa}.convert{fill:#ccbb44}.pack{fill:#228833}.quantise{fill:#ee6677}.other{fill:#999}
.mem{fill:#4477aa33;stroke:#4477aa}.own{fill:none;stroke:#ee6677}.axis{stroke:#bbb}
table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}.slow{padding:.6em 1em;background:#fff4d6;color:#222}
@media(prefers-color-scheme:dark){body{background:#16181d;color:#ddd}svg text{fill:#ddd}}
</style></head><body>
)";

class Chart {
 public:
  Chart(double seconds) : seconds_(std::max(seconds, 1e-9)) {}

  // A row with its name; bars follow.
  void row(std::string_view name) {
    y_ += kRow;
    body_ += fmt::format(
        R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", kLeft - 8,
        y_ + 15, html_escaped(name)
    );
  }
  void bar(const char* kind, double begin, double seconds, const char* what) {
    if (seconds <= 0) return;
    body_ += fmt::format(
        R"(<rect class="{}" x="{:.2f}" y="{}" width="{:.2f}" height="{}">)"
        "<title>{} {:.4f} s</title></rect>\n",
        kind, x(begin), y_ + 2, std::max(0.6, x(seconds) - kLeft), kRow - 5,
        what, seconds
    );
  }
  void memory(const std::vector<profile::ProcessSample>& samples) {
    std::size_t most = 1;
    for (const auto& s : samples) most = std::max(most, s.resident);
    const double top = y_ + kRow + 12, bottom = top + kMemory;
    const auto y = [&](std::size_t bytes) {
      return bottom -
             kMemory * static_cast<double>(bytes) / static_cast<double>(most);
    };
    std::string all, own;
    for (const auto& s : samples) {
      all += fmt::format(" {:.1f},{:.1f}", x(s.seconds), y(s.resident));
      own += fmt::format(" {:.1f},{:.1f}", x(s.seconds), y(s.anonymous));
    }
    body_ += fmt::format(
        R"(<polygon class="mem" points="{:.1f},{:.1f}{} {:.1f},{:.1f}"/>)"
        R"(<polyline class="own" points="{}"/>)"
        R"(<text x="{}" y="{}" text-anchor="end">resident, {} at most</text>)"
        R"(<text x="{}" y="{}" text-anchor="end">its own (red)</text>)",
        kLeft, bottom, all, kLeft + kWidth, bottom, own, kLeft - 8, top + 12,
        format_bytes(most), kLeft - 8, top + 28
    );
    y_ = bottom - kRow + 4;
  }
  std::string svg() {
    y_ += kRow;
    for (int i = 0; i <= 5; ++i) {
      const double t = seconds_ * i / 5;
      body_ += fmt::format(
          R"(<line class="axis" x1="{0:.1f}" x2="{0:.1f}" y1="20" y2="{1}"/>)"
          R"(<text x="{0:.1f}" y="{2}" text-anchor="middle">{3:.3g} s</text>)",
          x(t), y_ + 4, y_ + 18, t
      );
    }
    return fmt::format(
        R"(<svg viewBox="0 0 {} {}" role="img" aria-label="timeline">{}</svg>)",
        kLeft + kWidth + 30, y_ + 28, body_
    );
  }

 private:
  double seconds_, y_ = 0;
  std::string body_;
  double x(double t) const { return kLeft + kWidth * t / seconds_; }
};

// What a shard's time went into, one after the other within its stretch.
void shard_bars(Chart& chart, double begin, const models::LoadPart& p) {
  const std::pair<const char*, double> kinds[] = {
      {"read", p.times.read},
      {"convert", p.times.convert},
      {"pack", p.times.pack},
      {"quantise", p.times.quantize},
      {"other", p.times.memory}
  };
  for (const auto& [kind, seconds] : kinds) {
    chart.bar(kind, begin, seconds, kind);
    begin += seconds;
  }
}

}  // namespace

std::string to_html(const StartProfile& p) {
  const auto& f = p.facts;
  Chart chart(f.total());
  double at = 0;
  const auto plain = [&](const char* name, double seconds) {
    chart.row(name);
    chart.bar("other", at, seconds, name);
    at += seconds;
  };
  plain("open", f.open);
  plain("header", f.header);
  plain("tokenizer", f.tokenizer);
  plain("build", f.build);
  for (const auto& shard : f.load.shards) {
    chart.row(
        std::filesystem::path(shard.name).filename().string().substr(0, 28)
    );
    shard_bars(chart, at + shard.begin, shard);
  }
  at += f.load.seconds;
  plain("first token", f.first_token);
  chart.memory(p.memory);

  std::string out = kHead;
  out += fmt::format(
      "<h1>{}</h1><p>{} by {} ({}), first token after {:.3f} s.</p>"
      "<p class=\"slow\"><b>Slow: {}</b>, {:.3f} s, {:.0f} %: {}. {}</p>\n{}\n"
      "<p>Bars: blue read, yellow convert, green pack, red quantise, grey the "
      "rest.</p>\n<table><tr><th>shard</th><th>tensors</th><th>bytes</th>"
      "<th>seconds</th><th>read</th><th>convert</th><th>pack</th>"
      "<th>quantise</th><th>memory</th></tr>\n",
      html_escaped(p.model), format_bytes(f.load.bytes),
      html_escaped(f.load.how), html_escaped(f.load.why), f.total(),
      name_of(p.slow.part), p.slow.seconds, 100 * p.slow.share,
      html_escaped(p.slow.why), html_escaped(p.slow.advice), chart.svg()
  );
  const auto rows = [&](const std::vector<models::LoadPart>& parts) {
    for (const auto& part : parts) {
      out += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.3f}</td><td>{:.3f}</td>"
          "<td>{:.3f}</td><td>{:.3f}</td><td>{:.3f}</td><td>{:.3f}</td></tr>\n",
          html_escaped(std::filesystem::path(part.name).filename().string()),
          part.tensors, format_bytes(part.bytes), part.seconds, part.times.read,
          part.times.convert, part.times.pack, part.times.quantize,
          part.times.memory
      );
    }
  };
  rows(f.load.shards);
  rows(f.load.classes);
  return out + "</table></body></html>\n";
}

}  // namespace hearth::cli
