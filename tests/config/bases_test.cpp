// `base:` files: order, places, circles.
#include "config/support.h"

namespace elf {
namespace {

using test::expect_parts;
using test::message_of;
using Bases = test::Folder;

TEST_F(Bases, LaterWins) {
  write("a.yaml", "model:\n  depth: 1\n  bottleneck_dim: 1\n  latent_dim: 1\n");
  write("b.yaml", "model:\n  depth: 2\n  bottleneck_dim: 2\n");
  // `base` stands last, and still comes first.
  const RunConfig c = load_run_config(write("run.yaml", "model:\n  depth: 3\nbase: [a.yaml, b.yaml]\n"));
  EXPECT_EQ(c.model.depth, 3);
  EXPECT_EQ(c.model.bottleneck_dim, 2);
  EXPECT_EQ(c.model.latent_dim, 1);
}

TEST_F(Bases, NamesAreRelativeToTheNamingFile) {
  write("x/y/low.yaml", "model:\n  depth: 4\n");
  write("x/mid.yaml", "base: y/low.yaml\n");
  EXPECT_EQ(load_run_config(write("top/run.yaml", "base: ../x/mid.yaml\n")).model.depth, 4);
}

TEST_F(Bases, OneFileMayComeInTwice) {
  write("low.yaml", "model:\n  depth: 4\n");
  write("a.yaml", "base: low.yaml\nmodel:\n  depth: 5\n");
  write("b.yaml", "base: low.yaml\n");
  EXPECT_EQ(load_run_config(write("run.yaml", "base:\n  - a.yaml\n  - b.yaml\n")).model.depth, 4);
}

TEST_F(Bases, CirclesAreRefusedWithTheirChain) {
  write("a.yaml", "model:\n  depth: 1\nbase: b.yaml\n");
  write("b.yaml", "base: c.yaml\n");
  write("c.yaml", "base: ../" + folder_.filename().string() + "/a.yaml\n");
  const std::string message = message_of([&] { load_run_config(folder_ / "a.yaml"); });
  expect_parts(message, {"c.yaml:1:", "circle", "a.yaml -> ", "b.yaml -> ", "c.yaml -> "});
  expect_parts(message_of([&] { load_run_config(write("self.yaml", "base: self.yaml\n")); }),
               {"self.yaml:1:", "circle"});
}

TEST_F(Bases, MissingNamesBothFiles) {
  expect_parts(message_of([&] { load_run_config(write("run.yaml", "\nbase: none.yaml\n")); }),
               {(folder_ / "run.yaml").string() + ":2:", (folder_ / "none.yaml").string(), "no such file"});
  expect_parts(message_of([&] { load_run_config(write("run.yaml", "base: .\n")); }),
               {"run.yaml:1:", "is a folder"});
}

TEST_F(Bases, OfTheWrongShape) {
  expect_parts(message_of([&] { load_run_config(write("run.yaml", "base:\n")); }),
               {"run.yaml:1: base", "null", "name of a file"});
  expect_parts(message_of([&] { load_run_config(write("run.yaml", "base: {a: b}\n")); }),
               {"run.yaml:1: base", "name of a file"});
  expect_parts(message_of([&] { load_run_config(write("run.yaml", "base: [[a]]\n")); }),
               {"run.yaml:1: base", "name of a file"});
}

TEST_F(Bases, ErrorsInsideNameThatFileAndLine) {
  write("low.yaml", "model:\n  depth: deep\n");
  // Even though the value is replaced.
  expect_parts(
      message_of([&] { load_run_config(write("run.yaml", "base: low.yaml\nmodel:\n  depth: 1\n")); }),
      {(folder_ / "low.yaml").string() + ":2: model.depth: found 'deep'"});
  write("low.yaml", "model:\n  depht: 1\n");
  expect_parts(message_of([&] { load_run_config(write("run.yaml", "base: low.yaml\n")); }),
               {"low.yaml:2:", "model.depth"});
}

TEST_F(Bases, AreReadFromTextTooRelativeToItsFolder) {
  write("low.yaml", "model:\n  depth: 9\n");
  EXPECT_EQ(parse_run_config("base: low.yaml\n", "text", folder_).model.depth, 9);
}

}  // namespace
}  // namespace elf
