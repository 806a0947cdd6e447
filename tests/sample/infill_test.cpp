// Gaps: their marks, their lengths, and their filling by a network whose answers are known.
#include "elf/sample/infill.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "elf/sample/score.h"
#include "elf/tensor/random.h"
#include "support/errors.h"
#include "support/golden.h"

namespace elf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const SentencePieceTokenizer& tokenizer() {
  static const auto loaded = SentencePieceTokenizer::load(test::golden("tokenizer/spiece.model"));
  return loaded;
}

InfillText parse(const std::string& text) {
  return parse_infill(text, tokenizer(), 8, "a.txt:1");
}

std::vector<int64_t> ids_of(const std::string& text) {
  const std::vector<int32_t> ids = tokenizer().encode(text);
  return {ids.begin(), ids.end()};
}

TEST(InfillText, MarksAreGapsWithTheirLengths) {
  const InfillText text = parse("the <gap:3> and <gap:2-5> of <gap> it");
  ASSERT_EQ(text.gaps.size(), 3u);
  EXPECT_EQ(text.gaps[0].least, 3);
  EXPECT_EQ(text.gaps[0].most, 3);
  EXPECT_EQ(text.gaps[1].least, 2);
  EXPECT_EQ(text.gaps[1].most, 5);
  EXPECT_EQ(text.gaps[2].least, 1);
  EXPECT_EQ(text.gaps[2].most, 8);
  EXPECT_FALSE(text.open_end);
  EXPECT_THAT(text.text, ElementsAre("the ", " and ", " of ", " it"));
  EXPECT_EQ(text.known[1], ids_of("and"));
}

TEST(InfillText, AFreeGapAtTheEndIsOpen) {
  EXPECT_TRUE(parse("the <gap>").open_end);
  EXPECT_TRUE(parse("<gap>").open_end);
  EXPECT_TRUE(parse("the <gap> ").open_end);
  EXPECT_FALSE(parse("the <gap:2>").open_end);
  EXPECT_FALSE(parse("<gap> the").open_end);
  EXPECT_TRUE(parse("no mark").gaps.empty());
  EXPECT_TRUE(parse("").known.front().empty());
}

TEST(InfillText, AStretchWithoutBlankGoesOnWithTheWord) {
  const std::vector<int64_t> joined = parse("<gap:1>s of").known.back();
  ASSERT_FALSE(joined.empty());
  EXPECT_FALSE(tokenizer().piece(joined.front()).starts_with("\u2581")) << tokenizer().piece(joined.front());
  EXPECT_TRUE(tokenizer().piece(parse("<gap:1> s of").known.back().front()).starts_with("\u2581"));
}

TEST(InfillText, KnownTextComesBackAsWritten) {
  const InfillText text =
      parse("Stra\u00dfe  <gap:1>, \u4e16 <gap:2>!");  // unknown characters and two blanks too
  const std::string filled = render_infill(text, {ids_of("the"), ids_of("and of")}, tokenizer());
  EXPECT_EQ(filled, "Stra\u00dfe  the, \u4e16 and of!");
  EXPECT_EQ(render_infill(parse("a<gap:1>b"), {ids_of("the")}, tokenizer()),
            "a theb");  // the fill starts a word
  EXPECT_EQ(render_infill(parse("and <gap>"), {{}}, tokenizer()), "and");
  // Ids outside the tokenizer's range are left out.
  EXPECT_EQ(render_infill(parse("and <gap:2> of"), {{100000, -3}}, tokenizer()), "and of");
}

TEST(InfillText, BadMarksNameTheirPlace) {
  for (const char* bad :
       {"a <gap:0> b", "a <gap:x> b", "a <gap:5-2> b", "a <gap", "a <gaps>", "a <gap:> b"}) {
    const std::string message = test::usage_message([&] { parse(bad); });
    EXPECT_THAT(message, HasSubstr("a.txt:1")) << bad;
    EXPECT_THAT(message, HasSubstr("<gap")) << bad;
  }
}

