// `sample:`, `score:` and `published:` of a sweep's file.
#include <algorithm>

#include "ablation_reading.h"
#include "schema.h"

namespace elf::config {
namespace {

struct ScorerName {
  const char* name;
  ScorerKind kind;
};
constexpr ScorerName kScorers[] = {
    {"gpt2", ScorerKind::kGpt2}, {"ngram", ScorerKind::kNgram}, {"references", ScorerKind::kReferences}};

ScorerKind scorer_kind(const Part& part) {
  const std::string text = value_of<std::string>(part);
  for (const ScorerName& known : kScorers) {
    if (text == known.name) return known.kind;
  }
  usage_error(part.place, ": ", part.name, ": found '", text, "', expected one of gpt2, ngram, references");
}

// What each scorer needs, and what the arms are compared by unless the file says otherwise.
void complete(ScoreSpec& score, const Part& part) {
  const auto need = [&](const std::string& value, const char* key, const char* what) {
    if (value.empty()) usage_error(part.place, ": ", part.name, ".", key, " is missing: ", what);
  };
  switch (score.by) {
    case ScorerKind::kGpt2:
      need(score.scorer, "scorer", "the Hugging Face folder of the GPT-2 that scores");
      if (score.figure.empty()) score.figure = "ppl";
      score.variety = "entropy";
      if (!score.red_above) score.red_above = 300;
      if (!score.red_below) score.red_below = 5;
      break;
    case ScorerKind::kNgram:
      need(score.text, "text", "the training text that the n-gram model is made of");
      if (score.figure.empty()) score.figure = "perplexity";
      score.variety = "corpus_entropy";
      break;
    case ScorerKind::kReferences:
      need(score.data, "data", "the pairs (HDF5) whose targets are the references");
      need(score.figure, "figure", "the figure of elf-eval run that arms are compared by, such as bleu");
      break;
  }
  constexpr const char* kLower[] = {"ppl", "perplexity", "ter", "character_error_rate"};
  score.lower_is_better = std::ranges::find(kLower, score.figure) != std::end(kLower);
}

// Scalars of a mapping into figures, their errors ("ppl_error") and what says which point it is.
PublishedRow read_row(const Part& part) {
  PublishedRow row;
  constexpr const char* kAxes[] = {"steps", "gamma", "sc-cfg", "cfg", "time-schedule", "sampler"};
  read_named(part, [&](const std::string& key, const Part& value) {
    if (key == "train") {
      row.train = value_of<std::string>(value);
    } else if (key == "sample") {
      row.sample = value_of<std::string>(value);
    } else if (key == "name") {
      row.name = value_of<std::string>(value);
    } else if (std::ranges::find(kAxes, key) != std::end(kAxes)) {
      row.at[key] = value_of<std::string>(value);
    } else if (key.ends_with("_error")) {
      row.errors[key.substr(0, key.size() - 6)] = value_of<double>(value);
    } else {
      row.figures[key] = value_of<double>(value);
    }
  });
  if (row.train.empty() == row.name.empty())
    usage_error(part.place, ": ", part.name, ": expected either train: ARM, or name: of another system");
  return row;
}

}  // namespace

ScoreSpec read_score(const Part& part) {
  ScoreSpec score;
  const auto red = [&](const Part& bounds) {
    read_known_keys(bounds, {{"above", [&](const Part& p) { score.red_above = value_of<double>(p); }},
                             {"below", [&](const Part& p) { score.red_below = value_of<double>(p); }}});
  };
  read_known_keys(part, {{"by", [&](const Part& p) { score.by = scorer_kind(p); }},
                         {"scorer", into(score.scorer, path())},
                         {"text", into(score.text, path())},
                         {"data", into(score.data, path())},
                         {"order", into(score.order, between(1, 6))},
                         {"samples", into(score.samples, between(1, kMostRows))},
                         {"seeds", into(score.seeds)},
                         {"clean_up", into(score.clean_up)},
                         {"metrics", into(score.metrics)},
                         {"figure", into(score.figure)},
                         {"red", red}});
  complete(score, part);
  return score;
}

Published read_published(const Part& part) {
  Published published;
  const auto rows = [&](const Part& list) {
    read_list(list, [&](const Part& row) { published.rows.push_back(read_row(row)); });
  };
  read_known_keys(part, {{"source", into(published.source)},
                         {"verdict", into(published.verdict)},
                         {"data", into(published.data)},
                         {"scorer", into(published.scorer)},
                         {"tokens", into(published.tokens, at_least(0))},
                         {"samples", into(published.samples, at_least(0))},
                         {"rows", rows}});
  return published;
}

std::vector<SampleArm> read_sample_arm(const std::string& name, const Part& part) {
  std::vector<SampleArm> arms(1);
  arms.front().name = name;
  read_named(part, [&](const std::string& key, const Part& value) {
    std::vector<std::string> texts;
    if (value.node.IsSequence()) {
      read_list(value, [&](const Part& item) { texts.push_back(value_of<std::string>(item)); });
      if (texts.empty()) usage_error(value.place, ": ", value.name, ": the list is empty");
    } else {
      texts.push_back(value_of<std::string>(value));
    }
    // The first list is the axis of a curve; another one makes more curves, each with a name of its own.
    const bool axis = value.node.IsSequence() && arms.front().axis.empty();
    std::vector<SampleArm> all;
    for (const SampleArm& arm : arms) {
      for (const std::string& text : texts) {
        SampleArm& one = all.emplace_back(arm);
        one.setting += (one.setting.empty() ? "" : ",") + key + "=" + text;
        if (axis) {
          one.axis = key;
          one.value = text;
        } else if (value.node.IsSequence()) {
          one.name += " " + key + "=" + text;
        }
      }
    }
    arms = std::move(all);
  });
  return arms;
}

}  // namespace elf::config
