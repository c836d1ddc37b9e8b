#include "hearth/bench/python_peer.h"

#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spawn.h>

#include "hearth/base/error.h"
#include "hearth/bench/onednn_limit.h"

extern char** environ;

namespace hearth::bench {
namespace {

std::string interpreter() {
  const char* own = ".deps/peers/bin/python3";
  return std::filesystem::exists(own) ? own : "python3";
}

// Starts the program with its input and output on the given descriptors.
long spawn(const std::vector<std::string>& words, int input, int output) {
  std::vector<char*> argv;
  for (const auto& word : words)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t process = -1;
  const int failed =
      posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? process : -1;
}

}  // namespace

std::shared_ptr<PythonPeer> PythonPeer::start(
    const std::string& script,
    const std::vector<std::string>& arguments
) {
  std::vector<std::string> words = {interpreter(), "-c", script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return start_program(words);
}

std::shared_ptr<PythonPeer> PythonPeer::start_program(
    const std::vector<std::string>& words
) {
  int in[2], out[2];
  if (::pipe(in) != 0) return nullptr;
  if (::pipe(out) != 0) {
    ::close(in[0]), ::close(in[1]);
    return nullptr;
  }
  for (const int end : {in[1], out[0]}) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  // A rival that dies must not take us with it.
  std::signal(SIGPIPE, SIG_IGN);
  limit_onednn_isa();
  std::shared_ptr<PythonPeer> peer(new PythonPeer);
  peer->process_ = spawn(words, in[0], out[1]);
  ::close(in[0]), ::close(out[1]);
  peer->to_ = in[1];
  peer->from_ = out[0];
  const bool there = peer->process_ > 0 && peer->read_line(peer->name_) &&
                     peer->name_ != "absent";
  return there ? peer : nullptr;
}

PythonPeer::~PythonPeer() {
  if (to_ >= 0) ::close(to_);  // the end of its input ends it
  if (from_ >= 0) ::close(from_);
  int status = 0;
  if (process_ > 0) ::waitpid(static_cast<pid_t>(process_), &status, 0);
}

bool PythonPeer::read_line(std::string& line) {
  for (;;) {
    const auto end = pending_.find('\n');
    if (end != std::string::npos) {
      line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return true;
    }
    char buffer[4096];
    const ssize_t got = ::read(from_, buffer, sizeof buffer);
    if (got <= 0) return false;
    pending_.append(buffer, static_cast<std::size_t>(got));
  }
}

std::string PythonPeer::ask(const std::string& line) {
  const std::string text = line + "\n";
  std::string answer;
  if (::write(to_, text.data(), text.size()) !=
          static_cast<ssize_t>(text.size()) ||
      !read_line(answer)) {
    throw Error("[bench.PythonPeer] " + name_ + " must answer, it ended");
  }
  return answer;
}

}  // namespace hearth::bench
