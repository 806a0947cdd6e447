// What goes wrong for people who score texts: each case with the right value, measured with sacreBLEU 2.6.0
// and rouge_score 0.1.2. The numbers are those of the project's list of field cases.
#include <gmock/gmock.h>

#include <algorithm>

#include "support/eval_command.h"

namespace elf {
namespace {

using nlohmann::json;
using test::EvalOutcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class FieldCase : public test::EvalCommandTest {
 protected:
  double bleu(const std::string& hyp, const std::string& ref, std::vector<std::string> flags = {}) const {
    std::vector<std::string> arguments = {"bleu",  "--hyp", file("h.txt", hyp), "--ref", file("r.txt", ref),
                                          "--json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return eval(arguments).object()["score"].get<double>();
  }
  json rouge(const std::string& hyp, const std::string& ref, std::vector<std::string> flags = {}) const {
    std::vector<std::string> arguments = {"rouge", "--hyp", file("h.txt", hyp), "--ref", file("r.txt", ref),
                                          "--json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return eval(arguments).object();
  }
};

TEST_F(FieldCase, Case51BlankLinesKeepTheirPlace) {
  // A blank hypothesis is scored as one, and moves nothing: lines 3 and 4 still meet their references.
  const std::string ref = "a b c d\ne f g h\ni j k l\nm n o p\n", hyp = "a b c d\n\ni j k l\nm n o p\n";
  const json record = eval({"bleu", "--hyp", file("h", hyp), "--ref", file("r", ref), "--json"}).object();
  EXPECT_EQ(record["counts"], json({12.0, 9.0, 6.0, 3.0}));
  EXPECT_EQ(record["sys_len"], 12);
  EXPECT_EQ(record["ref_len"], 16);
  const EvalOutcome unequal = eval({"bleu", "--hyp", file("h", hyp), "--ref", file("r", ref + "q\n")});
  EXPECT_EQ(unequal.code, 2);
  EXPECT_THAT(unequal.err,
              AllOf(HasSubstr(path("h")), HasSubstr(path("r")), HasSubstr("4 records"), HasSubstr("5;")));
}

TEST_F(FieldCase, Case52ByteOrderMarksCostNothing) {
  const std::string text = "the cat sat on the mat\nthe dog ran\nit rained all day\n", mark = "\xEF\xBB\xBF";
  const EvalOutcome plain = eval({"bleu", "--hyp", file("h", text), "--ref", file("r", text)});
  const EvalOutcome marked = eval({"bleu", "--hyp", file("h", mark + text), "--ref", file("r", text)});
  EXPECT_EQ(marked.out, plain.out);  // 100.00, where the mark as text costs 9.6
  EXPECT_THAT(plain.out, HasSubstr("BLEU = 100.00"));
  EXPECT_THAT(marked.err, HasSubstr("byte order mark"));
  const std::string record = "{\"text\": \"the cat\"}\n";
  EXPECT_EQ(eval({"diversity", "--input", file("s.jsonl", mark + record)}).out,
            eval({"diversity", "--input", file("s.jsonl", record)}).out);
  const EvalOutcome wide =
      eval({"bleu", "--hyp", file("h", std::string("\xFF\xFEt\0", 4)), "--ref", file("r", text)});
  EXPECT_EQ(wide.code, 2);
  EXPECT_THAT(wide.err, HasSubstr("UTF-16"));
}

TEST_F(FieldCase, Case54EmptyAndMissingReferences) {
  EXPECT_NEAR(bleu("a b c d e\n\n", "a b c d e\n\n"), 100.0, 5e-5);
  EXPECT_NEAR(bleu("a b c d e\nx\n", "a b c d e\n\n"), 95.5443, 5e-5);
  EXPECT_NEAR(bleu("a b c d e\n\n", "a b c d e\nf g h\n"), 54.8812, 5e-5);
  const std::string hyp =
      file("hyp.txt", "The dog bit the man.\nIt wasn't surprising.\nThe man had just bitten him.\n");
  const std::string a = file("a.txt", "\nIt was not unexpected.\nThe man bit him first.\n"),
                    b = file(
                        "b.txt",
                        "The dog had bit the man.\nNo one was surprised.\nThe man had bitten the dog.\n");
  const json missing =
      eval({"bleu", "--hyp", hyp, "--ref", a, "--ref", b, "--empty-ref-is-missing", "--json"}).object();
  EXPECT_NEAR(missing["score"].get<double>(), 29.4437, 5e-5);
  EXPECT_EQ(missing["sys_len"], 17);
  EXPECT_EQ(missing["ref_len"], 19);
  EXPECT_THAT(missing["signature"].get<std::string>(), HasSubstr("nrefs:var|"));
  EXPECT_THAT(eval({"bleu", "--hyp", hyp, "--ref", a, "--ref", b}).out, HasSubstr("nrefs:2|"));
  EXPECT_THAT(eval({"bleu", "--hyp", file("h", "x\n"), "--ref", file("r", "x\ty\n")}).err,
              HasSubstr("holds a tab"));
}

TEST_F(FieldCase, Case55TokenizerAndCase) {
  const std::string bad = "今天是个坏天气\n", good = "今天是个好天气\n";
  EXPECT_NEAR(bleu(bad, good), 0.0, 5e-5);
  EXPECT_NEAR(bleu(bad, good, {"--tokenize", "zh"}), 48.8923, 5e-5);
  EXPECT_NEAR(bleu(bad, good, {"--tokenize", "char"}), 48.8923, 5e-5);
  EXPECT_NEAR(bleu("The Cat Sat On The Mat .\n", "the cat sat on the mat .\n"), 6.5673, 5e-5);
  EXPECT_NEAR(bleu("The Cat Sat On The Mat .\n", "the cat sat on the mat .\n", {"--lowercase"}), 100.0, 5e-5);
  EXPECT_NEAR(bleu("Preis: 5€ (neu)\n", "Preis : 5 € ( neu )\n"), 32.1594, 5e-5);
  EXPECT_NEAR(bleu("Preis: 5€ (neu)\n", "Preis : 5 € ( neu )\n", {"--tokenize", "intl"}), 100.0, 5e-5);
  std::string lines;
  for (int i = 0; i < 99; ++i) lines += "this is tokenized .\n";
  EXPECT_THAT(eval({"bleu", "--hyp", file("h", lines), "--ref", file("r", lines)}).err,
              Not(HasSubstr("tokenized already")));
  lines += "this is tokenized .\n";
  EXPECT_THAT(eval({"bleu", "--hyp", file("h", lines), "--ref", file("r", lines)}).err,
              HasSubstr("tokenized already"));
}

TEST_F(FieldCase, Case56RougeLAndLsum) {
  const json split =
      rouge("the dog ran<n>the cat sat\n", "the cat sat<n>the dog ran\n", {"--newline", "<n>"});
  EXPECT_NEAR(split["rouge1"]["fmeasure"].get<double>(), 1.0, 1e-12);
  EXPECT_NEAR(split["rouge2"]["fmeasure"].get<double>(), 0.8, 1e-12);
  EXPECT_NEAR(split["rougeL"]["fmeasure"].get<double>(), 0.5, 1e-12);
  EXPECT_NEAR(split["rougeLsum"]["fmeasure"].get<double>(), 1.0, 1e-12);
  EXPECT_THAT(split["signature"].get<std::string>(), HasSubstr("newlines in the texts separate"));
  const json one = rouge("the dog ran the cat sat\n", "the cat sat the dog ran\n");
  EXPECT_NEAR(one["rougeLsum"]["fmeasure"].get<double>(), 0.5, 1e-12);
  EXPECT_THAT(one["signature"].get<std::string>(), HasSubstr("no text holds a newline"));
  const json sentences =
      rouge("The dog ran. The cat sat.\n", "The cat sat. The dog ran.\n", {"--split-summaries"});
  EXPECT_NEAR(sentences["rougeL"]["fmeasure"].get<double>(), 0.5, 1e-12);
  EXPECT_NEAR(sentences["rougeLsum"]["fmeasure"].get<double>(), 1.0, 1e-12);
  EXPECT_THAT(sentences["signature"].get<std::string>(), HasSubstr("ends of sentences (ICU's, not NLTK's)"));
}

TEST_F(FieldCase, Case57OtherScriptsAndTheStemmer) {
  const std::string thai = "สวัสดีครับ\n", hindi = "नमस्ते दुनिया\n";
  EXPECT_EQ(rouge(thai, thai)["rouge1"]["fmeasure"], 0.0);
  EXPECT_EQ(rouge("café crème\n", "café crème\n")["rouge1"]["fmeasure"], 1.0);
  EXPECT_EQ(rouge("café crème\n", "cafe creme\n")["rouge1"]["fmeasure"], 0.0);
  const std::string a = "the runner is run gases\n", b = "the runners are running gas\n";
  EXPECT_NEAR(rouge(a, b)["rouge1"]["fmeasure"].get<double>(), 0.2, 1e-12);
  EXPECT_NEAR(rouge(a, b, {"--stemmer"})["rouge1"]["fmeasure"].get<double>(), 0.6, 1e-12);
  EXPECT_EQ(rouge("\n", b)["rougeL"]["fmeasure"], 0.0);
  EXPECT_THAT(eval({"rouge", "--hyp", file("h", hindi), "--ref", file("r", hindi)}).err,
              HasSubstr("100.0 % of the letters"));
  for (const std::string& text : {thai, hindi}) {
    const json record = rouge(text, text, {"--tokenizer", "unicode"});
    EXPECT_EQ(record["rougeL"]["fmeasure"], 1.0);
    EXPECT_THAT(record["tokenizer"].get<std::string>(), HasSubstr("unicode (ICU "));
    EXPECT_THAT(record["signature"].get<std::string>(), HasSubstr("not the package's"));
  }
  EXPECT_EQ(rouge("नमस्ते दुनिया\n", "नमस्ते भारत\n", {"--tokenizer", "unicode"})["rouge1"]["recall"], 0.5);
}

TEST_F(FieldCase, ReferencesThatAreNotTheRawText) {
  const std::string hyp = file("h", "a cat\n");
  EXPECT_THAT(eval({"bleu", "--hyp", hyp, "--ref", file("r", "a \u2047 cat\n")}).err,
              HasSubstr("decoded from token ids"));
  std::string cut, whole;
  for (int i = 0; i < 100; ++i) {
    std::string words;
    for (int k = 0; k < 12 + i % 40; ++k) words += "w" + std::to_string(k) + " ";
    whole += words + "end\n";
    if (i % 40 >= 8) words.resize(std::min(words.size(), words.find("w20 ")));
    cut += words + "\n";
  }
  EXPECT_THAT(eval({"bleu", "--hyp", file("h", cut), "--ref", file("r", cut)}).err,
              HasSubstr("look cut at a maximal length"));
  EXPECT_EQ(eval({"bleu", "--hyp", file("h", whole), "--ref", file("r", whole)}).err, "");
  EXPECT_THAT(eval({"rouge", "--hyp", file("h", cut), "--ref", file("r", cut)}).err, HasSubstr("look cut"));
  EXPECT_THAT(eval({"match", "--hyp", file("h", "a \n"), "--ref", file("r", "a\n")}).err,
              HasSubstr("1 texts end in white space"));
}

}  // namespace
}  // namespace elf
