#pragma once
// One line of JSON and the shape that fits it: what each field is used as, and
// its value as a text or as messages.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/data/read/dataset_line.h"
#include "hearth/data/read/dataset_shape.h"

namespace hearth::data {

class ShapedLine {
 public:
  explicit ShapedLine(const RecordFields& names);

  // The line must outlive what is asked below. Throws FormatError when it is no
  // object, or when no shape fits: what it has, and the setting that may read
  // it.
  void read(std::string_view line);
  std::size_t shape() const { return shape_; }
  std::uint32_t present() const { return present_; }
  std::size_t replaced() const { return fields_.replaced(); }
  const RecordFields& names() const { return names_; }
  // Fields that hold something and have no use in the shape.
  std::vector<std::string> unused() const;

  // The field of a use, where the line has one.
  struct Given {
    bool there = false;
    std::size_t id = 0;
    std::string name;
  };
  Given given(FieldUse use) const;
  bool is_text(const Given& given) const;
  // Empty where there is none, or no text.
  std::string text(const Given& given);
  std::string text(FieldUse use) { return text(given(use)); }
  // The same, given away: texts may be long.
  void take(const Given& given, std::string& out);
  Json json(const Given& given) const { return fields_.json(given.id); }
  // Messages, also where they are the text of a list, or one alone.
  Json chat(const Given& given);
  // A text as one message of that role, or messages.
  Json chat_or_text(const Given& given, const char* role);
  Json tools();
  [[noreturn]] void fail(const Given& given, std::string_view what) const;

 private:
  const RecordFields& names_;
  std::vector<RecordShape> shapes_;
  std::vector<std::vector<std::size_t>> ids_;  // of each shape's fields
  LineFields fields_;
  std::size_t shape_ = 0;
  std::uint32_t present_ = 0;

  // How a shape fits: all fields that it needs are there, and of their kind.
  struct Fit {
    bool named = true, fits = true;
    std::uint32_t present = 0;
    std::size_t wrong_field = 0;  // the first whose kind is wrong
    const char* wrong = nullptr;  // and what it must be
  };
  Fit fit(std::size_t shape);
  [[noreturn]] void fail_without_shape() const;
};

}  // namespace hearth::data
