#pragma once
// The members of one line of JSON, by name. What no shape of a record knows is
// checked and stepped over; lists and objects are built when they are asked
// for, so a line costs little more than the texts it is read for.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/text/json_cursor.h"

namespace hearth::data {

class LineFields {
 public:
  enum class Kind { kAbsent, kText, kList, kObject, kTruth, kOther };
  struct Member {
    std::string name;
    bool text = false;   // a string
    bool holds = false;  // a text, list or object that is not empty
    int known = -1;      // which of the known names it is
  };

  // The index of a name, which is known from then on.
  std::size_t know(const std::string& name);

  // The line must outlive the calls below. Throws FormatError for what is not
  // one JSON object.
  void read(std::string_view line);
  // All members, in order.
  const std::vector<Member>& members() const { return members_; }
  std::size_t replaced() const { return replaced_; }

  // Of a known name; null counts as absent.
  Kind kind(std::size_t name) const { return values_[name].kind; }
  std::string& text(std::size_t name) { return values_[name].text; }
  bool truth(std::size_t name) const { return values_[name].truth; }
  Json json(std::size_t name) const;
  // Throws FormatError for the place of that member.
  [[noreturn]] void fail(std::size_t name, std::string_view what) const;

 private:
  struct Value {
    Kind kind = Kind::kAbsent;
    bool truth = false;
    std::size_t at = 0;
    std::string text;
  };
  std::vector<std::string> names_;
  std::vector<Value> values_;
  std::vector<Member> members_;
  std::string_view line_;
  std::size_t replaced_ = 0;

  void member(text::JsonCursor& cursor, Member& member);
};

}  // namespace hearth::data
