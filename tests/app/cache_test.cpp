// Training with a cache of encoder outputs: the same losses as without; a run goes on only with the latents
// it began with (field cases 33 and 46).
#include <gmock/gmock.h>

#include "elf/data/latent_cache.h"
#include "support/tiny_run.h"

namespace elf {
namespace {

using test::Outcome;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Cache : public test::TinyRun {
 protected:
  static void SetUpTestSuite() {
    TinyRun::SetUpTestSuite();
    must("elf-prepare encoder --data docs.h5 --preset t5-nano --steps 0 --out encoder");
    must("elf-prepare latents --data docs.h5 --encoder encoder --out latents.h5");
  }
  static std::string train(const std::string& out, int steps, const std::string& more = "") {
    return "elf-train --config run.yaml --threads 1 --out " + out +
           " --set train.steps=" + std::to_string(steps) +
           " --set optimizer.schedule=constant --set latents.source=t5 --set latents.path=encoder --set "
           "model.latent_dim=64 " +
           more;
  }
};

TEST_F(Cache, GivesTheLossesOfTheEncoder) {
  must(train("plain", 4));
  must(train("cached", 4, "--set latents.cache=latents.h5"));
  const auto plain = metrics("plain"), cached = metrics("cached");
  ASSERT_EQ(plain.size(), cached.size());
  int compared = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    for (const char* key : {"loss", "l2_loss", "ce_loss", "valid_loss"}) {
      if (!plain[i].contains(key)) continue;
      EXPECT_NEAR(plain[i][key].get<double>(), cached[i][key].get<double>(), 1e-4) << key << " of line " << i;
      ++compared;
    }
  }
  EXPECT_GE(compared, 12);
  const Outcome other =
      tool(train("other", 2, "--set latents.cache=latents.h5 --set latents.dtype=bfloat16"));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("latents.h5"), HasSubstr("float32"), HasSubstr("bfloat16")));
}

TEST_F(Cache, ARunGoesOnWithItsOwnLatentsOnly) {
  must(train("first", 2, "--set train.save_every=2"));
  const Outcome other = tool(train("first", 4, "--set latents.dtype=bfloat16"));
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_THAT(other.err, AllOf(HasSubstr("float32"), HasSubstr("bfloat16")));
  const Outcome half = tool(train("half", 2, "--set latents.dtype=float16"));
  EXPECT_EQ(half.code, 2);
  EXPECT_THAT(half.err, AllOf(HasSubstr("latents.dtype"), HasSubstr("float16")));
}

}  // namespace
}  // namespace elf
