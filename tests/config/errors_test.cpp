// Every kind of mistake names file, line, key, what was found and what was expected.
#include "config/support.h"

namespace elf {
namespace {

using test::expect_parts;
using test::Folder;
using test::parse;
using test::parse_error;

TEST(Unknown, KeyNamesTheNearest) {
  expect_parts(parse_error("flow:\n  t_esp: 0.1\n"), {"run.yaml:2:", "'flow.t_esp'", "'flow.t_eps'"});
  expect_parts(parse_error("model:\n  depth: 3\n  num_head: 2\n"),
               {"run.yaml:3:", "'model.num_head'", "'model.num_heads'"});
  expect_parts(parse_error("", {"train.step=3"}), {"--set train.step=3:", "'train.step'", "'train.steps'"});
}

TEST(Unknown, KeyOfAnotherSectionIsPointedTo) {
  expect_parts(parse_error("train:\n  grad_clip: 1\n"),
               {"run.yaml:2:", "'train.grad_clip'", "'optimizer.grad_clip'"});
}

TEST(Unknown, SectionNamesTheNearest) {
  expect_parts(parse_error("model:\n  depth: 3\noptimiser:\n  lr: 1\n"),
               {"run.yaml:3:", "'optimiser'", "'optimizer'"});
  expect_parts(parse_error("bases: x.yaml\n"), {"run.yaml:1:", "'bases'", "'base'"});
  expect_parts(parse_error("lr: 0.1\n"), {"run.yaml:1:", "'lr'", "optimizer.lr"});
  expect_parts(parse_error("optimizer.lr: 0.1\n"), {"run.yaml:1:", "'optimizer.lr'", "'lr'", "'optimizer:'"});
  expect_parts(parse_error("", {"optim.lr=1"}), {"--set optim.lr=1:", "'optim'", "'optimizer'"});
}

// A slip of the finger is told at once, not by a machine that runs out of memory or time.
TEST(Range, HasAnUpperEnd) {
  expect_parts(parse_error("model:\n  depth: 1000000000\n"), {"run.yaml:2:", "model.depth", "in [1, 1024]"});
  expect_parts(parse_error("model:\n  max_length: 1048577\n"), {"model.max_length", "in [0, 1048576]"});
  expect_parts(parse_error("sampling:\n  steps: 1000000000\n"), {"sampling.steps", "in [1, 100000]"});
  expect_parts(parse_error("train:\n  global_batch_size: 9000000000\n"),
               {"train.global_batch_size", "in [1, 1048576]"});
  expect_parts(parse_error("", {"train.steps=9000000000"}), {"train.steps", "in [0, 1000000000]"});
  expect_parts(parse_error("model:\n  mlp_ratio: 1e6\n"), {"model.mlp_ratio", "in (0, 64]"});
}

TEST(Repeated, KeysAndSections) {
  expect_parts(parse_error("flow:\n  t_eps: 0.1\n  branch: per_step\n  t_eps: 0.2\n"),
               {"run.yaml:4:", "'flow.t_eps'", "line 2"});
  expect_parts(parse_error("flow:\n  t_eps: 0.1\nmodel:\n  depth: 1\nflow:\n  branch: per_step\n"),
               {"run.yaml:5:", "'flow'", "line 1"});
}

TEST(Shape, OfTheFile) {
  expect_parts(parse_error("- a\n- b\n"), {"run.yaml:1:", "no mapping", "sections"});
  expect_parts(parse_error("\njust words\n"), {"run.yaml:2:", "no mapping"});
  expect_parts(parse_error("model: 5\n"), {"run.yaml:1:", "model", "'5'", "keys indented"});
  expect_parts(parse_error("model:\n  - depth\n"), {"run.yaml:1:", "model", "a list"});
  expect_parts(parse_error("model:\n  depth: [1, 2]\n"),
               {"run.yaml:2: model.depth: found a list", "an integer"});
  expect_parts(parse_error("train:\n  out: {a: b}\n"), {"run.yaml:2: train.out: found a mapping", "text"});
  expect_parts(parse_error("model:\n  depth: !!int 3\n"), {"run.yaml:2: model.depth", "tag"});
  expect_parts(parse_error("model:\n  depth: 1\n---\nmodel:\n  depth: 2\n"),
               {"run.yaml", "second YAML document"});
  expect_parts(parse_error(",d"), {"run.yaml", "stray comma"});  // documents without end, for yaml-cpp
}

TEST(Shape, Syntax) {
  expect_parts(parse_error("model:\n  depth: 3\n num_heads: 4\n"), {"run.yaml:3:", "not valid YAML"});
  expect_parts(parse_error("model: {depth: 3\n"), {"run.yaml:2:", "not valid YAML"});
  // Both are taken by yaml-cpp, which then loses the lines that follow.
  for (const char* quote : {"\"", "'"}) {
    const std::string open = std::string("train:\n  out: ") + quote + "it\n  seed: 3\n";
    expect_parts(parse_error(open), {"run.yaml:2:", "quote", "not closed"});
  }
  EXPECT_EQ(parse("train:\n  out: 'it''s \"q\"'\n").train.out, "it's \"q\"");
  EXPECT_EQ(parse("train:\n  out: \"a\\\"b\\\\\"\n").train.out, "a\"b\\");
  expect_parts(parse_error("train:\n  seed: 3\n%x\nmodel:\n"), {"run.yaml:3:", "directive"});
  expect_parts(parse_error("model:\n  depth: 3\n\tnum_heads: 2\n"), {"run.yaml:3:", "tab", "spaces"});
  expect_parts(parse_error("model:\n  \tdepth: 3\n"), {"run.yaml:2:", "tab"});
  EXPECT_EQ(parse("model:\n  depth: 3\t# a tab before a comment is fine\n").model.depth, 3);
}

TEST(Shape, Encoding) {
  expect_parts(parse_error(std::string("\xff\xfem\0", 4)), {"run.yaml", "UTF-16", "UTF-8"});
  expect_parts(parse_error(std::string("model:\0", 7)), {"run.yaml", "NUL byte at offset 6"});
}

TEST(Set, NeedsSectionKeyAndValue) {
  for (const char* text : {"lr=3", "optimizer.lr", "", "=", "a=b.c"}) {
    expect_parts(parse_error("", {text}), {std::string("--set ") + text, "section.key=value"});
  }
  expect_parts(parse_error("", {"optimizer.lr="}),
               {"--set optimizer.lr=: optimizer.lr: found ''", "a finite number"});
}

TEST_F(Folder, FileThatIsNone) {
  expect_parts(test::message_of([&] { load_run_config(folder_ / "none.yaml"); }),
               {(folder_ / "none.yaml").string(), "no such file"});
  expect_parts(test::message_of([&] { load_run_config(folder_); }), {folder_.string(), "folder"});
  expect_parts(test::message_of([&] { load_run_config(write("empty.yaml", "")); }),
               {"empty.yaml", "an empty file"});
  expect_parts(test::message_of([&] {
                 load_run_config(write("lfs.yaml", "version https://git-lfs.github.com/spec/v1\n"));
               }),
               {"lfs.yaml", "Git LFS pointer"});
}

TEST(Relations, OfDistillation) {
  const auto error = [](const std::string& keys) {
    return parse_error("train:\n  objective: distillation\ndistillation:\n" + keys);
  };
  expect_parts(error("  student_steps: [2]\n"),
               {"distillation.teacher is not set", "train.objective: run.yaml:2"});
  const std::string teacher = "  teacher: /t\n";
  expect_parts(error(teacher + "  student_steps: [4, 2]\n"),
               {"run.yaml:5:", "teacher_steps has 5 values", "2 rounds"});
  expect_parts(error(teacher + "  student_steps: []\n  teacher_steps: []\n"), {"student_steps is empty"});
  expect_parts(error(teacher + "  student_steps: [4, 4]\n  teacher_steps: [1, 2]\n"),
               {"[4, 4]", "fewer in each round"});
  expect_parts(error(teacher + "  student_steps: [4, 2]\n  teacher_steps: [1, 2]\n  gamma: [1, 2, 3]\n"),
               {"run.yaml:7:", "distillation.gamma has 3 values", "2 rounds"});
  expect_parts(error(teacher + "  gamma: [1.5]\n  self_cond_cfg: [1, 2]\n"),
               {"self_cond_cfg has 2 values", "5 rounds"});
  parse("train:\n  objective: distillation\ndistillation:\n" + teacher +
        "  gamma: 1.5\n  self_cond_cfg: []\n");
}

TEST(Relations, NameBothKeysAndWhereTheyWereSet) {
  expect_parts(parse_error("model:\n  hidden_size: 770\n  num_heads: 12\n"),
               {"run.yaml:3:", "model.num_heads 12 does not divide model.hidden_size 770",
                "model.hidden_size: run.yaml:2"});
  expect_parts(parse_error("model:\n  hidden_size: 770\n"), {"run.yaml:2:", "model.num_heads: default"});
  expect_parts(parse_error("model:\n  preset: nano\n  num_heads: 5\n"),
               {"run.yaml:3:", "hidden_size: run.yaml:2, by the preset"});
  expect_parts(parse_error("model:\n  hidden_size: 15\n  num_heads: 5\n"), {"run.yaml:3:", "odd"});
  expect_parts(parse_error("flow:\n  self_cond_cfg_min: 6\n"),
               {"run.yaml:2:", "flow.self_cond_cfg_min 6", "flow.self_cond_cfg_max 5"});
  parse("flow:\n  self_cond_cfg_min: 5\n");  // equal: a constant
  expect_parts(parse_error("", {"train.micro_batch_size=513"}),
               {"--set train.micro_batch_size=513:", "train.global_batch_size 512"});
  expect_parts(parse_error("train:\n  steps: 5\n  minutes: 1\n"),
               {"run.yaml:2:", "train.steps 5 and train.minutes 1"});
  expect_parts(parse_error("train:\n  epochs: 0\n"), {"run.yaml:2:", "all 0"});
  expect_parts(parse_error("optimizer:\n  blr: 0\n"),
               {"run.yaml:2:", "optimizer.blr and optimizer.lr are both 0"});
  expect_parts(parse_error("optimizer:\n  schedule: cosine\n  min_lr: 0.1\n"),
               {"run.yaml:3:", "optimizer.min_lr 0.1", "0.002"});
  expect_parts(parse_error("data:\n  max_length: 8\n  max_input_length: 8\n"),
               {"run.yaml:3:", "no room for a target"});
  expect_parts(parse_error("data:\n  max_length: 9\nmodel:\n  max_length: 8\n"),
               {"run.yaml:2:", "longer than model.max_length 8"});
  expect_parts(parse_error("model:\n  mlp_ratio: 0.001\n"), {"run.yaml:2:", "no inner width"});
  expect_parts(parse_error("train:\n  out: \"\"\n"), {"run.yaml:2:", "train.out is empty"});
}

TEST(Validate, ChecksRangesOfAConfigurationMadeByHand) {
  validate(RunConfig{});
  RunConfig c;
  c.flow.t_eps = 2;
  expect_parts(test::message_of([&] { validate(c); }), {"flow.t_eps is 2.0", "in (0, 1)"});
  c = {};
  c.latents.mean = std::numeric_limits<double>::quiet_NaN();
  expect_parts(test::message_of([&] { validate(c); }), {"latents.mean is nan", "finite"});
  c = {};
  c.model.num_heads = 0;
  expect_parts(test::message_of([&] { validate(c); }), {"model.num_heads is 0", "in [1, 65536]"});
  c = {};
  c.model.preset = "huge";
  expect_parts(test::message_of([&] { validate(c); }), {"'huge'", "elf-b"});
}

}  // namespace
}  // namespace elf
