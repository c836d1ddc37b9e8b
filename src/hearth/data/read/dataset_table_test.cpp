#include "hearth/data/read/dataset_table.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/data/read/dataset_array.h"
#include "hearth/data/read/dataset_reader.h"
#include "hearth/data/read/dataset_record.h"
#include "hearth/data/read/dataset_test_impl.h"

namespace hearth::data {
namespace {

using testing::TempFolder;

struct Got {
  std::string text;
  std::uint64_t line;
  ReadPosition next;
  std::string problem;
};

std::vector<Got> read(
    const std::string& path,
    const ReadSettings& settings = {},
    ReadPosition from = {}
) {
  RecordReader reader(find_sources({path})[0].files[0], settings, from);
  std::vector<Got> out;
  RawChunk chunk;
  while (reader.next(chunk)) {
    for (const auto& r : chunk.records) {
      out.push_back(
          {chunk.bytes.substr(r.begin, r.end - r.begin), r.line, r.next,
           r.problem}
      );
    }
  }
  return out;
}

std::string utf16(std::string_view text, bool big) {
  std::string out = big ? "\xFE\xFF" : "\xFF\xFE";
  const auto unit = [&](unsigned code) {
    const auto high = static_cast<char>(code >> 8);
    const auto low = static_cast<char>(code & 0xFF);
    out += big ? high : low;
    out += big ? low : high;
  };
  for (const char c : text) {
    if (c == '*') {  // an emoji, as two halves
      unit(0xD83D), unit(0xDE00);
    } else {
      unit(static_cast<unsigned char>(c));
    }
  }
  return out;
}

TEST(Table, RowsBecomeRecords) {
  TempFolder t;
  const std::string text =
      "\xEF\xBB\xBFquestion,answer\r\n"
      "\"Who, and \"\"why, then\"\"?\",Ann\r\n"
      "\r\n"
      "\"two\nlines\",\"\"\n"
      "only one\n"
      "5\" tape,a\tb";
  const auto rows = read(t.write("a.csv", text));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(
      rows[0].text, R"({"question":"Who, and \"why, then\"?","answer":"Ann"})"
  );
  EXPECT_EQ(rows[0].line, 2u);
  EXPECT_EQ(rows[1].text, R"({"question":"two\nlines","answer":""})");
  EXPECT_EQ(rows[1].line, 4u);
  EXPECT_EQ(
      rows[2].problem,
      "a row must have 2 fields, as the first row has, it has 1"
  );
  EXPECT_EQ(rows[2].line, 6u);
  EXPECT_EQ(rows[3].text, R"({"question":"5\" tape","answer":"a\u0009b"})");
}

TEST(Table, SeparatorsAreFound) {
  TempFolder t;
  const std::pair<const char*, const char*> cases[] = {
      {"a.csv", "x;y\n1,5;2\n"},     {"b.tsv", "x\ty\n1,5\t2\n"},
      {"c.csv", "x\ty\n1,5\t2\n"},   {"d.csv", "x|y\n1,5|2\n"},
      {"e.csv", "x,y\n\"1,5\",2\n"},
  };
  for (const auto& [name, text] : cases) {
    const auto rows = read(t.write(name, text));
    ASSERT_EQ(rows.size(), 1u) << name;
    EXPECT_EQ(rows[0].text, R"({"x":"1,5","y":"2"})") << name;
  }
}

