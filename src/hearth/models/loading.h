#pragma once
// One load under way: which tensors make which parameters, in which forms they
// are held, and the pass over the files that fills them.
#include <set>
#include <string>
#include <vector>

#include "hearth/models/load.h"
#include "hearth/models/tensor_read.h"
#include "hearth/models/weight_fill.h"

namespace hearth::models {

// What the source holds for a parameter of that name, whatever prefix it was
// saved with. Throws FormatError when it holds nothing.
StoredMatrix find_stored(
    const io::ModelSource& source,
    const std::string& name
);

class Loading {
 public:
  Loading(
      const io::ModelSource& source,
      const LoadOptions& options,
      mx::Dtype compute
  );

  // Looks the parameter's tensors up and checks them against its shape; nothing
  // is read. Throws FormatError.
  void add(nn::Weight& p);
  // Reads everything that was added, in the order of the files.
  void run();

  // Tensors that nothing added has asked for.
  std::vector<std::string> unused() const;
  const LoadReport& report() const { return report_; }

 private:
  struct Job {
    nn::Weight* p;
    StoredMatrix stored;
  };
  struct Watch;

  const io::ModelSource& source_;
  const LoadOptions& options_;
  WeightPlan plan_;
  mx::Dtype compute_;
  std::vector<Job> jobs_;
  std::set<std::string, std::less<>> used_;
  std::size_t total_ = 0;
  LoadReport report_;

  std::vector<io::Slice> slices_of(const Job& job) const;
  io::ReadMode choose_mode();
  template <class Fill>
  void fill_rows(
      const Job& job,
      io::SliceReader& reader,
      Watch& watch,
      Fill& fill
  );
  void fill_dense(const Job& job, io::SliceReader& reader, Watch& watch);
  void fill_stored(const Job& job, io::SliceReader& reader, Watch& watch);
};

}  // namespace hearth::models
