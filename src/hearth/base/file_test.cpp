// Files: mapped, read, written whole or not at all, and named while unfinished.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <signal.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/mapped_file.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/base/temporary_name.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  std::string at(const char* name) const { return (folder / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator())
    );
  }
  const TempFolder temp;
  const fs::path folder = temp.path();
};

TEST_F(Files, MapsWhatIsThere) {
  write_file_atomically(at("a"), "hello");
  const MappedFile file(at("a"));
  EXPECT_EQ(file.text(), "hello");
  file.advise(MappedFile::Access::kSequential, 2, 1000);
  write_file_atomically(at("empty"), "");
  EXPECT_EQ(MappedFile(at("empty")).size(), 0u);
}

TEST_F(Files, ErrorsNameTheFile) {
  try {
    const MappedFile file(at("missing"));
    FAIL();
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("missing"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("No such file"), std::string::npos);
  }
  EXPECT_THROW(MappedFile{folder.string()}, IoError);
  EXPECT_THROW(read_text_file(at("missing")), IoError);
}

TEST_F(Files, APipeIsNotWaitedAt) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_THROW(MappedFile{at("pipe")}, IoError);
}

TEST_F(Files, AFileTooLargeIsRefused) {
  write_file_atomically(at("a"), std::string(1000, 'x'));
  EXPECT_THROW(read_text_file(at("a"), 999), FormatError);
  EXPECT_EQ(read_text_file(at("a"), 1000).size(), 1000u);
}

TEST_F(Files, AnUncommittedVersionLeavesNoTrace) {
  write_file_atomically(at("a"), "old");
  {
    AtomicFile file(at("a"));
    file.write("half of the ne");
    EXPECT_EQ(entries(), 2u);
  }
  EXPECT_EQ(read_text_file(at("a")), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, WhatAKilledWriterLeftIsKnownByItsName) {
  EXPECT_TRUE(is_temporary_name("a.json.tmp-12-0"));
  EXPECT_TRUE(is_temporary_name("a.json.tmp-0123456789abcdef"));
  EXPECT_TRUE(is_temporary_name(temporary_name("a.json")));
  for (const char* other :
       {"a.json", "a.tmp", "a.tmp-", "a.tmp-12", "a.tmp-12-", "a.tmp--3",
        "a.tmp-1-2-3", "a.tmp-1-x", ".tmp-1-2", "a.tmp-0123456789abcde",
        "a.tmp-0123456789abcdeg"}) {
    EXPECT_FALSE(is_temporary_name(other)) << other;
  }
  write_file_atomically(at("a"), "whole");
  write_file_atomically(at("a.tmp-12-0"), "ha");
  remove_unfinished(at(""));
  EXPECT_EQ(entries(), 1u);
  remove_unfinished(at("none"));
}

// Two containers on one folder may both be process 1, with every count alike.
TEST_F(Files, ProcessesThatAreAlikeWriteUnderTheirOwnNames) {
  const pid_t child = fork();
  if (child == 0) {
    write_file_atomically(at("name"), temporary_name("a"));
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_NE(temporary_name("a"), read_text_file(at("name")));
}

TEST_F(Files, AFileThatIsBeingWrittenIsKnownByItsLock) {
  std::string name;
  {
    const FileHandle file = create_temporary(at("a"));
    name = file.path();
    EXPECT_TRUE(is_being_written(name));
  }
  EXPECT_FALSE(is_being_written(name));
}

// A writer that is killed at any moment leaves the old or the new version.
TEST_F(Files, AKilledWriterNeverLeavesAMixture) {
  const std::string old_text(1 << 20, 'o'), new_text(1 << 20, 'n');
  int replaced = 0;
  for (int i = 0; i < 20; ++i) {
    write_file_atomically(at("a"), old_text);
    const pid_t child = fork();
    if (child == 0) {
      while (true) write_file_atomically(at("a"), new_text);
    }
    usleep(static_cast<useconds_t>(1000 + 700 * i));
    // However slow the machine, the last writer gets to replace it once.
    const bool last = i == 19;
    for (int wait = 0; last && wait < 1000; ++wait) {
      if (read_text_file(at("a")) == new_text) break;
      usleep(10000);
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::string text = read_text_file(at("a"));
    ASSERT_TRUE(text == old_text || text == new_text);
    replaced += text == new_text ? 1 : 0;
  }
  EXPECT_GT(replaced, 0);
}

// A limit on the file size stands for a full disk: the write fails, the old
// version stays and nothing else is left.
TEST_F(Files, AFullDiskKeepsTheOldVersion) {
  write_file_atomically(at("a"), "old");
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file_atomically(at("a"), std::string(1 << 20, 'n'));
    } catch (const IoError&) {
      _exit(7);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_text_file(at("a")), "old");
  EXPECT_EQ(entries(), 1u);
}

}  // namespace
}  // namespace hearth
