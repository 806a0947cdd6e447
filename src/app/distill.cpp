#include "distill.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "elf/base/progress.h"
#include "elf/config/enum_names.h"
#include "elf/metrics/diversity.h"
#include "elf/metrics/ngram_lm.h"
#include "elf/model/model_dir.h"
#include "elf/sample/generate.h"
#include "elf/tensor/random.h"
#include "elf/text/records.h"
#include "elf/train/distillation_rounds.h"

namespace elf::app {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
namespace {

struct Scorer {
  std::optional<NgramModel> model;
  std::string digest;  // of its text; "" = none

  explicit Scorer(const std::string& text) {
    if (text.empty()) return;
    RecordSource source;
    source.files = {text};
    model.emplace(read_records(source));
    digest = digest_of_file(text);
  }
};

std::vector<std::string> sample_texts(const Model& model, const SamplingConfig& settings, int64_t count,
                                      at::Device device, const std::string& name) {
  const RunConfig& run = model.config;
  const GeneratorShape shape{run.data.max_length > 0 ? run.data.max_length : run.model.max_length,
                             run.model.latent_dim, 0, std::max<int64_t>(0, model.tokenizer->pad_id()),
                             model.tokenizer->eos_id()};
  const SamplerModel sampler{model.denoiser(), model.traits(), run.flow.denoiser_noise_scale, run.flow.t_eps};
  Generator generator(sampler, model.codec.get(), shape, settings, device);
  Progress progress(name, count, "samples");
  std::vector<std::string> texts;
  for (int64_t first = 0; first < count; first += settings.batch_size) {
    const auto ids = generator.generate(sample_range(first, std::min(settings.batch_size, count - first)));
    for (const TokenIds& sample : ids)
      texts.push_back(model.tokenizer->decode(sample, {.skip_special = true}));
    progress.update(static_cast<int64_t>(texts.size()));
  }
  progress.finish();
  return texts;
}

Json to_json(const DistillationRow& row, const std::string& key) {
  return {{"key", key},
          {"model", row.model},
          {"steps", row.steps},
          {"gamma", row.gamma},
          {"self_cond_cfg", row.self_cond_cfg},
          {"weights_hash", row.weights_hash},
          {"perplexity", row.perplexity},
          {"entropy", row.entropy},
          {"corpus_entropy", row.corpus_entropy},
          {"distinct2", row.distinct2},
          {"samples", row.samples},
          {"blank", row.blank},
          {"train_steps", row.train_steps},
          {"train_seconds", row.train_seconds}};
}

DistillationRow from_json(const Json& j) {
  return {j.at("model"),        j.at("steps"),      j.at("gamma"),   j.at("self_cond_cfg"),
          j.at("weights_hash"), j.at("perplexity"), j.at("entropy"), j.at("corpus_entropy"),
          j.at("distinct2"),    j.at("samples"),    j.at("blank"),   j.at("train_steps"),
          j.at("train_seconds")};
}

// Rows made before, by what decides them.
class Rows {
 public:
  Rows(const RunConfig& config, at::Device device)
      : config_(config), device_(device), file_(fs::path(config.train.out) / "rounds.json") {
    std::error_code error;
    if (fs::exists(file_, error)) known_ = parse_json<Json>(read_file(file_));
    if (!known_.is_array()) known_ = Json::array();
  }

  void add(const std::string& name, const Model& model, const SamplingConfig& settings, const Json& state) {
    const DistillationConfig& d = config_.distillation;
    if (scorer_digest_.empty() && !d.eval_text.empty()) scorer_digest_ = digest_of_file(d.eval_text);
    const std::string key = cat(name, " ", model.weights_digest, " ", enum_name(settings.sampler), " ",
                                settings.steps, " ", settings.gamma, " ", settings.self_cond_cfg, " ",
                                enum_name(settings.time_schedule), " ", settings.p_mean, " ", settings.p_std,
                                " ", settings.seed, " ", d.eval_samples, " ", scorer_digest_);
    for (const Json& row : known_) {
      if (row.value("key", "") != key) continue;
      rows_.push_back(from_json(row));
      json_.push_back(row);
      return;
    }
    DistillationRow row{.model = name,
                        .steps = settings.steps,
                        .gamma = settings.gamma,
                        .self_cond_cfg = settings.self_cond_cfg,
                        .weights_hash = model.weights_digest};
    score(row,
          sample_texts(model, settings, d.eval_samples, device_, cat(name, ", ", settings.steps, " steps")));
    if (state.is_object()) {
      row.train_steps = state.value("step", int64_t{0});
      row.train_seconds = state.value("trained_seconds", 0.0);
    }
    rows_.push_back(row);
    json_.push_back(to_json(row, key));
    save();
  }

  void save() const {
    Json all = json_;
    for (const Json& row : known_) {  // those that this call has not come to yet
      const bool there =
          std::any_of(json_.begin(), json_.end(), [&](const Json& j) { return j["key"] == row["key"]; });
      if (!there) all.push_back(row);
    }
    write_file(file_, all.dump(2) + "\n");
  }
  const std::vector<DistillationRow>& rows() const { return rows_; }

