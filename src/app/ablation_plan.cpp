// From a sweep's file to its jobs: which runs, under which names, what of them is there, what they cost.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ablation.h"
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/model/flops.h"
#include "elf/model/model_dir.h"
#include "elf/sample/sampler.h"
#include "elf/train/run_plan.h"

namespace elf::app {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
namespace {

// Settings that change nothing of what a run becomes, or (of `sampling`) that each setting gives itself.
constexpr const char* kNeutral[] = {"train.out",
                                    "train.log_every",
                                    "train.valid_every",
                                    "train.valid_batches",
                                    "train.save_every",
                                    "train.keep_last",
                                    "train.keep_every",
                                    "train.save_in_background",
                                    "train.spike_factor",
                                    "train.sample_every",
                                    "train.sample_count",
                                    "train.hook",
                                    "train.tensorboard",
                                    "train.stop_signals",
                                    "train.collective_timeout",
                                    "train.first_rank_timeout",
                                    "train.micro_batch_size",
                                    "train.recompute",
                                    "sampling.sampler",
                                    "sampling.steps",
                                    "sampling.gamma",
                                    "sampling.sde_update",
                                    "sampling.self_cond_cfg",
                                    "sampling.cfg",
                                    "sampling.time_schedule",
                                    "sampling.seed",
                                    "sampling.batch_size",
                                    "sampling.cuda_graph"};

// The first eight digits of a digest are enough to tell a few hundred runs apart.
std::string short_digest(const std::string& text) {
  const std::string whole = digest(text);
  return whole.substr(whole.find(':') + 1, 8);
}

std::string run_id(const RunConfig& config) {
  std::string text;
  for (const auto& [key, value] : flat_fields(config)) {
    if (std::ranges::find(kNeutral, key) == std::end(kNeutral)) text += key + "=" + value + "\n";
  }
  return (config.model.preset.empty() ? "run" : config.model.preset) + "-" + short_digest(text);
}

std::string scoring_id(const ScoreSpec& s) {
  std::string text = cat(static_cast<int>(s.by), "\n", s.scorer, "\n", s.text, "\n", s.data, "\n", s.order,
                         "\n", s.clean_up, "\n", s.samples);
  for (const uint64_t seed : s.seeds) text += cat("\nseed ", seed);
  for (const std::string& metric : s.metrics) text += "\n" + metric;
  return short_digest(text);
}

Job make_job(const Sweep& sweep, const TrainArm& arm, uint64_t seed) {
  Job job;
  job.arm = &arm;
  job.seed = seed;
  job.name = sweep.spec.seeds.size() > 1 ? cat(arm.name, ".seed", seed) : arm.name;
  job.config = arm.config;
  job.config.train.seed = seed;
  for (const auto& [key, used] : arm.uses) {
    const auto found = std::ranges::find_if(sweep.jobs, [&, &name = used](const Job& other) {
      return other.arm->name == name && other.seed == seed;
    });
    job.needs.push_back(static_cast<size_t>(found - sweep.jobs.begin()));
    use_run(job.config, key, found->run);
  }
  validate(job.config);
  job.id = run_id(job.config);
  job.run = sweep.out / "runs" / job.id;
  job.config.train.out = job.run.string();
  const fs::path scores = job.run / "scores" / scoring_id(sweep.spec.score);
  for (const SampleArm* sample : sweep.spec.settings_of(arm)) {
    JobSetting& one = job.settings.emplace_back();
    one.arm = sample;
    one.setting = parse_setting(sample->setting, job.config.sampling);
    one.record = scores / (one.setting.name + ".json");
  }
  return job;
}

// Positions and prefix; of pairs, guidance on the condition doubles the rows.
double sampling_flops(const RunConfig& config, const JobSetting& setting) {
  const SamplingConfig& s = setting.setting.config;
  const RowFlops row = forward_flops(config.model, config.data.max_length, config.flow.self_cond_prob > 0);
  const auto calls = static_cast<double>(network_calls(s));
  const double rows = s.cfg != 1 && config.data.max_input_length > 0 ? 2 : 1;
  return rows * calls * (row.trunk + row.denoise_head) + row.trunk + row.decode_head;
}

Json setting_json(const Sweep& sweep, const JobSetting& one) {
  return {{"sample", one.arm->name},
          {"axis", one.arm->axis},
          {"value", one.arm->value},
          {"label", one.arm->label()},
          {"record", fs::relative(one.record, sweep.folder()).string()}};
}

Json job_json(const Sweep& sweep, const Job& job) {
  Json json = {{"name", job.name},
               {"train", job.arm->name},
               {"about", job.arm->about},
               {"seed", job.seed},
               {"run", fs::relative(job.run, sweep.folder()).string()},
               {"settings", Json::array()}};
  for (const JobSetting& one : job.settings) json["settings"].push_back(setting_json(sweep, one));
  return json;
}

Json score_json(const ScoreSpec& s) {
  const auto bound = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  constexpr const char* kNames[] = {"gpt2", "ngram", "references"};
  return {{"by", kNames[static_cast<int>(s.by)]},
          {"scorer", s.scorer},
          {"text", s.text},
          {"data", s.data},
          {"order", s.order},
          {"samples", s.samples},
          {"seeds", s.seeds},
          {"figure", s.figure},
          {"variety", s.variety},
          {"lower_is_better", s.lower_is_better},
          {"red_above", bound(s.red_above)},
          {"red_below", bound(s.red_below)}};
}

Json published_json(const Published& p) {
  Json json = {{"source", p.source}, {"verdict", p.verdict}, {"data", p.data},       {"scorer", p.scorer},
               {"tokens", p.tokens}, {"samples", p.samples}, {"rows", Json::array()}};
  for (const PublishedRow& row : p.rows) {
    json["rows"].push_back({{"train", row.train},
                            {"sample", row.sample},
                            {"name", row.name},
                            {"at", row.at},
                            {"figures", row.figures},
                            {"errors", row.errors}});
  }
  return json;
}

}  // namespace

RunProgress progress_of(const fs::path& run) {
  std::error_code error;
  const std::string name = latest_checkpoint(run);
  if (name.empty()) return {};
  const fs::path state = run / "checkpoints" / name / "state.json";
  if (!fs::exists(state, error)) return {};
  const Json json = parse_json<Json>(read_file(state));
  const auto number = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_number();
  };
  if (!number("step"))
    usage_error(state.lexically_normal().string(),
                ": is damaged: expected an object with the number of its step; remove ",
                run.lexically_normal().string(), " to train that run again");
  return {json["step"].get<int64_t>(), number("trained_seconds") ? json["trained_seconds"].get<double>() : 0};
}

