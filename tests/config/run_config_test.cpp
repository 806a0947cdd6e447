// Presets, precedence, paths, and that every configuration survives being written and read.
#include "config/support.h"

namespace elf {
namespace {

using test::expect_parts;
using test::Folder;
using test::parse;
namespace fs = std::filesystem;

fs::path configs_folder() {
  return fs::path(ELF_TEST_DIR).parent_path() / "configs";
}

std::vector<fs::path> shipped_configs() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(configs_folder())) {
    const bool recipe = entry.path().parent_path().filename() == "data";  // of elf-prepare
    const bool sweep = entry.path().string().find("/configs/ablations/") != std::string::npos;
    if (entry.path().extension() == ".yaml" && !recipe && !sweep) files.push_back(entry.path());
  }
  return files;
}

TEST(ShippedConfigs, AreThere) {
  std::vector<std::string> names;
  for (const fs::path& file : shipped_configs()) names.push_back(file.stem().string());
  EXPECT_THAT(names,
              ::testing::IsSupersetOf({"elf-b-owt", "elf-m-owt", "elf-l-owt", "elf-b-wmt14-de-en",
                                       "elf-b-xsum", "nano-verses", "nano-pronounce", "nano-translate"}));
}

TEST(ShippedConfigs, WrittenAndReadBackAreEqual) {
  for (const fs::path& file : shipped_configs()) {
    SCOPED_TRACE(file.string());
    const RunConfig config = load_run_config(file);
    const std::string yaml = to_yaml(config);
    EXPECT_TRUE(parse_run_config(yaml, "dump", "/elsewhere") == config) << yaml;
  }
}

// Columns of the table of docs/ALGORITHM.md section 3, row by row.
TEST(ShippedConfigs, HoldThePublishedSettings) {
  struct Row {
    const char* file;
    int64_t depth, length, input;
    double epochs, warmup_epochs;
    int64_t warmup_steps;
    PadToken pad;
    double decoder_noise, label_drop;
  };
  const Row rows[] = {{"elf-b-owt", 12, 1024, 0, 5, 0.5, 0, PadToken::kPad, 5, 0},
                      {"elf-m-owt", 24, 1024, 0, 4, 0.5, 0, PadToken::kPad, 5, 0},
                      {"elf-l-owt", 32, 1024, 0, 3, 0.5, 0, PadToken::kPad, 5, 0},
                      {"elf-b-wmt14-de-en", 12, 128, 64, 100, 0, 5000, PadToken::kEos, 1, 0.1},
                      {"elf-b-xsum", 12, 1088, 1024, 100, 0, 5000, PadToken::kEos, 1, 0.1}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.file);
    const RunConfig c = load_run_config(configs_folder() / (std::string(row.file) + ".yaml"));
    EXPECT_EQ(c.model.depth, row.depth);
    EXPECT_EQ(c.model.max_length, row.length);
    EXPECT_EQ(c.data.max_length, row.length);
    EXPECT_EQ(c.data.max_input_length, row.input);
    EXPECT_EQ(c.train.epochs, row.epochs);
    EXPECT_EQ(c.optimizer.warmup_epochs, row.warmup_epochs);
    EXPECT_EQ(c.optimizer.warmup_steps, row.warmup_steps);
    EXPECT_EQ(c.flow.pad_token, row.pad);
    EXPECT_EQ(c.flow.decoder_noise_scale, row.decoder_noise);
    EXPECT_EQ(c.flow.label_drop_prob, row.label_drop);
    EXPECT_EQ(c.train.global_batch_size, 512);
    EXPECT_EQ(c.optimizer.blr, 0.001);
    EXPECT_EQ(c.optimizer.kind, OptimizerKind::kMuon);
    EXPECT_EQ(c.sampling.self_cond_cfg, row.pad == PadToken::kPad ? 3.0 : 1.0);
  }
}

