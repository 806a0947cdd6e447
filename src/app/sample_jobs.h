// The samples that are to be made, one job each: counted, read from a file, or taken from a pipe as they
// come.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elf/model/model_dir.h"
#include "elf/sample/generate.h"
#include "elf/sample/infill_text.h"
#include "sample_io.h"
#include "sample_options.h"

namespace elf::app {

struct SampleJob {
  int64_t index = 0;  // number of the sample: the key of its random numbers
  SampleInput input;
  TokenIds condition;    // at most the model's max_input_length
  InfillText infill;     // of --infill
  bool skipped = false;  // too long, and --long-input skip: its output is empty
};

// What became of the inputs so far.
struct InputCounts {
  int64_t too_long = 0;  // for the model: truncated or skipped
  int64_t with_line_breaks = 0;
  int64_t without_gap = 0;  // --infill: texts without a mark
};

class JobSource {
 public:
  // A file is read whole, and every input of it checked, before this returns. Throws Error (usage): a model
  // that does not fit what was asked, bad input (naming file and line), inputs too long with --long-input
  // refuse (naming how many, and the first).
  JobSource(const SampleOptions& options, const Model& model);
  ~JobSource();
  JobSource(const JobSource&) = delete;

  // Up to `most` jobs, in order; none: the end. From a pipe: waits for the first line and then at most
  // options.max_wait seconds for more.
  std::vector<SampleJob> next(int64_t most);
  void skip(int64_t count);              // jobs that are done already
  std::optional<int64_t> total() const;  // unknown for a pipe
  const InputCounts& counts() const { return counts_; }

 private:
  struct Pipe;
  SampleJob make_job(SampleInput input);
  void read_file();
  void refuse_long_inputs() const;

  const SampleOptions& options_;
  const Model& model_;
  int64_t longest_;                 // condition
  std::vector<SampleJob> jobs_;     // of a file
  int64_t position_ = 0, end_ = 0;  // of counted samples and files
  std::shared_ptr<Pipe> pipe_;      // shared with the thread that reads it
  InputCounts counts_;
  std::string first_too_long_;
};

}  // namespace elf::app
