// Any bytes as an answer, in any form and in pieces: nothing is lost, and
// pieces give what the whole gives.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hearth/infer/tool_calls.h"

namespace {

// Told in pieces: one call at a time is open, none at the end, and there are no
// fewer than are read whole.
void check_told(
    std::string_view answer,
    hearth::infer::ToolForm form,
    std::size_t piece,
    std::size_t calls
) {
  hearth::infer::ToolCallReader reader(form, {}, true);
  bool open = false;
  std::size_t begun = 0;
  const auto take = [&](const hearth::infer::ToolText& out) {
    if (!out.calls.empty()) std::abort();
    for (const auto& one : out.pieces) {
      if (one.begins && open) std::abort();
      begun += one.begins;
      open = open || one.begins;
      if (!one.arguments.empty() && !open) std::abort();
      open = open && !one.ends;
    }
  };
  for (std::size_t at = 0; at < answer.size(); at += piece) {
    take(reader.feed(answer.substr(at, piece)));
  }
  take(reader.finish());
  if (open || begun < calls) std::abort();
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
  check_told(answer, form, piece, calls);
  return 0;
}