TEST(ShippedConfigs, NanoFollowsItsRecipe) {
  const RunConfig c = load_run_config(configs_folder() / "nano-pronounce.yaml");
  EXPECT_EQ(c.model.depth, 4);
  EXPECT_EQ(c.model.hidden_size, 128);
  EXPECT_EQ(c.model.latent_dim, 16);
  EXPECT_EQ(c.latents.source, LatentSource::kTable);
  EXPECT_EQ(c.latents.std, 1.0);
  EXPECT_EQ(c.optimizer.kind, OptimizerKind::kMuon);
  EXPECT_EQ(c.optimizer.lr, 0.005);
  EXPECT_DOUBLE_EQ(c.optimizer.min_lr, 0.05 * 0.005);
  EXPECT_EQ(c.sampling.time_schedule, TimeGrid::kLogitNormalQuantiles);
  EXPECT_EQ(c.sampling.cfg, 1.5);
  EXPECT_EQ(c.data.train, (configs_folder().parent_path() / "runs/demo/pronounce/train.h5").string());
  EXPECT_EQ(c.train.out, "runs/demo/pronounce/run");
}

TEST(ShippedConfigs, DistillationAsPublished) {
  const RunConfig c = load_run_config(configs_folder() / "distill/elf-b-owt.yaml");
  EXPECT_EQ(c.train.objective, TrainObjective::kDistillation);
  EXPECT_EQ(c.train.epochs, 1);
  EXPECT_EQ(c.optimizer.warmup_epochs, 0.1);
  EXPECT_EQ(c.optimizer.blr, 0.001);
  EXPECT_EQ(c.model.depth, 12);
  EXPECT_EQ(c.distillation.teacher, (configs_folder().parent_path() / "runs/elf-b-owt").string());
  EXPECT_EQ(c.distillation.student_steps, (std::vector<int64_t>{16, 8, 4, 2, 1}));
  EXPECT_EQ(c.distillation.teacher_steps, (std::vector<int64_t>{4, 8, 16, 32, 64}));
  EXPECT_EQ(c.distillation.gamma, (std::vector<double>{2.0, 1.5, 1.5, 1.5, 1.5}));
  EXPECT_EQ(c.distillation.self_cond_cfg, (std::vector<double>{2.0, 2.5, 2.5, 2.5, 2.5}));
  const RunConfig nano = load_run_config(configs_folder() / "distill/nano-verses.yaml");
  EXPECT_EQ(nano.distillation.student_steps, (std::vector<int64_t>{8, 4, 2}));
  EXPECT_TRUE(nano.model == load_run_config(configs_folder() / "nano-verses.yaml").model);
}

