// elf-sample as a command: the same texts whatever the batch, the order, the processes and the interruptions;
// candidates, gaps, pipes, trajectories.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "elf/base/json.h"
#include "elf/data/masks.h"
#include "elf/model/model_dir.h"
#include "elf/sample/infill.h"
#include "elf/sample/score.h"
#include "elf/tensor/random.h"
#include "support/free_port.h"
#include "support/tool_test.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::slurp;
using test::spill;
using ::testing::HasSubstr;

// Made once: a model of texts, one of pairs with a table, one of pairs with a contextual encoder, one whose
// network knows more ids than its tokenizer.
class Sampling : public test::ToolTest {
 protected:
  static void SetUpTestSuite() {
    make_folder("sample");
    write_texts();
    spill(folder_ / "docs.yaml", config("docs.h5", "words", "source: table, path: table", ""));
    spill(folder_ / "pairs.yaml",
          config("pairs.h5", "chars", "source: table, path: gauss", "  label_drop_prob: 0.1\n"));
    must(
        "elf-prepare tokenizer --input docs.txt --vocab-size 64 --model-type word --extra-ids 0 --out words");
    must("elf-prepare corpus --input docs.txt --tokenizer words --max-length 8 --out docs.h5");
    must("elf-prepare table --data docs.h5 --kind svd --width 8 --out table");
    must(
        "elf-prepare tokenizer --input pairs.src pairs.tgt --vocab-size 64 --model-type char --extra-ids 0 "
        "--out chars");
    must(
        "elf-prepare pairs --source pairs.src --target pairs.tgt --tokenizer chars --max-input-length 6 "
        "--max-length 14 --out pairs.h5");
    must("elf-prepare table --data pairs.h5 --kind gaussian --width 8 --out gauss");
    must(
        "elf-prepare encoder --data pairs.h5 --tokenizer chars --preset t5-nano --d-model 8 --layers 1 "
        "--steps 0 --out t5");
    must("elf-train --config docs.yaml --out docs");
    must("elf-train --config pairs.yaml --set train.steps=60 --out pairs");
    must(
        "elf-train --config pairs.yaml --set latents.source=t5 --set latents.path=t5 --set train.steps=10 "
        "--out pairs-t5");
    must("elf-train --config docs.yaml --set model.vocab_size=500 --set train.steps=1 --out wide");
  }

  static void write_texts() {
    std::string docs, source, target;
    for (int i = 0; i < 300; ++i) {
      std::string line;
      for (int k = 0; k < 3 + i % 4; ++k) line += (k ? " " : "") + kWords[(i * 7 + k * 3) % 11];
      docs += line + "\n";
      const std::string word = kWords[i % 11].substr(0, 5) + std::string(1, static_cast<char>('a' + i % 5));
      source += word + "\n";
      target += std::string(word.rbegin(), word.rend()) + "\n";
    }
    spill(folder_ / "docs.txt", docs);
    spill(folder_ / "pairs.src", source);
    spill(folder_ / "pairs.tgt", target);
    spill(folder_ / "five.txt", "king\n\nabcdefghijklmnop\nmen\nse\n");
  }

  static std::string config(const std::string& train, const std::string& tokenizer,
                            const std::string& latents, const std::string& flow) {
    return "model: {depth: 2, hidden_size: 16, num_heads: 2, latent_dim: 8, bottleneck_dim: 8, "
           "num_time_tokens: 1, num_self_cond_cfg_tokens: 1, num_model_mode_tokens: 1}\n"
           "latents: {" +
           latents + ", mean: 0.0, std: 1.0}\ndata: {train: " + train + ", tokenizer: " + tokenizer +
           "}\n"
           "flow:\n  pad_token: eos\n  denoiser_noise_scale: 0.5\n  decoder_noise_scale: 0.5\n" +
           flow +
           "optimizer: {kind: adamw, lr: 1e-2, warmup_steps: 5, schedule: linear, ema_decay: 0.9}\n"
           "train: {global_batch_size: 16, steps: 400, log_every: 100, save_every: 0}\n"
           "sampling: {steps: 4}\n";
  }
};