TEST(GapLengths, AllCombinationsThatFit) {
  InfillText text;
  text.known = {{5, 6}, {7}, {8}};
  text.gaps = {{1, 3}, {1, 2}};
  EXPECT_THAT(gap_lengths(text, 100, 16, "x"),
              ElementsAre(ElementsAre(1, 1), ElementsAre(1, 2), ElementsAre(2, 1), ElementsAre(2, 2),
                          ElementsAre(3, 1), ElementsAre(3, 2)));
  EXPECT_THAT(gap_lengths(text, 7, 16, "x"),
              ElementsAre(ElementsAre(1, 1), ElementsAre(1, 2), ElementsAre(2, 1)));
  EXPECT_EQ(gap_lengths(text, 100, 4, "x").size(), 4u);
  EXPECT_THAT(test::usage_message([&] { gap_lengths(text, 5, 16, "a.txt:4"); }),
              HasSubstr("a.txt:4: 4 known tokens"));
  text.known.back().clear();
  text.open_end = true;
  EXPECT_THAT(gap_lengths(text, 100, 16, "x"),
              ElementsAre(ElementsAre(1, -1), ElementsAre(2, -1), ElementsAre(3, -1)));
  text.gaps.assign(12, {1, 8});  // thinned on the way: no 8^12 combinations
  text.known.assign(13, {5});
  text.open_end = false;
  EXPECT_EQ(gap_lengths(text, 1000, 16, "x").size(), 16u);
}

constexpr int64_t kVocabulary = 10, kLength = 8, kEos = 1;
constexpr double kNoise = 0.002;

// Latents are one-hot rows.
class OneHotCodec : public LatentCodec {
 public:
  at::Tensor encode(const at::Tensor& ids, const at::Tensor& mask) override {
    ++calls;
    last_mask = mask;
    last_ids = ids;
    return at::one_hot(ids, kVocabulary).to(at::kFloat);
  }
  int64_t dim() const override { return kVocabulary; }
  int64_t vocabulary() const override { return kVocabulary; }
  std::string digest() const override { return "one-hot"; }
  int calls = 0;
  at::Tensor last_mask, last_ids;
};

// Knows one kind of text: ids that count up by one from whatever stands at the first position, until there is
// an EOS in the state.
class CountingDenoiser : public Denoiser {
 public:
  at::Tensor features(const DenoiserInput& input) override {
    if (input.mode.defined()) return 10 * input.z;
    at::Tensor x = at::zeros_like(input.z);
    const at::Tensor best = input.z.argmax(-1);
    for (int64_t b = 0; b < x.size(0); ++b) {
      const int64_t first = best[b][0].item<int64_t>();
      const double sure = 0.3 * input.t[b].item<double>() + 0.02;  // beyond the noise
      if (input.z[b][0].max().item<double>() <= sure) continue;    // nothing but noise to count from
      for (int64_t i = 0; i < x.size(1); ++i) {
        const bool end = input.z[b][i][kEos].item<double>() > sure;
        x[b][i][end ? kEos : std::min<int64_t>(first + i, kVocabulary - 1)] = 1.0;
      }
    }
    return x;
  }
  at::Tensor denoise_head(const at::Tensor& features) override { return features; }
  at::Tensor decode_head(const at::Tensor& features) override { return features; }
};

class InfillerTest : public ::testing::TestWithParam<InfillMethod> {
 protected:
  Infiller make(int64_t tries = 16) {
    SamplingConfig config;
    config.sampler = SamplerKind::kOde;
    config.steps = 4;
    config.time_schedule = TimeGrid::kUniform;
    config.seed = 3;
    InfillSettings settings{.method = GetParam(), .tries = tries, .banned = {0, 1, 2}};
    return Infiller({network, {false, false, false}, kNoise, 0.05}, codec, {kLength, kVocabulary, 0, 0, kEos},
                    config, settings);
  }
  static InfillText text(std::vector<TokenIds> known, std::vector<Gap> gaps, bool open = false) {
    InfillText result;
    result.known = std::move(known);
    result.gaps = std::move(gaps);
    result.open_end = open;
    return result;
  }

  OneHotCodec codec;
  CountingDenoiser network;
};

