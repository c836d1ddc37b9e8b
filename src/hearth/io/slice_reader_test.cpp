// Slices come in order and whole however they are read.
#include "hearth/io/slice_reader.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/io/hf_folder.h"

namespace hearth::io {
namespace {

namespace fs = std::filesystem;

const char* kModel = HEARTH_SOURCE_DIR "/tests/golden/models/llama2";

std::vector<Slice> odd_slices(const ModelSource& source) {
  std::vector<Slice> slices;
  std::size_t step = 777;
  for (const TensorInfo& t : source.tensors()) {
    for (std::size_t at = 0; at < t.bytes; at += step) {
      slices.push_back({&t, at, std::min(step, t.bytes - at)});
    }
    step = step * 5 % 9001 + 100;
  }
  return slices;
}

TEST(SliceReader, EveryModeGivesTheTensorsBytes) {
  const auto source = open_hf_folder(kModel);
  const auto slices = odd_slices(*source);
  ASSERT_GT(slices.size(), 20u);
  for (const auto mode :
       {ReadMode::mapped, ReadMode::buffered, ReadMode::direct}) {
    for (const int readers : {1, 4}) {
      SliceReader reader(*source, slices, {.mode = mode, .readers = readers});
      for (const Slice& s : slices) {
        const auto got = reader.next();
        const auto want =
            source->data(*s.tensor).bytes.subspan(s.begin, s.bytes);
        ASSERT_TRUE(std::ranges::equal(got, want)) << s.tensor->name;
      }
      EXPECT_EQ(reader.window_bytes() == 0, mode == ReadMode::mapped);
    }
  }
}

TEST(SliceReader, MayBeLeftInTheMiddle) {
  const auto source = open_hf_folder(kModel);
  SliceReader reader(*source, odd_slices(*source), {.mode = ReadMode::direct});
  reader.next();
  reader.next();
}

TEST(SliceReader, AFileThatHasBecomeShorterIsRefused) {
  const TempFolder folder;
  fs::copy(kModel, folder.path(), fs::copy_options::recursive);
  const auto source = open_hf_folder(folder.path());
  const fs::path file = source->tensors().front().file;
  fs::resize_file(file, 2000);
  const auto slices = odd_slices(*source);
  SliceReader reader(*source, slices, {.mode = ReadMode::buffered});
  EXPECT_THROW(
      {
        for (std::size_t i = 0; i < slices.size(); ++i) reader.next();
      },
      FormatError
  );
}

TEST(SliceReader, KeepsThePaceATestAsksFor) {
  const auto source = open_hf_folder(kModel);
  const auto slices = odd_slices(*source);
  std::size_t total = 0;
  for (const Slice& s : slices) total += s.bytes;
  // It reads ahead from here on.
  const double start = seconds_now();
  SliceReader reader(
      *source, slices,
      {.mode = ReadMode::buffered,
       .bytes_per_second = static_cast<double>(total) * 10}
  );
  for (std::size_t i = 0; i < slices.size(); ++i) reader.next();
  EXPECT_GT(seconds_now() - start, 0.09);
  EXPECT_GT(reader.waited(), 0);
}

}  // namespace
}  // namespace hearth::io
