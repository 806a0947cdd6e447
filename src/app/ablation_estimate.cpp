// What sweeps cost and what of them is done: elf-bench ablation --dry-run.
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "ablation.h"
#include "child_process.h"
#include "elf/base/atomic_folder.h"
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "eval_common.h"

namespace elf::app {
namespace {

namespace fs = std::filesystem;

std::string flops_text(double value) {
  std::ostringstream text;
  text.precision(2);
  text << value;
  return text.str();
}

std::string state_of(const Job& job, const JobCost& cost) {
  const std::string scores = cat(job.scored(), " of ", job.settings.size(), " scored");
  if (job.trained()) return job.scored() == job.settings.size() ? "done" : "trained, " + scores;
  const int64_t steps = job.steps_done();
  if (steps == 0) return "to do";
  return cat("step ", steps, cost.steps > 0 ? cat(" of ", static_cast<int64_t>(cost.steps)) : "");
}

// FLOP/s of training: as given, as runs of these sweeps reached, or as elf-bench speed measures it now.
struct Rate {
  double flops = 0;
  std::string source;
};

// A few steps of the job, with its data or, where these are not there, with noise of its sizes. Leaves
// nothing behind.
Rate measure_now(const Sweep& sweep, const Job& job, const SweepOptions& options) {
  const JobCost cost = cost_of(job, sweep.spec);
  if (cost.step_flops == 0)
    usage_error("--measure: the sizes of ", job.name, " are not known: ", cost.unknown);
  const AtomicFolder scratch(fs::temp_directory_path() / cat("elf-measure-", job.id, "-", ::getpid()));
  const fs::path config = scratch.temporary() / "run.yaml", output = scratch.temporary() / "speed.json";
  ChildOptions child;
  child.command = {sibling_tool("elf-bench"),
                   "speed",
                   "train",
                   "--steps",
                   "3",
                   "--json",
                   "--device",
                   options.device,
                   "--threads",
                   std::to_string(options.threads)};
  if (fs::exists(job.config.data.train)) {
    write_file(config, to_yaml(job.config));
    child.command.insert(child.command.end(), {"--config", config.string()});
  } else {
    const ModelConfig& model = job.config.model;
    const int64_t length = std::max<int64_t>(1, job.config.data.max_length);
    const auto add = [&](const char* name, int64_t value) {
      child.command.insert(child.command.end(), {name, std::to_string(value)});
    };
    child.command.insert(child.command.end(), {"--preset", model.preset.empty() ? "elf-b" : model.preset});
    add("--batch", std::max<int64_t>(1, 2048 / length));
    add("--length", length);
    add("--latent", model.latent_dim);
    add("--vocab", std::max<int64_t>(1, model.vocab_size));
  }
  child.log = output;
  const int code = ChildProcess(child).wait();
  const std::string text = read_file(output);
  if (code != 0) usage_error("--measure: elf-bench speed ended with exit code ", code, ": ", text);
  const auto json = parse_json<OrderedJson>(text.substr(std::min(text.find('{'), text.size())));
  if (!json.is_object()) environment_error("--measure: elf-bench speed printed no figures: ", text);
  const double steps_per_second = json.at("tokens_per_second").get<double>() / cost.step_tokens;
  return {steps_per_second * cost.step_flops, "measured now"};
}

Rate rate_for(const std::vector<Sweep>& sweeps, const SweepOptions& options,
              const EstimateOptions& estimate) {
  if (estimate.rate > 0) return {estimate.rate, "given"};
  if (estimate.measure) return measure_now(sweeps.front(), sweeps.front().jobs.front(), options);
  std::vector<double> rates;
  for (const Sweep& sweep : sweeps) {
    for (const Job& job : sweep.jobs) {
      if (const auto rate = measured_rate(job, cost_of(job, sweep.spec))) rates.push_back(*rate);
    }
  }
  if (rates.empty()) return {};
  std::ranges::sort(rates);
  return {rates[rates.size() / 2], cat("as ", rates.size(), " runs here trained")};
}

struct Totals {
  double train = 0, sample = 0;  // FLOPs that remain
  size_t runs = 0, jobs = 0, settings = 0;
  std::vector<std::string> missing, seen;  // seen: runs
};

// FLOPs that are left to do of a job; equal runs count once.
void add_remaining(Totals& totals, const Job& job, const JobCost& cost) {
  ++totals.jobs;
  totals.settings += job.settings.size();
  std::istringstream lines(cost.unknown);
  for (std::string line; std::getline(lines, line);) {
    if (std::ranges::find(totals.missing, line) == totals.missing.end()) totals.missing.push_back(line);
  }
  const auto todo = static_cast<double>(job.settings.size() - job.scored());
  if (!job.settings.empty())
    totals.sample += cost.sample_flops * todo / static_cast<double>(job.settings.size());
  if (std::ranges::find(totals.seen, job.id) != totals.seen.end()) return;
  totals.seen.push_back(job.id);
  ++totals.runs;
  if (!job.trained())
    totals.train += std::max(0.0, cost.train_flops - static_cast<double>(job.steps_done()) * cost.step_flops);
}

std::string time_text(double flops, const Rate& rate) {
  return rate.flops > 0 && flops > 0 ? long_time(flops / rate.flops) : "?";
}

}  // namespace

std::string plan_as_text(const std::vector<Sweep>& sweeps, const SweepOptions& options,
                         const EstimateOptions& estimate) {
  std::ostringstream text;
  const Rate rate = rate_for(sweeps, options, estimate);
  Totals totals;
  for (const Sweep& sweep : sweeps) {
    text << sweep.spec.name << ": " << sweep.spec.title << "\n";
    std::vector<std::vector<std::string>> rows = {{"  arm", "run", "parameters", "steps", "tokens",
                                                   "train FLOP", "settings", "sample FLOP", "time", "state"}};
    for (const size_t index : chosen_jobs(sweep, options.only)) {
      const Job& job = sweep.jobs[index];
      const JobCost cost = cost_of(job, sweep.spec);
      const auto known = [](double value, const std::string& text) { return value > 0 ? text : "?"; };
      rows.push_back(
          {"  " + job.name, job.id, known(cost.parameters, short_number(cost.parameters)),
           known(cost.steps, short_number(cost.steps)), known(cost.tokens, short_number(cost.tokens)),
           known(cost.train_flops, flops_text(cost.train_flops)), std::to_string(job.settings.size()),
           known(cost.sample_flops, flops_text(cost.sample_flops)),
           time_text(cost.train_flops + cost.sample_flops, rate), state_of(job, cost)});
      add_remaining(totals, job, cost);
    }
    text << aligned(rows);
  }
  text << totals.jobs << " arms on " << totals.runs << " runs, " << totals.settings
       << " settings; to do: training " << flops_text(totals.train) << " FLOP, sampling "
       << flops_text(totals.sample) << " FLOP";
  if (rate.flops > 0) {
    text << ", about " << long_time((totals.train + totals.sample) / rate.flops) << " at "
         << flops_text(rate.flops) << " FLOP/s (" << rate.source
         << "), one job at a time; scoring not counted\n";
  } else {
    text << "\ntime: not known before something has run; --measure times a few steps, --rate FLOPS takes a "
            "figure\n";
  }
  for (const std::string& missing : totals.missing) text << "missing: " << missing << "\n";
  return text.str();
}

std::string plan_as_json(const std::vector<Sweep>& sweeps, const SweepOptions& options,
                         const EstimateOptions& estimate) {
  const Rate rate = rate_for(sweeps, options, estimate);
  OrderedJson list = OrderedJson::array();
  for (const Sweep& sweep : sweeps) {
    OrderedJson jobs = OrderedJson::array();
    for (const size_t index : chosen_jobs(sweep, options.only)) {
      const Job& job = sweep.jobs[index];
      const JobCost cost = cost_of(job, sweep.spec);
      OrderedJson one = {{"name", job.name},
                         {"train", job.arm->name},
                         {"seed", job.seed},
                         {"run", job.id},
                         {"parameters", cost.parameters},
                         {"steps", cost.steps},
                         {"tokens", cost.tokens},
                         {"train_flops", cost.train_flops},
                         {"sample_flops", cost.sample_flops},
                         {"settings", OrderedJson::array()},
                         {"scored", job.scored()},
                         {"trained", job.trained()},
                         {"steps_done", job.steps_done()},
                         {"missing", cost.unknown}};
      for (const JobSetting& setting : job.settings) one["settings"].push_back(setting.arm->label());
      one["seconds"] = rate.flops > 0 ? OrderedJson((cost.train_flops + cost.sample_flops) / rate.flops)
                                      : OrderedJson(nullptr);
      jobs.push_back(one);
    }
    list.push_back({{"name", sweep.spec.name}, {"title", sweep.spec.title}, {"jobs", jobs}});
  }
  return OrderedJson{{"flops_per_second", rate.flops}, {"sweeps", list}}.dump(2) + "\n";
}

}  // namespace elf::app
