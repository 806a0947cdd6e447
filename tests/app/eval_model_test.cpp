// elf-eval genppl and run, by the tools: Gen. PPL with what stands beside it, records, errors; a small model
// sampled and scored on pairs and without inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "elf/base/json.h"
#include "support/tool_test.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::slurp;
using test::spill;
using testing::AllOf;
using testing::HasSubstr;

const std::string kScorer = std::string(ELF_TEST_DIR) + "/golden/eval/gpt2_model";

class EvalModel : public test::ToolTest {
 protected:
  static void SetUpTestSuite() {
    make_folder("eval_model");
    std::string source, target;
    for (int i = 0; i < 40; ++i) {
      const std::string word = {static_cast<char>('a' + i % 5), static_cast<char>('a' + i % 7), 'x'};
      source += word + "\n";
      target += std::string(word.rbegin(), word.rend()) + "\n";
    }
    spill(folder_ / "s.txt", source);
    spill(folder_ / "t.txt", target);
    must(
        "elf-prepare tokenizer --input s.txt t.txt --vocab-size 32 --model-type char --extra-ids 0 --out "
        "chars");
    must(
        "elf-prepare pairs --source s.txt --target t.txt --tokenizer chars --max-input-length 5 --max-length "
        "10 --out p.h5");
    must("elf-prepare corpus --input t.txt --tokenizer chars --max-length 6 --out d.h5");
    must("elf-prepare table --data d.h5 --kind gaussian --width 8 --out table");
    spill(folder_ / "pairs.yaml", config("p.h5"));
    spill(folder_ / "docs.yaml", config("d.h5"));
    must("elf-train --config pairs.yaml --out pairs-run");
    must("elf-train --config docs.yaml --set train.steps=300 --out docs-run");
    std::string twenty;
    for (int i = 0; i < 20; ++i)
      twenty += "the king number " + std::to_string(i) + " said unto his men go up\n";
    spill(folder_ / "twenty.txt", twenty);
  }

  static std::string config(const std::string& data) {
    return "model: {depth: 1, hidden_size: 16, num_heads: 2, latent_dim: 8, bottleneck_dim: 8, "
           "num_time_tokens: 1, "
           "num_self_cond_cfg_tokens: 1, num_model_mode_tokens: 1}\n"
           "latents: {source: table, path: table, mean: 0.0, std: 1.0}\n"
           "data: {train: " +
           data +
           ", tokenizer: chars}\n"
           "flow: {pad_token: eos, denoiser_noise_scale: 0.5, decoder_noise_scale: 0.5}\n"
           "optimizer: {kind: adamw, lr: 3e-3, warmup_steps: 2, ema_decay: 0.9}\n"
           "train: {global_batch_size: 8, steps: 20, log_every: 10, save_every: 20}\nsampling: {steps: 2}\n";
  }

  static json record(const std::string& command) { return parse_json_or_throw(must(command).out); }

  // Eight texts, half of them blank, and what the published code finds of them; also as JSONL.
  static json published_set() {
    return parse_json_or_throw(
        slurp(std::string(ELF_TEST_DIR) + "/golden/eval/gpt2_perplexity.json"))["sets"]["with_blanks"];
  }
  static std::string jsonl_of(const json& set) {
    std::string lines;
    for (const json& text : set["texts"]) lines += json{{"text", text}}.dump() + "\n";
    return lines;
  }
};

TEST_F(EvalModel, GenPplEqualsThePublishedCode) {
  const json set = published_set();
  spill(folder_ / "set.jsonl", jsonl_of(set));
  const json result = record("elf-eval genppl --input set.jsonl --scorer " + kScorer + " --json");
  EXPECT_NEAR(result["ppl"].get<double>() / set["ppl"].get<double>(), 1, 1e-4);
  EXPECT_NEAR(result["entropy"].get<double>(), set["mean_entropy"].get<double>(), 1e-4);
  EXPECT_EQ(result["tokens"], set["total_tokens"]);
  EXPECT_EQ(result["scored"], set["kept"].size());
  EXPECT_EQ(result["skipped_blank"].get<size_t>(), set["texts"].size() - set["kept"].size());
}

