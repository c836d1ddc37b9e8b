#include "hearth/data/read/dataset_line.h"

#include <algorithm>

namespace hearth::data {
namespace {

LineFields::Kind kind_of(char first) {
  using Kind = LineFields::Kind;
  switch (first) {
    case '"':
      return Kind::kText;
    case '[':
      return Kind::kList;
    case '{':
      return Kind::kObject;
    case 't':
    case 'f':
      return Kind::kTruth;
    case 'n':
      return Kind::kAbsent;
    default:
      return Kind::kOther;
  }
}

// Whether there is something between a value's quotes or brackets.
bool holds_something(std::string_view value) {
  const char first = value.front();
  return (first == '"' || first == '[' || first == '{') &&
         value.find_first_not_of(" \t\r\n", 1) != value.size() - 1;
}

}  // namespace

std::size_t LineFields::know(const std::string& name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) {
    return static_cast<std::size_t>(found - names_.begin());
  }
  names_.push_back(name);
  values_.emplace_back();
  return names_.size() - 1;
}

void LineFields::member(text::JsonCursor& cursor, Member& member) {
  const auto found = std::find(names_.begin(), names_.end(), member.name);
  const bool known = found != names_.end();
  member.known = known ? static_cast<int>(found - names_.begin()) : -1;
  const char first = cursor.peek();
  const std::size_t at = cursor.position();
  member.text = first == '"';
  if (!known) {
    member.holds = holds_something(cursor.skip());
    return;
  }
  Value& value = values_[static_cast<std::size_t>(member.known)];
  value.kind = kind_of(first);
  value.at = at;
  value.text.clear();
  if (member.text) {
    cursor.read_string(value.text);
    member.holds = !value.text.empty();
  } else {
    member.holds = holds_something(cursor.skip());
    value.truth = first == 't';
  }
}

void LineFields::read(std::string_view line) {
  line_ = line;
  for (auto& value : values_) value.kind = Kind::kAbsent;
  text::JsonCursor cursor(line);
  if (cursor.peek() == '[') {
    cursor.fail(
        "a line must hold one JSON object, got an array (write its items "
        "one a line: jq -c '.[]')"
    );
  }
  // Members keep their strings from one line to the next.
  std::size_t count = 0;
  std::string key;
  for (cursor.begin_object(); cursor.next_key(key); ++count) {
    if (count == members_.size()) members_.emplace_back();
    members_[count].name = key;
    member(cursor, members_[count]);
  }
  members_.resize(count);
  cursor.end();
  replaced_ = cursor.replaced();
}

Json LineFields::json(std::size_t name) const {
  text::JsonCursor cursor(line_);
  cursor.seek(values_[name].at);
  return cursor.value();
}

void LineFields::fail(std::size_t name, std::string_view what) const {
  text::JsonCursor cursor(line_);
  cursor.seek(values_[name].at);
  cursor.fail(what);
}

}  // namespace hearth::data
