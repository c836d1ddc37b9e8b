// Values as text: str(), repr() and json.dumps().
#include <algorithm>
#include <charconv>
#include <cmath>

#include "hearth/text/template/failure.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/python.h"
#include "hearth/text/template/text.h"

namespace hearth::text::jinja {
namespace {

void append_hex(std::string& out, char32_t c, int digits) {
  static constexpr char kHex[] = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += kHex[(c >> shift) & 0xF];
  }
}

void append_escaped(std::string& out, char32_t c, char quote) {
  if (c == static_cast<char32_t>(quote) || c == '\\') {
    out += '\\';
    out += static_cast<char>(c);
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (is_printable(c)) {
    append_code_point(out, c);
  } else {
    out += c < 0x100 ? "\\x" : c < 0x10000 ? "\\u" : "\\U";
    append_hex(out, c, c < 0x100 ? 2 : c < 0x10000 ? 4 : 8);
  }
}

// Charges as it goes, so that shared structure cannot blow up unseen.
class Writer {
 public:
  explicit Writer(const JsonStyle* json) : json_(json) {}

  void write(const Value& value) {
    Meter::work();
    Meter::allocate(out_.size() - charged_);
    charged_ = out_.size();
    if (json_ != nullptr) return write_json(value);
    if (value.is_sequence()) return write_sequence(value.sequence());
    if (value.is_dict()) return write_dict(value.dict());
    out_ += value.is_string() ? quote(value.text()) : str(value);
  }
  std::string take() { return std::move(out_); }

 private:
  void write_sequence(const Sequence& sequence) {
    static constexpr struct {
      const char *open, *close;
    } kMarks[] = {
        {"[", "]"},
        {"(", ")"},
        {"<generator object", ">"},
        {"range(", ")"},
        {"dict_keys([", "])"},
        {"dict_values([", "])"},
        {"dict_items([", "])"}
    };
    const auto& marks = kMarks[static_cast<int>(sequence.kind)];
    out_ += marks.open;
    if (sequence.kind == SequenceKind::kRange) {
      write_range(sequence.items);
    } else if (sequence.kind != SequenceKind::kGenerator) {
      const char* separator = "";
      for (const Value& item : sequence.items) {
        out_ += separator;
        write(item);
        separator = ", ";
      }
      const bool single = sequence.items.size() == 1;
      if (single && sequence.kind == SequenceKind::kTuple) out_ += ",";
    }
    out_ += marks.close;
  }

  void write_range(const std::vector<Value>& items) {
    const std::int64_t start = items.empty() ? 0 : items.front().integer();
    const std::int64_t step = items.size() > 1 ? items[1].integer() - start : 1;
    const std::int64_t stop = items.empty() ? 0 : items.back().integer() + step;
    out_ += std::to_string(start) + ", " + std::to_string(stop);
    if (step != 1) out_ += ", " + std::to_string(step);
  }

  void write_dict(const Dict& dict) {
    out_ += "{";
    const char* separator = "";
    for (const auto& [key, value] : dict.entries) {
      out_ += separator;
      write(key);
      out_ += ": ";
      write(value);
      separator = ", ";
    }
    out_ += "}";
  }

  void write_json(const Value& value) {
    if (value.is_string()) {
      write_json_string(value.text());
    } else if (value.is_none()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += value.boolean() ? "true" : "false";
    } else if (value.is_number()) {
      out_ += json_number(value);
    } else if (value.is_dict()) {
      write_json_dict(value.dict());
    } else if (value.is_kind(SequenceKind::kList) ||
               value.is_kind(SequenceKind::kTuple)) {
      write_json_list(value.sequence().items);
    } else {
      fail_type(
          "Object of type " + std::string(type_name(value)) +
          " is not JSON serializable"
      );
    }
  }

  static std::string json_number(const Value& value) {
    if (value.is_int()) return std::to_string(value.integer());
    if (std::isnan(value.number())) return "NaN";
    if (std::isinf(value.number())) {
      return value.number() < 0 ? "-Infinity" : "Infinity";
    }
    return float_repr(value.number());
  }

  void write_json_string(std::string_view text) {
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t start = at;
      const char32_t c = next_code_point(text, at);
      static constexpr char kEscapes[] = "btn?fr";  // from 8 to 13
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += static_cast<char>(c);
      } else if (c >= 8 && c <= 13 && c != 11) {
        out_ += '\\';
        out_ += kEscapes[c - 8];
      } else if (c < 0x20 || (json_->ensure_ascii && c > 0x7E)) {
        write_unicode_escape(c);
      } else {
        out_ += text.substr(start, at - start);
      }
    }
    out_ += '"';
  }

