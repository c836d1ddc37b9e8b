#pragma once
// What a load did and where its time went, always kept: a few clock readings a
// slice. `hearth profile load` shows it.
#include <cstddef>
#include <string>
#include <vector>

namespace hearth::models {

// Seconds on the wall, apart from each other: they add up to the load's.
struct LoadTimes {
  double read = 0;      // waiting for bytes
  double convert = 0;   // widening, rounding, looking for NaN
  double pack = 0;      // into the order that products read
  double quantize = 0;  // rounding to a quantised format, packing included
  double memory = 0;    // asking for memory, giving it back, and the like

  double sum() const { return read + convert + pack + quantize + memory; }
  void add(const LoadTimes& other);
};

// A shard of the file, or a class of tensors.
struct LoadPart {
  std::string name;
  std::size_t tensors = 0, bytes = 0;
  double begin = 0;  // since the load began; of a shard
  double seconds = 0;
  LoadTimes times;
};

// The part of that name, made where there is none.
LoadPart& part_named(std::vector<LoadPart>& parts, const std::string& name);

struct LoadReport {
  std::string how;  // "mapped", "read", ..., "packed cache"
  std::string why;
  double seconds = 0;
  std::size_t bytes = 0;   // of the file's tensors
  std::size_t window = 0;  // buffers for reading, gone when it is loaded
  LoadTimes times;
  std::vector<LoadPart> shards;   // in the order they were read
  std::vector<LoadPart> classes;  // most bytes first
  // Matrices that were to be quantised and whose rows the format cannot hold.
  std::vector<std::string> kept_dense;
};

// How far a load has come.
struct LoadStep {
  std::size_t bytes = 0, total = 0;
  std::size_t shard = 0, shards = 0;  // shard counts from 1
  // Of the shards that are done, as many as there are.
  const std::vector<LoadPart>* done = nullptr;
};

// "attention", "mlp", "embedding", "head", "norm", "other".
std::string tensor_class(const std::string& parameter);

}  // namespace hearth::models
