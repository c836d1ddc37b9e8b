#include "hearth/cli/data/data_notes.h"

#include <fmt/format.h>

#include "hearth/base/log.h"

namespace hearth::cli {
namespace {

void tell_bad_lines(const data::CacheReport& r) {
  if (r.bad_lines == 0) return;
  std::string first;
  if (!r.first_bad_lines.empty()) {
    const auto& b = r.first_bad_lines.front();
    first = fmt::format("; the first, {}:{}: {}", b.file, b.line, b.what);
  }
  log_warning(
      "{} of {} records could not be read and are left out{}", r.bad_lines,
      r.bad_lines + r.records, first
  );
}

void tell_remarks(const data::CacheReport& r, const Context& context) {
  for (const auto& remark : r.remarks()) {
    if (remark.loss) {
      log_warning("{}", remark.text);
    } else {
      context.note(remark.text);
    }
  }
}

void tell_overlong(const train::Session& s, const Context& context) {
  const auto report = data::find_overlong(*s.cache, s.train_loader());
  const std::string text =
      report.text(static_cast<std::uint32_t>(s.recipe.longest()));
  if (text.empty()) return;
  if (report.lost_tokens == 0) return context.note(text);
  log_warning("{}; data.overlong or longer rows keep them", text);
}

}  // namespace

void tell_data(const train::Session& s, const Context& context) {
  const data::CacheReport& r = s.data.result.report;
  tell_bad_lines(r);
  for (const auto& line : data::remarks_of(s.data.sources)) context.note(line);
  tell_remarks(r, context);
  tell_overlong(s, context);
  if (r.untrained > 0) {
    log_warning(
        "{} of {} documents carry no loss and train nothing", r.untrained,
        r.documents
    );
  }
  if (r.replaced_characters > 0) {
    log_warning(
        "{} characters that were not UTF-8 are U+FFFD now",
        r.replaced_characters
    );
  }
  if (!s.data.has_valid() && data::holds_out(s.recipe.data)) {
    log_warning(
        "data.valid: {} holds out none of {} documents: nothing is validated",
        s.recipe.data.valid, r.documents
    );
  }
}

}  // namespace hearth::cli
