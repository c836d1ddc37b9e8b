// Any bytes as an answer, in any form and in pieces: nothing is lost, and
// pieces give what the whole gives.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/json.h"
#include "hearth/infer/tools/tool_calls.h"

namespace {

using hearth::infer::ToolCall;

hearth::Json read(const std::string& arguments) {
  try {
    return hearth::parse_json(arguments, "arguments");
  } catch (const hearth::FormatError&) {
    return nullptr;
  }
}

// A call that turns out broken stays told and takes what follows it along.
bool all_are_whole(
    const std::vector<ToolCall>& told,
    const std::vector<ToolCall>& whole
) {
  return std::ranges::all_of(told, [&](const ToolCall& one) {
    return std::ranges::any_of(whole, [&](const ToolCall& call) {
      return one.name == call.name &&
             read(one.arguments) == read(call.arguments);
    });
  });
}

// Told in pieces: one call at a time is open, none at the end, and where none
// is broken there are no fewer than are read whole.
void check_told(
    std::string_view answer,
    hearth::infer::ToolForm form,
    std::size_t piece,
    const std::vector<ToolCall>& whole
) {
  hearth::infer::ToolCallReader reader(form, {}, true);
  bool open = false;
  std::vector<ToolCall> told;
  const auto take = [&](const hearth::infer::ToolText& out) {
    if (!out.calls.empty()) std::abort();
    for (const auto& one : out.pieces) {
      if (one.begins && open) std::abort();
      if (one.begins) told.push_back({one.name, "", one.id});
      open = open || one.begins;
      if (!one.arguments.empty()) {
        if (!open) std::abort();
        told.back().arguments += one.arguments;
      }
      open = open && !one.ends;
    }
  };
  for (std::size_t at = 0; at < answer.size(); at += piece) {
    take(reader.feed(answer.substr(at, piece)));
  }
  take(reader.finish());
  if (open || (told.empty() && !whole.empty())) std::abort();
  if (told.size() < whole.size() && all_are_whole(told, whole)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(
    const std::uint8_t* data,
    std::size_t size
) {
  using hearth::infer::ToolForm;
  if (size < 2) return 0;
  const auto form = static_cast<ToolForm>(data[0] % 4);
  const std::size_t piece = 1 + data[1] % 16;
  const std::string_view answer(
      reinterpret_cast<const char*>(data) + 2, size - 2
  );
  const auto whole = hearth::infer::read_tool_calls(answer, form);
  hearth::infer::ToolCallReader reader(form);
  std::string text;
  std::size_t calls = 0;
  const auto take = [&](const hearth::infer::ToolText& out) {
    text += out.text;
    calls += out.calls.size();
  };
  for (std::size_t at = 0; at < answer.size(); at += piece) {
    take(reader.feed(answer.substr(at, piece)));
  }
  take(reader.finish());
  if (text != whole.text || calls != whole.calls.size()) std::abort();
  if (calls == 0 && text != answer) std::abort();
  check_told(answer, form, piece, whole.calls);
  return 0;
}
