// elf-eval table and frontier, and the schema of records (docs/record.schema.json) over what the commands
// write.
#include <gmock/gmock.h>

#include "elf/base/json.h"
#include "support/eval_command.h"

namespace elf {
namespace {

using nlohmann::json;
using test::EvalOutcome;
using testing::HasSubstr;
using testing::Not;

class Records : public test::EvalCommandTest {
 protected:
  // A record of `run`, as small as the schema lets it be.
  static json run_record(const std::string& name, double ppl, double entropy, bool degenerate = false) {
    const auto figure = [](double mean) {
      return json{{"mean", mean}, {"standard_error", 0.5}, {"values", {mean - 0.5, mean + 0.5}}};
    };
    const std::string hash = "xxh128:00";
    return {{"record", "elf-eval 1"},
            {"command", "run"},
            {"tool", "elf-eval"},
            {"name", name},
            {"model",
             {{"path", "runs/verses"},
              {"weights", "ema"},
              {"weights_file", "f"},
              {"weights_hash", hash},
              {"tokenizer_hash", hash},
              {"latents_hash", hash}}},
            {"sampler",
             {{"sampler", "sde"},
              {"steps", 32},
              {"gamma", 1.5},
              {"self_cond_cfg", 3.0},
              {"cfg", 1.0},
              {"time_schedule", "logit_normal"}}},
            {"seeds", {0, 1}},
            {"samples", 10},
            {"data", nullptr},
            {"clean_up", false},
            {"precision", "float32"},
            {"device", "cpu"},
            {"figures", {{"ppl", figure(ppl)}, {"entropy", figure(entropy)}}},
            {"protocols", {{"degenerate_over", "GPT-2 tokens"}}},
            {"degenerate", degenerate},
            {"degenerate_reasons", json::array()}};
  }
};

TEST_F(Records, OfEveryCommandGoIntoOneTable) {
  const std::string hyp = file("hyp.txt", "the cat sat on the mat\na dog, ran\n"),
                    ref = file("ref.txt", "the cat sat on a mat\nA dog ran\n");
  std::vector<std::string> files;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"bleu", "--hyp", hyp, "--ref", ref, "--metrics", "bleu,chrf,ter",
                                 "--bootstrap", "50"},
        {"rouge", "--hyp", hyp, "--ref", ref, "--stemmer", "--bootstrap", "50"},
        {"match", "--hyp", hyp, "--ref", ref},
        {"diversity", "--input", hyp, "--train", ref},
        {"ngram", "--input", hyp, "--train", ref}}) {
    std::vector<std::string> arguments = command;
    files.push_back(path(command[0] + ".json"));
    arguments.insert(arguments.end(), {"--json", "--output", files.back()});
    const EvalOutcome outcome = eval(arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  files.push_back(file("run.json", run_record("sde-32-w3", 24.1, 5.15).dump(2)));
  std::vector<std::string> arguments = {"table"};
  arguments.insert(arguments.end(), files.begin(), files.end());
  const EvalOutcome table = eval(arguments);
  ASSERT_EQ(table.code, 0) << table.err;
  for (const char* part :
       {"| record | samples |", " BLEU |", " chrF2 |", " TER |", " R-1 |", " exact % |", "| hyp.txt | 2 |",
        "| verses sde-32-w3 | 10 x 2 |", " 24.10 ± 0.50 |", " 5.15 ± 0.50 |"})
    EXPECT_THAT(table.out, HasSubstr(part));
  arguments.push_back("--csv");
  EXPECT_THAT(eval(arguments).out, HasSubstr("record,samples,BLEU,BLEU lc,chrF2,TER,R-1"));
}

TEST_F(Records, LinesOfOneFile) {
  const std::string lines =
      file("all.jsonl", run_record("a", 20, 5).dump() + "\n" + run_record("b", 30, 5.5).dump() + "\n");
  const EvalOutcome table = eval({"table", lines});
  EXPECT_THAT(table.out, HasSubstr("| verses a |"));
  EXPECT_THAT(table.out, HasSubstr("| verses b |"));
}

TEST_F(Records, MissingKeysAreNamed) {
  json record = run_record("a", 20, 5);
  for (const char* key : {"model", "sampler", "seeds", "samples", "precision", "device", "figures",
                          "protocols", "degenerate"}) {
    json broken = record;
    broken.erase(key);
    const EvalOutcome outcome = eval({"table", file("r.json", broken.dump())});
    EXPECT_EQ(outcome.code, 2) << key;
    EXPECT_THAT(outcome.err, HasSubstr("'" + std::string(key) + "'"));
  }
  for (const char* key : {"weights", "weights_hash", "tokenizer_hash"}) {
    json broken = record;
    broken["model"].erase(key);
    EXPECT_THAT(eval({"table", file("r.json", broken.dump())}).err,
                HasSubstr("'/model': '" + std::string(key) + "'"));
  }
  record["model"]["weights"] = "best";
  EXPECT_THAT(eval({"table", file("r.json", record.dump())}).err,
              HasSubstr("/model/weights: breaks the rule 'enum'"));
  EXPECT_THAT(eval({"table", file("r.json", "{\"command\": \"sing\"}")}).err,
              HasSubstr("command 'sing' is not known"));
  EXPECT_THAT(eval({"table", file("r.json", "{\"a\": 1}")}).err, HasSubstr("key 'command' is missing"));
  EXPECT_THAT(eval({"table", file("r.json", "no json")}).err, HasSubstr("r.json:1: no JSON"));
}

TEST_F(Records, Frontier) {
  const std::string a = file("a.json", run_record("good<1>", 20, 5.0).dump()),
                    b = file("b.json", run_record("beaten", 30, 4.9).dump()),
                    c = file("c.json", run_record("loop", 5, 1.0, true).dump());
  const EvalOutcome svg = eval({"frontier", a, b, c});
  ASSERT_EQ(svg.code, 0) << svg.err;
  EXPECT_THAT(svg.out, testing::StartsWith("<svg xmlns="));
  EXPECT_THAT(svg.out, HasSubstr("<circle class=\"best\""));
  EXPECT_THAT(svg.out, HasSubstr("<circle class=\"other\""));
  EXPECT_THAT(svg.out, HasSubstr("<circle class=\"degenerate\""));
  EXPECT_THAT(svg.out, HasSubstr("good&lt;1&gt;: Gen. PPL 20.00, entropy 5.000"));
  EXPECT_THAT(svg.out, Not(HasSubstr("href")));  // nothing from elsewhere
  const std::string page = path("f.html");
  ASSERT_EQ(eval({"frontier", a, b, "--output", page}).code, 0);
  EXPECT_THAT(read_file(page), testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_EQ(eval({"frontier", a, "--output", path("f.png")}).code, 2);
  EXPECT_EQ(eval({"frontier", a, "--output", a}).code, 2);  // no record is written over
}

TEST_F(Records, AreTheSameBytesTwice) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "line " + std::to_string(i % 7) + " of twenty\n";
  const std::string input = file("twenty.txt", text);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"bleu", "--hyp", input, "--ref", input, "--bootstrap", "20", "--json"},
        {"rouge", "--hyp", input, "--ref", input, "--bootstrap", "20", "--json"},
        {"diversity", "--input", input, "--json"}})
    EXPECT_EQ(eval(command).out, eval(command).out);
}

