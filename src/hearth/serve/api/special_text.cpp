#include "hearth/serve/api/special_text.h"

#include <algorithm>

#include "hearth/serve/api/api_error.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::serve {
namespace {

// One of the 32 code points that Unicode reserves as noncharacters.
std::string mark_number(unsigned char n) {
  return {'\xEF', '\xB7', static_cast<char>(0x90 + n)};
}

bool has_text(const Json& value, std::string_view text) {
  if (value.is_string()) {
    return value.get_ref<const std::string&>().find(text) != std::string::npos;
  }
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) {
      if (key.find(text) != key.npos || has_text(child, text)) return true;
    }
  } else if (value.is_array()) {
    return std::ranges::any_of(value, [&](const Json& child) {
      return has_text(child, text);
    });
  }
  return false;
}

}  // namespace

SpecialMarks::SpecialMarks(const text::Tokenizer& tokenizer) {
  for (const std::int32_t id : tokenizer.special_ids()) {
    specials_.add(tokenizer.id_to_token(id).value_or(""), 0);
  }
}

bool SpecialMarks::holds(const Json& value) const {
  text::StringSet::Found found;
  if (value.is_string()) {
    return specials_.find(value.get_ref<const std::string&>(), 0, found);
  }
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) {
      if (specials_.find(key, 0, found) || holds(child)) return true;
    }
  } else if (value.is_array()) {
    return std::ranges::any_of(value, [&](const Json& child) {
      return holds(child);
    });
  }
  return false;
}

// The mark goes behind the first character of each special text, so that text
// which begins or ends a message still does.
std::string SpecialMarks::marked(
    const std::string& text,
    const std::string& mark
) const {
  std::string out;
  std::size_t done = 0;
  text::StringSet::Found found;
  for (std::size_t from = 0; specials_.find(text, from, found);) {
    const auto first = text::decode_utf8(text.data() + found.begin).size;
    out += text.substr(done, found.begin + first - done) + mark;
    done = found.begin + first;
    from = found.end;
  }
  return out + text.substr(done);
}

void SpecialMarks::mark(Json& value, const std::string& mark) const {
  if (value.is_string()) {
    value = marked(value.get_ref<const std::string&>(), mark);
  } else if (value.is_object()) {
    Json made = Json::object();
    for (auto& [key, child] : value.items()) {
      this->mark(child, mark);
      made[marked(key, mark)] = std::move(child);
    }
    value = std::move(made);
  } else if (value.is_array()) {
    for (Json& child : value) this->mark(child, mark);
  }
}

std::string SpecialMarks::mark(const std::vector<Json*>& values) const {
  const bool any = std::ranges::any_of(values, [&](const Json* value) {
    return holds(*value);
  });
  if (!any) return {};
  for (unsigned char n = 0; n < 32; ++n) {
    const std::string mark = mark_number(n);
    const bool taken = std::ranges::any_of(values, [&](const Json* value) {
      return has_text(*value, mark);
    });
    if (taken) continue;
    for (Json* value : values) this->mark(*value, mark);
    return mark;
  }
  throw ApiError(400, "'messages' hold too many noncharacters", "messages");
}

std::vector<std::size_t> take_marks(std::string& text, std::string_view mark) {
  std::vector<std::size_t> out;
  std::string clean;
  std::size_t done = 0;
  for (std::size_t at = 0; (at = text.find(mark, done)) != text.npos;) {
    clean += text.substr(done, at - done);
    done = at + mark.size();
    if (!clean.empty()) {
      out.push_back(text::previous_character(clean, clean.size()));
    }
  }
  text = clean + text.substr(done);
  return out;
}

}  // namespace hearth::serve
