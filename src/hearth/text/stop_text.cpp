#include "hearth/text/stop_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::text {

void check_stops(std::span<const std::string> stops, std::string_view who) {
  for (const std::string& stop : stops) {
    if (stop.empty()) {
      throw UsageError(
          fmt::format("[{}] a stop string must not be empty", who)
      );
    }
    if (stop.size() > kMaxStopBytes) {
      throw UsageError(
          fmt::format(
              "[{}] a stop string must have at most {} bytes, got {}", who,
              kMaxStopBytes, stop.size()
          )
      );
    }
  }
}

StopText::Stop::Stop(std::string words)
    : text(std::move(words)), back(text.size(), 0) {
  for (std::size_t i = 1, n = 0; i < text.size(); ++i) {
    while (n > 0 && text[i] != text[n]) n = back[n - 1];
    if (text[i] == text[n]) ++n;
    back[i] = n;
  }
}

bool StopText::Stop::read(char byte) {
  while (matched > 0 && text[matched] != byte) matched = back[matched - 1];
  if (text[matched] == byte) ++matched;
  if (matched < text.size()) return false;
  matched = back[matched - 1];
  return true;
}

StopText::StopText(std::vector<std::string> stops, MayEnd may_end)
    : may_end_(std::move(may_end)) {
  check_stops(stops, "infer.StopText");
  for (std::string& stop : stops) stops_.emplace_back(std::move(stop));
}

bool StopText::may_end(std::size_t at) const {
  return !may_end_ || may_end_(std::string_view(text_).substr(0, at));
}

std::string StopText::show(std::size_t until) {
  std::string out = text_.substr(shown_, until - shown_);
  shown_ = until;
  return out;
}

std::string StopText::push(std::string_view text) {
  if (found_) return {};
  // The earliest beginning of a stop string that ends the text.
  std::size_t first = std::string::npos;
  for (const char byte : text) {
    text_ += byte;
    for (Stop& stop : stops_) {
      if (!stop.read(byte)) continue;
      const std::size_t from = text_.size() - stop.text.size();
      if (from < first && may_end(from)) first = from;
    }
  }
  if (first != std::string::npos) {
    found_ = true;
    std::string out = show(first);
    text_.resize(first);
    return out;
  }
  std::size_t keep = 0;
  for (const Stop& stop : stops_) keep = std::max(keep, stop.matched);
  return show(text_.size() - keep);
}

std::string StopText::finish() {
  for (Stop& stop : stops_) stop.matched = 0;
  return show(text_.size());
}

}  // namespace hearth::text
