// Gen. PPL against the published code (golden/eval/gpt2_perplexity.json), and what it must not depend on.
#include "elf/eval/gen_ppl.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "support/errors.h"
#include "support/golden.h"

namespace elf {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const Gpt2& scorer() {
  static const Gpt2 model = Gpt2::load(test::golden("eval/gpt2_model"), at::kCPU);
  return model;
}

const Gpt2Tokenizer& tokenizer() {
  static const Gpt2Tokenizer loaded =
      Gpt2Tokenizer::load(std::filesystem::path(ELF_TEST_DIR).parent_path() / "data" / "gpt2");
  return loaded;
}

// |actual - expected| <= 1e-4 (relative above 1).
void expect_close(double actual, double expected, const std::string& what) {
  EXPECT_NEAR(actual, expected, 1e-4 * std::max(1.0, std::abs(expected))) << what;
}

double number(const json& value) {
  return value.is_string() ? std::nan("") : value.get<double>();
}

TEST(GenPpl, EverySetOfThePublishedCode) {
  const json golden = test::golden_json("eval/gpt2_perplexity.json");
  for (const auto& [name, set] : golden["sets"].items()) {
    SCOPED_TRACE(name);
    const GenPpl result = gen_ppl(scorer(), tokenizer(), set["texts"].get<std::vector<std::string>>());
    ASSERT_EQ(result.texts.size(), set["kept"].size());
    EXPECT_EQ(result.tokens, set["total_tokens"].get<double>());
    expect_close(result.nll, set["total_nll"], "nll");
    expect_close(result.mean_entropy(), set["mean_entropy"], "entropy");
    if (set["ppl"].is_string()) {
      EXPECT_TRUE(std::isnan(result.perplexity()));
    } else {
      expect_close(result.perplexity(), set["ppl"], "perplexity");
    }
    for (size_t i = 0; i < result.texts.size(); ++i) {
      const ScoredText& text = result.texts[i];
      const json& expected = set["samples"][i];
      EXPECT_EQ(text.index, set["kept"][i].get<size_t>());
      EXPECT_EQ(text.ids, expected["ids"].get<std::vector<int32_t>>());
      EXPECT_EQ(text.tokens, expected["counted_tokens"].get<double>());
      expect_close(text.nll, number(expected["nll_sum"]), "nll of text " + std::to_string(i));
      expect_close(text.entropy, number(expected["entropy"]), "entropy of text " + std::to_string(i));
    }
  }
}

TEST(GenPpl, Bfloat16WeightsAsPublished) {
  const json set = test::golden_json("eval/gpt2_perplexity.json")["sets"]["normal"];
  const Gpt2 model = Gpt2::load(test::golden("eval/gpt2_model"), at::kCPU, at::kBFloat16);
  const double ppl = gen_ppl(model, tokenizer(), set["texts"].get<std::vector<std::string>>()).perplexity();
  const double expected = set["ppl_with_bfloat16_weights_as_published"];
  EXPECT_NEAR(ppl / expected, 1, 2e-3);
}

std::vector<std::string> texts_of(const char* set) {
  return test::golden_json("eval/gpt2_perplexity.json")["sets"][set]["texts"].get<std::vector<std::string>>();
}

class Independence : public testing::TestWithParam<GenPplProtocol> {};

TEST_P(Independence, OrderBatchAndNeighboursChangeNoNll) {
  std::vector<std::string> texts = texts_of("normal");
  for (const std::string& text : texts_of("with_eos_in_text")) texts.push_back(text);
  GenPplOptions options;
  options.protocol = GetParam();
  options.batch_size = 5;
  const GenPpl together = gen_ppl(scorer(), tokenizer(), texts, options);

  std::vector<std::string> reversed(texts.rbegin(), texts.rend());
  for (const int64_t batch : {1, 3, 64}) {
    options.batch_size = batch;
    const GenPpl other = gen_ppl(scorer(), tokenizer(), reversed, options);
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_NEAR(other.texts[texts.size() - 1 - i].nll, together.texts[i].nll, 1e-4) << "text " << i;
      EXPECT_EQ(other.texts[texts.size() - 1 - i].tokens, together.texts[i].tokens) << "text " << i;
    }
  }
  // Alone: beside nothing but a longer text, which the published protocol needs to count a text's end.
  const std::string longest = *std::max_element(texts.begin(), texts.end(), [](const auto& a, const auto& b) {
    return tokenizer().encode(a).size() < tokenizer().encode(b).size();
  });
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_NEAR(gen_ppl(scorer(), tokenizer(), {texts[i], longest}, options).texts[0].nll,
                together.texts[i].nll, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Protocols, Independence,
                         testing::Values(GenPplProtocol::kPublished, GenPplProtocol::kClean));

// The clean protocol from the plain definition: one text, one softmax over all positions.
TEST(GenPpl, CleanIsTheTextAndOneEnd) {
  const std::string text = "The old ferry painted thirty-two letters.";
  std::vector<int32_t> tokens = tokenizer().encode(text);
  tokens.push_back(tokenizer().end_of_text());
  for (const bool bos : {false, true}) {
    std::vector<int64_t> ids(tokens.begin(), tokens.end());
    if (bos) ids.insert(ids.begin(), tokenizer().end_of_text());
    const at::Tensor all = at::tensor(ids, at::kLong).unsqueeze(0);
    const auto length = static_cast<int64_t>(ids.size());
    const at::Tensor logits = scorer().logits(scorer().forward(all.narrow(1, 0, length - 1)))[0];
    const at::Tensor nll =
        -at::log_softmax(logits, 1).gather(1, all[0].narrow(0, 1, length - 1).unsqueeze(1));
    GenPplOptions options;
    options.protocol = GenPplProtocol::kClean;
    options.bos = bos;
    const GenPpl result = gen_ppl(scorer(), tokenizer(), {text, ""}, options);
    EXPECT_EQ(result.blank, 1);
    EXPECT_EQ(result.tokens, static_cast<double>(length - 1));
    EXPECT_NEAR(result.nll, nll.sum().item<double>(), 1e-4);
  }
}

TEST(GenPpl, CutTextsHaveNoEnd) {
  GenPplOptions options;
  options.protocol = GenPplProtocol::kClean;
  options.max_tokens = 4;
  const GenPpl result =
      gen_ppl(scorer(), tokenizer(), {"one two three four five six", "one two three"}, options);
  EXPECT_EQ(result.cut, 1);
  EXPECT_EQ(result.texts[0].tokens, 3);
  EXPECT_EQ(result.texts[1].tokens, 3);
  options.bos = true;
  EXPECT_EQ(gen_ppl(scorer(), tokenizer(), {"one two three four five six"}, options).texts[0].tokens, 3);
}

TEST(GenPpl, RefusesWhatMakesNoSense) {
  GenPplOptions options;
  options.bos = true;
  EXPECT_THAT(test::usage_message([&] { gen_ppl(scorer(), tokenizer(), {"a"}, options); }),
              HasSubstr("published protocol puts nothing before a text"));
  options.bos = false;
  options.max_tokens = 1025;
  EXPECT_THAT(test::usage_message([&] { gen_ppl(scorer(), tokenizer(), {"a"}, options); }),
              HasSubstr("found 1025 tokens of a text at most, expected 2 to 1024"));
  const Gpt2 small = Gpt2::load(test::golden("eval/gpt2_small_vocab"), at::kCPU);
  options.max_tokens = 40;
  EXPECT_THAT(test::usage_message([&] { gen_ppl(small, tokenizer(), {"a"}, options); }),
              HasSubstr("the tokenizer has 50257 tokens, the scorer only 53"));
}

}  // namespace
}  // namespace elf
