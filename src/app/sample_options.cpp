#include "sample_options.h"

#include <algorithm>

#include "elf/base/error.h"
#include "elf/base/outputs.h"
#include "elf/sample/candidates.h"
#include "elf/sample/infill.h"
#include "sampler_setting.h"

namespace elf::app {
namespace {

constexpr const char* kExamples =
    "  elf-sample --model runs/verses --num-samples 20\n"
    "  elf-sample --model runs/verses --num-samples 1000 --seed 1 --sampler ode --steps 64 --sc-cfg 2 "
    "--output samples.jsonl\n"
    "  elf-sample --model runs/de-en --input test.de --cfg 2 --output test.out\n"
    "  echo 'Guten Morgen' | elf-sample --model runs/de-en --input -\n"
    "  elf-sample --model runs/de-en --input test.de --num-candidates 8 --choose bleu\n"
    "  echo 'and the king <gap:2> unto <gap>' | elf-sample --model runs/verses --infill -\n"
    "  elf-sample --model runs/verses --num-samples 4 --trajectory steps.html --watch\n"
    "  elf-sample --model runs/verses --num-samples 500 --sweep sc-cfg=1,2,3 steps=16,32 --output s.jsonl\n"
    "  torchrun --no-python --nproc_per_node 4 elf-sample --model runs/verses --num-samples 10000 --output "
    "s.jsonl\n"
    "Settings that are not given come from the model's own `sampling:` section.\n"
    "Beside --output F stands F.json: what the samples were made with. More in docs/SAMPLING.md.\n";

void add_sampler_options(Command& app, SampleOptions& o) {
  const auto add = [&](const std::string& name, const std::string& help) {
    app.add_option_function(
        "--" + name, [&o, name](const std::string& value) { o.settings[name] = value; }, help);
  };
  add("seed", "Sample i depends on model, settings, seed and i only");
  add("steps", "Sampling steps");
  add("sampler", "sde, ode, heun or multistep (the last two are of second order)");
  add("gamma", "Noise of the SDE; 0 = the ODE");
  add("sde-update", "published or paper: what an SDE step moves");
  add("sc-cfg", "Scale of self-condition guidance (w): 3, or over t: 0:1,0.5:3 or 3@0.2-0.8");
  add("cfg", "Scale of guidance on the input, likewise; 1 = none");
  add("time-schedule", "logit-normal, uniform or logit-normal-quantiles");
  add("times", "Own rising times, 0.1,0.3,0.7, in place of --steps and --time-schedule");
  app.add_option(
      "--sweep", o.sweep,
      "Every combination of these settings, with one load of the model: sc-cfg=1,2,3 steps=16,32; a "
      "file each beside --output");
}

}  // namespace

bool SampleOptions::jsonl() const {
  return format == "jsonl" || (format.empty() && std::filesystem::path(output).extension() == ".jsonl");
}

void add_sample_options(Command& app, SampleOptions& o) {
  app.add_option("--model", o.model, "Run folder, checkpoint folder or model directory")->required();
  app.add_option("--num-samples", o.num_samples, "Unconditional models: how many samples");
  app.add_option("--input", o.input,
                 "Conditional models: one output for each line of this text or record of this .jsonl; - = "
                 "standard input, answered as it comes");
  app.add_option("--infill", o.infill,
                 "Texts with gaps to fill, likewise: <gap> of free length, <gap:3>, <gap:2-5>");
  app.add_option("--field", o.field, "The input is JSONL with its text under this key (.jsonl files: text)");
  app.add_option("--first-index", o.first_index,
                 "Number of the first sample: shares of one set can be made apart");
  add_sampler_options(app, o);
  app.add_option("--num-candidates", o.num_candidates, "Texts made for each input")->capture_default_str();
  app.add_option("--choose", o.choose,
                 "Which of several candidates is kept: the one closest to the others by bleu or rouge "
                 "(minimum Bayes risk), or all")
      ->one_of({"bleu", "rouge", "all"})
      ->capture_default_str();
  app.add_option(
         "--long-input", o.long_input,
         "Inputs beyond the model's length: truncate, skip (their output is empty) or refuse (exit 2)")
      ->one_of({"truncate", "skip", "refuse"})
      ->capture_default_str();
  app.add_option("--infill-method", o.infill_method,
                 "What holds the known text: path, reencode or pin (docs/SAMPLING.md)")
      ->capture_default_str();
  app.add_option("--free-gap", o.free_gap, "Most tokens of a <gap> of free length")->capture_default_str();
  app.add_option(
      "--batch-size", o.batch_size,
      "Rows at a time; without it as many as memory holds, at most the model's sampling.batch_size. "
      "The result does not depend on it");
  app.add_flag("--no-graph", o.no_graph,
               "CUDA: launch every kernel of every step; without it network calls are recorded and replayed");
  app.add_option("--max-wait", o.max_wait,
                 "Input from a pipe: seconds that a line waits for others to share its batch")
      ->capture_default_str();
  app.add_option("--weights", o.weights, "ema or raw")->one_of({"ema", "raw"})->capture_default_str();
  app.add_flag("--clean-up", o.clean_up,
               "Remove blanks before . ? ! , and in contractions, as the published evaluation does");
  app.add_option("--format", o.format,
                 "text (one sample a line) or jsonl; without it by the name of --output")
      ->one_of({"text", "jsonl"});
  app.add_option("--output", o.output, "File to write; without it standard output");
  app.add_flag("--resume", o.resume, "Go on with the interrupted --output F.jsonl (F.jsonl.partial)");
  app.add_option(
      "--trajectory", o.trajectory,
      "What every sample reads as at every step: .jsonl, an .html page with a slider, or an .svg of the "
      "first three");
  app.add_flag("--watch", o.watch, "Show the text condensing out of noise, in this terminal");
  app.add_option("--watch-delay", o.watch_delay, "Seconds that --watch shows a step for, at least")
      ->capture_default_str();
  add_common_options(app, o.common);
  with_examples(app, kExamples);
}

void check_sample_options(const SampleOptions& o) {
  const int sources = (o.num_samples ? 1 : 0) + (o.input.empty() ? 0 : 1) + (o.infill.empty() ? 0 : 1);
  if (sources != 1) usage_error("give one of --num-samples N, --input FILE and --infill FILE");
  if (!o.output.empty() && o.output == o.trajectory)
    usage_error("--output and --trajectory: both are ", o.output, "; name two files");
  refuse_overwriting(o.output, {o.source(), o.model});
  refuse_overwriting(o.trajectory, {o.source(), o.model, o.output});
  const auto within = [](const char* name, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most)
      usage_error(name, ": found ", value, ", expected an integer from ", least, " to ", most);
  };
  within("--first-index", o.first_index, 0, kMostSamples - 1);
  if (o.num_samples) within("--num-samples", *o.num_samples, 1, kMostSamples - o.first_index);
  if (o.batch_size) within("--batch-size", *o.batch_size, 1, 1 << 20);
  within("--num-candidates", o.num_candidates, 1, 1024);
  within("--free-gap", o.free_gap, 1, 1 << 20);
  for (const auto& [name, value] : {std::pair{"--max-wait", o.max_wait}, {"--watch-delay", o.watch_delay}}) {
    if (!(value >= 0 && value <= 3600)) usage_error(name, ": found ", value, ", expected 0 to 3600 seconds");
  }
  parse_infill_method(o.infill_method, "--infill-method");
  const std::string kind = std::filesystem::path(o.trajectory).extension().string();
  if (!o.trajectory.empty() && kind != ".jsonl" && kind != ".html" && kind != ".svg")
    usage_error("--trajectory ", o.trajectory, ": expected a name that ends in .jsonl, .html or .svg");
  const bool shown = !o.trajectory.empty() || o.watch;
  if (shown && !o.infill.empty())
    usage_error("--trajectory and --watch show samples from noise, not --infill");
  if (shown && o.num_candidates > 1) usage_error("--trajectory and --watch go with one candidate an input");
  if (o.num_candidates > 1 && o.num_samples)
    usage_error("--num-candidates are for the inputs of --input and --infill; here raise --num-samples");
  if (o.resume && (o.output.empty() || !o.jsonl()))
    usage_error("--resume needs --output FILE.jsonl: its records say which samples are there");
  if (o.resume && shown) usage_error("--resume cannot go on with a --trajectory; leave one of them out");
  if (!o.sweep.empty() && (o.output.empty() || shown))
    usage_error("--sweep needs --output FILE, beside which each setting gets its own, and no --trajectory");
  if (!o.sweep.empty() && o.source() == "-")
    usage_error("--sweep reads its inputs again: give a file, not -");
}