int64_t Job::steps_done() const {
  return progress_of(run).steps;
}

bool Job::trained() const {
  std::error_code error;
  return fs::exists(run / "trained", error);
}

size_t Job::scored() const {
  return static_cast<size_t>(std::ranges::count_if(settings, &JobSetting::done));
}

static_assert(std::is_nothrow_move_constructible_v<Sweep>, "jobs point into their sweep");

Sweep plan_sweep(AblationSpec spec, const fs::path& out) {
  Sweep sweep{std::move(spec), fs::absolute(out).lexically_normal(), {}};
  for (const TrainArm& arm : sweep.spec.train) {
    for (const uint64_t seed : sweep.spec.seeds) {
      try {
        sweep.jobs.push_back(make_job(sweep, arm, seed));
      } catch (const Error& error) {
        usage_error(sweep.spec.file.string(), ": arm ", arm.name, ": ", error.what());
      }
    }
  }
  return sweep;
}

JobCost cost_of(const Job& job, const AblationSpec& spec) {
  JobCost cost;
  RunPlan plan;
  try {
    plan = plan_run(job.config, /*data_may_be_missing=*/true);
  } catch (const Error& error) {
    cost.unknown = error.what();
    return cost;
  }
  for (const std::string& missing : plan.missing) {
    // Runs of other arms are made on the way.
    if (missing.find(job.run.parent_path().string()) != std::string::npos) continue;
    cost.unknown += (cost.unknown.empty() ? "" : "\n") + missing;
  }
  const RunConfig& config = plan.config;
  const auto batch = static_cast<double>(config.train.global_batch_size);
  cost.parameters = static_cast<double>(plan.parameters);
  cost.steps = static_cast<double>(plan.steps);
  if (plan.steps == 0 && !plan.train && config.train.minutes == 0)
    cost.steps = std::round(config.train.epochs * static_cast<double>(spec.rows) / batch);
  cost.step_tokens = batch * static_cast<double>(config.data.max_length);
  cost.tokens = cost.steps * cost.step_tokens;
  cost.step_flops = batch * training_flops(config.model, config.flow, config.data.max_length);
  cost.train_flops = cost.steps * cost.step_flops;
  for (const JobSetting& one : job.settings)
    cost.sample_flops += sampling_flops(config, one) * static_cast<double>(spec.score.samples) *
                         static_cast<double>(spec.score.seeds.size());
  return cost;
}

std::optional<double> measured_rate(const Job& job, const JobCost& cost) {
  std::error_code error;
  const fs::path file = job.run / "metrics.jsonl";
  if (cost.step_flops == 0 || !fs::exists(file, error)) return std::nullopt;
  std::vector<double> rates;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const Json json = parse_json<Json>(line);
    if (!json.is_object() || !json.contains("tokens_per_second") || !json["tokens_per_second"].is_number())
      continue;
    rates.push_back(json["tokens_per_second"].get<double>() / cost.step_tokens * cost.step_flops);
  }
  if (rates.empty()) return std::nullopt;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

std::string long_time(double seconds) {
  std::ostringstream text;
  text.precision(2);
  if (seconds < 100) {
    text << std::lround(seconds) << " s";
  } else if (seconds < 6000) {
    text << std::lround(seconds / 60) << " min";
  } else if (seconds < 100 * 3600.0) {
    text << std::fixed;
    text.precision(1);
    text << seconds / 3600 << " h";
  } else {
    text << std::lround(seconds / 86400) << " days";
  }
  return text.str();
}

void write_sweep(const Sweep& sweep) {
  const AblationSpec& spec = sweep.spec;
  Json json = {{"sweep", "elf-bench 1"},
               {"name", spec.name},
               {"title", spec.title},
               {"spec", spec.file.string()},
               {"score", score_json(spec.score)},
               {"published", published_json(spec.published)},
               {"expect", Json::array()},
               {"jobs", Json::array()}};
  for (const Expectation& verdict : spec.expect)
    json["expect"].push_back({{"better", verdict.better}, {"than", verdict.than}});
  for (const Job& job : sweep.jobs) json["jobs"].push_back(job_json(sweep, job));
  make_folder(sweep.folder());
  write_file(sweep.folder() / "sweep.json", json.dump(2) + "\n");
}

}  // namespace elf::app
