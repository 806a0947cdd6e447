// Jobs in, records out: batches, candidates and the choice among them, gaps.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "elf/sample/generate.h"
#include "elf/sample/infill.h"
#include "elf/sample/trajectory.h"
#include "sample_jobs.h"
#include "sample_options.h"

namespace elf::app {

// What a run of jobs gave; what ranks send each other.
struct MadeSamples {
  std::vector<std::string> lines;             // of the output, in the order of the jobs
  std::vector<nlohmann::ordered_json> steps;  // of the trajectory, by sample
  int64_t empty = 0;                          // texts of blanks only
  int64_t forwards = 0, rows = 0;             // network calls, and rows summed over them

  nlohmann::ordered_json to_json() const;
  static MadeSamples from_json(const nlohmann::ordered_json& json);
};

class SampleEngine {
 public:
  // Rows of one forward: --batch-size, or what memory holds.
  SampleEngine(const SampleOptions& options, const Model& model, const SamplingConfig& config);

  // Called with how many rows of the jobs are done.
  using OnRows = std::function<void(int64_t done, int64_t of)>;
  // Called after every step of a batch.
  using OnStep = std::function<void(const std::vector<StepView>&)>;

  MadeSamples make(const std::vector<SampleJob>& jobs, const OnRows& on_rows, const OnStep& on_step);

  int64_t batch_size() const { return batch_size_; }
  // Jobs that are worth handing in at once: enough to sort by length where that saves work.
  int64_t jobs_at_once() const;

 private:
  // One text to be made: candidate `candidate` of a job.
  struct Row {
    size_t job;
    int64_t candidate, sample;
  };
  std::vector<Row> rows_of(const std::vector<SampleJob>& jobs) const;
  void generate(const std::vector<SampleJob>& jobs, const OnRows& on_rows, const OnStep& on_step);
  void fill_gaps(const std::vector<SampleJob>& jobs, const OnRows& on_rows);
  void write(const SampleJob& job, size_t job_number, MadeSamples& made) const;
  void write_record(const SampleJob& job, const TokenIds& ids, const std::string& text,
                    nlohmann::ordered_json more, MadeSamples& made) const;

  const SampleOptions& options_;
  const Model& model_;
  SamplingConfig config_;
  int64_t batch_size_;
  bool conditional_;
  DecodeOptions decoding_;
  Generator generator_;
  std::unique_ptr<Infiller> infiller_;

  // Of the jobs at hand, [job][candidate].
  std::vector<std::vector<TokenIds>> ids_;
  std::vector<std::vector<std::string>> texts_;
  std::vector<std::vector<InfilledText>> filled_;
  std::vector<std::vector<StepView>> steps_;  // [job]
};

}  // namespace elf::app
