#include "hearth/data/parquet/metadata.h"

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/data/parquet/thrift.h"

namespace hearth::data::parquet {
namespace {

using Type = ThriftReader::Type;
using Field = ThriftReader::Field;

constexpr std::size_t kMaxNodes = 4096;
constexpr std::size_t kMaxGroups = std::size_t{1} << 18;
constexpr int kMaxDepth = 24;

// One line of the schema, which lists the tree from its root down.
struct Element {
  Node node;
  std::size_t children = 0;
};

Meaning meaning_of(std::int64_t converted) {
  switch (converted) {
    case 1:  // MAP
    case 2:  // MAP_KEY_VALUE, of old writers
      return Meaning::kMap;
    case 3:
      return Meaning::kList;
    case 5:   // DECIMAL
    case 21:  // INTERVAL
      return Meaning::kNumberOfAnotherKind;
    case 11:
    case 12:
    case 13:
    case 14:
      return Meaning::kUnsigned;
    default:
      return Meaning::kPlain;
  }
}

Element read_element(ThriftReader& in) {
  Element e;
  for (Field f; in.next_field(f);) {
    if (f.is(1, Type::kI32)) {
      const auto type = in.integer();
      if (type < 0 || type > 7) throw FormatError("a column has no known type");
      e.node.type = static_cast<Physical>(type);
    } else if (f.is(2, Type::kI32)) {
      const auto width = in.integer();
      if (width < 0 || width > 1 << 20)
        throw FormatError("a value is too wide");
      e.node.width = static_cast<std::uint32_t>(width);
    } else if (f.is(3, Type::kI32)) {
      const auto kind = in.integer();
      if (kind < 0 || kind > 2) throw FormatError("a column repeats unknown");
      e.node.repetition = static_cast<Repetition>(kind);
    } else if (f.is(4, Type::kBinary)) {
      e.node.name = in.binary();
    } else if (f.is(5, Type::kI32)) {
      const auto count = in.integer();
      if (count < 0 || count > static_cast<std::int64_t>(kMaxNodes)) {
        throw FormatError("a group has too many columns");
      }
      e.children = static_cast<std::size_t>(count);
    } else if (f.is(6, Type::kI32)) {
      e.node.meaning = meaning_of(in.integer());
    } else {
      in.skip(f.type);
    }
  }
  return e;
}

// Puts the lines of a schema back into a tree, with the levels of its nodes.
class Tree {
 public:
  explicit Tree(std::vector<Element> elements)
      : elements_(std::move(elements)) {}

  Node root(std::vector<Node>& leaves) {
    Node node = take(leaves, 0, 0, 0);
    if (at_ != elements_.size() || node.is_leaf()) {
      throw FormatError("the tree of columns is broken");
    }
    return node;
  }

 private:
  std::vector<Element> elements_;
  std::size_t at_ = 0;

  Node take(
      std::vector<Node>& leaves,
      std::uint32_t definition,
      std::uint32_t repeated,
      int depth
  ) {
    if (at_ == elements_.size() || depth > kMaxDepth) {
      throw FormatError("the tree of columns is broken");
    }
    Element& e = elements_[at_++];
    Node node = std::move(e.node);
    if (depth > 0) {
      definition += node.repetition != Repetition::kRequired;
      repeated += node.repetition == Repetition::kRepeated;
    }
    node.definition = definition;
    node.repeated = repeated;
    node.first_leaf = leaves.size();
    const std::size_t children = e.children;
    for (std::size_t i = 0; i < children; ++i) {
      node.children.push_back(take(leaves, definition, repeated, depth + 1));
    }
    if (node.is_leaf()) {
      if (node.type == Physical::kFixedBytes && node.width == 0) {
        throw FormatError("a value has no width");
      }
      leaves.push_back(node);
    }
    node.leaves = leaves.size() - node.first_leaf;
    return node;
  }
};

ColumnChunk read_column_metadata(ThriftReader& in) {
  ColumnChunk c;
  std::int64_t data = -1, dictionary = -1, bytes = 0;
  for (Field f; in.next_field(f);) {
    if (f.is(4, Type::kI32)) {
      c.codec = in.integer();
    } else if (f.is(5, Type::kI64)) {
      c.values = in.integer();
    } else if (f.is(7, Type::kI64)) {
      bytes = in.integer();
    } else if (f.is(9, Type::kI64)) {
      data = in.integer();
    } else if (f.is(11, Type::kI64)) {
      dictionary = in.integer();
    } else {
      in.skip(f.type);
    }
  }
  // Some writers give a dictionary at 0 where there is none.
  const std::int64_t begin =
      dictionary > 0 && dictionary < data ? dictionary : data;
  if (begin < 0 || bytes < 0 || c.values < 0) {
    throw FormatError("a column's place is broken");
  }
  c.begin = static_cast<std::uint64_t>(begin);
  c.bytes = static_cast<std::uint64_t>(bytes);
  return c;
}

ColumnChunk read_chunk(ThriftReader& in) {
  ColumnChunk chunk;
  bool found = false;
  for (Field f; in.next_field(f);) {
    if (f.is(1, Type::kBinary)) {
      throw FormatError("its columns lie in other files, which is not read");
    }
    if (f.is(3, Type::kStruct)) {
      chunk = read_column_metadata(in);
      found = true;
    } else {
      in.skip(f.type);
    }
  }
  if (!found) throw FormatError("a column is encrypted, or has no place");
  return chunk;
}

RowGroup read_group(ThriftReader& in) {
  RowGroup group;
  std::int64_t rows = 0;
  for (Field f; in.next_field(f);) {
    if (f.is(1, Type::kList)) {
      Type item = Type::kStop;
      const std::size_t count = in.list(item);
      if (item != Type::kStruct) throw FormatError("a row group is broken");
      for (std::size_t i = 0; i < count; ++i) {
        group.columns.push_back(read_chunk(in));
      }
    } else if (f.is(3, Type::kI64)) {
      rows = in.integer();
    } else {
      in.skip(f.type);
    }
  }
  if (rows < 0) throw FormatError("a row group is broken");
  group.rows = static_cast<std::uint64_t>(rows);
  return group;
}

}  // namespace

Metadata parse_metadata(std::string_view footer, std::uint64_t file_bytes) {
  ThriftReader in(footer);
  Metadata m;
  std::vector<Element> elements;
  for (Field f; in.next_field(f);) {
    const bool list = f.type == Type::kList && (f.id == 2 || f.id == 4);
    if (!list) {
      in.skip(f.type);
      continue;
    }
    Type item = Type::kStop;
    const std::size_t count = in.list(item);
    if (item != Type::kStruct) throw FormatError("the footer is broken");
    for (std::size_t i = 0; i < count; ++i) {
      if (f.id == 4 && m.groups.size() == kMaxGroups) {
        throw FormatError("it has too many row groups");
      }
      if (f.id == 4) {
        m.groups.push_back(read_group(in));
      } else if (elements.size() == kMaxNodes) {
        throw FormatError("it has too many columns");
      } else {
        elements.push_back(read_element(in));
      }
    }
  }
  m.root = Tree(std::move(elements)).root(m.leaves);
  for (const auto& group : m.groups) {
    const bool whole =
        group.columns.size() == m.leaves.size() &&
        std::all_of(
            group.columns.begin(), group.columns.end(),
            [&](const ColumnChunk& c) {
              return c.begin <= file_bytes && c.bytes <= file_bytes - c.begin;
            }
        );
    if (!whole) throw FormatError("a row group's columns are not in the file");
  }
  return m;
}

}  // namespace hearth::data::parquet
