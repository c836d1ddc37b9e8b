#pragma once
// Measures this machine's peaks: instruction loops per ISA and type, memory
// read and copy on buffers far larger than the last cache, disk read, and what
// training steps reach of them. On one
// thread and on all; the best of several tries, since a peak is what the
// machine can do when nothing disturbs it.
#include <string>

#include "hearth/base/progress.h"
#include "hearth/hardware/machine.h"
#include "hearth/hardware/peaks.h"

namespace hearth::bench {

// What ties a record to a machine: processor and core count.
std::string machine_id(const hardware::Machine& machine);

// Cores that programs kept busy during the last minute; 0 where it is not
// known.
double busy_cores();

// Adds the share of peak that training reaches, by width and precision, on all
// threads.
void measure_training(hardware::Peaks& peaks, Progress& progress);

// Takes under 30 seconds. Says what it is doing through Progress.
hardware::Peaks measure_peaks(const hardware::Machine& machine);

// Read rate in GB/s of a file written for it in `folder`, past the page cache.
// Nothing, with a reason in note, where the file system has no direct reads.
std::optional<double> measure_disk_read(
    const std::string& folder,
    std::string& note
);

}  // namespace hearth::bench
