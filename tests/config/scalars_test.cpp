// The key decides the type of a scalar, in files and in --set alike (field case 59).
#include "config/support.h"
#include "elf/config/enum_names.h"

namespace elf {
namespace {

using test::expect_parts;
using test::parse;
using test::parse_error;

std::string yaml_of(const std::string& section, const std::string& key, const std::string& text) {
  return section + ":\n  " + key + ": " + text + "\n";
}

// Both ways give the same configuration, or both refuse it with key, value and expectation.
RunConfig both(const std::string& section, const std::string& key, const std::string& text) {
  const RunConfig from_file = parse(yaml_of(section, key, text));
  EXPECT_TRUE(from_file == parse("", {section + "." + key + "=" + text})) << text;
  return from_file;
}

void both_refuse(const std::string& section, const std::string& key, const std::string& text,
                 const std::string& expected) {
  SCOPED_TRACE(key + ": " + text);
  const std::string dotted = section + "." + key;
  expect_parts(parse_error(yaml_of(section, key, text)),
               {"run.yaml:2: " + dotted + ": found '" + text + "'", expected});
  expect_parts(parse_error("", {dotted + "=" + text}),
               {"--set " + dotted + "=" + text + ": " + dotted + ": found '" + text + "'", expected});
}

TEST(Scalars, NumbersInEverySpelling) {
  const std::pair<const char*, double> cases[] = {{"1e-4", 1e-4}, {"1E-4", 1e-4}, {".5", 0.5},
                                                  {"3", 3},       {"3.", 3},      {"+2.5", 2.5},
                                                  {"0", 0},       {"2.5e+1", 25}, {"0.1", 0.1}};
  for (const auto& [text, value] : cases)
    EXPECT_EQ(both("optimizer", "grad_clip", text).optimizer.grad_clip, value) << text;
  EXPECT_EQ(both("latents", "mean", "-.5").latents.mean, -0.5);
}

TEST(Scalars, NoNumbers) {
  for (const char* text : {"abc", "nan", ".nan", "inf", "-.inf", "NaN", "1e", "e4", ".", "1_000", "0x10",
                           "010", "1.2.3", "12:30", "true", "1e999"}) {
    both_refuse("latents", "mean", text, "expected a finite number");
  }
}

TEST(Scalars, Integers) {
  EXPECT_EQ(both("model", "depth", "7").model.depth, 7);
  EXPECT_EQ(both("model", "depth", "+7").model.depth, 7);
  EXPECT_EQ(both("train", "steps", "0").train.steps, 0);
  EXPECT_EQ(both("train", "seed", "18446744073709551615").train.seed, 18446744073709551615u);
  for (const char* text : {"1e4", "010", "1_000", "3.0", "0x10"}) {
    both_refuse("model", "depth", text, "expected an integer in [1, 1024], in plain digits");
  }
  for (const char* text : {"abc", "true", ".5", "0", "-1", "nan"}) {
    both_refuse("model", "depth", text, "expected an integer in [1, 1024]");
  }
  both_refuse("train", "seed", "010", "expected an integer >= 0");
  both_refuse("train", "seed", "-1", "expected an integer >= 0");
  both_refuse("train", "seed", "18446744073709551616", "fits 64 bits");
}

TEST(Scalars, BooleansAreTrueAndFalseOnly) {
  EXPECT_TRUE(both("optimizer", "ema_warmup", "true").optimizer.ema_warmup);
  EXPECT_FALSE(both("optimizer", "ema_warmup", "false").optimizer.ema_warmup);
  for (const char* text : {"yes", "no", "on", "off", "True", "FALSE", "1", "0", "y"}) {
    both_refuse("optimizer", "ema_warmup", text, "expected a boolean: true or false");
  }
}

TEST(Scalars, TextStaysAsWritten) {
  for (const char* text : {"no", "010", "1e4", "true", "12:30", "1_000", "a b"}) {
    EXPECT_EQ(both("train", "out", text).train.out, text);
  }
  EXPECT_EQ(parse("train:\n  out: \"no\"\n").train.out, "no");
}

TEST(Scalars, Ranges) {
  both_refuse("flow", "t_eps", "0", "in (0, 1)");
  both_refuse("flow", "t_eps", "1.0", "in (0, 1)");
  both_refuse("flow", "decoder_prob", "1.01", "in [0, 1]");
  both_refuse("model", "dropout", "1", "in [0, 1)");
  both_refuse("latents", "std", "0", "> 0");
  both_refuse("optimizer", "grad_clip", "-1", ">= 0");
  EXPECT_EQ(both("flow", "decoder_prob", "1").flow.decoder_prob, 1);
}

TEST(Scalars, ChoicesAreListed) {
  EXPECT_EQ(both("optimizer", "kind", "adamw").optimizer.kind, OptimizerKind::kAdamW);
  both_refuse("optimizer", "kind", "sgd", "expected one of muon, adamw");
  both_refuse("model", "preset", "elf-x", "expected one of elf-b, elf-m, elf-l, small, nano");
}

TEST(Scalars, QuotedTextIsNoNumber) {
  expect_parts(parse_error("optimizer:\n  lr: \"0.1\"\n"),
               {"run.yaml:2: optimizer.lr", "quoted text", "a finite number"});
  expect_parts(parse_error("train:\n  seed: '5'\n"), {"run.yaml:2: train.seed", "quoted text", "an integer"});
}

TEST(Scalars, Null) {
  for (const char* text : {"", "null", "~"}) {
    expect_parts(parse_error(yaml_of("optimizer", "lr", text)),
                 {"run.yaml:2: optimizer.lr: found nothing (null)", "a finite number"});
    expect_parts(parse_error(yaml_of("train", "out", text)),
                 {"run.yaml:2: train.out: found nothing (null)", "expected text"});
    expect_parts(parse_error(yaml_of("model", "depth", text)),
                 {"run.yaml:2: model.depth: found nothing (null)", "an integer"});
    expect_parts(parse_error(yaml_of("optimizer", "ema_warmup", text)),
                 {"run.yaml:2:", "nothing (null)", "boolean"});
    expect_parts(parse_error(yaml_of("optimizer", "kind", text)),
                 {"run.yaml:2:", "nothing (null)", "one of"});
  }
}

TEST(Scalars, Lists) {
  const auto steps = [](const RunConfig& c) { return c.distillation.student_steps; };
  const std::vector<int64_t> three = {8, 4, 2};
  EXPECT_EQ(steps(both("distillation", "student_steps", "[8, 4, 2]")), three);
  EXPECT_EQ(steps(parse("distillation:\n  student_steps:\n    - 8\n    - 4\n    - 2\n")), three);
  EXPECT_EQ(steps(both("distillation", "student_steps", "8,4 , 2")), three);
  EXPECT_EQ(steps(both("distillation", "student_steps", "8")), std::vector<int64_t>{8});
  EXPECT_TRUE(both("distillation", "gamma", "[]").distillation.gamma.empty());
  EXPECT_EQ(both("distillation", "gamma", "[1, .5]").distillation.gamma, (std::vector<double>{1, 0.5}));
}

TEST(Scalars, ListsThatAreNone) {
  const auto error = [](const std::string& text) {
    const std::string in_file = parse_error(yaml_of("distillation", "student_steps", text));
    expect_parts(in_file, {"run.yaml:2: distillation.student_steps"});
    return in_file;
  };
  expect_parts(error("[8, four]"), {"'four'", "an integer >= 1"});
  expect_parts(error("[8, 0]"), {"'0'", "an integer >= 1"});
  expect_parts(error("[8, [4]]"), {"a list", "an integer >= 1"});
  expect_parts(error("{a: 4}"), {"a mapping", "a list such as"});
  expect_parts(error(""), {"nothing (null)", "a list such as"});
  expect_parts(error("'8, 4'"), {"quoted text", "a list such as"});
  expect_parts(parse_error("", {"distillation.student_steps=[8, 4"}), {"a list such as"});
  expect_parts(parse_error("", {"distillation.student_steps=8,,4"}), {"an integer >= 1"});
  expect_parts(parse_error(yaml_of("model", "depth", "[4]")),
               {"run.yaml:2: model.depth: found a list", "an integer"});
  expect_parts(parse_error(yaml_of("train", "out", "[a]")), {"found a list", "text"});
}

TEST(EnumNames, CommandLineOptions) {
  EXPECT_EQ(parse_enum<TimeGrid>("logit-normal", "--time-schedule"), TimeGrid::kLogitNormal);
  expect_parts(test::message_of([] { parse_enum<SamplerKind>("euler", "--sampler"); }),
               {"--sampler", "'euler'", "sde, ode"});
  EXPECT_EQ(enum_name(DecodeCondition::kClean), "clean");
}

}  // namespace
}  // namespace elf