TEST_F(Sampling, TheSameForEveryBatchSize) {
  for (const std::string what :
       {"--model docs --num-samples 17", "--model pairs --input five.txt --cfg 2",
        "--model pairs-t5 --input five.txt --cfg 2", "--model docs --infill gaps.txt"}) {
    spill(folder_ / "gaps.txt", "the <gap> his\n\nking <gap:1> <gap>\n<gap:2-3> men\ngo up\n");
    const std::string command = "elf-sample " + what + " --seed 5 --format jsonl --batch-size ";
    const std::string one = must(command + "1").out;
    EXPECT_EQ(json_lines(one).size(), what.find("17") != std::string::npos ? 17u : 5u);
    for (const char* batch : {"2", "5", "16"})
      EXPECT_EQ(must(command + batch).out, one) << what << ", " << batch;
  }
}

TEST_F(Sampling, ProcessesShareTheWork) {
  for (const std::string what :
       {"--model docs --num-samples 7 --batch-size 2", "--model docs --num-samples 7",
        "--model pairs-t5 --input five.txt --cfg 2", "--model docs --num-samples 1"}) {
    const std::string command = "elf-sample " + what + " --seed 5 --output ";
    must(command + "alone.jsonl");
    for (const int size : {2, 3}) {
      std::string all = "export WORLD_SIZE=" + std::to_string(size) +
                        " MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(test::free_port()) +
                        "; pids=; ";
      for (int r = 0; r < size; ++r)
        all += "RANK=" + std::to_string(r) + " LOCAL_RANK=" + std::to_string(r) + " " + command +
               "shared.jsonl & pids=\"$pids $!\"; ";
      must(all + "for p in $pids; do wait $p || exit 1; done");
      EXPECT_EQ(slurp(folder_ / "shared.jsonl"), slurp(folder_ / "alone.jsonl")) << what << ", " << size;
      const json alone = parse_json_or_throw(slurp(folder_ / "alone.jsonl.json")),
                 shared = parse_json_or_throw(slurp(folder_ / "shared.jsonl.json"));
      EXPECT_EQ(shared.at("network_rows"), alone.at("network_rows"));
      EXPECT_EQ(shared.at("ranks"), size);
    }
  }
  expect_refusal(
      "WORLD_SIZE=2 RANK=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 elf-sample --model docs "
      "--num-samples 1",
      {"RANK"});
  // A rank that fails ends the others, with its message.
  const Outcome failed =
      tool("export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(test::free_port()) +
           "; RANK=0 LOCAL_RANK=0 elf-sample --model docs --num-samples 4 --steps 400 --output f.jsonl & "
           "first=$!; RANK=1 LOCAL_RANK=1 elf-sample "
           "--model docs --num-samples 4 --steps 400 --output f.jsonl --device cuda:99; wait $first");
  EXPECT_EQ(failed.code, 1) << failed.err;
  EXPECT_THAT(failed.err, HasSubstr("device 'cuda:99'"));
  EXPECT_FALSE(fs::exists(folder_ / "f.jsonl"));
}

TEST_F(Sampling, TheSameForTheReversedInput) {
  std::string forward, backward;
  const std::vector<std::string> texts = {"king", "", "abcdef", "men", "se"};
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string line =
        json{{"text", texts[i]}, {"index", i}, {"id", "q" + std::to_string(i)}}.dump() + "\n";
    forward += line;
    backward = line + backward;
  }
  spill(folder_ / "forward.jsonl", forward);
  spill(folder_ / "backward.jsonl", backward);
  for (const std::string model : {"pairs", "pairs-t5"}) {
    const std::string command = "elf-sample --model " + model + " --cfg 2 --format jsonl --input ";
    std::vector<json> there = json_lines(must(command + "forward.jsonl").out);
    const std::vector<json> back = json_lines(must(command + "backward.jsonl --batch-size 2").out);
    ASSERT_EQ(there.size(), 5u);
    EXPECT_EQ(there[2].at("id"), "q2");
    std::reverse(there.begin(), there.end());
    EXPECT_EQ(there, back);
  }
}

