// elf-eval from its command line: figures, JSON fields, warnings, exit codes. Figures are those of
// tests/metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "elf/app/tools.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

struct Outcome {
  int code = 0;
  std::string out, err;
  json object() const { return parse_json_or_throw(out); }
};

class EvalTest : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    write_file(folder_ / name, content);
    return (folder_ / name).string();
  }

  static Outcome eval(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "elf-eval");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.code = app::eval(static_cast<int>(argv.size()), argv.data());
    outcome.out = testing::internal::GetCapturedStdout();
    outcome.err = testing::internal::GetCapturedStderr();
    return outcome;
  }

  const test::TemporaryFolder scratch_;
  const std::filesystem::path folder_ = scratch_.path();
};

TEST_F(EvalTest, BleuPrintsBothCasesAndTheSignature) {
  const std::string hyp = file("hyp.txt", "The Cat Sat On The Mat .\n"),
                    ref = file("ref.txt", "the cat sat on the mat .\n");
  const Outcome outcome = eval({"bleu", "--hyp", hyp, "--ref", ref});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("cased        BLEU = 6.57 "));
  EXPECT_THAT(outcome.out, HasSubstr("lower-cased  BLEU = 100.00 "));
  EXPECT_THAT(outcome.out, HasSubstr("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"));
}

TEST_F(EvalTest, BleuJsonHasTheAskedSetting) {
  const std::string hyp = file("hyp.jsonl", "{\"index\": 0, \"text\": \"The Cat\", \"ids\": [3, 4]}\n"),
                    ref = file("ref.txt", "the cat\n");
  const json lower =
      eval({"bleu", "--hyp", hyp, "--ref", ref, "--lowercase", "--effective-order", "--json"}).object();
  EXPECT_NEAR(lower["score"].get<double>(), 100.0, 1e-9);
  EXPECT_EQ(lower["lowercase"], true);
  EXPECT_EQ(lower["precisions"].size(), 4u);
  for (const char* key : {"bp", "sys_len", "ref_len", "signature", "tool", "inputs"})
    EXPECT_TRUE(lower.contains(key)) << key;
  EXPECT_EQ(eval({"bleu", "--hyp", hyp, "--ref", ref, "--json"}).object()["score"], 0.0);
}

TEST_F(EvalTest, BleuMissingAndEmptyReferences) {
  const std::string hyp =
      file("hyp.txt", "The dog bit the man.\nIt wasn't surprising.\nThe man had just bitten him.\n");
  const std::string a = file("a.txt", "\nIt was not unexpected.\nThe man bit him first.\n");
  const std::string b =
      file("b.txt", "The dog had bit the man.\nNo one was surprised.\nThe man had bitten the dog.\n");
  const json missing =
      eval({"bleu", "--hyp", hyp, "--ref", a, "--ref", b, "--empty-ref-is-missing", "--json"}).object();
  EXPECT_NEAR(missing["score"].get<double>(), 29.4437, 5e-5);
  EXPECT_THAT(missing["signature"].get<std::string>(), HasSubstr("nrefs:var"));
  EXPECT_THAT(eval({"bleu", "--hyp", hyp, "--ref", a, "--ref", b}).out, HasSubstr("nrefs:2"));
}

TEST_F(EvalTest, UnequalCountsNameBothFilesAndCounts) {
  const std::string hyp = file("hyp.txt", "a\nb\nc\nd\n"), ref = file("ref.txt", "a\nb\nc\nd\ne\n");
  for (const char* command : {"bleu", "rouge", "match"}) {
    const Outcome outcome = eval({command, "--hyp", hyp, "--ref", ref});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    for (const std::string& part : {hyp, ref, std::string("4 records"), std::string("5;")})
      EXPECT_THAT(outcome.err, HasSubstr(part)) << command;
  }
}

TEST_F(EvalTest, BleuWarnsAboutTokenizedText) {
  const auto lines = [](int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += "this is tokenized .\n";
    return text;
  };
  const std::string few = file("few.txt", lines(99)), many = file("many.txt", lines(100));
  EXPECT_THAT(eval({"bleu", "--hyp", few, "--ref", few}).err, Not(HasSubstr("tokenized already")));
  EXPECT_THAT(eval({"bleu", "--hyp", many, "--ref", many}).err,
              HasSubstr("100 texts end in a blank and a full stop"));
  EXPECT_EQ(eval({"bleu", "--hyp", many, "--ref", many, "--force"}).err, "");
}