// Every key away from its default, so that a key the lists forget shows.
TEST(ToYaml, RoundTripWithEveryKeyChanged) {
  RunConfig c;
  c.model = {.preset = "nano",
             .depth = 3,
             .hidden_size = 96,
             .num_heads = 6,
             .latent_dim = 9,
             .bottleneck_dim = 7,
             .vocab_size = 101,
             .max_length = 33,
             .mlp_ratio = 2.5,
             .num_time_tokens = 2,
             .num_self_cond_cfg_tokens = 0,
             .num_model_mode_tokens = 3,
             .conditioning = Conditioning::kAdaLnZero,
             .prediction = Prediction::kV,
             .dropout = 0.1};
  c.latents = {.source = LatentSource::kTable,
               .path = "/a b/no",
               .mean = -0.1,
               .std = 1.0 / 3,
               .statistics = "/010",
               .dtype = EncoderDtype::kBFloat16,
               .cache = "/l.h5",
               .decoder = "/d"};
  c.data = {.train = "/t \"quoted\"\\\n.h5",
            .valid = "/v: #.h5",
            .tokenizer = "/\xc3\xa4.model",
            .max_length = 32,
            .max_input_length = 5};
  c.flow = {.time_schedule = TimeDistribution::kUniform,
            .denoiser_p_mean = 1e-5,
            .denoiser_p_std = 0.1,
            .denoiser_noise_scale = 1e20,
            .t_eps = 1e-300,
            .decoder_prob = 0,
            .decoder_noise_scale = 0,
            .decoder_p_mean = -2,
            .decoder_p_std = 0,
            .decoder_mask_prob = 0.4,
            .self_cond_prob = 0,
            .self_cond_cfg_min = 0.25,
            .self_cond_cfg_max = 0.75,
            .label_drop_prob = 1,
            .pad_token = PadToken::kEos,
            .branch = Branch::kPerStep,
            .decode_condition = DecodeCondition::kClean};
  c.optimizer = {.kind = OptimizerKind::kAdamW,
                 .blr = 0,
                 .lr = 0.1,
                 .schedule = LrSchedule::kCosine,
                 .min_lr = 0.01,
                 .warmup_steps = 3,
                 .warmup_epochs = 0.3,
                 .grad_clip = 0,
                 .weight_decay = 0.2,
                 .adam_b1 = 0,
                 .adam_b2 = 0.5,
                 .muon_momentum = 0.7,
                 .ema_decay = 0.99,
                 .ema_warmup = true};
  c.train = {.objective = TrainObjective::kDistillation,
             .init_from = "/i",
             .out = "no",
             .seed = 18446744073709551615u,
             .global_batch_size = 8,
             .micro_batch_size = 2,
             .epochs = 0.5,
             .steps = 9,
             .minutes = 0,
             .log_every = 1,
             .valid_every = 0,
             .valid_batches = 3,
             .save_every = 0,
             .save_in_background = false,
             .keep_last = 1,
             .keep_every = 7,
             .best_metric = "gen_ppl",
             .best_min_entropy = 4.5,
             .patience = 3,
             .max_skipped_steps = 1,
             .spike_factor = 0,
             .sample_every = 6,
             .sample_count = 2,
             .hook = "echo 'a: b' | tail -n 1 # $ELF_STEP",
             .tensorboard = false,
             .stop_signals = "HUP",
             .collective_timeout = 0.5,
             .first_rank_timeout = 9,
             .precision = Precision::kBf16,
             .tf32 = false,
             .recompute = true};
  c.distillation = {.teacher = "/a, [b",
                    .student_steps = {4, 2},
                    .teacher_steps = {1, 3},
                    .student_schedule = TimeDistribution::kUniform,
                    .teacher_schedule = TimeDistribution::kUniform,
                    .gamma = {},
                    .self_cond_cfg = {0.1, 1e-5},
                    .eval_samples = 0,
                    .eval_text = "/t.txt"};
  c.sampling = {.sampler = SamplerKind::kOde,
                .steps = 1,
                .gamma = 0,
                .sde_update = SdeUpdate::kPaper,
                .self_cond_cfg = 0,
                .cfg = -1,
                .self_cond_cfg_schedule = "0:1,1:2",
                .cfg_schedule = "3@0.2-0.8",
                .time_schedule = TimeGrid::kUniform,
                .times = "0.1,0.5",
                .p_mean = 0,
                .p_std = 1,
                .seed = 5,
                .batch_size = 1,
                .cuda_graph = false};
  const std::string yaml = to_yaml(c);
  EXPECT_TRUE(parse(yaml) == c) << yaml;

  const auto changed = flat_fields(c), defaults = flat_fields(RunConfig{});
  ASSERT_EQ(changed.size(), defaults.size());
  int same = 0;
  for (size_t i = 0; i < changed.size(); ++i) {
    EXPECT_EQ(changed[i].first, defaults[i].first);
    same += changed[i].second == defaults[i].second;
  }
  EXPECT_EQ(same, 1) << "only train.minutes, which excludes train.steps, may have its default";
}

TEST(FlatFields, AreDottedAndInOrder) {
  const auto pairs = flat_fields(RunConfig{});
  EXPECT_EQ(pairs.front(), (std::pair<std::string, std::string>{"model.preset", ""}));
  EXPECT_EQ(pairs.back(), (std::pair<std::string, std::string>{"sampling.cuda_graph", "true"}));
  EXPECT_THAT(pairs, ::testing::Contains(std::pair<std::string, std::string>{"flow.t_eps", "0.05"}));
  EXPECT_THAT(pairs, ::testing::Contains(std::pair<std::string, std::string>{"flow.pad_token", "pad"}));
}