TEST_F(Sampling, AnInterruptedFileIsGoneOnWith) {
  const std::string command = "elf-sample --model docs --num-samples 9 --seed 2 --batch-size 2 --output ";
  must(command + "whole.jsonl");
  const std::string whole = slurp(folder_ / "whole.jsonl");
  must(command + "r.jsonl");
  fs::rename(folder_ / "r.jsonl", folder_ / "r.jsonl.partial");
  fs::rename(folder_ / "r.jsonl.json", folder_ / "r.jsonl.partial.json");
  fs::resize_file(folder_ / "r.jsonl.partial", whole.size() / 2);  // somewhere in a record
  expect_refusal(command + "r.jsonl --resume --steps 5",
                 {"r.jsonl.partial", "sampler", "\"steps\":4", "\"steps\":5"});
  const Outcome resumed = must(command + "r.jsonl --resume");
  EXPECT_THAT(resumed.err, HasSubstr("going on after"));
  EXPECT_EQ(slurp(folder_ / "r.jsonl"), whole);
  EXPECT_FALSE(fs::exists(folder_ / "r.jsonl.partial"));
  EXPECT_EQ(parse_json_or_throw(slurp(folder_ / "r.jsonl.json")).at("samples"), 9);
  // More samples than before are the ones missing; a finished file has none missing.
  must("elf-sample --model docs --num-samples 12 --seed 2 --resume --output r.jsonl");
  EXPECT_EQ(slurp(folder_ / "r.jsonl").find(whole), 0u);
  EXPECT_EQ(json_lines(slurp(folder_ / "r.jsonl")).size(), 12u);
  expect_refusal(command + "r.jsonl --resume", {"12 samples already", "9"});
}

TEST_F(Sampling, AKilledRunGoesOn) {
  const std::string sample =
      "elf-sample --model docs --num-samples 30 --batch-size 1 --steps 4 --output k.jsonl";
  const Outcome killed = tool(test::killed_at_write(20) + sample);
  EXPECT_EQ(killed.code, 128 + SIGKILL) << killed.err;
  EXPECT_FALSE(fs::exists(folder_ / "k.jsonl"));
  EXPECT_GT(fs::file_size(folder_ / "k.jsonl.partial"), 0U);
  must(sample + " --resume");
  must("elf-sample --model docs --num-samples 30 --steps 4 --output straight.jsonl");
  EXPECT_EQ(slurp(folder_ / "k.jsonl"), slurp(folder_ / "straight.jsonl"));
}

// A run of other settings over an interrupted or a finished one, killed at every change of a file: whatever
// goes on afterwards ends as an undisturbed run of its settings does, or is refused.
TEST_F(Sampling, ResumingNeverMixesSettings) {
  const auto sample = [](int steps, const std::string& file) {
    return "elf-sample --model docs --num-samples 2 --batch-size 1 --steps " + std::to_string(steps) +
           " --output " + file + " ";
  };
  must(sample(2, "of-2.jsonl") + "&& " + sample(3, "of-3.jsonl"));
  must("mkdir interrupted finished && " + sample(2, "finished/k.jsonl"));
  EXPECT_EQ(tool(test::killed_at_write(6) + sample(2, "interrupted/k.jsonl")).code, 128 + SIGKILL);
  EXPECT_GT(fs::file_size(folder_ / "interrupted/k.jsonl.partial"), 0U);
  for (const std::string before : {"interrupted", "finished"}) {
    Outcome over;
    int changes = 0;
    do {
      over = tool("rm -rf over && cp -r " + before + " over && " + test::killed_at_write(++changes) +
                  sample(3, "over/k.jsonl"));
      for (const int steps : {2, 3}) {
        const Outcome on = tool("rm -rf on && cp -r over on && " + sample(steps, "on/k.jsonl") + "--resume");
        EXPECT_THAT(on.code, ::testing::AnyOf(0, 2)) << on.err;
        const std::string straight = "of-" + std::to_string(steps) + ".jsonl";
        if (on.code == 0)
          EXPECT_EQ(slurp(folder_ / "on/k.jsonl"), slurp(folder_ / straight))
              << before << ", change " << changes;
      }
    } while (over.code != 0);
    EXPECT_GT(changes, 5);
  }
}

