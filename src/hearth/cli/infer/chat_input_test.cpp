#include "hearth/cli/infer/chat_input.h"

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <pthread.h>

namespace hearth::cli {
namespace {

// As text does that a terminal has no room for yet.
TEST(CtrlC, WhatIsBeingWrittenArrives) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  const std::string text(4096, 'x');
  while (write(ends[1], text.data(), text.size()) > 0) {
  }
  ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);
  const CtrlC noted;
  std::thread other([&, writer = pthread_self()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    pthread_kill(writer, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::string all(1 << 20, ' ');
    EXPECT_GT(read(ends[0], all.data(), all.size()), 0);
  });
  EXPECT_EQ(write(ends[1], "a word", 6), 6);
  EXPECT_TRUE(CtrlC::pressed());
  other.join();
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace hearth::cli
