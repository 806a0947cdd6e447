#include "sample_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "elf/base/error.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "elf/base/progress.h"
#include "elf/config/enum_names.h"
#include "elf/version.h"
#include "resumable_writer.h"
#include "sample_engine.h"
#include "sampler_record.h"
#include "trajectory_picture.h"
#include "watch.h"

namespace elf::app {
namespace {

using Json = nlohmann::ordered_json;

// All that a record depends on besides its number and input: equal settings, equal records.
Json settings_of(const SampleOptions& o, const Model& model, const SamplingConfig& c) {
  Json settings = {{"weights_hash", model.weights_digest},
                   {"tokenizer_hash", model.tokenizer->hash()},
                   {"latents_hash", model.codec->digest()},
                   {"sampler", sampler_json(c, model.config.flow)},
                   {"seed", c.seed},
                   {"first_index", o.first_index},
                   {"clean_up", o.clean_up}};
  if (model.decoder) settings["decoder_hash"] = model.decoder_digest;
  if (o.source().empty()) return settings;
  settings["input_hash"] = o.source() == "-" ? Json(nullptr) : Json(digest_of_file(o.source()));
  settings["long_input"] = o.long_input;
  settings["candidates"] = o.num_candidates;
  settings["choose"] = o.num_candidates > 1 ? Json(o.choose) : Json(nullptr);
  if (!o.infill.empty()) settings["infill_method"] = o.infill_method, settings["free_gap"] = o.free_gap;
  return settings;
}

// What produced the samples: everything that the same samples need, and the counts.
Json provenance(const SampleOptions& o, const Model& model, const SamplingConfig& config,
                const InputCounts& inputs, const SampleTotals& totals, int64_t ranks) {
  const Json settings = settings_of(o, model, config);
  Json record = {{"tool", "elf-sample"},
                 {"version", ELF_VERSION},
                 {"revision", ELF_GIT_REVISION},
                 {"libtorch", ELF_LIBTORCH_VERSION},
                 {"model", o.model},
                 {"weights", model.weights_kind},
                 {"weights_file", model.weights_file.string()}};
  record.update(settings);
  record.update(Json{{"samples", totals.samples},
                     {"resumed", totals.resumed},
                     {"input", o.source().empty() ? Json(nullptr) : Json(o.source())},
                     {"truncated_inputs", o.long_input == "truncate" ? inputs.too_long : 0},
                     {"skipped_inputs", o.long_input == "skip" ? inputs.too_long : 0},
                     {"n_empty", totals.empty},
                     {"precision", "float32"},
                     {"device", o.common.device().str()},
                     {"ranks", ranks},
                     {"network_calls", totals.forwards},
                     {"network_rows", totals.rows},
                     {"seconds", totals.seconds},
                     {"settings", settings}});
  return record;
}

// The first rank's outputs: the samples, and the trajectory as lines, page or picture.
class Outputs {
 public:
  Outputs(const SampleOptions& o, const Model& model, const SweepPoint& point)
      : options_(o), path_(point.file(o.output)) {
    caption_ = cat(o.model, ", ", enum_name(point.config.sampler), ", ", point.config.steps, " steps, w ",
                   point.config.self_cond_cfg, ", seed ", point.config.seed);
    if (!path_.empty() && o.jsonl()) {
      resumable_ = std::make_unique<ResumableWriter>(path_, settings_of(o, model, point.config), o.resume);
    } else {
      lines_ = std::make_unique<LineWriter>(path_);
    }
    if (!o.trajectory.empty()) trajectory_ = std::make_unique<LineWriter>(o.trajectory);
  }

  // Jobs whose records are in the output already. `jobs`: the number of all, where it is known. Records that
  // are not those of the jobs throw Error (usage).
  int64_t kept_jobs(const std::optional<int64_t>& jobs) {
    if (!resumable_) return 0;
    const int64_t each = options_.choose == "all" ? options_.num_candidates : 1;
    int64_t count = static_cast<int64_t>(resumable_->kept().size()) / each;
    if (jobs && count > *jobs)
      usage_error(path_, ": holds ", count, " samples already, ", *jobs,
                  " are asked for; leave --resume out to start anew");
    resumable_->keep(static_cast<size_t>(count * each));
    return count;
  }

  const std::vector<nlohmann::json>& kept() const {
    static const std::vector<nlohmann::json> none;
    return resumable_ ? resumable_->kept() : none;
  }

  void write(const MadeSamples& made) {
    for (const std::string& line : made.lines) resumable_ ? resumable_->write(line) : lines_->write(line);
    resumable_ ? resumable_->flush() : lines_->flush();
    if (!trajectory_) return;
    for (const Json& step : made.steps) {
      if (options_.trajectory.ends_with(".jsonl")) {
        trajectory_->write(step.dump(-1, ' ', false, Json::error_handler_t::replace));
      } else {
        steps_.push_back(step);
      }
    }
  }