TEST(Table, GoesOnAfterAnyRow) {
  TempFolder t;
  std::string text = "text,id\n";
  for (int i = 0; i < 40'000; ++i) {
    text += "\"row\n" + std::to_string(i) + "\"," + std::to_string(i) + "\n";
  }
  const auto all = read(t.write("a.csv", text));
  ASSERT_EQ(all.size(), 40'000u);
  EXPECT_EQ(all[39'999].text, R"({"text":"row\n39999","id":"39999"})");
  for (std::size_t i = 0; i < all.size(); i += 9973) {
    const auto rest = read(t / "a.csv", {}, all[i].next);
    ASSERT_EQ(rest.size(), all.size() - i - 1);
    EXPECT_EQ(rest[0].text, all[i + 1].text);
    EXPECT_EQ(rest[0].line, all[i + 1].line);
  }
}

TEST(Table, AQuoteThatIsLeftOpenIsTold) {
  TempFolder t;
  ReadSettings settings;
  settings.max_line_bytes = 1000;
  const std::string text = "a,b\n\"open,2\n" + std::string(600'000, '\n');
  try {
    read(t.write("a.csv", text), settings);
    FAIL();
  } catch (const FormatError& e) {
    EXPECT_NE(
        std::string(e.what()).find(":2: a row is too long: is a quote left"),
        std::string::npos
    ) << e.what();
  }
}

TEST(Utf16, IsReadAsUtf8InEveryFormat) {
  TempFolder t;
  for (const bool big : {false, true}) {
    const auto rows = read(t.write("a.csv", utf16("t,u\nx*,2\n", big)));
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].text, "{\"t\":\"x\U0001F600\",\"u\":\"2\"}");
    EXPECT_EQ(
        read(t.write("a.txt", utf16("hi*", big)))[0].text, "hi\U0001F600"
    );
  }
  // Longer than any buffer, and cut inside of a pair.
  std::string lines, expected;
  for (int i = 0; i < 30'000; ++i) lines += "line " + std::to_string(i) + "*\n";
  std::string bytes = utf16(lines + "*", false);
  bytes.resize(bytes.size() - 2);
  const auto all = read(t.write("b.jsonl", bytes));
  ASSERT_EQ(all.size(), 30'001u);
  EXPECT_EQ(all[29'999].text, "line 29999\U0001F600");
  EXPECT_EQ(all[30'000].text, "\uFFFD");
  const auto rest = read(t / "b.jsonl", {}, all[20'000].next);
  ASSERT_EQ(rest.size(), 10'000u);
  EXPECT_EQ(rest[0].text, all[20'001].text);
}

TEST(ListOfRecords, IsFoundAloneOrAsAMember) {
  const auto at = [](std::string_view text) {
    const auto found = list_of_records(text, {});
    return found ? static_cast<int>(*found) : -1;
  };
  EXPECT_EQ(at(" [{}]"), 1);
  EXPECT_EQ(at("\xEF\xBB\xBF\n["), 4);
  EXPECT_EQ(at(R"({"data": [{"text": "a"}]})"), 9);
  EXPECT_EQ(at(R"({"version": "1.1", "n": 3, "data":[)"), -1);
  EXPECT_EQ(at(R"({"version": "1.1", "n": 3, "data":[{)"), 34);
  EXPECT_EQ(at(R"({"data": ["a"]})"), -1);
  EXPECT_EQ(at(R"({"messages": [{"role": "user"}]})"), -1);
  EXPECT_EQ(at(R"({"meta": {"data": [{}]}})"), -1);
  EXPECT_EQ(at(R"({"text": "a"})"), -1);
  RecordFields fields;
  fields.messages = "data";
  EXPECT_FALSE(list_of_records(R"({"data": [{"role": "user"}]})", fields));
}

TEST(ListOfRecords, OfAMemberIsItsItems) {
  TempFolder t;
  const auto file = t.write(
      "a.json",
      "{\"version\": 2,\n \"data\": [\n  {\"text\": \"a\"},\n"
      "  {\"text\": \"b\"}\n ], \"by\": \"us\"}\n"
  );
  const auto all = read(file);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].text, "{\"text\": \"b\"}");
  EXPECT_EQ(all[1].line, 4u);
  const auto rest = read(file, {}, all[0].next);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].text, all[1].text);
  const auto wrong = [&](const std::string& text) -> std::string {
    try {
      read(t.write("b.json", text));
    } catch (const FormatError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(
      wrong(R"({"train": [{"a": 1}], "test": [{"b": 1}]})")
          .find("one list of records is read, and \"test\" holds more"),
      std::string::npos
  );
  EXPECT_NE(
      wrong(R"({"data": [{"a": 1}]} {"data": []})").find("nothing but members"),
      std::string::npos
  );
  EXPECT_NE(
      wrong(R"({"data": [{"a": 1}] )").find("the object does not end"),
      std::string::npos
  );
}

TEST(Texts, ThatAreNoneAreRefused) {
  const ReadSettings settings;
  RecordParser parser(settings);
  Record record;
  const auto refused = [&](const std::string& text) {
    try {
      parser.parse(text, FileFormat::kText, record);
    } catch (const FormatError& e) {
      return std::string(e.what()).find("no text in UTF-8") !=
             std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refused(std::string("\x89PNG\0\0\0\rIHDR", 13)));
  EXPECT_TRUE(refused("\xcf\xf0\xe8\xe2\xe5\xf2"));
  EXPECT_FALSE(refused("d\xe9j\xe0 vu, and a long line of plain words"));
  EXPECT_FALSE(refused("tabs\tand\r\nlines\f"));
}

TEST(FileSplits, FollowNamesOfFilesAndFolders) {
  const std::pair<const char*, FileSplit> cases[] = {
      {"train.jsonl", FileSplit::kTrain},
      {"a/Validation.csv.gz", FileSplit::kValid},
      {"data/test-00000-of-00002.jsonl", FileSplit::kTest},
      {"dev/part1.jsonl", FileSplit::kValid},
      {"gsm8k-train.jsonl", FileSplit::kNone},
      {"contest.jsonl", FileSplit::kNone},
  };
  for (const auto& [path, split] : cases) {
    EXPECT_EQ(split_of_file(path), split) << path;
  }
}

TEST(FileSplits, OfAFolderAreKeptApart) {
  TempFolder t;
  for (const char* name :
       {"test/train.jsonl", "test/valid.jsonl", "test/test.jsonl",
        "test/more.csv", "test/README.md", "test/a.png", "test/.gitignore"}) {
    t.write(name, "x");
  }
  const auto sources = find_sources({t / "test"});
  ASSERT_EQ(sources.size(), 2u);
  ASSERT_EQ(sources[0].files.size(), 2u);
  EXPECT_TRUE(sources[0].files[0].path.ends_with("more.csv"));
  EXPECT_TRUE(sources[0].files[1].path.ends_with("train.jsonl"));
  EXPECT_TRUE(sources[1].held_out);
  ASSERT_EQ(sources[1].files.size(), 1u);
  const auto remarks = remarks_of(sources);
  ASSERT_EQ(remarks.size(), 3u);
  EXPECT_NE(remarks[0].find("a.png and "), std::string::npos);
  EXPECT_NE(remarks[0].find("README.md are not read"), std::string::npos);
  EXPECT_NE(
      remarks[1].find("test.jsonl is not read: a test set"), std::string::npos
  );
  EXPECT_NE(remarks[2].find("valid.jsonl is held out"), std::string::npos);
  // Without a file called train, names say nothing.
  t.write("b/test.jsonl", "x");
  t.write("b/other.jsonl", "x");
  EXPECT_EQ(find_sources({t / "b"})[0].files.size(), 2u);
}

TEST(DataFiles, OfAnotherKindSayTheirCure) {
  TempFolder t;
  try {
    find_sources({t.write("a.jsonl.xz", "x")});
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("must be .jsonl"), std::string::npos);
    EXPECT_NE(e.hint().find("xz -dk"), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::data