TEST_F(EvalTest, BleuWarnsAboutChineseUnder13aAndTabs) {
  const std::string hyp = file("hyp.txt", "今天是个坏天气\n"), ref = file("ref.txt", "今天是个好天气\n");
  EXPECT_THAT(eval({"bleu", "--hyp", hyp, "--ref", ref}).err, HasSubstr("--tokenize zh"));
  EXPECT_EQ(eval({"bleu", "--hyp", hyp, "--ref", ref, "--tokenize", "zh"}).err, "");
  const std::string tabbed = file("tabbed.txt", "one reference\tanother\n"),
                    plain = file("plain.txt", "one reference\n");
  EXPECT_THAT(eval({"bleu", "--hyp", plain, "--ref", tabbed}).err, HasSubstr("tabbed.txt:1: holds a tab"));
  EXPECT_EQ(eval({"bleu", "--hyp", plain, "--ref", tabbed, "--ref", plain}).err, "");
}

TEST_F(EvalTest, Rouge) {
  const std::string hyp = file("hyp.txt", "the dog ran<n>the cat sat\n"),
                    ref = file("ref.txt", "the cat sat<n>the dog ran\n");
  const json split = eval({"rouge", "--hyp", hyp, "--ref", ref, "--newline", "<n>", "--json"}).object();
  EXPECT_DOUBLE_EQ(split["rouge2"]["fmeasure"], 0.8);
  EXPECT_DOUBLE_EQ(split["rougeL"]["fmeasure"], 0.5);
  EXPECT_DOUBLE_EQ(split["rougeLsum"]["fmeasure"], 1.0);
  EXPECT_EQ(split["pairs"], 1);
  const std::string jsonl = file("ref.jsonl", "{\"text\": \"the cat sat\\nthe dog ran\"}\n");
  EXPECT_DOUBLE_EQ(eval({"rouge", "--hyp", jsonl, "--ref", jsonl, "--json"}).object()["rougeLsum"]["recall"],
                   1.0);
}

