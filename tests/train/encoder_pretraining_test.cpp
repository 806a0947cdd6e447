// Span corruption and the training of an encoder by it. Against the published library:
// golden/t5/decoder.safetensors (logits and loss to 1e-5, gradients to 1e-4 of each tensor's largest entry),
// and, where Python has transformers, a folder of ours opened by it (1e-5).
#include "elf/train/encoder_pretraining.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "elf/base/error.h"
#include "elf/tensor/device.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;

std::vector<int32_t> counting(int32_t length) {
  std::vector<int32_t> text;
  for (int32_t i = 0; i < length; ++i) text.push_back(100 + i);
  return text;
}

const SpanCorruption kCorruption{
    .noise_share = 0.15, .mean_span = 3.0, .first_sentinel = 99, .sentinels = 20, .eos_id = 1};

// Puts the target's stretches back where their sentinels stand.
std::vector<int32_t> restore(const CorruptedText& corrupted) {
  std::map<int32_t, std::vector<int32_t>> stretches;
  int32_t sentinel = 0;
  for (const int32_t id : corrupted.target) {
    if (id < 100 && id > 1) {
      sentinel = id;
    } else if (id != 1) {
      stretches[sentinel].push_back(id);
    }
  }
  std::vector<int32_t> text;
  for (const int32_t id : corrupted.input) {
    if (id < 100 && id > 1) {
      text.insert(text.end(), stretches[id].begin(), stretches[id].end());
    } else if (id != 1) {
      text.push_back(id);
    }
  }
  return text;
}

TEST(SpanCorruptionTask, TargetFillsTheGapsOfTheInput) {
  for (const int32_t length : {1, 2, 3, 7, 20, 128, 512}) {
    for (int64_t sample = 0; sample < 20; ++sample) {
      const CorruptedText corrupted =
          corrupt_spans(counting(length), kCorruption, {3, Purpose::kSpanCorruption, 5}, sample);
      EXPECT_EQ(restore(corrupted), counting(length)) << length;
      EXPECT_EQ(corrupted.input.back(), 1);
      EXPECT_EQ(corrupted.target.back(), 1);
      EXPECT_EQ(corrupted.target.front(), 99);
    }
  }
}

TEST(SpanCorruptionTask, HidesTheShareInStretchesOfTheMeanLength) {
  const CorruptedText corrupted = corrupt_spans(counting(120), kCorruption, {3, Purpose::kSpanCorruption}, 0);
  const auto hidden =
      std::count_if(corrupted.target.begin(), corrupted.target.end(), [](int32_t id) { return id >= 100; });
  const auto sentinels = std::count_if(corrupted.input.begin(), corrupted.input.end(),
                                       [](int32_t id) { return id < 100 && id > 1; });
  EXPECT_EQ(hidden, 18);
  EXPECT_EQ(sentinels, 6);
}

TEST(SpanCorruptionTask, EveryWayToCutIsEquallyLikely) {
  // Five tokens, two hidden in two stretches of one: the kept three are cut 1+2 or 2+1, so the first hidden
  // token is the second or the third.
  const SpanCorruption settings{
      .noise_share = 0.4, .mean_span = 1.0, .first_sentinel = 99, .sentinels = 20, .eos_id = 1};
  int second = 0;
  for (int64_t sample = 0; sample < 2000; ++sample) {
    const CorruptedText corrupted =
        corrupt_spans(counting(5), settings, {3, Purpose::kSpanCorruption}, sample);
    ASSERT_EQ(corrupted.target.size(), 5u);
    second += corrupted.target[1] == 101;
  }
  EXPECT_NEAR(second, 1000, 110);  // five standard deviations
}

TEST(SpanCorruptionTask, DependsOnItsNameOnly) {
  const Stream stream{3, Purpose::kSpanCorruption, 5};
  EXPECT_EQ(corrupt_spans(counting(60), kCorruption, stream, 7).input,
            corrupt_spans(counting(60), kCorruption, stream, 7).input);
  EXPECT_NE(corrupt_spans(counting(60), kCorruption, stream, 7).input,
            corrupt_spans(counting(60), kCorruption, stream, 8).input);
  EXPECT_THROW(corrupt_spans({}, kCorruption, stream, 0), Error);
  EXPECT_THROW(corrupt_spans(counting(5), SpanCorruption{}, stream, 0), Error);
}

TEST(T5Training, LogitsLossAndGradientsAsPublished) {
  const TensorMap golden = read_safetensors(test::golden("t5/decoder.safetensors"));
  T5Model model = load_t5(test::golden("t5/model_relu"), /*with_decoder=*/true);
  for (const ParamRef& param : t5_params(model)) param.tensor.requires_grad_(true);
  const T5Encoder encoder(model);

  const at::Tensor& labels = golden.at("labels");
  const at::Tensor mask = golden.at("input_ids") != 0;
  const at::Tensor read =
      at::constant_pad_nd(labels.narrow(1, 0, labels.size(1) - 1).clamp_min(0), {1, 0}, 0);
  const at::Tensor logits = t5_decode(model, read, encoder.forward(golden.at("input_ids"), mask), mask);
  EXPECT_TRUE(test::all_close(logits, golden.at("logits"), 1e-5, 1e-5));

  const auto without = [](const at::Tensor& row, int64_t filler) {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < row.size(0); ++i) {
      if (row[i].item<int64_t>() != filler) ids.push_back(row[i].item<int32_t>());
    }
    return ids;
  };
  std::vector<CorruptedText> texts;
  for (int64_t row = 0; row < 2; ++row)
    texts.push_back({without(golden.at("input_ids")[row], 0), without(labels[row], -100)});
  const at::Tensor loss = span_corruption_loss(encoder, texts, at::kCPU);
  EXPECT_TRUE(test::all_close(loss, golden.at("loss"), 1e-5, 1e-5));
  loss.backward();
  int compared = 0;
  for (const ParamRef& param : t5_params(model)) {
    const auto expected = golden.find("grad/" + param.name);
    if (expected == golden.end()) continue;
    EXPECT_TRUE(test::close_to_largest(param.tensor.grad(), expected->second, 1e-4)) << param.name;
    ++compared;
  }
  EXPECT_EQ(compared, 5);
}

