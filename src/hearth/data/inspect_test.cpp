#include "hearth/data/inspect.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "hearth/data/read/dataset_test_impl.h"

namespace hearth::data {
namespace {

using testing::TempFolder;

class InspectTest : public ::testing::Test {
 protected:
  Inspection inspect(const ExampleEncoder* encoder, std::string_view jsonl) {
    sources_ = find_sources({t_.write("a.jsonl", jsonl)});
    PrepareOptions options;
    options.folder = t_ / "c";
    options.force = true;
    prepare_cache(sources_, {}, testing::byte_encoder(), options);
    LoaderConfig loader;
    loader.shapes = {{64, 1}};
    loader.tokens_per_batch = 256;
    loader.overlong = Overlong::kTruncate;
    return inspect_cache(
        std::make_shared<TokenCache>(t_ / "c"), encoder, loader, {}
    );
  }
  TempFolder t_;
  std::vector<DataSource> sources_;
};

constexpr std::string_view kChat =
    R"({"messages":[{"role":"user","content":"<script>alert('x')</script>"},)"
    R"({"role":"assistant","content":"a & \"b\"\u001b[31m"}]})"
    "\n";

TEST_F(InspectTest, ShowsMasksAndBatches) {
  const auto encoder = testing::byte_encoder();
  const auto in = inspect(&encoder, kChat);
  ASSERT_EQ(in.documents.size(), 1u);
  std::string trained, all;
  for (const auto& t : in.documents[0].shown) {
    all += t.text;
    if (t.trained) trained += t.text;
  }
  EXPECT_EQ(trained, "a & \"b\"\x1b[31m");
  EXPECT_EQ(all, "<user><script>alert('x')</script><assistant>" + trained);
  EXPECT_TRUE(in.drift.empty());
  ASSERT_EQ(in.batches.size(), 1u);
  ASSERT_EQ(in.batches[0].map.size(), 4u);
  // 56 bytes in a row of 64: 43 inputs before the first trained target.
  const std::string row =
      std::string(43, 'a') + std::string(12, 'A') + std::string(9, '.');
  const auto& map = in.batches[0].map;
  EXPECT_EQ(std::count(map.begin(), map.end(), row), 1);
  EXPECT_EQ(std::count(map.begin(), map.end(), std::string(64, '.')), 3);
  EXPECT_EQ(in.packing.tokens, 55u);
  EXPECT_DOUBLE_EQ(in.packing.efficiency(), 55.0 / 256);
}

TEST_F(InspectTest, NothingFromTheDataGetsOutOfItsPlace) {
  const auto encoder = testing::byte_encoder();
  const auto in = inspect(&encoder, kChat);
  const std::string html = inspection_to_html(in);
  // A byte a token: no tag of the data may be there, whole or in pieces.
  std::string visible;
  bool tag = false;
  for (const char c : html.substr(html.find("<pre class=d>"))) {
    if (c == '<') tag = true;
    if (!tag) visible += c;
    if (c == '>') tag = false;
  }
  EXPECT_NE(
      visible.find("&lt;script&gt;alert(&#39;x&#39;)"), std::string::npos
  );
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find('\x1b'), std::string::npos);
  EXPECT_EQ(html.find("http"), std::string::npos) << "nothing is fetched";
  const std::string text = inspection_to_text(in, false);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("«a & \"b\"\\x1b[31m»"), std::string::npos);
  const std::string color = inspection_to_text(in, true);
  EXPECT_EQ(color.find("\x1b[31m"), std::string::npos);
}

TEST_F(InspectTest, DriftIsFound) {
  const ExampleEncoder other(
      std::make_shared<testing::ByteEncoder>(),
      std::make_shared<testing::BracketRenderer>(2), {}
  );
  const auto in = inspect(&other, kChat);
  ASSERT_EQ(in.drift.size(), 1u);
  EXPECT_NE(in.drift[0].find("chat template"), std::string::npos);
  EXPECT_EQ(inspect(nullptr, kChat).drift.size(), 1u);
}

// Loses capitals, as a lower-casing tokenizer does.
class LossyEncoder : public testing::ByteEncoder {
 public:
  void encode(
      std::string_view text,
      std::vector<std::int32_t>& out
  ) const override {
    for (unsigned char c : text) out.push_back(std::tolower(c) + 3);
  }
};

TEST_F(InspectTest, RoundTrip) {
  inspect(nullptr, "{\"text\": \"Abc\"}\n{\"text\": \"abc\"}\n");
  EXPECT_TRUE(check_round_trip(sources_, {}, testing::byte_encoder()).empty());
  const ExampleEncoder lossy(std::make_shared<LossyEncoder>(), nullptr, {});
  const auto lines = check_round_trip(sources_, {}, lossy);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("1 of 2 texts"), std::string::npos);
  EXPECT_NE(lines[0].find("a.jsonl:1"), std::string::npos);
}

}  // namespace
}  // namespace hearth::data