TEST(Preset, FillsThreeKeys) {
  for (const ModelPreset& preset : model_presets()) {
    const RunConfig c = parse("model:\n  preset: " + preset.name + "\n");
    EXPECT_EQ(c.model.depth, preset.depth);
    EXPECT_EQ(c.model.hidden_size, preset.hidden_size);
    EXPECT_EQ(c.model.num_heads, preset.num_heads);
  }
  EXPECT_EQ(model_presets().size(), 5u);
}

TEST_F(Folder, ExplicitKeysWinOverThePresetWhereverTheyStand) {
  const auto expect = [](const RunConfig& c) {
    EXPECT_EQ(c.model.depth, 2);
    EXPECT_EQ(c.model.hidden_size, 1280);
  };
  expect(parse("model:\n  depth: 2\n  preset: elf-l\n"));
  expect(parse("model:\n  preset: elf-l\n  depth: 2\n"));
  expect(parse("model:\n  depth: 2\n", {"model.preset=elf-l"}));
  write("base.yaml", "model:\n  depth: 2\n");
  expect(load_run_config(write("run.yaml", "base: base.yaml\nmodel:\n  preset: elf-l\n")));
}

TEST(Set, ComesLastAndInOrder) {
  const RunConfig c =
      parse("flow:\n  t_eps: 0.1\n", {"flow.t_eps=0.2", "flow.t_eps=.3", "train.out=a=b: c #d"});
  EXPECT_EQ(c.flow.t_eps, 0.3);
  EXPECT_EQ(c.train.out, "a=b: c #d");
}

TEST(Set, TakesChoicesWithHyphensToo) {
  EXPECT_EQ(parse("", {"sampling.time_schedule=logit-normal-quantiles"}).sampling.time_schedule,
            TimeGrid::kLogitNormalQuantiles);
}

TEST_F(Folder, PathsStartAtTheFileThatNamesThem) {
  write("deep/base.yaml", "data:\n  train: ../data/t.h5\n  valid: v.h5\ntrain:\n  out: runs/x\n");
  const fs::path run =
      write("run.yaml", "base: deep/base.yaml\ndata:\n  valid: ./v.h5\nlatents:\n  path: /abs/t5/\n");
  const RunConfig c = load_run_config(run, {"data.tokenizer=tok/../spiece.model"});
  EXPECT_EQ(c.data.train, (folder_ / "data/t.h5").string());
  EXPECT_EQ(c.data.valid, (folder_ / "v.h5").string());
  EXPECT_EQ(c.latents.path, "/abs/t5");
  EXPECT_EQ(c.latents.statistics, "");
  EXPECT_EQ(c.data.tokenizer, (fs::current_path() / "spiece.model").string());
  EXPECT_EQ(c.train.out, "runs/x");
}

TEST_F(Folder, FileInTheWorkingDirectoryIsNamedWithoutFolder) {
  write("low.yaml", "data:\n  train: t.h5\n");
  write("run.yaml", "base: low.yaml\ndata:\n  valid: v.h5\n");
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  const RunConfig c = load_run_config("run.yaml");
  fs::current_path(before);
  EXPECT_EQ(c.data.train, (folder_ / "t.h5").string());
  EXPECT_EQ(c.data.valid, (folder_ / "v.h5").string());
}

TEST(Parse, EmptyTextAndEmptySectionsAreTheDefaults) {
  EXPECT_TRUE(parse("") == RunConfig{});
  EXPECT_TRUE(parse("# only a comment\nflow:\n  # t_eps: 0.1\n") == RunConfig{});
}

TEST(Parse, WindowsLineEndsAndByteOrderMark) {
  EXPECT_EQ(parse("\xef\xbb\xbfmodel:\r\n  depth: 3\r\n").model.depth, 3);
}

}  // namespace
}  // namespace elf