TEST_P(InfillerTest, KnownTokensStayAndGapsFollowTheModel) {
  Infiller infiller = make();
  const auto filled =
      infiller.fill({0, 1}, {text({{3}, {6}}, {{2, 2}}), text({{2, 9}, {9}, {}}, {{1, 1}, {1, 1}})}, {}, 8);
  EXPECT_THAT(filled[0].ids, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(filled[0].fills, ElementsAre(ElementsAre(4, 5)));
  EXPECT_THAT(filled[1].ids, ElementsAre(2, 9, 4, 9, 6));  // against the model's opinion at the known places
  const int64_t decodes = GetParam() == InfillMethod::kReencode ? 3 + 1 : 1;
  EXPECT_EQ(infiller.forwards(), 4 + decodes);
  EXPECT_EQ(codec.calls, GetParam() == InfillMethod::kReencode ? 4 : 1);
}

TEST_P(InfillerTest, NoEndStandsInAGapOfGivenLength) {
  // Counting from EOS the model would put 2 (unknown) into the gap: banned, so that a word stands there.
  const auto filled = make().fill({0}, {text({{1}, {}}, {{1, 1}})}, {}, 8);
  ASSERT_EQ(filled[0].fills[0].size(), 1u);
  EXPECT_GE(filled[0].fills[0][0], 3);
}

TEST_P(InfillerTest, AnOpenEndRunsToTheModelsEnd) {
  const auto filled = make().fill({0}, {text({{4}, {}}, {{1, 8}}, true)}, {}, 8);
  EXPECT_THAT(filled[0].ids, ElementsAre(4, 5, 6, 7, 8, 9, 9, 9));
}

TEST_P(InfillerTest, TheLikeliestLengthIsTakenWhateverTheBatch) {
  const std::vector<InfillText> texts = {text({{3}, {7}}, {{1, 5}}), text({{4}, {6}}, {{1, 5}})};
  for (const int64_t rows : {1, 2, 5, 16}) {
    const auto filled = make().fill({0, 1}, texts, {}, rows);
    EXPECT_THAT(filled[0].ids, ElementsAre(3, 4, 5, 6, 7)) << rows;
    EXPECT_THAT(filled[1].ids, ElementsAre(4, 5, 6)) << rows;
    EXPECT_EQ(filled[0].tried, 5);
    EXPECT_LT(filled[0].log_prob, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, InfillerTest,
                         ::testing::Values(InfillMethod::kPath, InfillMethod::kReencode, InfillMethod::kPin));

TEST(Infiller, TheEncoderSeesTheGapsOnlyOnceTheyAreGuessed) {
  OneHotCodec codec;
  CountingDenoiser network;
  SamplingConfig config;
  config.steps = 4;
  InfillSettings settings{.method = InfillMethod::kPath};
  const SamplerModel model{network, {false, false, false}, kNoise, 0.05};
  InfillText text;
  text.known = {{3}, {5}};
  text.gaps = {{1, 1}};
  Infiller(model, codec, {kLength, kVocabulary, 0, 0, kEos}, config, settings).fill({0}, {text}, {}, 4);
  const at::Tensor seen = codec.last_mask[0][0];
  EXPECT_TRUE(seen[0].item<bool>());
  EXPECT_FALSE(seen[1].item<bool>());  // the gap
  EXPECT_TRUE(seen[2].item<bool>());
  EXPECT_TRUE(seen[3].item<bool>());  // EOS
  EXPECT_FALSE(seen[4].item<bool>());
  settings.method = InfillMethod::kReencode;
  Infiller(model, codec, {kLength, kVocabulary, 0, 0, kEos}, config, settings).fill({0}, {text}, {}, 4);
  EXPECT_TRUE(codec.last_mask[0][0][1].item<bool>());
  EXPECT_EQ(codec.last_ids[0][1].item<int64_t>(), 4);
}

TEST(Score, PrefersTheTextThatTheModelKnows) {
  CountingDenoiser network;
  OneHotCodec codec;
  const at::Tensor ids = at::tensor({3, 4, 5, 6, 3, 6, 4, 5}, at::kLong).view({2, 4});
  ScoreRequest request{.latents = codec.encode(ids, {}), .ids = ids, .samples = {0, 0}};
  const at::Tensor score = denoising_log_prob({network, {false, false, false}, kNoise, 0.05}, request);
  EXPECT_GT(score[0].sum().item<double>(), score[1].sum().item<double>() + 1);
  EXPECT_NEAR(score[0].sum().item<double>(), 0, 0.1);
}

}  // namespace
}  // namespace elf
