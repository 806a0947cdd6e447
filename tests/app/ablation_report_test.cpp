// elf-bench report over records written by hand: means over seeds, red points, published rows, verdicts.
#include <gmock/gmock.h>

#include <sstream>
#include <utility>

#include "support/eval_command.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class Report : public test::EvalCommandTest {
 protected:
  struct Measured {
    std::string train;
    int seed;
    std::string w;
    double ppl, entropy;
  };

  static json record(double ppl, double entropy) {
    const auto figure = [](double mean) {
      return json{{"mean", mean}, {"standard_error", 0.5}, {"values", json::array({mean})}};
    };
    return {{"record", "elf-eval 1"},
            {"command", "run"},
            {"tool", "elf-eval"},
            {"name", "n"},
            {"model",
             {{"path", "runs/x"},
              {"weights", "ema"},
              {"weights_file", "f"},
              {"weights_hash", "xxh128:00"},
              {"tokenizer_hash", "xxh128:00"},
              {"latents_hash", "xxh128:00"}}},
            {"sampler",
             {{"sampler", "ode"},
              {"steps", 8},
              {"gamma", 0},
              {"self_cond_cfg", 1},
              {"cfg", 1},
              {"time_schedule", "uniform"}}},
            {"seeds", json::array({0})},
            {"samples", 4},
            {"data", nullptr},
            {"clean_up", false},
            {"precision", "float32"},
            {"device", "cpu"},
            {"figures", {{"ppl", figure(ppl)}, {"entropy", figure(entropy)}}},
            {"protocols", {{"degenerate_over", "GPT-2 tokens"}}},
            {"degenerate", false},
            {"degenerate_reasons", json::array()},
            {"seconds", 1}};
  }

  // A sweep as elf-bench ablation writes it, with one record for each measurement.
  std::string sweep(const std::vector<Measured>& all, const json& rows = json::array(),
                    const json& expect = json::array(), const std::string& axis = "sc-cfg") const {
    fs::remove_all(path("s"));
    fs::create_directories(path("s"));
    json jobs = json::array();
    for (const Measured& one : all) {
      const std::string name = one.train + std::to_string(one.seed), file = name + "-" + one.w + ".json";
      if (one.ppl > 0) folder_.write("s/" + file, record(one.ppl, one.entropy).dump());
      if (jobs.empty() || jobs.back()["name"] != name)
        jobs.push_back({{"name", name},
                        {"train", one.train},
                        {"about", ""},
                        {"seed", one.seed},
                        {"run", "none"},
                        {"settings", json::array()}});
      jobs.back()["settings"].push_back({{"sample", "ode"},
                                         {"axis", axis},
                                         {"value", one.w},
                                         {"label", "ode " + axis + "=" + one.w},
                                         {"record", file}});
    }
    const json whole = {{"sweep", "elf-bench 1"},
                        {"name", "s"},
                        {"title", "T <b>"},
                        {"spec", "s.yaml"},
                        {"score",
                         {{"by", "gpt2"},
                          {"scorer", "models/gpt2-large"},
                          {"text", ""},
                          {"data", ""},
                          {"order", 3},
                          {"samples", 1000},
                          {"seeds", json::array({0})},
                          {"figure", "ppl"},
                          {"variety", "entropy"},
                          {"lower_is_better", true},
                          {"red_above", 300},
                          {"red_below", 5}}},
                        {"published",
                         {{"source", ""},
                          {"verdict", ""},
                          {"data", ""},
                          {"scorer", "GPT-2 Large"},
                          {"tokens", 0},
                          {"samples", 1000},
                          {"rows", rows}}},
                        {"expect", expect},
                        {"jobs", jobs}};
    folder_.write("s/sweep.json", whole.dump());
    return path("s");
  }
  static test::EvalOutcome report(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "report");
    return test::call(app::bench, std::move(arguments));
  }

  // The lines of a picture: where the points of each lie, in its pixels.
  struct Curve {
    bool dashed;
    std::vector<std::pair<double, double>> points;
  };
  static std::vector<Curve> curves(const std::string& svg) {
    const std::string begin = "<polyline class=\"curve", list = "points=\"";
    std::vector<Curve> found;
    for (size_t at = svg.find(begin); at != std::string::npos; at = svg.find(begin, at + 1)) {
      const size_t from = svg.find(list, at) + list.size();
      Curve& curve = found.emplace_back(Curve{svg.compare(at + begin.size(), 7, " dashed") == 0, {}});
      std::istringstream in(svg.substr(from, svg.find('"', from) - from));
      char comma = 0;
      for (double x = 0, y = 0; in >> x >> comma >> y;) curve.points.emplace_back(x, y);
    }
    return found;
  }
};