  void write_unicode_escape(char32_t c) {
    if (c >= 0x10000) {
      write_unicode_escape(0xD800 + ((c - 0x10000) >> 10));
      c = 0xDC00 + ((c - 0x10000) & 0x3FF);
    }
    out_ += "\\u";
    append_hex(out_, c, 4);
  }

  void write_json_key(const Value& key) {
    if (key.is_string()) return write_json_string(key.text());
    if (!key.is_none() && !key.is_number()) {
      fail_type(
          "keys must be str, int, float, bool or None, not " +
          std::string(type_name(key))
      );
    }
    out_ += '"';
    write_json(key);
    out_ += '"';
  }

  void write_json_dict(const Dict& dict) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (json_->sort_keys) {
      std::stable_sort(
          entries.begin(), entries.end(), [](const auto* a, const auto* b) {
            return ordered("<", a->first, b->first);
          }
      );
    }
    open("{", entries.empty());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      separate(i);
      write_json_key(entries[i]->first);
      out_ += json_->key_separator;
      write(entries[i]->second);
    }
    close("}", entries.empty());
  }

  void write_json_list(const std::vector<Value>& items) {
    open("[", items.empty());
    for (std::size_t i = 0; i < items.size(); ++i) {
      separate(i);
      write(items[i]);
    }
    close("]", items.empty());
  }

  void open(const char* mark, bool empty) {
    out_ += mark;
    if (!empty) ++level_;
  }
  void separate(std::size_t index) {
    if (index > 0) out_ += json_->item_separator;
    new_line();
  }
  void close(const char* mark, bool empty) {
    if (!empty) {
      --level_;
      new_line();
    }
    out_ += mark;
  }
  void new_line() {
    if (!json_->multiline) return;
    out_ += '\n';
    Meter::allocate(json_->indent.size() * static_cast<std::size_t>(level_));
    for (int i = 0; i < level_; ++i) out_ += json_->indent;
  }

  const JsonStyle* json_;
  std::string out_;
  std::size_t charged_ = 0;
  int level_ = 0;
};

}  // namespace

std::string quote(std::string_view text) {
  const bool single = text.find('\'') != std::string_view::npos;
  const bool both = single && text.find('"') != std::string_view::npos;
  const char mark = single && !both ? '"' : '\'';
  std::string out(1, mark);
  for (std::size_t at = 0; at < text.size();) {
    append_escaped(out, next_code_point(text, at), mark);
  }
  return out += mark;
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(
      buffer, buffer + sizeof buffer, value, std::chars_format::scientific
  );
  std::string_view text(buffer, static_cast<std::size_t>(end.ptr - buffer));
  // Shortest digits that read back; Python's choice of where the point goes.
  std::string digits, out;
  if (text.front() == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const std::size_t e = text.find('e');
  for (const char c : text.substr(0, e)) {
    if (c != '.') digits += c;
  }
  const int exponent = std::stoi(std::string(text.substr(e + 1)));
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (count > 1) out += "." + digits.substr(1);
    const int size = std::abs(exponent);
    out += exponent < 0 ? "e-" : "e+";
    return out + (size < 10 ? "0" : "") + std::to_string(size);
  }
  if (exponent < 0) {
    const auto zeros = static_cast<std::size_t>(-exponent - 1);
    return out + "0." + std::string(zeros, '0') + digits;
  }
  if (count <= exponent + 1) {
    const auto zeros = static_cast<std::size_t>(exponent + 1 - count);
    return out + digits + std::string(zeros, '0') + ".0";
  }
  const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string str(const Value& value) {
  if (value.is_string()) {
    Meter::allocate(value.text().size());
    return value.text();
  }
  if (value.is_none()) return "None";
  if (value.is_bool()) return value.boolean() ? "True" : "False";
  if (value.is_int()) return std::to_string(value.integer());
  if (value.is_float()) return float_repr(value.number());
  if (value.is_undefined()) return "";
  return value.is_object() ? value.object().repr() : repr(value);
}

std::string repr(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  Writer writer(nullptr);
  writer.write(value);
  return writer.take();
}

std::string to_json(const Value& value, const JsonStyle& style) {
  Writer writer(&style);
  writer.write(value);
  return writer.take();
}

}  // namespace hearth::text::jinja
