#pragma once
// What `data prepare` counted: the numbers a person checks before training.
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::data {

struct BadLine {
  std::string file;
  std::uint64_t line = 0;
  std::string what;
};

struct CacheReport {
  static constexpr std::size_t kKeptBadLines = 20;
  static constexpr std::size_t kBuckets = 32;
  static constexpr std::size_t kKeptNames = 64;

  std::uint64_t records = 0;    // read and kept
  std::uint64_t documents = 0;  // two for a preference
  std::uint64_t valid_documents = 0;
  std::uint64_t tokens = 0, trained_tokens = 0;
  std::uint64_t valid_tokens = 0;
  std::uint64_t bytes = 0;  // of the records, decompressed
  std::uint64_t bad_lines = 0;
  std::uint64_t replaced_characters = 0;  // invalid UTF-8, now U+FFFD
  std::uint64_t truncated = 0, empty = 0, untrained = 0;
  std::uint64_t duplicates = 0;  // documents beyond the first of their content
  std::uint64_t empty_prompts = 0;  // records
  std::uint64_t unread_tools = 0;   // documents whose template reads no tools
  std::uint64_t longest = 0;
  // Documents of length 2^(i-1) < n <= 2^i tokens.
  std::array<std::uint64_t, kBuckets> lengths{};
  std::vector<BadLine> first_bad_lines;
  // Records by the form they were recognised as (RecordShape::line), and by
  // each field that holds something and is not used.
  std::map<std::string, std::uint64_t> forms, unused;

  void count_length(std::uint64_t tokens);
  void add_bad_line(BadLine line);
  void add_unused(const std::string& field);
  // A line for each thing that a person should know before the first step:
  // what forms were recognised, what is not used.
  struct Remark {
    std::string text;
    bool loss = false;  // something of the data is lost that may matter
  };
  std::vector<Remark> remarks() const;
  Json to_json() const;
  static CacheReport from_json(const Json& json);
  // Several lines for people.
  std::string to_text() const;
};

}  // namespace hearth::data
