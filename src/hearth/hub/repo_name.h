#pragma once
// What a user calls a model of a hub, ORG/NAME[/FILE][@REV], and the names a
// hub calls its files. All of them become parts of paths below the cache
// folder, so each is checked here before anything is made of it.
#include <string>
#include <string_view>

namespace hearth::hub {

struct RepoName {
  std::string org, name;
  std::string file;  // one file of the model, such as a .gguf; often empty
  std::string revision = "main";

  std::string id() const { return org + "/" + name; }
  // The name as it is typed: ORG/NAME, with @REV where it is not main.
  std::string text() const;
  // The folder's name in the cache that Hugging Face's tools share:
  // models--ORG--NAME.
  std::string folder() const { return "models--" + org + "--" + name; }
};

// Throws UsageError that says what such a name looks like.
RepoName parse_repo_name(std::string_view text);

// "hf:" before a name: a model of the hub rather than a path.
bool is_hub_reference(std::string_view text);
// Reads a name that begins with "hf:".
RepoName parse_hub_reference(std::string_view text);

// 40 lower-case hexadecimal digits: a commit, and the name of a git blob.
bool is_commit(std::string_view text);
// 64 of them.
bool is_sha256(std::string_view text);

// A file's name as the hub lists it: relative, with plain components, so that
// it stays below the folder it is joined to. Throws FormatError.
void check_file_name(std::string_view name);

}  // namespace hearth::hub