std::string SweepPoint::file(const std::string& output) const {
  if (values.empty()) return output;
  const std::filesystem::path path(output);
  std::string name = path.stem().string();
  for (const auto& [key, value] : values) name += "." + key + "=" + value;
  return (path.parent_path() / (name + path.extension().string())).string();
}

std::vector<SweepPoint> sweep_points(const SamplingConfig& of_model, const SampleOptions& options) {
  SweepPoint base{of_model, {}};
  if (options.no_graph) base.config.cuda_graph = false;
  // Times first: --steps beside --times is a contradiction, not a question of order.
  if (options.settings.contains("times") && options.settings.contains("steps"))
    usage_error("--times already says how many steps there are; leave --steps out");
  for (const auto& [name, value] : options.settings)
    apply_sampler_setting(base.config, name, value, "--" + name);
  std::vector<SweepPoint> points{base};
  for (const std::string& axis : options.sweep) {
    const size_t equals = axis.find('=');
    if (equals == std::string::npos || equals + 1 == axis.size())
      usage_error("--sweep: found '", axis, "', expected SETTING=VALUE,VALUE,... as in sc-cfg=1,2,3");
    std::vector<SweepPoint> longer;
    for (const SweepPoint& point : points) {
      for (size_t begin = equals + 1; begin <= axis.size();) {
        const size_t end = std::min(axis.find(',', begin), axis.size());
        const std::string name = axis.substr(0, equals), value = axis.substr(begin, end - begin);
        longer.push_back(point);
        longer.back().values.emplace_back(name, value);
        apply_sampler_setting(longer.back().config, name, value, "--sweep " + name);
        begin = end + 1;
      }
    }
    points = std::move(longer);
  }
  return points;
}

}  // namespace elf::app