TEST_F(Sampling, ASweepGivesWhatSingleRunsGive) {
  const std::string command = "elf-sample --model docs --num-samples 4 --seed 3 ";
  const Outcome sweep = must(command + "--output sweep.txt --sweep sc-cfg=1,2 steps=2,6");
  EXPECT_THAT(sweep.err, HasSubstr("7 network calls"));  // six steps and the decode
  for (const std::string w : {"1", "2"}) {
    for (const std::string steps : {"2", "6"}) {
      EXPECT_EQ(slurp(folder_ / ("sweep.sc-cfg=" + w + ".steps=" + steps + ".txt")),
                must(command + "--sc-cfg " + w + " --steps " + steps).out);
    }
  }
}

TEST_F(Sampling, NetworkCallsAreCounted) {
  must("elf-sample --model docs --num-samples 5 --batch-size 2 --sampler heun --steps 4 --output calls.txt");
  const json record = parse_json_or_throw(slurp(folder_ / "calls.txt.json"));
  EXPECT_EQ(record.at("network_calls"), 3 * (2 * 4 - 1 + 1));  // three batches; the decode is a call
  EXPECT_EQ(record.at("network_rows"), 5 * 8);
}

TEST_F(Sampling, APipeIsAnsweredLineByLine) {
  // The second line is written only after the first answer has come.
  const Outcome outcome = tool(
      "mkfifo in; elf-sample --model pairs --input - --max-wait 0.01 <in >answers 2>errors & pid=$!; exec "
      "3>in; echo king "
      ">&3; " +
      until("[ -s answers ]") +
      "wc -l <answers; echo >&3; "
      "echo men >&3; "
      "exec 3>&-; wait $pid; wc -l <answers");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "1\n3\n");
  spill(folder_ / "three.txt", "king\n\nmen\n");
  EXPECT_EQ(slurp(folder_ / "answers"), must("elf-sample --model pairs --input three.txt").out);
  EXPECT_EQ(slurp(folder_ / "answers"), must("gzip -c three.txt | elf-sample --model pairs --input -").out);
  const Outcome cut = tool("gzip -c three.txt | head -c 20 | elf-sample --model pairs --input -");
  EXPECT_EQ(cut.code, 2);
  EXPECT_THAT(cut.err, HasSubstr("cut short"));
}

TEST_F(Sampling, LongInputsAreCutSkippedOrRefused) {
  const std::string command = "elf-sample --model pairs --input five.txt --output long.jsonl --long-input ";
  EXPECT_THAT(must(command + "truncate").err, HasSubstr("1 inputs are longer"));
  EXPECT_EQ(parse_json_or_throw(slurp(folder_ / "long.jsonl.json")).at("truncated_inputs"), 1);
  must(command + "skip");
  const std::vector<json> skipped = json_lines(slurp(folder_ / "long.jsonl"));
  ASSERT_EQ(skipped.size(), 5u);
  EXPECT_EQ(skipped[2].at("text"), "");
  EXPECT_EQ(skipped[2].at("skipped"), "too long");
  EXPECT_EQ(parse_json_or_throw(slurp(folder_ / "long.jsonl.json")).at("skipped_inputs"), 1);
  expect_refusal(command + "refuse", {"five.txt:3", "tokens", "at most 6"});
}

