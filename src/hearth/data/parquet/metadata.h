#pragma once
// What a Parquet file says about itself at its end: the tree of its columns and
// where their bytes are, one chunk for each column and group of rows.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::data::parquet {

// Numbers as the format has them.
enum class Physical {
  kBoolean = 0,
  kInt32 = 1,
  kInt64 = 2,
  kInt96 = 3,
  kFloat = 4,
  kDouble = 5,
  kBytes = 6,
  kFixedBytes = 7,
};
enum class Repetition { kRequired = 0, kOptional = 1, kRepeated = 2 };

// What a node's values mean, as far as JSON can say it.
enum class Meaning { kPlain, kUnsigned, kNumberOfAnotherKind, kList, kMap };

// A node of the tree of columns; a leaf has values.
struct Node {
  std::string name;
  Repetition repetition = Repetition::kRequired;
  Meaning meaning = Meaning::kPlain;
  Physical type = Physical::kBoolean;
  std::uint32_t width = 0;  // bytes of a value of kFixedBytes
  // The levels at which a value of this node is there.
  std::uint32_t definition = 0, repeated = 0;
  std::size_t first_leaf = 0, leaves = 0;  // below it, itself if it is one
  std::vector<Node> children;

  bool is_leaf() const { return children.empty(); }
};

struct ColumnChunk {
  std::int64_t codec = 0, values = 0;
  std::uint64_t begin = 0, bytes = 0;  // of all its pages
};

struct RowGroup {
  std::uint64_t rows = 0;
  std::vector<ColumnChunk> columns;  // one a leaf
};

struct Metadata {
  Node root;
  std::vector<Node> leaves;  // copies, without children
  std::vector<RowGroup> groups;
};

// From the bytes of the footer. Throws FormatError; file_bytes bounds every
// place that it names.
Metadata parse_metadata(std::string_view footer, std::uint64_t file_bytes);

}  // namespace hearth::data::parquet