TEST_F(Records, HoldWhatMadeTheSamples) {
  const std::string samples = file("samples.jsonl", "{\"text\": \"a b c\"}\n");
  EXPECT_TRUE(eval({"diversity", "--input", samples, "--json"}).object()["generation"].is_null());
  file("samples.jsonl.json",
       R"({"tool": "elf-sample", "model": "runs/a", "weights": "ema", "weights_hash": "xxh128:1",
    "tokenizer_hash": "xxh128:2", "seed": 3, "samples": 1, "precision": "float32", "seconds": 1.5,
    "sampler": {"sampler": "sde", "steps": 4, "gamma": 1.5, "self_cond_cfg": 3, "cfg": 1, "time_schedule": "uniform"}})");
  const json record = eval({"diversity", "--input", samples, "--json"}).object();
  EXPECT_EQ(record["generation"]["weights_hash"], "xxh128:1");
  EXPECT_FALSE(record["generation"].contains("seconds"));
  json broken = record;
  EXPECT_EQ(eval({"table", file("r.json", broken.dump())}).code, 0);
  broken["generation"].erase("seed");
  EXPECT_THAT(eval({"table", file("r.json", broken.dump())}).err, HasSubstr("'/generation': 'seed'"));
}

TEST_F(Records, BleuOptions) {
  const std::string hyp = file("hyp.txt", "the cat sat on the mat\na dog ran away\n"),
                    ref = file("ref.txt", "the cat sat on a mat\na dog ran off\n"),
                    old = file("old.txt", "cat sat mat\ndog ran off\n");
  const json record = eval({"bleu", "--hyp", hyp, "--ref", ref, "--baseline", old, "--metrics",
                            "bleu,chrf,chrf++,ter", "--bootstrap", "30", "--json"})
                          .object();
  EXPECT_THAT(record["signature"].get<std::string>(),
              testing::StartsWith("nrefs:1|bs:30|seed:12345|case:mixed|"));
  for (const char* metric : {"chrf", "chrf++", "ter"})
    EXPECT_TRUE(record[metric]["bootstrap"].contains("p_value")) << metric;
  const std::string lines = path("sentences.jsonl");
  ASSERT_EQ(eval({"bleu", "--hyp", hyp, "--ref", ref, "--sentences", lines}).code, 0);
  EXPECT_NEAR(
      parse_json_or_throw(read_file(lines).substr(0, read_file(lines).find('\n')))["bleu"].get<double>(),
      53.73, 0.01);
  for (const char* value : {"-3", "nan"})
    EXPECT_EQ(eval({"bleu", "--hyp", hyp, "--ref", ref, "--smooth", "floor", "--smooth-value", value}).code,
              2)
        << value;
  EXPECT_EQ(eval({"bleu", "--hyp", hyp, "--ref", ref, "--output", hyp}).code, 2);
  EXPECT_EQ(eval({"bleu", "--hyp", hyp, "--ref", ref, "--tokenize", "spm:" + ref}).code, 2);
  const std::string model = std::string(ELF_TEST_DIR) + "/golden/tokenizer/spiece.model";
  EXPECT_THAT(eval({"bleu", "--hyp", hyp, "--ref", ref, "--tokenize", "spm:" + model}).out,
              HasSubstr("|tok:spm-spiece.model|"));
}

}  // namespace
}  // namespace elf
