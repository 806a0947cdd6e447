// elf-sample: a trained model in, texts out.
#include "elf/app/tools.h"
#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/base/progress.h"
#include "elf/config/enum_names.h"
#include "elf/model/model_dir.h"
#include "sample_jobs.h"
#include "sample_options.h"
#include "sample_ranks.h"
#include "sample_run.h"

namespace elf::app {
namespace {

void warn_of_unused(const SampleOptions& o, const Model& model) {
  if (o.settings.contains("sc-cfg") && !model.traits().self_cond && !model.traits().cfg_tokens)
    log_warning("--sc-cfg changes nothing: the model has no self-conditioning");
  if (o.settings.contains("cfg") && model.config.data.max_input_length == 0)
    log_warning("--cfg changes nothing: the model takes no input");
}

void report_inputs(const SampleOptions& o, const InputCounts& inputs) {
  if (inputs.with_line_breaks > 0)
    log_warning(cat(inputs.with_line_breaks, " inputs had line breaks inside; they were read as blanks"));
  if (inputs.too_long > 0)
    log_warning(cat(inputs.too_long, " inputs are longer than the model takes and were ",
                    o.long_input == "skip" ? "skipped: their outputs are empty" : "cut"));
  if (inputs.without_gap > 0)
    log_warning(cat(inputs.without_gap, " texts have no <gap> and stay as they are"));
}

void report(const SamplingConfig& config, const SampleTotals& totals, const std::string& file,
            const std::string& weights) {
  const auto scale = [](double constant, const std::string& schedule) {
    return schedule.empty() ? cat(constant) : schedule;
  };
  log_info(cat(file.empty() ? "" : file + ": ", totals.samples, " samples (", totals.empty, " empty",
               totals.resumed > 0 ? cat(", ", totals.resumed, " from before") : "", ") in ",
               duration_text(totals.seconds), ", ", enum_name(config.sampler), " ", config.steps,
               " steps, w ", scale(config.self_cond_cfg, config.self_cond_cfg_schedule), ", ",
               totals.forwards, " network calls (", totals.rows, " rows), seed ", config.seed, ", weights ",
               weights));
  if (totals.samples > 0 && totals.empty * 5 > totals.samples) {
    log_warning(cat(totals.empty, " of ", totals.samples,
                    " samples are empty: the model ends the text at once. Too little training, or padding ",
                    "dominates what it learned (flow.pad_token)"));
  }
}

void sample_from(SampleOptions o) {
  check_sample_options(o);
  const Launch launch = read_launch();
  SampleRanks ranks(launch, cat(o.model, "\n", o.source(), "\n", o.output));
  try {
    o.common.device_name = device_of_process(o.common.device_name, launch.local_rank).str();
    if (ranks.size() > 1 && o.source() == "-")
      usage_error("several ranks cannot share standard input: give a file");
    if (ranks.size() > 1 && o.watch) usage_error("--watch goes with one process");
    const Model model =
        load_model(o.model, o.common.device(), o.weights == "ema" ? Weights::kEma : Weights::kRaw);
    const std::vector<SweepPoint> points = sweep_points(model.config.sampling, o);
    if (ranks.first()) warn_of_unused(o, model);
    for (const SweepPoint& point : points) {
      JobSource source(o, model);
      const SampleTotals totals = run_samples(o, model, point, source, ranks);
      if (!ranks.first()) continue;
      if (&point == &points.back()) report_inputs(o, source.counts());
      report(point.config, totals, points.size() > 1 ? point.file(o.output) : "", model.weights_kind);
    }
  } catch (const std::exception& error) {
    ranks.give_up(error.what());
    throw;
  }
}

}  // namespace

int sample(int argc, char** argv) {
  Command app("Texts from a trained model: from noise, one for each line of input, or into gaps.",
              "elf-sample");
  SampleOptions options;
  add_sample_options(app, options);
  return run(app, options.common, argc, argv, [&] { sample_from(options); });
}

}  // namespace elf::app