TEST_F(Report, SeveralSeedsAreAMeanWithItsError) {
  const std::string folder = sweep({{"a", 0, "1", 20, 5.2}, {"a", 1, "1", 24, 5.4}, {"b", 0, "1", 30, 5.3}});
  const std::string text = report({folder}).out;
  EXPECT_THAT(text, HasSubstr("| a | ode sc-cfg=1 | 22.00 ± 2.00 | 5.30 ± 0.10 |"));
  EXPECT_THAT(
      text, HasSubstr("| b | ode sc-cfg=1 | 30.00 ± 0.50 | 5.30 ± 0.50 |"));  // of one run: the record's own
  EXPECT_THAT(text, Not(HasSubstr("What differs")));  // the same scorer and number of samples
}

TEST_F(Report, RedPointsAreThoseOutsideTheBounds) {
  const std::string folder =
      sweep({{"good", 0, "1", 20, 5.2}, {"wild", 0, "1", 301, 5.9}, {"loops", 0, "1", 3, 1.2}});
  const std::string text = report({folder}).out;
  EXPECT_THAT(text, HasSubstr("| 20.00 ± 0.50 | 5.20 ± 0.50 |  |  |"));
  EXPECT_THAT(text, HasSubstr("| 301.00 ± 0.50 | 5.90 ± 0.50 |  | RED |"));
  EXPECT_THAT(text, HasSubstr("| 3.00 ± 0.50 | 1.20 ± 0.50 |  | RED |"));
}

TEST_F(Report, WhatIsNotThereYetIsSaidAndPublishedRowsStandBesideOurs) {
  const json rows = {{{"train", "a"},
                      {"sample", "ode"},
                      {"name", ""},
                      {"at", {{"sc-cfg", "1.0"}}},
                      {"figures", {{"ppl", 65.3}, {"entropy", 5.4}}},
                      {"errors", {{"ppl", 1.5}}}},
                     {{"train", ""},
                      {"sample", ""},
                      {"name", "another"},
                      {"at", json::object()},
                      {"figures", {{"ppl", 30}, {"entropy", 5.1}}},
                      {"errors", json::object()}}};
  const std::string folder = sweep({{"a", 0, "1", 20, 5.2}, {"a", 0, "2", 0, 0}}, rows);
  const std::string text = report({folder}).out;
  EXPECT_THAT(text, HasSubstr("| 65.30 ± 1.50 / 5.40 |"));
  EXPECT_THAT(text, HasSubstr("| a | ode sc-cfg=2 |  |  |  | not there yet |"));
  EXPECT_THAT(text, HasSubstr("| another | published |  |  | 30.00 / 5.10 |"));
  ASSERT_EQ(report({folder, "--out", path("r.html")}).code, 0);
  const std::string html = read_file(path("r.html")), csv = read_file(path("r.csv"));
  EXPECT_THAT(html, HasSubstr("T &lt;b&gt;"));
  EXPECT_THAT(html, HasSubstr("class=\"published\""));
  EXPECT_THAT(csv, HasSubstr("s,a,ode,sc-cfg,1,ppl,20,0.5,1,,65.3\n"));
}

