#include "hearth/base/shell_word.h"

#include <cstdio>

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(ShellWord, WhatIsOneWordStaysAsItIs) {
  for (const char* word : {"runs/a", "hf:a/b@c", "lr=1e-3,n=2", "é"}) {
    EXPECT_EQ(shell_word(word), word);
  }
}

TEST(ShellWord, AShellReadsTheRestBack) {
  for (const std::string word :
       {"", "sp é/ru n", "it's", "a$HOME`ls`", "a\nb", "*", "\"q\" \\ ;&|"}) {
    const std::string command = "printf %s " + shell_word(word);
    FILE* shell = popen(command.c_str(), "r");
    ASSERT_NE(shell, nullptr);
    std::string read;
    for (int c = fgetc(shell); c != EOF; c = fgetc(shell)) {
      read += static_cast<char>(c);
    }
    pclose(shell);
    EXPECT_EQ(read, word);
  }
}

}  // namespace
}  // namespace hearth