  void finish() {
    resumable_ ? resumable_->finish() : lines_->finish();
    if (!trajectory_) return;
    if (options_.trajectory.ends_with(".html")) trajectory_->write(trajectory_page(steps_, caption_));
    if (options_.trajectory.ends_with(".svg")) trajectory_->write(trajectory_picture(steps_, caption_));
    trajectory_->finish();
  }

  const std::string& path() const { return path_; }

 private:
  const SampleOptions& options_;
  std::string path_, caption_;
  std::unique_ptr<ResumableWriter> resumable_;
  std::unique_ptr<LineWriter> lines_, trajectory_;
  std::vector<Json> steps_;
};

// Hands out the jobs in rounds: every rank takes a share of each, the first one writes them in order.
class Rounds {
 public:
  Rounds(const SampleOptions& o, const Model& model, const SweepPoint& point, JobSource& source,
         SampleRanks& ranks)
      : source_(source), ranks_(ranks), engine_(o, model, point.config) {
    if (o.watch) watch_ = std::make_unique<Watch>(point.config.steps, o.watch_delay);
  }

  void run(Outputs* outputs, int64_t kept, SampleTotals& totals) {
    source_.skip(kept);
    const int64_t total = source_.total().value_or(0);
    int64_t share = engine_.jobs_at_once();
    if (source_.total())
      share = std::min(share, std::max<int64_t>(1, (total - kept + ranks_.size() - 1) / ranks_.size()));
    std::optional<Progress> progress;
    if (outputs != nullptr && !watch_) progress.emplace("sampling", total, "samples");
    int64_t done = kept;
    if (progress) progress->update(done);  // the rate counts from here
    for (;;) {
      const std::vector<SampleJob> mine = take(share);
      if (round_ == 0) break;
      MadeSamples made = engine_.make(
          mine,
          [&](int64_t rows, int64_t of) {
            if (progress) progress->update(done + round_ * rows / std::max<int64_t>(1, of));
          },
          watch_ ? [&](const std::vector<StepView>& views) { watch_->show(views); } : SampleEngine::OnStep{});
      for (const MadeSamples& part : ranks_.gather(std::move(made))) {
        totals.empty += part.empty;
        totals.forwards += part.forwards;
        totals.rows += part.rows;
        totals.samples += static_cast<int64_t>(part.lines.size());
        if (outputs != nullptr) outputs->write(part);
      }
      done += round_;
      if (progress) progress->update(done);
    }
    if (progress) progress->finish();
  }

 private:
  // The share of this rank in the next round; round_ is what all ranks get.
  std::vector<SampleJob> take(int64_t share) {
    std::vector<SampleJob> mine;
    round_ = 0;
    for (int64_t r = 0; r < ranks_.size(); ++r) {
      std::vector<SampleJob> jobs = source_.next(share);
      round_ += static_cast<int64_t>(jobs.size());
      if (r == ranks_.rank()) mine = std::move(jobs);
    }
    return mine;
  }

  JobSource& source_;
  SampleRanks& ranks_;
  SampleEngine engine_;
  std::unique_ptr<Watch> watch_;
  int64_t round_ = 0;
};

// What was kept must be the first records of this very run.
void check_kept(const Outputs& outputs, const SampleOptions& o, const SamplingConfig& config) {
  for (size_t i = 0; i < outputs.kept().size(); ++i) {
    const nlohmann::json& record = outputs.kept()[i];
    const bool counted = o.num_samples.has_value();
    const bool same = record.value("seed", nlohmann::json(nullptr)) == config.seed &&
                      (!counted || record["index"] == o.first_index + static_cast<int64_t>(i));
    if (!same)
      usage_error(outputs.path(), ": record ", i + 1, " has index ", record["index"].dump(), " and seed ",
                  record.value("seed", nlohmann::json(nullptr)).dump(), ": it is none of this run");
  }
}

}  // namespace

SampleTotals run_samples(const SampleOptions& o, const Model& model, const SweepPoint& point,
                         JobSource& source, SampleRanks& ranks) {
  const auto start = std::chrono::steady_clock::now();
  SampleTotals totals;
  std::optional<Outputs> outputs;
  int64_t kept = 0;
  if (ranks.first()) {
    outputs.emplace(o, model, point);
    kept = outputs->kept_jobs(source.total());
    check_kept(*outputs, o, point.config);
    totals.samples = totals.resumed = static_cast<int64_t>(outputs->kept().size());
    for (const nlohmann::json& record : outputs->kept())
      totals.empty += text_in(record, "text").find_first_not_of(' ') == std::string::npos;
    if (kept > 0) log_info(cat(outputs->path(), ": going on after ", totals.resumed, " records"));
  }
  kept = ranks.of_first(kept);
  Rounds(o, model, point, source, ranks).run(outputs ? &*outputs : nullptr, kept, totals);
  totals.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!outputs) return totals;
  outputs->finish();
  if (!outputs->path().empty()) {
    write_file(outputs->path() + ".json",
               provenance(o, model, point.config, source.counts(), totals, ranks.size()).dump(2) + "\n");
  }
  return totals;
}

}  // namespace elf::app