// Steps and perplexities that double from point to point lie at equal distances: both scales are logarithmic.
TEST_F(Report, FiguresAlongAnAxisAreACurveForEachArm) {
  const auto published = [](const std::string& steps, double ppl) {
    return json{{"train", "a"},
                {"sample", "ode"},
                {"name", ""},
                {"at", {{"steps", steps}}},
                {"figures", {{"ppl", ppl}}},
                {"errors", json::object()}};
  };
  const std::string folder =
      sweep({{"a", 0, "32", 10, 5.4},
             {"a", 0, "8", 40, 5.2},
             {"a", 0, "16", 20, 5.3},
             {"b", 0, "8", 80, 5.1},
             {"b", 0, "16", 40, 5.2},
             {"b", 0, "32", 0, 0}},  // not there yet
            json::array({published("8", 40), published("32.0", 10)}), json::array(), "steps");
  ASSERT_EQ(report({folder, "--out", path("r.html"), "--svg"}).code, 0);
  const std::string of_ppl = read_file(path("s-steps-ppl.svg")),
                    of_entropy = read_file(path("s-steps-entropy.svg"));
  const std::vector<Curve> ppl = curves(of_ppl), entropy = curves(of_entropy);
  ASSERT_EQ(ppl.size(), 3u);
  const auto &a = ppl[0].points, &b = ppl[1].points, &paper = ppl[2].points;
  ASSERT_EQ(a.size(), 3u);
  ASSERT_EQ(b.size(), 2u);
  EXPECT_FALSE(ppl[0].dashed || ppl[1].dashed);
  constexpr double kRounding = 0.21;  // of coordinates with one decimal
  EXPECT_GT(a[1].first, a[0].first);
  EXPECT_NEAR(a[2].first - a[1].first, a[1].first - a[0].first, kRounding);
  EXPECT_GT(a[1].second, a[0].second);  // pixels count downwards
  EXPECT_NEAR(a[2].second - a[1].second, a[1].second - a[0].second, kRounding);
  EXPECT_EQ(b[0].first, a[0].first);
  EXPECT_EQ(b[1], std::make_pair(a[1].first, a[0].second));  // 16 steps, perplexity 40
  EXPECT_TRUE(ppl[2].dashed);
  EXPECT_THAT(paper, testing::ElementsAre(a[0], a[2]));  // the very figures of ours
  // Entropy on a plain scale, and nothing published.
  ASSERT_EQ(entropy.size(), 2u);
  ASSERT_EQ(entropy[0].points.size(), 3u);
  ASSERT_EQ(entropy[1].points.size(), 2u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(entropy[0].points[i].first, a[i].first);
  EXPECT_LT(entropy[0].points[2].second, entropy[0].points[1].second);
  EXPECT_NEAR(entropy[0].points[2].second - entropy[0].points[1].second,
              entropy[0].points[1].second - entropy[0].points[0].second, kRounding);
  EXPECT_THAT(of_ppl, HasSubstr("aria-label=\"Gen. PPL (lower is better) against steps\""));
  EXPECT_THAT(of_entropy, HasSubstr("aria-label=\"entropy (higher is better) against steps\""));
  // The page holds these pictures.
  const std::string html = read_file(path("r.html"));
  EXPECT_THAT(html, HasSubstr(of_ppl + "<figcaption>Gen. PPL over steps</figcaption>"));
  EXPECT_THAT(html, HasSubstr(of_entropy + "<figcaption>entropy over steps</figcaption>"));
  // Of the guidance scale the frontier says as much.
  ASSERT_EQ(
      report({sweep({{"a", 0, "1", 20, 5.2}, {"a", 0, "2", 18, 5.1}}), "--out", path("w.html"), "--svg"})
          .code,
      0);
  EXPECT_TRUE(fs::exists(path("s-frontier.svg")));
  EXPECT_FALSE(fs::exists(path("s-sc-cfg-ppl.svg")));
}

// At equal settings `b` has the lower perplexity; at equal entropy `a` has: the fair comparison decides.
TEST_F(Report, VerdictsAreJudgedAtEqualEntropy) {
  const json expect = {{{"better", "a"}, {"than", "b"}}, {{"better", "b"}, {"than", "a"}}};
  const std::string folder =
      sweep({{"a", 0, "1", 40, 5.5}, {"a", 0, "2", 20, 5.3}, {"b", 0, "1", 35, 5.4}, {"b", 0, "2", 19, 5.2}},
            json::array(), expect);
  const std::string text = report({folder}).out;
  EXPECT_THAT(
      text, HasSubstr("a better than b: **confirmed** (lower Gen. PPL in 0 of 2 settings; at equal entropy"));
  EXPECT_THAT(text, HasSubstr("b better than a: **not confirmed** (lower Gen. PPL in 2 of 2"));
  // A collapsed arm loses, however low its perplexity.
  const std::string red = sweep({{"a", 0, "1", 40, 5.5}, {"b", 0, "1", 3, 1.0}}, json::array(), expect);
  EXPECT_THAT(
      report({red}).out,
      HasSubstr("a better than b: **confirmed** (lower Gen. PPL in 1 of 1 settings; 1 points of b are red)"));
  const std::string apart = sweep({{"a", 0, "1", 40, 5.5}, {"b", 0, "1", 0, 0}}, json::array(), expect);
  EXPECT_THAT(report({apart}).out, HasSubstr("a better than b: **not known yet**"));
}

TEST_F(Report, WhatIsNoSweepIsRefused) {
  EXPECT_THAT(report({path("none")}).err, HasSubstr("no such folder"));
  fs::create_directories(path("empty"));
  EXPECT_THAT(report({path("empty")}).err, HasSubstr("holds no sweep"));
  fs::create_directories(path("bad"));
  folder_.write("bad/sweep.json", "{}");
  EXPECT_THAT(report({path("bad")}).err, HasSubstr("no sweep of elf-bench"));
  const std::string folder = sweep({{"a", 0, "1", 20, 5.2}});
  EXPECT_EQ(report({folder, "--out", path("r.pdf")}).code, 2);
  folder_.write("s/a0-1.json", "{\"record\": 1}");
  EXPECT_THAT(report({folder}).err, HasSubstr("a0-1.json"));
}

}  // namespace
}  // namespace elf
