#pragma once
// Runs a test's work on a thread with the stack that macOS gives threads.
#include <cstddef>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <pthread.h>

namespace hearth::text::grammar {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Sanitizers make frames several times as large.
constexpr std::size_t kSmallStack = std::size_t{4} << 20;
#else
constexpr std::size_t kSmallStack = std::size_t{512} << 10;
#endif

inline void on_small_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kSmallStack), 0);
  pthread_t thread{};
  // What the work throws would end the program: it is to catch that itself.
  const auto run = [](void* given) -> void* {
    (*static_cast<const std::function<void()>*>(given))();
    return nullptr;
  };
  auto* argument = const_cast<std::function<void()>*>(&work);
  ASSERT_EQ(pthread_create(&thread, &attributes, run, argument), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace hearth::text::grammar
