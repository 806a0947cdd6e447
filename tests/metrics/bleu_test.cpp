// BLEU: cases with figures measured with sacreBLEU 2.6.0 (four decimals), edge cases, and what is refused.
#include "elf/metrics/bleu.h"

#include <gtest/gtest.h>

#include "elf/base/error.h"

namespace elf {
namespace {

double bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
            const BleuOptions& options = {}) {
  return corpus_bleu(hypotheses, {ReferenceStream(references.begin(), references.end())}, options).score;
}

BleuOptions with(BleuTokenizer tokenizer) {
  BleuOptions options;
  options.tokenizer = tokenizer;
  return options;
}

TEST(Bleu, EmptySegments) {
  EXPECT_NEAR(bleu({"a b c d e", ""}, {"a b c d e", ""}), 100.0, 1e-9);
  EXPECT_NEAR(bleu({"a b c d e", "x"}, {"a b c d e", ""}), 95.5443, 5e-5);
  EXPECT_NEAR(bleu({"a b c d e", ""}, {"a b c d e", "f g h"}), 54.8812, 5e-5);
}

TEST(Bleu, TokenizersOnWhatTheyAreFor) {
  const std::vector<std::string> hypothesis = {"今天是个坏天气"}, reference = {"今天是个好天气"};
  EXPECT_EQ(bleu(hypothesis, reference, with(BleuTokenizer::k13a)), 0.0);
  EXPECT_NEAR(bleu(hypothesis, reference, with(BleuTokenizer::kZh)), 48.8923, 5e-5);
  EXPECT_NEAR(bleu(hypothesis, reference, with(BleuTokenizer::kChar)), 48.8923, 5e-5);
  EXPECT_NEAR(bleu({"Preis: 5€ (neu)"}, {"Preis : 5 € ( neu )"}, with(BleuTokenizer::k13a)), 32.1594, 5e-5);
  EXPECT_NEAR(bleu({"Preis: 5€ (neu)"}, {"Preis : 5 € ( neu )"}, with(BleuTokenizer::kIntl)), 100.0, 1e-9);
}

TEST(Bleu, Case) {
  BleuOptions lower;
  lower.lowercase = true;
  EXPECT_NEAR(bleu({"The Cat Sat On The Mat ."}, {"the cat sat on the mat ."}), 6.5673, 5e-5);
  EXPECT_NEAR(bleu({"The Cat Sat On The Mat ."}, {"the cat sat on the mat ."}, lower), 100.0, 1e-9);
}

TEST(Bleu,
     MissingReferenceIsNotAnEmptyOne) {  // the example of sacreBLEU's manual, its first reference taken away
  const std::vector<std::string> hypotheses = {"The dog bit the man.", "It wasn't surprising.",
                                               "The man had just bitten him."};
  const ReferenceStream first = {std::nullopt, "It was not unexpected.", "The man bit him first."};
  const ReferenceStream second = {"The dog had bit the man.", "No one was surprised.",
                                  "The man had bitten the dog."};
  const BleuScore missing = corpus_bleu(hypotheses, {first, second});
  EXPECT_NEAR(missing.score, 29.4437, 5e-5);
  EXPECT_EQ(missing.sys_len, 17);
  EXPECT_EQ(missing.ref_len, 19);
  EXPECT_EQ(missing.signature.rfind("nrefs:var|", 0), 0u);
  const BleuScore empty = corpus_bleu(hypotheses, {{"", first[1], first[2]}, second});
  EXPECT_EQ(empty.signature.rfind("nrefs:2|", 0), 0u);
}

TEST(Bleu, ZhTakesSymbolsBetween2001And2A6DForChinese) {
  EXPECT_EQ(bleu_tokenize(BleuTokenizer::kZh, "a—b今天→ok"), "a — b 今 天 → ok");
  EXPECT_EQ(bleu_tokenize(BleuTokenizer::kZh, "x𠀀y"), "x𠀀y");  // plane 2 is not
}

TEST(Bleu, SignatureNamesThisProgram) {
  const std::string signature = corpus_bleu({"a"}, {{"a"}}).signature;
  EXPECT_NE(signature.find("|version:elf-"), std::string::npos) << signature;
  EXPECT_NE(signature.find("sacrebleu-2.6.0"), std::string::npos) << signature;
}

TEST(Bleu, Refuses) {
  EXPECT_THROW(corpus_bleu({}, {{}}), Error);
  EXPECT_THROW(corpus_bleu({"a"}, {}), Error);
  EXPECT_THROW(corpus_bleu({"a"}, {{"a", "b"}}), Error);
  EXPECT_THROW(corpus_bleu({"a"}, {{std::nullopt}}), Error);
  EXPECT_THROW(parse_bleu_tokenizer("14a"), Error);
  EXPECT_THROW(parse_bleu_smoothing("add"), Error);
}

}  // namespace
}  // namespace elf
