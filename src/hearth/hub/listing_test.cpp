// What a hub lists, and what is chosen of it.
#include "hearth/hub/listing.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/hub/selection.h"

namespace hearth::hub {
namespace {

const std::string kCommit(40, 'a'), kBlob(40, 'b'), kSha(64, 'c');

TEST(Listing, ARevisionHasACommitAndNames) {
  const Revision r = parse_revision(
      R"({"id":"a/b","sha":")" + kCommit +
          R"(","siblings":[{"rfilename":"config.json"},{"rfilename":"x/y"}]})",
      "it"
  );
  EXPECT_EQ(r.commit, kCommit);
  EXPECT_EQ(r.file_names.size(), 2u);
  for (const char* bad :
       {"", "[]", "{}", R"({"sha":5})", R"({"sha":"../../x"})",
        R"({"sha":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"})"}) {
    EXPECT_THROW(parse_revision(bad, "it"), FormatError) << bad;
  }
  EXPECT_THROW(
      parse_revision(
          R"({"sha":")" + kCommit + R"(","siblings":[{"rfilename":"../x"}]})",
          "it"
      ),
      FormatError
  );
}

TEST(Listing, ATreeHasSizesAndChecksums) {
  std::vector<RemoteFile> files;
  parse_tree(
      R"([{"type":"directory","path":"d","oid":"x","size":0},
          {"type":"file","path":"d/w","size":9,"oid":")" +
          kBlob + R"(","lfs":{"oid":"sha256:)" + kSha +
          R"(","size":10,"pointerSize":3}},
          {"type":"file","path":"c","size":4,"oid":")" +
          kBlob + R"("}])",
      "it", files
  );
  finish_listing(files);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].name, "c");
  EXPECT_EQ(files[0].oid, kBlob);
  EXPECT_EQ(files[1].oid, kSha);
  EXPECT_EQ(files[1].size, 10u);
  const auto one = [](const std::string& inner) {
    std::vector<RemoteFile> out;
    parse_tree(R"([{"type":"file",)" + inner + "}]", "it", out);
    return out;
  };
  EXPECT_FALSE(one(R"("path":"x")")[0].size);
  for (const char* bad :
       {R"("path":"../x")", R"("path":"/x")", R"("path":"a\\b")",
        R"("path":"a\u0000b")", R"("size":1)", R"("path":"x","size":-1)",
        R"("path":"x","size":1e30)", R"("path":"x","size":99999999999999999)",
        R"("path":"x","oid":"../y")", R"("path":"x","oid":7)",
        R"("path":"x","lfs":{"oid":"short"})", R"("path":"x","path":"y")"}) {
    EXPECT_THROW(one(bad), FormatError) << bad;
  }
}

TEST(Listing, ANameStandsOnceAndIsOneThing) {
  std::vector<RemoteFile> twice = {{"a", 1, kBlob}, {"a", 1, kBlob}};
  EXPECT_THROW(finish_listing(twice), FormatError);
  std::vector<RemoteFile> both = {
      {"a", 1, kBlob}, {"a.b", 1, kBlob}, {"a/b", 1, kBlob}
  };
  EXPECT_THROW(finish_listing(both), FormatError);
}

std::vector<std::string> chosen(
    const std::vector<std::string>& names,
    const Selection& selection = {}
) {
  std::vector<RemoteFile> files;
  for (const auto& name : names) files.push_back({name, 1, kBlob});
  std::vector<std::string> out;
  for (const auto& file : select_files(files, selection, "o/n")) {
    out.push_back(file.name);
  }
  return out;
}

using Names = std::vector<std::string>;

TEST(Selection, TakesWhatAModelNeedsAndItsWeightsOnce) {
  EXPECT_EQ(
      chosen(
          {"README.md", "config.json", "tokenizer.json", "chat_template.jinja",
           "additional_chat_templates/rag.jinja", "tokenizer.model",
           "merges.txt", "model.safetensors", "model.fp16.safetensors",
           "consolidated.safetensors", "pytorch_model.bin", "onnx/model.onnx",
           "onnx/config.json", "x.gguf"}
      ),
      (Names{
          "additional_chat_templates/rag.jinja", "chat_template.jinja",
          "config.json", "merges.txt", "model.safetensors", "tokenizer.json",
          "tokenizer.model"
      })
  );
  EXPECT_EQ(
      chosen({"adapter_config.json", "adapter_model.safetensors"}),
      (Names{"adapter_config.json", "adapter_model.safetensors"})
  );
  EXPECT_EQ(chosen({"README.md", "q4/x.gguf"}), Names{"q4/x.gguf"});
}

TEST(Selection, RefusesPicklesAndSeveralGgufs) {
  const auto why = [](const Names& names) -> std::string {
    try {
      chosen(names);
    } catch (const UsageError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(
      why({"config.json", "pytorch_model.bin"}).find("pickle"),
      std::string::npos
  );
  EXPECT_NE(why({"a.gguf", "b.gguf"}).find("2 GGUF"), std::string::npos);
  EXPECT_NE(why({"README.md"}).find("no weights"), std::string::npos);
}

TEST(Selection, GlobsAndNamesDecide) {
  const Names all = {"a.gguf", "b.gguf", "config.json", "d/e.bin"};
  EXPECT_EQ(chosen(all, {.include = {"b*"}}), Names{"b.gguf"});
  EXPECT_EQ(chosen(all, {.include = {"*.bin"}}), Names{"d/e.bin"});
  EXPECT_EQ(
      chosen(all, {.exclude = {"a.*"}}), (Names{"b.gguf", "config.json"})
  );
  EXPECT_EQ(chosen(all, {.exclude = {"d/*"}, .all = true}).size(), 3u);
  EXPECT_EQ(chosen(all, {.file = "a.gguf"}), Names{"a.gguf"});
  EXPECT_THROW(chosen(all, {.file = "c.gguf"}), UsageError);
  EXPECT_THROW(chosen(all, {.include = {"*.txt"}}), UsageError);
}

}  // namespace
}  // namespace hearth::hub
