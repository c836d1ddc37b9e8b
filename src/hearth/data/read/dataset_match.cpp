#include "hearth/data/read/dataset_match.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/read/dataset_chat.h"

namespace hearth::data {
namespace {

using Kind = LineFields::Kind;

// What a field of this use must be; empty when the value is that.
const char* wrong_kind(FieldUse use, Kind kind, std::string_view text) {
  const bool is_text = kind == Kind::kText;
  switch (use) {
    case FieldUse::kText:
    case FieldUse::kInput:
    case FieldUse::kSystem:
      return is_text ? "" : "must be a string";
    case FieldUse::kPrompt:
      return is_text || kind == Kind::kList
                 ? ""
                 : "must be a string or a list of messages";
    case FieldUse::kCompletion:
    case FieldUse::kChosen:
    case FieldUse::kRejected:
      return is_text || kind == Kind::kList || kind == Kind::kObject
                 ? ""
                 : "must be a string or a list of messages";
    case FieldUse::kChat:
      // A table has lists as their text.
      return kind == Kind::kList || (is_text && text.starts_with('['))
                 ? ""
                 : "must be a list of messages";
    case FieldUse::kRequest:
      return kind == Kind::kObject ? "" : "must be an object with messages";
    case FieldUse::kTools:
      return kind == Kind::kList || is_text ? "" : "must be a list";
    case FieldUse::kLabel:
      return kind == Kind::kTruth ? "" : "must be true or false";
  }
  return "";
}

}  // namespace

ShapedLine::ShapedLine(const RecordFields& names)
    : names_(names), shapes_(record_shapes(names)) {
  for (const auto& shape : shapes_) {
    auto& ids = ids_.emplace_back();
    for (const auto& f : shape.fields) ids.push_back(fields_.know(f.name));
  }
}

ShapedLine::Fit ShapedLine::fit(std::size_t shape) {
  Fit fit;
  const auto& fields = shapes_[shape].fields;
  for (std::size_t i = 0; i < fields.size() && fit.named; ++i) {
    const std::size_t id = ids_[shape][i];
    const bool there = fields_.kind(id) != Kind::kAbsent;
    const char* wrong =
        wrong_kind(fields[i].use, fields_.kind(id), fields_.text(id));
    const bool right = there && *wrong == '\0';
    if (right) fit.present |= 1u << i;
    if (right || !fields[i].needed) continue;
    fit.fits = false;
    fit.named = there;
    if (there && !fit.wrong) fit.wrong = wrong, fit.wrong_field = i;
  }
  return fit;
}

// The first shape that fits. Where none does, the first that would but for the
// kind of a value says what is wrong.
void ShapedLine::read(std::string_view line) {
  fields_.read(line);
  Given bad;
  const char* wrong = nullptr;
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    const Fit found = fit(s);
    if (found.fits) {
      shape_ = s;
      present_ = found.present;
      return;
    }
    if (!found.named || !found.wrong || wrong) continue;
    wrong = found.wrong;
    bad = {
        true, ids_[s][found.wrong_field],
        shapes_[s].fields[found.wrong_field].name
    };
  }
  if (wrong) fail(bad, wrong);
  fail_without_shape();
}

void ShapedLine::fail_without_shape() const {
  std::string has;
  std::vector<std::string> texts;
  for (const auto& m : fields_.members()) {
    if (m.text) texts.push_back(m.name);
    has +=
        fmt::format("{}\"{}\"", has.empty() ? "" : ", ", m.name.substr(0, 40));
  }
  const std::string guess = guess_fields(texts);
  throw FormatError(
      fmt::format(
          "a record must have \"{}\", \"{}\" and \"{}\", \"{}\", or \"{}\" and "
          "\"{}\"; it has {}{}{}",
          names_.text, names_.prompt, names_.completion, names_.messages,
          names_.chosen, names_.rejected, has.empty() ? "none" : has,
          guess.empty() ? "" : ": ", guess
      )
  );
}

void ShapedLine::fail(const Given& given, std::string_view what) const {
  fields_.fail(given.id, fmt::format("\"{}\" {}", given.name, what));
}

std::vector<std::string> ShapedLine::unused() const {
  std::vector<std::string> names;
  const auto& ids = ids_[shape_];
  for (const auto& m : fields_.members()) {
    bool used = false;
    for (std::size_t i = 0; i < ids.size() && !used; ++i) {
      used = (present_ >> i & 1) != 0 && static_cast<int>(ids[i]) == m.known;
    }
    if (m.holds && !used) names.push_back(m.name);
  }
  return names;
}

ShapedLine::Given ShapedLine::given(FieldUse use) const {
  const auto& fields = shapes_[shape_].fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if ((present_ >> i & 1) != 0 && fields[i].use == use) {
      return {true, ids_[shape_][i], fields[i].name};
    }
  }
  return {};
}

bool ShapedLine::is_text(const Given& given) const {
  return given.there && fields_.kind(given.id) == Kind::kText;
}

std::string ShapedLine::text(const Given& given) {
  return is_text(given) ? fields_.text(given.id) : std::string();
}

void ShapedLine::take(const Given& given, std::string& out) {
  out.clear();
  if (is_text(given)) out.swap(fields_.text(given.id));
}

Json ShapedLine::chat(const Given& given) {
  Json list = is_text(given) ? parse_json(fields_.text(given.id), given.name)
                             : json(given);
  if (list.is_object()) list = Json::array({std::move(list)});
  return read_chat(std::move(list), names_.roles, given.name);
}

Json ShapedLine::chat_or_text(const Given& given, const char* role) {
  if (!is_text(given)) return chat(given);
  return Json::array({chat_message(role, fields_.text(given.id))});
}

Json ShapedLine::tools() {
  const Given g = given(FieldUse::kTools);
  if (!g.there) return nullptr;
  return read_tools(is_text(g) ? Json(text(g)) : json(g), g.name);
}

}  // namespace hearth::data
