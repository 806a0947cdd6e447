// A sweep as a file (configs/ablations, docs/REPRODUCE.md): what is trained, how each trained model is
// sampled, how the samples are scored, and what the paper prints for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elf/config/run_config.h"

namespace elf {

// `train:` one training run for each seed. Its keys are those of a configuration file, with `base:`, and:
struct TrainArm {
  std::string name, about;                  // about: words for the report
  RunConfig config;                         // base, `set` and the arm's own sections; train.seed is the first
  std::map<std::string, std::string> uses;  // path key ("latents.decoder") -> arm whose run folder it names
  std::vector<std::string> sample;          // names of `sample:`; empty: all
  bool scored = true;                       // sample: none
};

// `sample:` a setting of elf-eval run. A key with a list of values stands for one setting each.
struct SampleArm {
  std::string name;         // "ode"; of all settings of one list
  std::string axis, value;  // the key with the list ("sc-cfg") and this one's; "" without a list
  std::string setting;      // "sampler=ode,steps=64,sc-cfg=1.5"
  std::string label() const { return axis.empty() ? name : name + " " + axis + "=" + value; }
};

enum class ScorerKind { kGpt2, kNgram, kReferences };

// `score:` what elf-eval run is told.
struct ScoreSpec {
  ScorerKind by = ScorerKind::kGpt2;
  std::string scorer;                 // gpt2: Hugging Face folder
  std::string text;                   // training text: of the n-gram model; copies are counted against it
  std::string data;                   // references: pairs (HDF5)
  int64_t order = 3;                  // of the n-gram model
  int64_t samples = 1000;             // of each seed; of `data` the first so many pairs
  std::vector<uint64_t> seeds = {0};  // of sampling
  bool clean_up = false;              // blanks before . ? ! , are removed, as the published evaluation does
  std::vector<std::string> metrics;   // references: as --metrics of elf-eval run; empty: all
  std::string figure;                 // what arms are compared by, a figure of elf-eval run
  std::string variety;                // what stands beside a perplexity; "" with references
  bool lower_is_better = true;        // of `figure`
  std::optional<double> red_above, red_below;  // a point is red with `figure` above, or `variety` below this
};

// A row as the paper prints it: of an arm and a setting of ours, or (named) of another system.
struct PublishedRow {
  std::string train, sample, name;
  std::map<std::string, std::string> at;  // axis -> value
  std::map<std::string, double> figures;  // by the names that elf-eval run gives them
  std::map<std::string, double> errors;   // standard errors, where printed ("ppl_error")
};

struct Published {
  std::string source, verdict;  // "Table 7"; what the paper concludes
  std::string data, scorer;     // "OpenWebText", "GPT-2 Large"
  double tokens = 0;            // that training saw; 0 = not said
  int64_t samples = 0;
  std::vector<PublishedRow> rows;
};

// `expect:` a verdict that the report puts to the test.
struct Expectation {
  std::string better, than;  // arms of `train:`
};

struct AblationSpec {
  std::filesystem::path file;
  std::string name, title;            // name: of the file, without .yaml
  std::vector<std::string> recipes;   // of elf-prepare, before anything is trained
  int64_t rows = 0;                   // of the training data, for the estimate where it is not there
  std::vector<uint64_t> seeds = {0};  // of training
  std::vector<TrainArm> train;
  std::vector<SampleArm> sample;
  ScoreSpec score;
  Published published;
  std::vector<Expectation> expect;

  const TrainArm* arm(const std::string& name) const;
  std::vector<const SampleArm*> settings_of(const TrainArm& arm) const;
};

// Throws Error (usage) naming file, line, key, found and expected; configurations are checked as
// load_run_config checks them.
AblationSpec load_ablation_spec(const std::filesystem::path& file);

// Names `run` as the value of a path key that `uses` knows.
void use_run(RunConfig& config, const std::string& key, const std::filesystem::path& run);

}  // namespace elf
