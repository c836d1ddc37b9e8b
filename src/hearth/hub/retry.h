#pragma once
// How often something that failed on the network is tried again, and how long
// is waited before: twice as long each time, or as long as the hub asks.
#include <functional>
#include <string>

#include "hearth/net/network_error.h"

namespace hearth::hub {

struct RetryPolicy {
  int retries = 5;             // in a row without getting anywhere
  double first_wait = 1;       // seconds; doubles up to the longest
  double longest_wait = 30;    // of our own accord
  double longest_asked = 300;  // what the hub may ask for
};

// Told before each wait: why, and how many seconds.
using RetryNote = std::function<void(const std::string& why, double seconds)>;

class Retry {
 public:
  // check throws to end a wait.
  Retry(const RetryPolicy& policy, RetryNote note, std::function<void()> check);
  // Waits, or throws NetworkError that says how often it was tried.
  void after(const net::NetworkError& error);
  // Something came: the count begins anew.
  void progressed() { failures_ = 0; }

 private:
  RetryPolicy policy_;
  RetryNote note_;
  std::function<void()> check_;
  int failures_ = 0;
};

}  // namespace hearth::hub
