#include "sample_engine.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/sample/batch_size.h"
#include "elf/sample/candidates.h"

namespace elf::app {
namespace {

using Json = nlohmann::ordered_json;

GeneratorShape shape_of(const Model& model) {
  const RunConfig& run = model.config;
  return {run.data.max_length > 0 ? run.data.max_length : run.model.max_length, run.model.latent_dim,
          run.data.max_input_length, std::max<int64_t>(0, model.tokenizer->pad_id()),
          model.tokenizer->eos_id()};
}

SamplerModel sampler_of(const Model& model) {
  const FlowConfig& flow = model.config.flow;
  return {model.denoiser(), model.traits(), flow.denoiser_noise_scale, flow.t_eps};
}

// Tokens that fill no gap: special ones, and ids of the network that the tokenizer does not have.
std::vector<int64_t> banned_ids(const Model& model) {
  std::vector<int64_t> banned;
  const int64_t size = std::max(model.config.model.vocab_size, model.tokenizer->size());
  for (int64_t id = 0; id < size; ++id) {
    if (id >= model.tokenizer->size() || model.tokenizer->is_special(id)) banned.push_back(id);
  }
  return banned;
}

int64_t rows_at_once(const SampleOptions& options, const Model& model, const SamplingConfig& config) {
  if (options.batch_size) return *options.batch_size;
  const int64_t fit = rows_that_fit(model.config, available_memory(options.common.device()));
  if (fit < config.batch_size)
    log_info(
        cat("batches of ", fit, " rows in place of ", config.batch_size, ", so that they fit into memory"));
  return std::min(config.batch_size, fit);
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(' ') == std::string::npos;
}

}  // namespace

Json MadeSamples::to_json() const {
  return {{"lines", lines}, {"steps", steps}, {"empty", empty}, {"forwards", forwards}, {"rows", rows}};
}

MadeSamples MadeSamples::from_json(const Json& json) {
  return {json.at("lines").get<std::vector<std::string>>(), json.at("steps").get<std::vector<Json>>(),
          json.at("empty"), json.at("forwards"), json.at("rows")};
}

SampleEngine::SampleEngine(const SampleOptions& options, const Model& model, const SamplingConfig& config)
    : options_(options),
      model_(model),
      config_(config),
      batch_size_(rows_at_once(options, model, config)),
      conditional_(model.config.data.max_input_length > 0),
      decoding_{.skip_special = true, .clean_up = options.clean_up},
      generator_(sampler_of(model), model.codec.get(), shape_of(model), config, options.common.device()) {
  if (options.infill.empty()) return;
  const InfillSettings settings{.method = parse_infill_method(options.infill_method, "--infill-method"),
                                .eos_padding = model.config.flow.pad_token == PadToken::kEos,
                                .banned = banned_ids(model)};
  infiller_ = std::make_unique<Infiller>(sampler_of(model), *model.codec, shape_of(model), config, settings,
                                         options.common.device());
}

int64_t SampleEngine::jobs_at_once() const {
  const int64_t jobs = std::max<int64_t>(1, batch_size_ / options_.num_candidates);
  // A static table encodes nothing, and the network's rows are all of one length.
  const bool lengths_matter =
      conditional_ && !model_.codec->token_table().defined() && options_.source() != "-";
  return lengths_matter ? 16 * jobs : jobs;
}

std::vector<SampleEngine::Row> SampleEngine::rows_of(const std::vector<SampleJob>& jobs) const {
  std::vector<Row> rows;
  for (size_t i = 0; i < jobs.size(); ++i) {
    for (int64_t k = 0; k < options_.num_candidates && !jobs[i].skipped; ++k)
      rows.push_back({i, k, jobs[i].index + k * kMostSamples});
  }
  // Batches of like lengths: the encoder then runs over fewer positions.
  if (conditional_) {
    std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
      return jobs[a.job].condition.size() < jobs[b.job].condition.size();
    });
  }
  return rows;
}

MadeSamples SampleEngine::make(const std::vector<SampleJob>& jobs, const OnRows& on_rows,
                               const OnStep& on_step) {
  const auto candidates = static_cast<size_t>(options_.num_candidates);
  ids_.assign(jobs.size(), std::vector<TokenIds>(candidates));
  texts_.assign(jobs.size(), std::vector<std::string>(candidates));
  filled_.assign(jobs.size(), std::vector<InfilledText>(infiller_ ? candidates : 0));
  steps_.assign(jobs.size(), {});
  const auto calls = [&] {
    return infiller_ ? std::pair{infiller_->forwards(), infiller_->rows()}
                     : std::pair{generator_.forwards(), generator_.rows()};
  };
  const auto before = calls();
  if (infiller_) {
    fill_gaps(jobs, on_rows);
  } else {
    generate(jobs, on_rows, on_step);
  }
  MadeSamples made;
  made.forwards = calls().first - before.first;
  made.rows = calls().second - before.second;
  for (size_t i = 0; i < jobs.size(); ++i) {
    write(jobs[i], i, made);
    for (const StepView& step : steps_[i]) made.steps.push_back(step_json(step));
  }
  return made;
}