TEST_F(EvalModel, GenPplWritesTheFiguresOfEachText) {
  const json set = published_set();
  spill(folder_ / "half.jsonl", jsonl_of(set));
  spill(folder_ / "most.jsonl", jsonl_of(set) + "{\"text\": \"\"}\n");
  const Outcome most =
      must("elf-eval genppl --input most.jsonl --scorer " + kScorer + " --texts each.jsonl --json");
  EXPECT_THAT(most.err, HasSubstr("most.jsonl: 5 of 9 texts are blank; the figures are those of the rest"));
  std::vector<json> each = json_lines(slurp(folder_ / "each.jsonl"));
  ASSERT_EQ(each.size(), set["kept"].size());
  double nll = 0, tokens = 0, entropy = 0;
  for (size_t i = 0; i < each.size(); ++i) {
    const json& published = set["samples"][i];
    EXPECT_EQ(each[i].at("index"), set["kept"][i]);
    EXPECT_NEAR(each[i].at("nll").get<double>() / published["nll_sum"].get<double>(), 1, 1e-4) << i;
    EXPECT_EQ(each[i].at("tokens"), published["counted_tokens"]) << i;
    EXPECT_NEAR(each[i].at("entropy").get<double>(), published["entropy"].get<double>(), 1e-4) << i;
    EXPECT_EQ(each[i].at("length"), published["length"]) << i;
    EXPECT_EQ(each[i].at("cut"), false) << i;
    nll += each[i].at("nll").get<double>();
    tokens += each[i].at("tokens").get<double>();
    entropy += each[i].at("entropy").get<double>();
  }
  const json whole = parse_json_or_throw(most.out);
  EXPECT_DOUBLE_EQ(whole["nll"].get<double>(), nll);
  EXPECT_DOUBLE_EQ(whole["ppl"].get<double>(), std::exp(nll / tokens));
  EXPECT_DOUBLE_EQ(whole["entropy"].get<double>(), entropy / static_cast<double>(each.size()));

  const Outcome half = must("elf-eval genppl --input half.jsonl --scorer " + kScorer +
                            " --max-tokens 10 --texts cut.jsonl --json");
  EXPECT_THAT(half.err,
              testing::Not(HasSubstr("texts are blank")));  // half of them are no more than the rest
  each = json_lines(slurp(folder_ / "cut.jsonl"));
  ASSERT_EQ(each.size(), set["kept"].size());
  int64_t cut = 0;
  for (size_t i = 0; i < each.size(); ++i) {
    const int64_t length = set["samples"][i]["length"].get<int64_t>();
    EXPECT_EQ(each[i].at("cut").get<bool>(), length > 10) << i;
    EXPECT_EQ(each[i].at("length").get<int64_t>(), std::min<int64_t>(length, 10)) << i;
    cut += length > 10;
  }
  EXPECT_EQ(parse_json_or_throw(half.out)["cut"].get<int64_t>(), cut);
}

// Field case 2: the record holds everything that the number depends on, and is the same bytes twice.
TEST_F(EvalModel, RecordsSayHowAndAreTheSameTwice) {
  const std::string command =
      "elf-eval genppl --input twenty.txt --scorer " + kScorer + " --train twenty.txt --json";
  const Outcome first = must(command);
  EXPECT_EQ(first.out, must(command).out);
  const json whole = parse_json_or_throw(first.out);
  EXPECT_EQ(whole["exact_copies"], 1.0);
  EXPECT_TRUE(whole["generation"].is_null());
  for (const char* key : {"entropy", "samples", "protocol", "scorer", "gpt2_tokenizer_hash", "max_tokens",
                          "truncation", "bos", "distinct", "rep4", "skipped_blank", "precision",
                          "entropy_model_tokens", "mean_length", "generation", "inputs", "device"}) {
    json broken = whole;
    ASSERT_TRUE(broken.contains(key)) << key;
    broken.erase(key);
    spill(folder_ / "broken.json", broken.dump());
    const Outcome outcome = tool("elf-eval table broken.json");
    EXPECT_EQ(outcome.code, 2) << key;
    EXPECT_THAT(outcome.err, HasSubstr(std::string("'") + key + "'"));
  }
  for (const char* key : {"hash", "dtype", "path"}) {
    json broken = whole;
    broken["scorer"].erase(key);
    spill(folder_ / "broken.json", broken.dump());
    EXPECT_EQ(tool("elf-eval table broken.json").code, 2) << key;
  }
}

TEST_F(EvalModel, SamplesOfElfSampleBringTheirOriginAndTheirTokens) {
  must("elf-sample --model docs-run --num-samples 6 --seed 4 --output own.jsonl");
  const json result =
      record("elf-eval genppl --input own.jsonl --scorer " + kScorer + " --json --protocol clean --bos");
  EXPECT_EQ(result["generation"]["seed"], 4);
  EXPECT_EQ(result["generation"]["weights"], "ema");
  EXPECT_EQ(result["generation"]["sampler"]["steps"], 2);
  EXPECT_TRUE(result["own_tokens"].contains("entropy"));
  EXPECT_EQ(result["protocol"], "clean");
  EXPECT_EQ(result["bos"], true);
  spill(folder_ / "own.json", result.dump());
  EXPECT_THAT(must("elf-eval table own.json").out, HasSubstr("own.jsonl"));
}