 private:
  void score(DistillationRow& row, const std::vector<std::string>& texts) {
    if (!scorer_) scorer_.emplace(config_.distillation.eval_text);
    const Diversity found = diversity(texts);
    row.samples = found.samples;
    row.blank = found.blank;
    row.entropy = found.entropy;
    row.corpus_entropy = found.corpus_entropy;
    row.distinct2 = found.distinct[1];
    if (scorer_->model && found.blank < found.samples)
      row.perplexity = perplexity(*scorer_->model, texts).perplexity;
  }

  const RunConfig& config_;
  at::Device device_;
  fs::path file_;
  Json known_, json_ = Json::array();
  std::vector<DistillationRow> rows_;
  std::optional<Scorer> scorer_;
  std::string scorer_digest_;
};

// state.json of the checkpoint that the weights are of.
Json state_of(const Model& model) {
  const fs::path file = model.weights_file.parent_path() / "state.json";
  std::error_code error;
  return fs::exists(file, error) ? parse_json<Json>(read_file(file)) : Json();
}

std::string number(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Distilled ELF-B on OpenWebText: Gen. PPL under GPT-2 Large and unigram entropy (paper, version 2, appendix
// B).
std::string published(int64_t steps) {
  static const std::vector<std::pair<int64_t, std::string>> rows = {
      {1, "136.10 / 5.26"}, {2, "68.25 / 5.24"},  {4, "34.33 / 5.16"},
      {8, "23.18 / 5.07"},  {16, "22.12 / 5.06"}, {32, "21.32 / 5.04"}};
  for (const auto& [number, text] : rows) {
    if (number == steps) return text;
  }
  return "";
}

}  // namespace

bool train_rounds(const RunConfig& config, const std::function<bool(const RunConfig&)>& train,
                  const std::function<bool()>& stop) {
  const size_t rounds = config.distillation.student_steps.size();
  for (size_t i = 0; i < rounds; ++i) {
    const RunConfig round = round_config(config, i);
    if (rounds > 1) {
      log_info(cat("round ", i + 1, " of ", rounds, ": a student of ", round.sampling.steps,
                   " steps, the teacher's ", round.distillation.teacher_steps.front(),
                   " inside each; run folder ", round.train.out));
    }
    if (!train(round)) return false;
    const bool more = i + 1 < rounds || config.distillation.eval_samples > 0;
    if (more && stop()) {
      log_info(cat("stopped after round ", i + 1, " of ", rounds, "; the same command goes on from there"));
      return false;
    }
  }
  return true;
}

std::string evaluate_rounds(const RunConfig& config, at::Device device) {
  const DistillationConfig& d = config.distillation;
  const Model teacher = load_model(d.teacher, device);
  if (teacher.config.data.max_input_length > 0) {
    log_info("no table: the model answers inputs; score each round with elf-sample --input and elf-eval");
    return "";
  }
  Rows rows(config, device);
  SamplingConfig settings = teacher.config.sampling;
  settings.seed = config.sampling.seed;
  settings.steps = d.student_steps.front() * d.teacher_steps.front();
  rows.add("teacher", teacher, settings, {});
  for (size_t i = 0; i < d.student_steps.size(); ++i) {
    settings.steps = d.student_steps[i];
    rows.add("teacher", teacher, settings, {});
    const Model student = load_model(round_config(config, i).train.out, device);
    rows.add("student", student, student.config.sampling, state_of(student));
  }
  rows.save();
  const std::string scorer =
      d.eval_text.empty() ? "" : "a trigram model of " + fs::path(d.eval_text).filename().string();
  const std::string table = distillation_table(rows.rows(), scorer);
  write_file(fs::path(config.train.out) / "rounds.md", table);
  return table;
}

std::string distillation_table(const std::vector<DistillationRow>& rows, const std::string& scorer) {
  std::string text =
      "| model | steps | gamma | w | perplexity | entropy of a text | of all words | distinct-2 | texts | "
      "training | "
      "published (ELF-B, OWT) |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const DistillationRow& row : rows) {
    const bool student = row.model == "student";
    text += cat("| ", row.model, " | ", row.steps, " | ", number(row.gamma, "%.3g"), " | ",
                number(row.self_cond_cfg, "%.3g"), " | ",
                row.perplexity > 0 ? number(row.perplexity, "%.1f") : "", " | ", number(row.entropy, "%.2f"),
                " | ", number(row.corpus_entropy, "%.2f"), " | ", number(row.distinct2, "%.2f"), " | ",
                row.samples - row.blank, row.blank > 0 ? cat(" of ", row.samples) : "", " | ",
                student ? cat(row.train_steps, " steps, ", duration_text(row.train_seconds)) : "", " | ",
                student ? published(row.steps) : "", " |\n");
  }
  text += scorer.empty() ? "\nPerplexity not scored (distillation.eval_text is not set). "
                         : cat("\nPerplexity of a word under ", scorer, ". ");
  return text +
         "The published column is perplexity under GPT-2 Large / entropy of a text in GPT-2's tokens, for "
         "another model on other data: a "
         "shape to compare with, not a figure.\n";
}

}  // namespace elf::app
