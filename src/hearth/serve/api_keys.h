#pragma once
// The keys that open the server. Kept and compared so that neither time nor
// logs tell anything about them.
#include <string>
#include <string_view>
#include <vector>

namespace hearth::serve {

class ApiKeys {
 public:
  // Keys in files, one a line; empty lines and lines after # are passed over.
  // Throws UsageError for a file without keys, or a key that is too short or
  // could not stand in a header; IoError when one cannot be read. No message
  // holds a key.
  static ApiKeys load(const std::vector<std::string>& files);

  void add(std::string key);
  bool empty() const { return keys_.empty(); }
  std::size_t size() const { return keys_.size(); }

  // Takes the same time whatever is right in it: as long as all keys of the
  // same length need.
  bool accepts(std::string_view key) const;
  // "Bearer KEY", as an Authorization header has it.
  bool accepts_header(std::string_view value) const;
  // The key of such a header that was accepted.
  static std::string_view key_in_header(std::string_view value);

 private:
  std::vector<std::string> keys_;
};

// Whether two texts are the same; looks at every byte of both.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace hearth::serve
