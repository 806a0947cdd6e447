// Ranges of single fields again (a configuration may have been filled by hand), then relations between
// fields.
#include <cmath>

#include "elf/config/schedules.h"
#include "schema.h"

namespace elf {
namespace config {
namespace {

struct CheckRanges {
  std::string name;
  std::optional<Violation> violation;

  template <class S>
  void section(const char* section_name, S& values, const char*) {
    name = section_name;
    fields(*this, values);
  }
  template <class T>
  void operator()(const char* key, T& value, const Rule& rule, const char*) {
    if constexpr (is_list<T>) {
      for (auto& item : value) (*this)(key, item, rule, "");
    } else if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      const auto number = static_cast<double>(value);
      if (violation || (std::isfinite(number) && within(rule, number))) return;
      const char* expected = std::is_same_v<T, double> ? "a finite number " : "an integer ";
      const std::string dotted = name + "." + key;
      violation = {{dotted},
                   cat(dotted, " is ", value_text(value), ", expected ", expected, range_text(rule))};
    }
  }
};

std::optional<Violation> check_model(const ModelConfig& m) {
  if (!m.preset.empty() && !is_preset(m.preset)) {
    return Violation{{"model.preset"},
                     cat("model.preset is '", m.preset, "', expected one of ", preset_names())};
  }
  const std::vector<std::string> heads = {"model.num_heads", "model.hidden_size"};
  if (m.hidden_size % m.num_heads != 0) {
    return Violation{
        heads, cat("model.num_heads ", m.num_heads, " does not divide model.hidden_size ", m.hidden_size)};
  }
  if (m.hidden_size / m.num_heads % 2 != 0) {
    return Violation{heads,
                     cat("model.hidden_size ", m.hidden_size, " / model.num_heads ", m.num_heads, " = ",
                         m.hidden_size / m.num_heads, " is odd; rotary embedding needs an even head width")};
  }
  if (std::floor(static_cast<double>(m.hidden_size) * m.mlp_ratio) * 2 / 3 < 1) {
    return Violation{
        {"model.mlp_ratio", "model.hidden_size"},
        cat("model.mlp_ratio ", m.mlp_ratio, " leaves no inner width for model.hidden_size ", m.hidden_size)};
  }
  return std::nullopt;
}

std::optional<Violation> check_lengths(const RunConfig& c) {
  if (c.data.max_length > 0 && c.data.max_input_length >= c.data.max_length) {
    return Violation{{"data.max_input_length", "data.max_length"},
                     cat("data.max_input_length ", c.data.max_input_length,
                         " leaves no room for a target in data.max_length ", c.data.max_length)};
  }
  if (c.model.max_length > 0 && c.data.max_length > c.model.max_length) {
    return Violation{
        {"data.max_length", "model.max_length"},
        cat("data.max_length ", c.data.max_length, " is longer than model.max_length ", c.model.max_length)};
  }
  return std::nullopt;
}

std::optional<Violation> check_learned_latents(const RunConfig& c) {
  const LatentsConfig& l = c.latents;
  if (l.source != LatentSource::kLearned) return std::nullopt;
  if (!l.path.empty() || !l.statistics.empty() || !l.cache.empty()) {
    return Violation{{"latents.path", "latents.statistics", "latents.cache"},
                     "latents.source learned is a part of the network: latents.path, latents.statistics and "
                     "latents.cache must be empty"};
  }
  if (l.mean != 0 || l.std != 1) {
    return Violation{{"latents.mean", "latents.std", "latents.source"},
                     cat("latents.source learned keeps its rows at mean 0 and standard deviation 1, but "
                         "latents.mean is ",
                         l.mean, " and latents.std ", l.std, "; set 0 and 1")};
  }
  if (!l.decoder.empty()) {
    return Violation{{"latents.decoder", "latents.source"},
                     "latents.source learned is tied with the network's own unembedding, which "
                     "latents.decoder would leave untrained; leave one of them out"};
  }
  if (c.train.objective == TrainObjective::kDistillation) {
    return Violation{{"train.objective", "latents.source"},
                     "a student would train its latents away from the teacher's: distillation does not "
                     "work with latents.source learned"};
  }
  return std::nullopt;
}

std::optional<Violation> check_latents(const RunConfig& c) {
  if (!c.latents.decoder.empty() && c.flow.decoder_prob > 0) {
    return Violation{
        {"flow.decoder_prob", "latents.decoder"},
        cat("latents.decoder reads the tokens off, but flow.decoder_prob is ", c.flow.decoder_prob,
            "; set it to 0: a decode branch of its own would be trained for nothing")};
  }
  return check_learned_latents(c);
}

std::optional<Violation> check_flow(const FlowConfig& f) {
  if (f.self_cond_cfg_min <= f.self_cond_cfg_max) return std::nullopt;  // equal: w is constant
  return Violation{{"flow.self_cond_cfg_min", "flow.self_cond_cfg_max"},
                   cat("flow.self_cond_cfg_min ", f.self_cond_cfg_min, " is above flow.self_cond_cfg_max ",
                       f.self_cond_cfg_max)};
}

std::optional<Violation> check_optimizer(const RunConfig& c) {
  const OptimizerConfig& o = c.optimizer;
  const double lr = o.lr > 0 ? o.lr : o.blr * static_cast<double>(c.train.global_batch_size) / 256;
  if (lr == 0) {
    return Violation{
        {"optimizer.blr", "optimizer.lr"},
        "optimizer.blr and optimizer.lr are both 0; set one of them: the learning rate would be 0"};
  }
  if (o.schedule != LrSchedule::kConstant && o.min_lr > lr) {
    return Violation{{"optimizer.min_lr", "optimizer.lr", "optimizer.blr"},
                     cat("optimizer.min_lr ", o.min_lr, " is above the learning rate ", lr,
                         o.lr > 0 ? " (optimizer.lr)" : " (optimizer.blr * train.global_batch_size / 256)")};
  }
  return std::nullopt;
}

std::optional<Violation> check_train(const TrainConfig& t) {
  if (t.micro_batch_size > t.global_batch_size) {
    return Violation{{"train.micro_batch_size", "train.global_batch_size"},
                     cat("train.micro_batch_size ", t.micro_batch_size,
                         " is larger than train.global_batch_size ", t.global_batch_size)};
  }
  if (t.steps > 0 && t.minutes > 0) {
    return Violation{{"train.steps", "train.minutes"},
                     cat("train.steps ", t.steps, " and train.minutes ", t.minutes,
                         " are both set; give one and set the other to 0")};
  }
  if (t.steps == 0 && t.minutes == 0 && t.epochs == 0) {
    return Violation{
        {"train.epochs", "train.steps", "train.minutes"},
        "train.epochs, train.steps and train.minutes are all 0; set one: the run would have no length"};
  }
  if (t.best_metric.find("ppl") != std::string::npos && t.best_min_entropy <= 0) {
    return Violation{{"train.best_metric", "train.best_min_entropy"},
                     cat("train.best_metric ", t.best_metric,
                         " needs train.best_min_entropy above 0: a model that repeats itself has the lowest "
                         "perplexity of all; the entropy of real text less a tenth is a floor")};
  }
  if (t.out.empty()) return Violation{{"train.out"}, "train.out is empty, expected the name of a run folder"};
  return std::nullopt;
}

std::optional<Violation> check_sampling(const SamplingConfig& s) {
  std::string key;
  try {
    key = "sampling.self_cond_cfg_schedule";
    ScaleSchedule::of(1, s.self_cond_cfg_schedule, key);
    key = "sampling.cfg_schedule";
    ScaleSchedule::of(1, s.cfg_schedule, key);
    key = "sampling.times";
    if (!s.times.empty()) parse_times(s.times, key);
  } catch (const Error& error) {
    return Violation{{key}, error.what()};
  }
  return std::nullopt;
}

std::optional<Violation> check_distillation(const RunConfig& c) {
  if (c.train.objective != TrainObjective::kDistillation) return std::nullopt;
  const DistillationConfig& d = c.distillation;
  const std::string steps = "distillation.student_steps";
  if (d.teacher.empty()) {
    return Violation{
        {"distillation.teacher", "train.objective"},
        "distillation.teacher is not set: name the run, checkpoint or model directory to distil"};
  }
  if (d.student_steps.empty())
    return Violation{{steps}, steps + " is empty, expected a number of steps for each round"};
  if (d.student_steps.size() != d.teacher_steps.size()) {
    return Violation{{steps, "distillation.teacher_steps"},
                     cat("distillation.teacher_steps has ", d.teacher_steps.size(), " values, but there are ",
                         d.student_steps.size(), " rounds in ", steps)};
  }
  for (size_t i = 1; i < d.student_steps.size(); ++i) {
    if (d.student_steps[i] >= d.student_steps[i - 1]) {
      return Violation{{steps},
                       cat(steps, " is ", value_text(d.student_steps), ", expected fewer in each round")};
    }
  }
  const auto check_list = [&](const char* key,
                              const std::vector<double>& values) -> std::optional<Violation> {
    if (values.size() <= 1 || values.size() == d.student_steps.size()) return std::nullopt;
    return Violation{{key, steps},
                     cat(key, " has ", values.size(), " values, expected none, one, or one for each of the ",
                         d.student_steps.size(), " rounds")};
  };
  if (auto found = check_list("distillation.gamma", d.gamma)) return found;
  return check_list("distillation.self_cond_cfg", d.self_cond_cfg);
}

}  // namespace

std::optional<Violation> find_violation(const RunConfig& config) {
  CheckRanges ranges;
  RunConfig copy = config;
  sections(ranges, copy);
  if (ranges.violation) return ranges.violation;
  if (auto found = check_model(config.model)) return found;
  if (auto found = check_lengths(config)) return found;
  if (auto found = check_latents(config)) return found;
  if (auto found = check_flow(config.flow)) return found;
  if (auto found = check_optimizer(config)) return found;
  if (auto found = check_train(config.train)) return found;
  if (auto found = check_sampling(config.sampling)) return found;
  return check_distillation(config);
}

}  // namespace config

void validate(const RunConfig& run) {
  if (const auto violation = config::find_violation(run)) usage_error(violation->message);
}

}  // namespace elf
