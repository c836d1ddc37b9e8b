#pragma once
// How deep schemas are merged: two that refer to themselves never end.
#include <string>

#include "hearth/text/grammar/schema_impl.h"

namespace hearth::text::grammar {

class SchemaReader::Deeper {
 public:
  Deeper(SchemaReader& reader, const std::string& path) : reader_(reader) {
    if (reader.merge_depth_ >= kMost) {
      fail_schema(
          "references and parts that are merged must nest at most 64 deep", path
      );
    }
    ++reader.merge_depth_;
  }
  ~Deeper() { --reader_.merge_depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  static constexpr int kMost = 64;
  SchemaReader& reader_;
};

}  // namespace hearth::text::grammar
