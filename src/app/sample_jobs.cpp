#include "sample_jobs.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/sample/infill.h"

namespace elf::app {

// Inputs between the thread that reads the pipe and the one that samples.
struct JobSource::Pipe {
  static constexpr size_t kMost = 4096;  // lines read ahead

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<SampleInput> inputs;
  bool ended = false;
  std::exception_ptr error;
  int64_t with_line_breaks = 0;

  // Runs on the reading thread until the pipe ends.
  void read(const std::string& field, int64_t most) {
    try {
      SampleInputReader reader("-", field, most);
      for (SampleInput input; reader.next(input);) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return inputs.size() < kMost; });
        inputs.push_back(std::move(input));
        with_line_breaks = reader.with_line_breaks();
        changed.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    ended = true;
    changed.notify_all();
  }

  // Up to `most` inputs: the first one as soon as it comes, the others if they come within `wait` of it.
  // Inputs that came before an error are answered before it is thrown.
  std::vector<SampleInput> take(size_t most, std::chrono::duration<double> wait) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !inputs.empty() || ended; });
    if (!inputs.empty()) changed.wait_for(lock, wait, [&] { return inputs.size() >= most || ended; });
    std::vector<SampleInput> taken;
    while (!inputs.empty() && taken.size() < most) {
      taken.push_back(std::move(inputs.front()));
      inputs.pop_front();
    }
    changed.notify_all();
    if (taken.empty() && error) std::rethrow_exception(error);
    return taken;
  }
};

JobSource::JobSource(const SampleOptions& options, const Model& model)
    : options_(options), model_(model), longest_(model.config.data.max_input_length) {
  if (options.num_samples) {
    if (longest_ > 0)
      usage_error(options.model,
                  " was trained on pairs: it answers inputs. Give --input FILE instead of --num-samples");
    end_ = *options.num_samples;
    return;
  }
  if (longest_ == 0 && options.infill.empty())
    usage_error(
        options.model,
        " was trained on texts without inputs. Give --num-samples N, or --infill FILE, instead of --input");
  if (options.source() != "-") {
    read_file();
    return;
  }
  pipe_ = std::make_shared<Pipe>();
  // Detached: it may wait for input when the program ends.
  std::thread([pipe = pipe_, field = options.field, most = kMostSamples - options.first_index] {
    pipe->read(field, most);
  }).detach();
}

JobSource::~JobSource() = default;

void JobSource::read_file() {
  SampleInputReader reader(options_.source(), options_.field, kMostSamples - options_.first_index);
  for (SampleInput input; reader.next(input);) jobs_.push_back(make_job(std::move(input)));
  end_ = static_cast<int64_t>(jobs_.size());
  counts_.with_line_breaks = reader.with_line_breaks();
  refuse_long_inputs();
  if (end_ == 0) log_warning(options_.source() + ": no input, so no output");
}

// Text to ids, within the model's lengths.
SampleJob JobSource::make_job(SampleInput input) {
  SampleJob job{options_.first_index + input.index, std::move(input), {}, {}, false};
  const bool infill = !options_.infill.empty();
  const std::string& condition = infill ? job.input.condition : job.input.text;
  if (infill && longest_ == 0 && !condition.empty())
    usage_error(job.input.place, ": has a condition, but ", options_.model,
                " was trained on texts without inputs");
  if (longest_ > 0) {
    const std::vector<int32_t> ids = model_.tokenizer->encode(condition);
    job.condition.assign(ids.begin(), ids.end());
  }
  if (const auto length = static_cast<int64_t>(job.condition.size()); length > longest_) {
    if (++counts_.too_long == 1)
      first_too_long_ =
          cat(job.input.place, ": the input has ", length, " tokens, the model takes at most ", longest_);
    if (pipe_) refuse_long_inputs();
    job.skipped = options_.long_input == "skip";
    job.condition.resize(static_cast<size_t>(longest_));
  }
  if (!infill) return job;
  job.infill = parse_infill(job.input.text, *model_.tokenizer, options_.free_gap, job.input.place);
  counts_.without_gap += job.infill.gaps.empty();
  const RunConfig& run = model_.config;
  const int64_t room =
      (run.data.max_length > 0 ? run.data.max_length : run.model.max_length) - run.data.max_input_length;
  gap_lengths(job.infill, room, 1, job.input.place);  // throws where it cannot fit
  return job;
}

void JobSource::refuse_long_inputs() const {
  if (options_.long_input != "refuse" || counts_.too_long == 0) return;
  usage_error(first_too_long_,
              counts_.too_long > 1 ? cat(" (", counts_.too_long, " of ", end_, " are too long)") : "",
              "; shorten such inputs, or see --long-input truncate and skip");
}

std::vector<SampleJob> JobSource::next(int64_t most) {
  std::vector<SampleJob> jobs;
  if (pipe_) {
    for (SampleInput& input :
         pipe_->take(static_cast<size_t>(most), std::chrono::duration<double>(options_.max_wait)))
      jobs.push_back(make_job(std::move(input)));
    const std::lock_guard lock(pipe_->mutex);
    counts_.with_line_breaks = pipe_->with_line_breaks;
    return jobs;
  }
  for (; static_cast<int64_t>(jobs.size()) < most && position_ < end_; ++position_) {
    if (options_.num_samples) {
      jobs.push_back({options_.first_index + position_, {}, {}, {}, false});
    } else {
      jobs.push_back(jobs_[static_cast<size_t>(position_)]);
    }
  }
  return jobs;
}

void JobSource::skip(int64_t count) {
  if (!pipe_) position_ = std::min(end_, position_ + count);
  for (int64_t left = count; pipe_ && left > 0;) {
    const auto taken = static_cast<int64_t>(next(left).size());
    if (taken == 0) return;
    left -= taken;
  }
}

std::optional<int64_t> JobSource::total() const {
  if (pipe_) return std::nullopt;
  return end_;
}

}  // namespace elf::app
