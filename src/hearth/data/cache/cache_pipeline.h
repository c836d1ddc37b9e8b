#pragma once
// Files in, encoded records out, in the order of the files whatever the number
// of threads. Memory is bounded: a worker that runs too far ahead of the
// reader of results waits.
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "hearth/data/read/dataset_encode.h"
#include "hearth/data/read/dataset_reader.h"

namespace hearth::data {

struct InputPosition {
  std::size_t file = 0;
  ReadPosition at;
};

struct EncodedRecord {
  std::uint64_t line = 0, bytes = 0, replaced = 0;
  ReadPosition next;
  std::string problem;  // what is wrong with the line; empty when nothing is
  // How it was read, as Record has it.
  std::size_t shape = 0;
  std::uint32_t present = 0;
  bool empty_prompt = false;
  std::vector<std::string> unused;
  std::vector<EncodedDocument> documents;
};

struct EncodedChunk {
  std::size_t file = 0;
  std::uint64_t stored = 0;  // bytes of that file read so far
  std::vector<EncodedRecord> records;
};

class EncodePipeline {
 public:
  EncodePipeline(
      const std::vector<DataFile>& files,
      const ReadSettings& read,
      const ExampleEncoder& encoder,
      InputPosition from,
      int threads
  );
  ~EncodePipeline();
  // False after the last file. Rethrows what a worker met, in its place.
  bool next(EncodedChunk& out);

 private:
  struct Slot {
    EncodedChunk chunk;
    std::exception_ptr error;
  };
  const std::vector<DataFile>& files_;
  const ReadSettings& read_;
  const ExampleEncoder& encoder_;

  std::mutex input_mutex_;
  InputPosition from_;
  std::unique_ptr<RecordReader> reader_;
  std::uint64_t issued_ = 0;
  bool input_done_ = false;

  std::mutex result_mutex_;
  std::condition_variable ready_, room_;
  std::map<std::uint64_t, Slot> results_;
  std::uint64_t taken_ = 0, window_;
  int working_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;

  void work();
  void stop();
  bool pull(RawChunk& raw, EncodedChunk& out, std::uint64_t& number);
  bool pull_from_file(RawChunk& raw, EncodedChunk& out);
  void encode(RecordParser&, Record&, const RawChunk&, EncodedChunk&) const;
  bool put(std::uint64_t number, Slot slot);
};

}  // namespace hearth::data