TEST_F(Sampling, TheChoiceAmongCandidatesIsInTheRecord) {
  const std::string command =
      "elf-sample --model pairs --input five.txt --format jsonl --num-candidates 3 --choose ";
  const std::vector<json> all = json_lines(must(command + "all").out),
                          chosen = json_lines(must(command + "rouge").out);
  ASSERT_EQ(all.size(), 15u);
  ASSERT_EQ(chosen.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(chosen[i].at("choice").at("candidates"), 3);
    EXPECT_EQ(chosen[i].at("choice").at("measure"), "rouge");
    const size_t best = chosen[i].at("choice").at("chosen");
    EXPECT_EQ(chosen[i].at("text"), all[3 * i + best].at("text"));
    EXPECT_EQ(all[3 * i + best].at("candidate"), best);
  }
  // Candidate 0 is what one candidate is.
  const std::vector<json> one =
      json_lines(must("elf-sample --model pairs --input five.txt --format jsonl").out);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(one[i].at("text"), all[3 * i].at("text"));
}

TEST_F(Sampling, WatchDrawsEveryStepAndChangesNoText) {
  if (tool("script -qec true /dev/null").code != 0) GTEST_SKIP() << "no terminals here (/dev/pts)";
  const std::string command = "elf-sample --model docs --num-samples 2 --steps 3 --seed 5 --output ";
  const std::string screen =
      must("script -qec '" + command + "watched.txt --watch --watch-delay 0' /dev/null").out;
  for (const char* line : {"step   1/3 ", "step   2/3 ", "step   3/3 "}) EXPECT_THAT(screen, HasSubstr(line));
  EXPECT_THAT(screen, HasSubstr("\033[3A")) << "drawn in place";
  must(command + "unwatched.txt");
  EXPECT_EQ(slurp(folder_ / "watched.txt"), slurp(folder_ / "unwatched.txt"));
}