void SampleEngine::generate(const std::vector<SampleJob>& jobs, const OnRows& on_rows,
                            const OnStep& on_step) {
  const std::vector<Row> rows = rows_of(jobs);
  for (size_t first = 0; first < rows.size(); first += static_cast<size_t>(batch_size_)) {
    const size_t last = std::min(rows.size(), first + static_cast<size_t>(batch_size_));
    std::vector<int64_t> samples;
    std::vector<TokenIds> conditions;
    for (size_t r = first; r < last; ++r) {
      samples.push_back(rows[r].sample);
      if (conditional_) conditions.push_back(jobs[rows[r].job].condition);
    }
    GeneratorObserver observer;
    if (!options_.trajectory.empty() || on_step) {
      observer = [&](const GeneratorStep& step) {
        std::vector<StepView> views;
        for (size_t b = 0; b < samples.size(); ++b) {
          views.push_back(step_view(step, b, samples[b], *model_.tokenizer, decoding_));
          if (!options_.trajectory.empty()) steps_[rows[first + b].job].push_back(views.back());
        }
        if (on_step) on_step(views);
      };
    }
    const std::vector<TokenIds> made = generator_.generate(samples, conditions, observer);
    for (size_t b = 0; b < made.size(); ++b) {
      const Row& row = rows[first + b];
      ids_[row.job][static_cast<size_t>(row.candidate)] = made[b];
      texts_[row.job][static_cast<size_t>(row.candidate)] = model_.tokenizer->decode(made[b], decoding_);
    }
    on_rows(static_cast<int64_t>(last), static_cast<int64_t>(rows.size()));
  }
}

void SampleEngine::fill_gaps(const std::vector<SampleJob>& jobs, const OnRows& on_rows) {
  const std::vector<Row> rows = rows_of(jobs);
  for (size_t first = 0; first < rows.size(); first += static_cast<size_t>(batch_size_)) {
    const size_t last = std::min(rows.size(), first + static_cast<size_t>(batch_size_));
    std::vector<int64_t> samples;
    std::vector<InfillText> texts;
    std::vector<TokenIds> conditions;
    for (size_t r = first; r < last; ++r) {
      samples.push_back(rows[r].sample);
      texts.push_back(jobs[rows[r].job].infill);
      if (conditional_) conditions.push_back(jobs[rows[r].job].condition);
    }
    const std::vector<InfilledText> made = infiller_->fill(samples, texts, conditions, batch_size_);
    for (size_t b = 0; b < made.size(); ++b) {
      const size_t job = rows[first + b].job, candidate = static_cast<size_t>(rows[first + b].candidate);
      ids_[job][candidate] = made[b].ids;
      texts_[job][candidate] = render_infill(texts[b], made[b].fills, *model_.tokenizer);
      filled_[job][candidate] = made[b];
    }
    on_rows(static_cast<int64_t>(last), static_cast<int64_t>(rows.size()));
  }
}

// The record or records of one job.
void SampleEngine::write(const SampleJob& job, size_t job_number, MadeSamples& made) const {
  const std::vector<std::string>& texts = texts_[job_number];
  const auto fields = [&](size_t candidate) {
    Json more;
    if (job.skipped) more["skipped"] = "too long";
    if (!infiller_ || job.skipped) return more;
    const InfilledText& filled = filled_[job_number][candidate];
    Json fills = Json::array();
    for (const TokenIds& fill : filled.fills) fills.push_back(model_.tokenizer->decode(fill, decoding_));
    more["infill"] = job.input.text;
    more["fills"] = std::move(fills);
    more["method"] = options_.infill_method;
    if (filled.tried > 1) {
      more["lengths_tried"] = filled.tried;
      more["log_prob"] = std::round(filled.log_prob * 100) / 100;  // beyond that it depends on the batch
    }
    return more;
  };
  if (options_.choose == "all" || texts.size() == 1) {
    for (size_t k = 0; k < texts.size(); ++k) {
      Json more = fields(k);
      if (texts.size() > 1) more["candidate"] = k;
      write_record(job, ids_[job_number][k], texts[k], std::move(more), made);
    }
    return;
  }
  const CandidateChoice choice =
      choose_candidate(texts, parse_candidate_measure(options_.choose, "--choose"));
  Json more = fields(choice.chosen);
  more["choice"] = {{"method", "minimum Bayes risk"},
                    {"measure", options_.choose},
                    {"candidates", texts.size()},
                    {"chosen", choice.chosen},
                    {"utility", choice.utilities[choice.chosen]}};
  write_record(job, ids_[job_number][choice.chosen], texts[choice.chosen], std::move(more), made);
}

void SampleEngine::write_record(const SampleJob& job, const TokenIds& ids, const std::string& text, Json more,
                                MadeSamples& made) const {
  SampleRecord record{job.index,
                      job.input.id,
                      text,
                      ids,
                      config_.seed,
                      conditional_,
                      infiller_ ? job.input.condition : job.input.text,
                      std::move(more)};
  made.empty += is_blank(text);
  made.lines.push_back(options_.jsonl() ? jsonl_line(record) : text_line(record));
}

}  // namespace elf::app
