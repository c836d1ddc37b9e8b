#include "hearth/train/loop/run_directory.h"

#include <csignal>
#include <fstream>
#include <optional>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/train/loop/metrics_log.h"

namespace hearth::train {
namespace {

namespace fs = std::filesystem;

std::string message_of(const std::string& path, RunMode mode) {
  try {
    const RunDirectory run(path, mode);
  } catch (const UsageError& e) {
    return std::string(e.what()) + " / " + e.hint();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(RunDirectory, DescribesARunAndRefusesToStartOverIt) {
  const TempFolder folder;
  const std::string path = folder.path() + "/runs/a";
  {
    const RunDirectory run(path, RunMode::fresh);
    run.describe({"steps: 3\n", {{"cores", 2}}, "1.2.3"});
  }
  EXPECT_EQ(read_text_file(path + "/config.yaml"), "steps: 3\n");
  EXPECT_EQ(read_json_file(path + "/machine.json").at("cores"), 2);
  EXPECT_EQ(read_text_file(path + "/version"), "1.2.3\n");
  write_file_atomically(path + "/metrics.jsonl", "{\"step\":1}\n");
  const std::string refused = message_of(path, RunMode::fresh);
  EXPECT_TRUE(has(refused, "must be empty")) << refused;
  EXPECT_TRUE(has(refused, "--resume " + path)) << refused;
  EXPECT_TRUE(has(refused, "--force")) << refused;
  EXPECT_EQ(message_of(path, RunMode::resume), "");
}

TEST(RunDirectory, AForeignFolderIsLeftAsItIs) {
  const TempFolder folder;
  write_file_atomically(folder.path() + "/letter.txt", "dear");
  EXPECT_NE(message_of(folder.path(), RunMode::fresh), "");
  EXPECT_FALSE(fs::exists(folder.path() + "/lock"));
  EXPECT_NE(message_of(folder.path(), RunMode::resume), "");
}

TEST(RunDirectory, OverwritingRemovesTheRunAndNothingElse) {
  const TempFolder folder;
  const std::string path = folder.path();
  RunDirectory(path, RunMode::fresh).describe({"a: 1\n", {}, "1"});
  fs::create_directories(path + "/checkpoints/step-000001");
  write_file_atomically(path + "/metrics.jsonl", "{}\n");
  write_file_atomically(path + "/notes.txt", "mine");
  fs::create_directories(path + "/model");
  write_file_atomically(path + "/model/tokenizer.model", "old");
  fs::create_directories(path + "/adapter");
  {
    const RunDirectory failed(path, RunMode::overwrite);
  }
  EXPECT_TRUE(fs::exists(path + "/checkpoints")) << "it stands until then";
  const RunDirectory run(path, RunMode::overwrite);
  run.describe({"b: 2\n", {}, "2"});
  for (const char* gone :
       {"checkpoints", "metrics.jsonl", "model", "adapter"}) {
    EXPECT_FALSE(fs::exists(fs::path(path) / gone)) << gone;
  }
  EXPECT_EQ(read_text_file(path + "/config.yaml"), "b: 2\n");
  EXPECT_TRUE(fs::exists(path + "/notes.txt"));
}

TEST(RunDirectory, ForceRefusesAFolderThatIsNoRun) {
  const TempFolder folder;
  const std::string path = folder.path();
  write_file_atomically(path + "/config.yaml", "theirs: 1\n");
  write_file_atomically(path + "/version", "9");
  write_file_atomically(path + "/app.py", "print()");
  fs::create_directories(path + "/checkpoints/theirs");
  const auto refused = message_of(path, RunMode::overwrite);
  EXPECT_TRUE(has(refused, "must hold a run or nothing")) << refused;
  // Names that a run uses, too, make no run of it.
  fs::remove(path + "/app.py");
  EXPECT_NE(message_of(path, RunMode::overwrite), "");
  EXPECT_TRUE(fs::exists(path + "/checkpoints/theirs"));
  EXPECT_FALSE(fs::exists(path + "/lock"));
}

// A process that is killed while it overwrites, or begins, leaves any part of
// what it removes, or writes, one after the other.
TEST(RunDirectory, OverwritingThatWasKilledCanBeDoneAgain) {
  const TempFolder folder;
  const std::string path = folder.path();
  RunDirectory(path, RunMode::fresh).describe({"a: 1\n", {}, "1"});
  fs::create_directories(path + "/checkpoints/step-000001");
  fs::create_directories(path + "/model");
  write_file_atomically(path + "/model/model.safetensors", "old");
  write_file_atomically(path + "/metrics.jsonl", "{}\n");
  for (const char* gone :
       {"config.yaml", "checkpoints", "metrics.jsonl", "model", "version"}) {
    fs::remove_all(fs::path(path) / gone);
    EXPECT_EQ(message_of(path, RunMode::overwrite), "") << gone;
    const auto fresh = message_of(path, RunMode::fresh);
    EXPECT_FALSE(has(fresh, "--resume")) << "nothing to go on with: " << fresh;
  }
  EXPECT_EQ(message_of(path, RunMode::fresh), "") << "nothing to lose";
  write_file_atomically(path + "/config.yaml.tmp-12-0", "a:");
  EXPECT_EQ(message_of(path, RunMode::fresh), "");
  EXPECT_FALSE(fs::exists(path + "/config.yaml.tmp-12-0"));
}

TEST(RunDirectory, KilledAtAnyMomentOfOverwritingItIsStillARun) {
  const TempFolder folder;
  const std::string path = folder.path();
  for (int i = 0; i < 20; ++i) {
    RunDirectory(path, RunMode::overwrite).describe({"a: 1\n", {}, "1"});
    const pid_t child = fork();
    if (child == 0) {
      while (true) {
        for (int step = 0; step < 200; ++step) {
          fs::create_directories(
              fmt::format("{}/checkpoints/step-{:06}", path, step)
          );
        }
        RunDirectory(path, RunMode::overwrite).describe({"b: 2\n", {}, "2"});
      }
    }
    usleep(static_cast<useconds_t>(5000 + 1700 * i));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    ASSERT_EQ(message_of(path, RunMode::overwrite), "") << i;
  }
}

TEST(RunDirectory, AStartThatFailedDoesNotBlockItsFolder) {
  const TempFolder folder;
  const std::string path = folder.path() + "/run";
  {
    const RunDirectory undescribed(path, RunMode::fresh);
  }
  EXPECT_FALSE(fs::exists(path)) << "what it made, it removes";
  {
    const RunDirectory run(path, RunMode::fresh);
    run.describe({"a: 1\n", {}, "1"});
    fs::create_directories(path + "/model");
    write_file_atomically(path + "/metrics.jsonl", "");
  }
  EXPECT_EQ(message_of(path, RunMode::fresh), "") << "it made no step";
  write_file_atomically(path + "/mine.txt", "");
  EXPECT_NE(message_of(path, RunMode::fresh), "") << "not its own files alone";
  fs::remove(path + "/mine.txt");
  fs::create_directories(path + "/checkpoints/step-000001");
  EXPECT_NE(message_of(path, RunMode::fresh), "");
  fs::remove_all(path + "/checkpoints");
  write_file_atomically(path + "/model/model.safetensors", "trained");
  EXPECT_NE(message_of(path, RunMode::fresh), "");
}

TEST(RunDirectory, ResumeNeedsARun) {
  const TempFolder folder;
  const auto missing = message_of(folder.path() + "/none", RunMode::resume);
  EXPECT_TRUE(has(missing, "must hold a run")) << missing;
  EXPECT_FALSE(fs::exists(folder.path() + "/none"));
}

// Another process holds the lock, is named, and is killed: its lock goes.
TEST(RunDirectory, OneProcessAtATimeAndADeadOneDoesNotCount) {
  const TempFolder folder;
  const std::string path = folder.path();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const RunDirectory run(path, RunMode::fresh);
    run.describe({"a: 1\n", {}, "1"});
    [[maybe_unused]] const auto n = write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  for (const RunMode mode : {RunMode::resume, RunMode::overwrite}) {
    const std::string refused = message_of(path, mode);
    EXPECT_TRUE(has(refused, std::to_string(child))) << refused;
  }
  EXPECT_TRUE(fs::exists(path + "/config.yaml"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(message_of(path, RunMode::resume), "");
  close(ready[0]);
  close(ready[1]);
}

TEST(MetricsLog, AppendsLinesThatAreReadableAtOnce) {
  const TempFolder folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  MetricsLog log(path, -1);
  log.append({{"step", 1}, {"loss", 2.5}});
  EXPECT_EQ(read_text_file(path), "{\"step\":1,\"loss\":2.5}\n");
  log.append({{"step", 2}});
  EXPECT_EQ(read_text_file(path), "{\"step\":1,\"loss\":2.5}\n{\"step\":2}\n");
  EXPECT_THROW(log.append({{"loss", 1}}), UsageError);
  EXPECT_THROW(log.append({{"step", "x"}}), UsageError);
}

TEST(MetricsLog, ResumingCutsLaterStepsAndTornLines) {
  const TempFolder folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  {
    MetricsLog log(path, -1);
    for (int step = 1; step <= 5; ++step) log.append({{"step", step}});
  }
  std::ofstream(path, std::ios::app) << "not json\n{\"step\":6,\"lo";
  std::vector<std::string> said;
  const auto before =
      set_log_sink([&](const LogRecord& r) { said.push_back(r.text); });
  {
    MetricsLog log(path, 3);
    EXPECT_EQ(log.dropped(), 4);
    log.append({{"step", 4}, {"again", true}});
  }
  EXPECT_EQ(
      read_text_file(path),
      "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"step\":4,\"again\":true}\n"
  );
  // Whoever resumes is told of what a crash left of a line, once.
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("its last line was not whole"), std::string::npos);
  EXPECT_EQ(MetricsLog(path, 4).dropped(), 0);
  EXPECT_EQ(said.size(), 1U);
  set_log_sink(before);
  EXPECT_EQ(MetricsLog(folder.path() + "/new.jsonl", 4).dropped(), 0);
  {
    const MetricsLog fresh(path, -1);
  }
  EXPECT_EQ(read_text_file(path), "");
}

TEST(MetricsLog, LinesCanBeKeptByTheirNumber) {
  const TempFolder folder;
  const std::string path = folder.path() + "/events.jsonl";
  {
    MetricsLog log(path, -1);
    for (const int step : {7, 8, 3}) log.append({{"step", step}});
    EXPECT_EQ(log.lines(), 3);
  }
  {
    auto log = MetricsLog::with_lines(path, 2);
    EXPECT_EQ(log.lines(), 2);
    EXPECT_EQ(log.dropped(), 1);
    log.append({{"step", 4}});
  }
  EXPECT_EQ(read_text_file(path), "{\"step\":7}\n{\"step\":8}\n{\"step\":4}\n");
  EXPECT_EQ(MetricsLog::with_lines(path, 100).dropped(), 0);
  EXPECT_EQ(MetricsLog::with_lines(path, 0).dropped(), 3);
}

}  // namespace
}  // namespace hearth::train