TEST_F(Sampling, TrajectoriesEndInTheSamples) {
  must("elf-sample --model docs --num-samples 3 --batch-size 2 --trajectory steps.jsonl --output t.jsonl");
  const std::vector<json> steps = json_lines(slurp(folder_ / "steps.jsonl")),
                          samples = json_lines(slurp(folder_ / "t.jsonl"));
  ASSERT_EQ(steps.size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(steps[i].at("index"), i / 4);
    EXPECT_EQ(steps[i].at("step"), i % 4 + 1);
    EXPECT_GT(steps[i].at("confidence").get<double>(), 0);
    EXPECT_LE(steps[i].at("confidence").get<double>(), 1);
    EXPECT_GE(steps[i].at("entropy").get<double>(), 0);
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(steps[4 * i + 3].at("text"), samples[i].at("text"));
  must("elf-sample --model docs --num-samples 3 --trajectory steps.html");
  EXPECT_THAT(slurp(folder_ / "steps.html"), HasSubstr("\"text\":" + json(samples[1].at("text")).dump()));
  must("elf-sample --model docs --num-samples 5 --trajectory steps.svg");
  const std::string picture = slurp(folder_ / "steps.svg");
  size_t tokens = 0, drawn = 0;
  for (const json& step : steps) tokens += step.at("tokens").size();
  for (size_t at = 0; (at = picture.find("<tspan", at)) != std::string::npos; ++at) ++drawn;
  EXPECT_EQ(drawn, tokens);  // of the first three samples
  EXPECT_THAT(picture, HasSubstr(">1.00</text>"));
  EXPECT_THAT(picture, HasSubstr("docs, sde"));
  expect_refusal("elf-sample --model docs --num-samples 3 --watch", {"--watch", "terminal"});
}

TEST_F(Sampling, IdsBeyondTheTokenizersRangeAreNoCrash) {
  const std::vector<json> samples =
      json_lines(must("elf-sample --model wide --num-samples 40 --format jsonl").out);
  int64_t largest = 0;
  for (const json& record : samples) {
    for (const int64_t id : record.at("ids")) largest = std::max(largest, id);
  }
  EXPECT_GT(largest, 14);  // words and three special tokens
  spill(folder_ / "wide.txt", "the <gap> men\n<gap>\n");
  for (const char* method : {"path", "reencode", "pin"})
    must(std::string("elf-sample --model wide --infill wide.txt --infill-method ") + method);
  must("elf-sample --model wide --num-samples 2 --trajectory wide.html");
  must("elf-sample --model wide --num-samples 2 --trajectory wide.svg");
}

TEST_F(Sampling, InfillingKeepsWhatIsKnown) {
  spill(folder_ / "gaps.txt", "the <gap:1> unto <gap>\n\n<gap:2-3> men\nsee, it is <gap:1>!\n");
  for (const std::string method : {"path", "reencode", "pin"}) {
    const std::vector<json> filled = json_lines(
        must("elf-sample --model docs --infill gaps.txt --format jsonl --infill-method " + method).out);
    ASSERT_EQ(filled.size(), 4u);
    EXPECT_THAT(filled[0].at("text").get<std::string>(),
                ::testing::MatchesRegex("the [a-z]+ unto( [a-z ]+)?"));
    EXPECT_EQ(filled[1].at("text"), "");
    EXPECT_THAT(filled[2].at("text").get<std::string>(),
                ::testing::MatchesRegex("[a-z]+( [a-z]+)?( [a-z]+)? men"));
    EXPECT_EQ(filled[2].at("lengths_tried"), 2);
    EXPECT_THAT(filled[3].at("text").get<std::string>(), ::testing::MatchesRegex("see, it is [a-z]+!"));
    EXPECT_EQ(filled[3].at("fills").size(), 1u);
  }
  EXPECT_EQ(tool("printf 'the <gap:9> men\\n' | elf-sample --model docs --infill -").code, 2);
  expect_refusal("elf-sample --model pairs --input none.txt", {"none.txt"});
}

// Mean log-probability of the gaps' tokens under the model: as filled, and with random words in their place.
TEST_F(Sampling, FillsScoreBetterThanChance) {
  const Model model = load_model(folder_ / "docs", at::kCPU);
  const int64_t length = model.config.model.max_length, eos = model.tokenizer->eos_id(),
                vocabulary = model.tokenizer->size();
  const SamplerModel sampler{*model.network, model.traits(), model.config.flow.denoiser_noise_scale,
                             model.config.flow.t_eps};
  SamplingConfig config = model.config.sampling;
  config.steps = 16;
  std::vector<InfillText> texts;
  std::vector<int64_t> samples;
  std::istringstream docs(slurp(folder_ / "docs.txt"));
  for (std::string line; texts.size() < 40 && std::getline(docs, line);) {
    const size_t first = line.find(' '), second = line.find(' ', first + 1);
    if (second == std::string::npos) continue;
    samples.push_back(static_cast<int64_t>(texts.size()));
    texts.push_back(
        parse_infill(line.substr(0, first) + " <gap:1>" + line.substr(second), *model.tokenizer, 8, "x"));
  }
  InfillSettings settings{.banned = {0, eos, 2}};
  Infiller infiller(sampler, *model.codec, {length, model.config.model.latent_dim, 0, 0, eos}, config,
                    settings);
  const std::vector<InfilledText> filled = infiller.fill(samples, texts, {}, 64);

  const auto gap_score = [&](const std::vector<int64_t>& words) {
    const at::Tensor ids = at::full({40, length}, eos, at::kLong);
    for (int64_t b = 0; b < 40; ++b) {
      const TokenIds& row = filled[b].ids;
      for (size_t i = 0; i < row.size(); ++i) ids[b][static_cast<int64_t>(i)] = i == 1 ? words[b] : row[i];
    }
    ScoreRequest request{.latents = model.codec->encode(ids, {}), .ids = ids, .samples = samples};
    return denoising_log_prob(sampler, request).select(1, 1).mean().item<double>();
  };
  std::vector<int64_t> fills, random;
  for (int64_t b = 0; b < 40; ++b) {
    EXPECT_EQ(filled[b].ids.front(), texts[b].known[0].front());
    fills.push_back(filled[b].fills[0][0]);
    random.push_back(3 + static_cast<int64_t>(random_bits({1, Purpose::kTable}, b) % (vocabulary - 3)));
  }
  EXPECT_GT(gap_score(fills), gap_score(random) + 0.3);
}

}  // namespace
}  // namespace elf
