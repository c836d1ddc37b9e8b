#include "hearth/data/parquet/rows.h"

#include <cmath>
#include <cstring>
#include <filesystem>

#include <fcntl.h>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/read/json_string.h"

namespace hearth::data::parquet {
namespace {

constexpr std::size_t kMagic = 4;
constexpr std::size_t kMaxFooter = std::size_t{64} << 20;
constexpr std::size_t kMaxRow = std::size_t{64} << 20;

std::string read_bytes(
    const FileHandle& file,
    std::uint64_t at,
    std::size_t size
) {
  std::string bytes(size, 0);
  const auto got = file.read_at(std::as_writable_bytes(std::span(bytes)), at);
  if (got != size) throw FormatError("the file is cut short");
  return bytes;
}

template <class T>
T number(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <class T>
void append_real(T value, std::string& out) {
  // JSON has no word for what is no number.
  out += std::isfinite(value) ? fmt::format("{}", value) : "null";
}

// Whether a node of a list only repeats and its child is the item; old writers
// let the item itself repeat.
bool only_repeats(const Node& node) {
  return node.children.size() == 1 && node.name != "array" &&
         !node.name.ends_with("_tuple");
}

}  // namespace

void append_value(const Node& leaf, std::string_view bytes, std::string& out) {
  const bool plain = leaf.meaning != Meaning::kNumberOfAnotherKind;
  const bool counted = leaf.meaning == Meaning::kUnsigned;
  if (plain && leaf.type == Physical::kBoolean) {
    out += bytes[0] != 0 ? "true" : "false";
  } else if (plain && leaf.type == Physical::kInt32) {
    out += counted ? fmt::format("{}", number<std::uint32_t>(bytes))
                   : fmt::format("{}", number<std::int32_t>(bytes));
  } else if (plain && leaf.type == Physical::kInt64) {
    out += counted ? fmt::format("{}", number<std::uint64_t>(bytes))
                   : fmt::format("{}", number<std::int64_t>(bytes));
  } else if (leaf.type == Physical::kFloat) {
    append_real(number<float>(bytes), out);
  } else if (leaf.type == Physical::kDouble) {
    append_real(number<double>(bytes), out);
  } else if (plain && leaf.type == Physical::kBytes) {
    append_json_string(out, bytes);
  } else {
    out += "null";
  }
}

Rows::Rows(const std::string& path, std::uint64_t row)
    : file_(FileHandle::open(path, O_RDONLY | O_CLOEXEC, "read")) {
  try {
    read_footer();
    // Whole groups are stepped over, then rows.
    while (group_ < meta_.groups.size() &&
           row_ + meta_.groups[group_].rows <= row) {
      row_ += meta_.groups[group_++].rows;
    }
    std::string none;
    while (row_ < row && next_here(none)) none.clear();
  } catch (const FormatError& e) {
    throw FormatError::at(path, 0, e.what());
  }
}

void Rows::read_footer() {
  const std::uint64_t size = std::filesystem::file_size(file_.path());
  if (size < 3 * kMagic) throw FormatError("the file is cut short");
  const std::string end = read_bytes(file_, size - 2 * kMagic, 2 * kMagic);
  if (!end.ends_with("PAR1")) {
    throw FormatError(
        end.ends_with("PARE") ? "it is encrypted" : "it is no Parquet file"
    );
  }
  const std::size_t footer = number<std::uint32_t>(end);
  if (footer > kMaxFooter || footer > size - 3 * kMagic) {
    throw FormatError("its footer is not in the file");
  }
  meta_ = parse_metadata(
      read_bytes(file_, size - 2 * kMagic - footer, footer), size
  );
}

bool Rows::open_group() {
  columns_.clear();
  if (group_ == meta_.groups.size()) return false;
  const RowGroup& group = meta_.groups[group_++];
  left_ = group.rows;
  for (std::size_t i = 0; i < meta_.leaves.size(); ++i) {
    columns_.push_back(
        std::make_unique<ColumnReader>(file_, meta_.leaves[i], group.columns[i])
    );
  }
  return true;
}

bool Rows::next(std::string& out) {
  try {
    return next_here(out);
  } catch (const FormatError& e) {
    throw FormatError::at(file_.path(), static_cast<long>(row_ + 1), e.what());
  }
}

bool Rows::next_here(std::string& out) {
  while (left_ == 0) {
    if (!open_group()) return false;
  }
  for (const auto& column : columns_) {
    if (column->at_end() || column->repeated() != 0) {
      throw FormatError("its columns are of different lengths");
    }
  }
  write_group(meta_.root, out);
  --left_;
  ++row_;
  return true;
}

std::uint64_t Rows::stored_position() const {
  if (group_ == 0 || meta_.groups[group_ - 1].columns.empty()) return 0;
  return meta_.groups[group_ - 1].columns[0].begin;
}

// Every leaf has an entry where something above it is missing.
void Rows::pass(const Node& node) {
  for (std::size_t i = 0; i < node.leaves; ++i) {
    columns_[node.first_leaf + i]->advance();
  }
}

void Rows::write(const Node& node, std::string& out) {
  const auto& first = *columns_[node.first_leaf];
  if (first.at_end()) throw FormatError("a row is cut short");
  if (out.size() > kMaxRow) throw FormatError("a row is too long");
  const bool there = first.definition() >= node.definition;
  if (node.repetition == Repetition::kRepeated) {
    out += '[';
    if (there) {
      write_some(node, out);
      while (!first.at_end() && first.repeated() == node.repeated) {
        out += ',';
        write_some(node, out);
      }
    } else {
      pass(node);
    }
    out += ']';
  } else if (there) {
    write_some(node, out);
  } else {
    out += "null";
    pass(node);
  }
}

// What is there: of a node that repeats, one of them.
void Rows::write_some(const Node& node, std::string& out) {
  if (node.is_leaf()) {
    ColumnReader& column = *columns_[node.first_leaf];
    if (!column.has_value()) throw FormatError("a page's levels are broken");
    append_value(node, column.value(), out);
    column.advance();
    return;
  }
  const bool one = node.children.size() == 1 &&
                   node.children[0].repetition == Repetition::kRepeated;
  if (node.meaning == Meaning::kMap && one &&
      node.children[0].children.size() == 2) {
    return write_pairs(node.children[0], out);
  }
  if (node.meaning != Meaning::kList || !one) return write_group(node, out);
  const Node& repeated = node.children[0];
  if (!only_repeats(repeated)) return write(repeated, out);
  const Node& item = repeated.children[0];
  const auto& first = *columns_[node.first_leaf];
  out += '[';
  if (first.definition() < repeated.definition) {
    pass(repeated);
  } else {
    write(item, out);
    while (!first.at_end() && first.repeated() == repeated.repeated) {
      out += ',';
      write(item, out);
    }
  }
  out += ']';
}

void Rows::write_group(const Node& node, std::string& out) {
  out += '{';
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) out += ',';
    append_json_string(out, node.children[i].name);
    out += ':';
    write(node.children[i], out);
  }
  out += '}';
}

// A map's keys and values, as the members of an object where keys are texts.
void Rows::write_pairs(const Node& pairs, std::string& out) {
  const Node& key = pairs.children[0];
  const auto& first = *columns_[pairs.first_leaf];
  if (!key.is_leaf() || key.type != Physical::kBytes ||
      key.repetition != Repetition::kRequired) {
    return write(pairs, out);
  }
  out += '{';
  if (first.definition() < pairs.definition) {
    pass(pairs);
  } else {
    for (bool more = true; more;) {
      write(key, out);
      out += ':';
      write(pairs.children[1], out);
      more = !first.at_end() && first.repeated() == pairs.repeated;
      if (more) out += ',';
    }
  }
  out += '}';
}

}  // namespace hearth::data::parquet