TEST_F(EvalModel, RepetitionIsFlagged) {
  std::string loops;
  for (int i = 0; i < 5; ++i) {
    for (int k = 0; k < 60; ++k) loops += "again and ";
    loops += "\n";
  }
  spill(folder_ / "loops.txt", loops);
  EXPECT_THAT(must("elf-eval genppl --input loops.txt --scorer " + kScorer).out,
              AllOf(HasSubstr("Gen. PPL "), HasSubstr("rep-4 9"), HasSubstr("DEGENERATE: entropy 0.")));
  EXPECT_THAT(must("elf-eval genppl --input twenty.txt --scorer " + kScorer).out,
              testing::Not(HasSubstr("DEGENERATE")));
  EXPECT_EQ(record("elf-eval genppl --json --input loops.txt --scorer " + kScorer)["degenerate"], true);
}

TEST_F(EvalModel, MauveStandsBesideIt) {
  const Outcome outcome =
      tool("elf-eval genppl --json --input twenty.txt --reference twenty.txt --scorer " + kScorer);
  if (outcome.code == 2 && outcome.err.find("built without faiss") != std::string::npos) GTEST_SKIP();
  EXPECT_NEAR(parse_json_or_throw(outcome.out)["mauve"]["score"].get<double>(), 1, 1e-6);
}

// Of samples that it makes itself; with bounds that nothing breaks, so that the line ends with the figures.
TEST_F(EvalModel, RunAddsTheMauveThatGenPplFinds) {
  spill(folder_ / "mixed.txt", slurp(folder_ / "t.txt") + slurp(folder_ / "twenty.txt"));
  const Outcome outcome = tool(
      "elf-eval run --model docs-run --num-samples 20 --reference mixed.txt --out likeness "
      "--entropy-floor=-1 --rep4-limit 1 --scorer " +
      kScorer);
  if (outcome.code == 2 && outcome.err.find("built without faiss") != std::string::npos) GTEST_SKIP();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string name = outcome.out.substr(0, outcome.out.find(' '));
  const json result = parse_json_or_throw(slurp(folder_ / "likeness" / (name + ".json")));
  const json beside = record("elf-eval genppl --json --input likeness/" + name +
                             "-seed0.jsonl --reference mixed.txt --scorer " + kScorer);
  const double mauve = result["figures"].at("mauve").at("mean").get<double>();
  EXPECT_NEAR(mauve, beside["mauve"]["score"].get<double>(), 1e-9);
  EXPECT_GT(mauve, 0.1);  // two thirds of the reference are like the samples, one third is not
  EXPECT_LT(mauve, 0.99);
  char shown[64];
  std::snprintf(shown, sizeof shown, "  mauve %.3f\n", mauve);
  EXPECT_THAT(outcome.out, testing::EndsWith(shown));

  const json& protocol = result["protocols"].at("mauve");
  EXPECT_EQ(protocol["reference"], "mixed.txt");
  EXPECT_EQ(protocol["reference_texts"], 60);
  EXPECT_EQ(protocol["digest"], beside["inputs"].at(1)["digest"]);
  for (const char* key : {"scaling", "variance", "starts", "seed"})
    EXPECT_EQ(protocol.at(key), beside["mauve"].at(key)) << key;
}

TEST_F(EvalModel, Mistakes) {
  const auto refused = [](const std::string& command, const std::string& part) {
    const Outcome outcome = tool(command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr(part)) << command;
  };
  refused("elf-eval genppl --input twenty.txt --scorer nowhere", "nowhere: no such folder");
  refused("elf-eval genppl --input twenty.txt --scorer " + kScorer + " --bos", "published protocol");
  refused("elf-eval genppl --input twenty.txt --scorer " + kScorer + " --max-tokens 2000",
          "expected 2 to 1024");
  refused("elf-eval genppl --input twenty.txt", "--scorer");
  refused("elf-eval genppl --input twenty.txt --texts ./twenty.txt --scorer " + kScorer,
          "is an input as well (twenty.txt)");
  refused("elf-eval run --model docs-run --out o", "--num-samples");
  refused("elf-eval run --model docs-run --num-samples 2 --data p.h5 --out o", "without inputs");
  refused("elf-eval run --model pairs-run --out o", "--data");
  refused("elf-eval run --model pairs-run --data d.h5 --out o", "holds documents");
  refused("elf-eval run --model pairs-run --data p.h5 --num-samples 41 --out o", "40 pairs only");
  refused("elf-eval run --model docs-run --num-samples 2 --setting gama=1 --out o", "no setting 'gama'");
  refused("elf-eval run --model docs-run --num-samples 2 --setting steps=0 --out o",
          "--setting steps: found '0'");
  refused("elf-eval run --model docs-run --num-samples 2 --seeds 1,1 --out o", "twice");
  refused("elf-eval run --model docs-run --num-samples 2 --reference twenty.txt --out o", "give --scorer");
  refused("elf-eval run --model docs-run --num-samples 2 --ngram-order 2 --out o", "give --train FILE");
  refused("elf-eval run --model docs-run --num-samples 2 --metrics bleu --out o", "needs references");
  EXPECT_FALSE(fs::exists(folder_ / "o"));
}