class Pretraining : public ::testing::Test {
 protected:
  Pretraining() {
    set_threads(1);  // tensors this small are slower on two
    DatasetInfo header;
    header.vocab_size = 40;
    header.max_length = 16;
    DatasetWriter writer(folder_ / "data.h5", header);
    for (int32_t row = 0; row < 300; ++row) {  // texts that count upwards: every gap can be filled
      std::vector<int32_t> ids;
      for (int32_t i = 0; i < 8 + row % 6; ++i) ids.push_back(3 + (row + i) % 26);
      ids.push_back(1);
      writer.add_document(ids);
    }
    writer.finish();
    config_ = t5_preset("t5-nano");
    config_.vocab_size = 40;
    training_.steps = 40;
    training_.batch = 8;
    training_.lr = 3e-3;
    training_.warmup = 10;
    training_.corruption = {.first_sentinel = 39, .sentinels = 10, .eos_id = 1};
  }
  const test::TemporaryFolder scratch_;
  const fs::path folder_ = scratch_.path();
  T5Config config_;
  EncoderPretrainingConfig training_;
};

TEST_F(Pretraining, LearnsAPatternAndRepeatsItself) {
  const Dataset dataset = Dataset::open(folder_ / "data.h5");
  T5Model first = random_t5(config_, 1), second = random_t5(config_, 1);
  const EncoderPretrainingReport report = pretrain_encoder(first, dataset, training_, at::kCPU);
  EXPECT_LT(report.last_loss, 0.5 * report.first_loss);
  training_.steps = 3;
  T5Model third = random_t5(config_, 1);
  pretrain_encoder(second, dataset, training_, at::kCPU);
  pretrain_encoder(third, dataset, training_, at::kCPU);
  EXPECT_EQ(T5Encoder(second).digest(), T5Encoder(third).digest());
  EXPECT_FALSE(first.embedding.requires_grad());
}

TEST_F(Pretraining, RefusesAVocabularyBeyondTheModels) {
  config_.vocab_size = 30;
  T5Model model = random_t5(config_, 1);
  EXPECT_THROW(pretrain_encoder(model, Dataset::open(folder_ / "data.h5"), training_, at::kCPU), Error);
}

TEST_F(Pretraining, TransformersOpensTheFolder) {
  const char* named = std::getenv("ELF_TRANSFORMERS_PYTHON");
  const std::string python = named ? named : "python3";
  if (std::system((python + " -c 'import transformers, torch, safetensors' > /dev/null 2>&1").c_str()) != 0) {
    GTEST_SKIP() << "no Python with transformers (ELF_TRANSFORMERS_PYTHON names one)";
  }
  for (const bool gated : {false, true}) {
    config_.gated = gated;
    config_.tied_head = !gated;
    const T5Model model = random_t5(config_, 5);
    save_t5(folder_, model);
    const at::Tensor ids = at::arange(24).remainder(37).add(3).view({2, 12});
    const at::Tensor mask = at::arange(12).unsqueeze(0) < at::tensor({12, 5}).unsqueeze(1);
    const at::Tensor decoder_ids = at::tensor({0, 39, 7, 8, 0, 39, 9, 1}).to(at::kLong).view({2, 4});
    write_safetensors(folder_ / "in.safetensors",
                      {{"input_ids", ids}, {"mask", mask.to(at::kLong)}, {"decoder_ids", decoder_ids}});
    const std::string command = cat(python, " ", ELF_TEST_DIR, "/oracle/t5_open.py ", folder_.string(), " ",
                                    (folder_ / "in.safetensors").string(), " ",
                                    (folder_ / "out.safetensors").string(), " > /dev/null 2>&1");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    const TensorMap expected = read_safetensors(folder_ / "out.safetensors");
    const at::NoGradGuard no_gradients;
    const at::Tensor hidden = T5Encoder(model).forward(ids, mask);
    const at::Tensor logits = t5_decode(model, decoder_ids, hidden, mask);
    const double worst = (hidden - expected.at("last_hidden_state")).abs().max().item<double>();
    RecordProperty(gated ? "worst_gated" : "worst_relu", cat(worst));
    std::cout << (gated ? "gated" : "relu") << ": largest difference of the hidden states " << worst
              << ", of the logits " << (logits - expected.at("logits")).abs().max().item<double>() << '\n';
    EXPECT_TRUE(test::all_close(hidden, expected.at("last_hidden_state"), 1e-5, 1e-5));
    EXPECT_TRUE(test::all_close(logits, expected.at("logits"), 1e-5, 1e-5));
  }
}

}  // namespace
}  // namespace elf