TEST_F(EvalTest, RougeWritesTheScoresOfEachPair) {
  const std::string texts = "the dog ran\nnothing at all\nthe cat sat\n";
  const std::string hyp = file("hyp.txt", texts),
                    ref = file("ref.txt", "the dog ran\nsome other words\nthe cat ran away\n");
  const std::string sentences = (folder_ / "pairs.jsonl").string();
  const json whole = eval({"rouge", "--hyp", hyp, "--ref", ref, "--sentences", sentences, "--json"}).object();
  std::istringstream lines(read_file(sentences));
  std::vector<json> pairs;
  for (std::string line; std::getline(lines, line);) pairs.push_back(parse_json_or_throw(line));
  ASSERT_EQ(pairs.size(), 3u);
  for (size_t i = 0; i < pairs.size(); ++i) EXPECT_EQ(pairs[i].at("index"), i);
  for (const char* type : {"rouge1", "rouge2", "rougeL", "rougeLsum"}) {
    EXPECT_DOUBLE_EQ(pairs[0].at(type).at("fmeasure"), 1.0) << type;
    EXPECT_DOUBLE_EQ(pairs[1].at(type).at("fmeasure"), 0.0) << type;
    for (const char* figure : {"precision", "recall", "fmeasure"}) {
      double sum = 0;
      for (const json& pair : pairs) sum += pair.at(type).at(figure).get<double>();
      EXPECT_NEAR(whole.at(type).at(figure).get<double>(), sum / 3, 1e-12) << type << " " << figure;
    }
  }
  // "the cat" of three words and of four.
  EXPECT_DOUBLE_EQ(pairs[2].at("rouge1").at("precision"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(pairs[2].at("rouge1").at("recall"), 0.5);
  EXPECT_DOUBLE_EQ(pairs[2].at("rouge2").at("fmeasure"), 0.4);
  const Outcome over = eval({"rouge", "--hyp", hyp, "--ref", ref, "--sentences", hyp});
  EXPECT_EQ(over.code, 2);
  EXPECT_THAT(over.err, HasSubstr("is an input as well"));
  EXPECT_EQ(read_file(hyp), texts);
}

TEST_F(EvalTest, RougeSaysHowNewlinesCountAndWarnsAboutOtherScripts) {
  const std::string english = file("english.txt", "some text\n"), thai = file("thai.txt", "สวัสดี ok\n");
  const Outcome plain = eval({"rouge", "--hyp", english, "--ref", english});
  EXPECT_THAT(plain.out, HasSubstr("no text holds a newline: rougeLsum equals rougeL"));
  EXPECT_EQ(plain.err, "");
  EXPECT_THAT(eval({"rouge", "--hyp", thai, "--ref", thai}).err, HasSubstr("of the letters are not a-z"));
}

TEST_F(EvalTest, Match) {
  const std::string hyp = file("hyp.txt", "haus\nmaʊs\nkatze\n"), ref = file("ref.txt", "haʊs\nmaʊs\nhund\n");
  const json object = eval({"match", "--hyp", hyp, "--ref", ref, "--json"}).object();
  EXPECT_DOUBLE_EQ(object["exact"], 1.0 / 3);
  EXPECT_DOUBLE_EQ(object["cer"], 0.5);
  EXPECT_EQ(object["pairs"], 3);
}

TEST_F(EvalTest, DiversityAndNgram) {
  const std::string train = file("train.txt", "in the beginning was\nlet there be light\n");
  const std::string input = file(
      "samples.jsonl",
      "{\"text\": \"in the beginning was\"}\n{\"text\": \"\"}\n{\"text\": \"the beginning was light\"}\n");
  const json diversity = eval({"diversity", "--input", input, "--train", train, "--json"}).object();
  EXPECT_DOUBLE_EQ(diversity["new_trigrams"], 0.25);
  EXPECT_DOUBLE_EQ(diversity["exact_copies"], 0.5);
  EXPECT_EQ(diversity["samples"], 3);
  EXPECT_EQ(diversity["blank"], 1);
  EXPECT_EQ(diversity["distinct"].size(), 4u);
  EXPECT_FALSE(eval({"diversity", "--input", input, "--json"}).object().contains("new_trigrams"));
  const json ngram = eval({"ngram", "--input", input, "--train", train, "--order", "2", "--json"}).object();
  EXPECT_EQ(ngram["order"], 2);
  EXPECT_EQ(ngram["tokens"], 10);
  EXPECT_EQ(ngram["texts"], 2);
  EXPECT_EQ(ngram["oov_rate"], 0.0);
  EXPECT_GT(ngram["perplexity"].get<double>(), 1.0);
}

TEST_F(EvalTest, OutputFileAndJsonlUnderAnyName) {
  const std::string input = file("samples.out", "{\"text\": \"a b\"}\n{\"text\": \"a\"}\n");
  const std::string target = (folder_ / "figures.json").string();
  const Outcome outcome = eval({"diversity", "--input", input, "--json", "--output", target});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_DOUBLE_EQ(parse_json_or_throw(read_file(target))["distinct"][0], 2.0 / 3);
  EXPECT_THAT(outcome.err, HasSubstr("read as JSONL"));
}

TEST_F(EvalTest, MistakesOfTheUserEndWithTwo) {
  const std::string text = file("text.txt", "a\n"), empty = file("empty.txt", "");
  const std::string missing = (folder_ / "missing.txt").string();
  EXPECT_EQ(eval({}).code, 2);
  EXPECT_EQ(eval({"bleu", "--hyp", text}).code, 2);
  EXPECT_EQ(eval({"bleu", "--hyp", text, "--ref", text, "--tokenize", "14a"}).code, 2);
  EXPECT_EQ(eval({"ngram", "--train", text, "--input", text, "--order", "9"}).code, 2);
  const Outcome no_file = eval({"bleu", "--hyp", missing, "--ref", text});
  EXPECT_EQ(no_file.code, 2);
  EXPECT_THAT(no_file.err, HasSubstr(missing));
  EXPECT_EQ(eval({"diversity", "--input", empty}).code, 2);
  EXPECT_EQ(eval({"match", "--help"}).code, 0);
}

}  // namespace
}  // namespace elf