TEST_F(EvalModel, RunScoresPairsForSettingsAndSeeds) {
  must(
      "elf-eval run --model pairs-run --data p.h5 --num-samples 12 --setting cfg=1 --setting cfg=2,steps=3 "
      "--seeds 3,5 "
      "--out scores");
  for (const char* name : {"sde-2-gamma1.5-w3", "sde-3-gamma1.5-w3-cfg2"}) {
    const json result = parse_json_or_throw(slurp(folder_ / "scores" / (std::string(name) + ".json")));
    EXPECT_EQ(result["seeds"], json({3, 5}));
    EXPECT_EQ(result["data"]["references"], "raw target text of the dataset");
    for (const char* figure :
         {"bleu", "bleu_published", "chrf", "ter", "rougeL", "exact_match", "own_entropy"}) {
      const json& values = result["figures"][figure]["values"];
      ASSERT_EQ(values.size(), 2u) << figure;
      EXPECT_NEAR(result["figures"][figure]["mean"].get<double>(),
                  (values[0].get<double>() + values[1].get<double>()) / 2, 1e-9);
      EXPECT_NEAR(result["figures"][figure]["standard_error"].get<double>(),
                  std::abs(values[0].get<double>() - values[1].get<double>()) / 2, 1e-9);
    }
  }
  // The samples are those of elf-sample, and their score is that of elf-eval bleu.
  std::istringstream all(slurp(folder_ / "s.txt") + "\n---\n" + slurp(folder_ / "t.txt"));
  std::string sources, references, line;
  bool targets = false;
  for (int i = 0; std::getline(all, line); ++i) {
    if (line == "---")
      targets = true, i = -1;
    else if (i < 12 && !line.empty())
      (targets ? references : sources) += line + "\n";
  }
  spill(folder_ / "s12.txt", sources);
  spill(folder_ / "t12.txt", references);
  must("elf-sample --model pairs-run --input s12.txt --cfg 1 --seed 5 --output again.jsonl");
  EXPECT_EQ(slurp(folder_ / "again.jsonl"), slurp(folder_ / "scores/sde-2-gamma1.5-w3-seed5.jsonl"));
  const json again = record("elf-eval bleu --hyp again.jsonl --ref t12.txt --json");
  const json result = parse_json_or_throw(slurp(folder_ / "scores/sde-2-gamma1.5-w3.json"));
  EXPECT_NEAR(result["figures"]["bleu"]["values"][1].get<double>(), again["score"].get<double>(), 1e-9);
  EXPECT_EQ(result["protocols"]["bleu"], again["signature"]);
  EXPECT_THAT(must("elf-eval table scores/*.json").out,
              AllOf(HasSubstr("pairs-run sde-2-gamma1.5-w3 |"), HasSubstr("| 12 x 2 |")));
}

TEST_F(EvalModel, RunWithoutAFolderPrintsItsRecord) {
  const json result =
      record("elf-eval run --model pairs-run --data p.h5 --num-samples 4 --metrics bleu,match");
  EXPECT_TRUE(result["figures"].contains("bleu"));
  EXPECT_TRUE(result["figures"].contains("exact_match"));
  EXPECT_FALSE(result["figures"].contains("ter"));
  spill(folder_ / "run.json", result.dump());
  EXPECT_EQ(tool("elf-eval table run.json").code, 0);
}

TEST_F(EvalModel, RunScoresTextsWithoutInputs) {
  const Outcome outcome =
      must("elf-eval run --model docs-run --num-samples 5 --setting steps=2,sampler=ode --seeds 0 --scorer " +
           kScorer + " --train t.txt --out docs-scores --json");
  const json result = parse_json_or_throw(outcome.out);
  for (const char* figure :
       {"ppl", "entropy", "distinct4", "rep4", "mean_length", "own_entropy", "exact_copies", "blank"})
    EXPECT_TRUE(result["figures"].contains(figure)) << figure;
  EXPECT_TRUE(result["figures"]["ppl"]["standard_error"].is_null());
  EXPECT_EQ(result["protocols"]["genppl"]["protocol"], "published");
  EXPECT_THAT(must("elf-eval table docs-scores/*.json").out, HasSubstr("| docs-run ode-2-w3 | 5 x 1 |"));
}

}  // namespace
}  // namespace elf
