// Launch variables of torchrun, Slurm and MPI, right and wrong (field case 27).
#include "elf/dist/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "elf/base/error.h"
#include "elf/dist/ranks.h"

namespace elf {
namespace {

using Variables = std::map<std::string, std::string>;
using ::testing::HasSubstr;

Launch read(const Variables& variables) {
  return read_launch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

std::string refusal(const Variables& variables) {
  try {
    read(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return error.what();
  }
  return "accepted";
}

const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "gpu01"},
                             {"MASTER_PORT", "29511"}};

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}
Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST(Launch, AloneWithoutVariables) {
  const Launch launch = read({{"MASTER_ADDR", "gpu01"}, {"MASTER_PORT", "29500"}});
  EXPECT_TRUE(launch.alone());
  EXPECT_EQ(launch.rank, 0);
  EXPECT_EQ(launch.port, 0);
}

TEST(Launch, Torchrun) {
  const Launch launch =
      read(with(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "2"), "TORCHELASTIC_USE_AGENT_STORE", "True"));
  EXPECT_EQ(launch.launcher, "torchrun");
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.size, 8);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.restart, 2);
  EXPECT_EQ(launch.address, "gpu01");
  EXPECT_EQ(launch.port, 29511);
  EXPECT_TRUE(launch.agent_store);
  EXPECT_TRUE(launch.several_machines());
}

TEST(Launch, ErrorsNameTheVariable) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_THAT(refusal(without(kTorchrun, name)), HasSubstr(std::string(name) + " is not set"));
  }
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT"}) {
    for (const char* value : {"x", "1x", "-1", "1.5"}) {
      EXPECT_THAT(refusal(with(kTorchrun, name, value)), HasSubstr(std::string(name) + " is '" + value));
    }
  }
  EXPECT_THAT(refusal(with(kTorchrun, "RANK", "8")), HasSubstr("RANK is 8, but WORLD_SIZE is 8"));
  EXPECT_THAT(refusal(with(kTorchrun, "WORLD_SIZE", "0")), HasSubstr("WORLD_SIZE is '0'"));
  EXPECT_THAT(refusal(with(kTorchrun, "MASTER_PORT", "70000")), HasSubstr("MASTER_PORT is 70000"));
}

TEST(Launch, Slurm) {
  const Variables variables = {{"SLURM_PROCID", "5"},       {"SLURM_NTASKS", "16"},
                               {"SLURM_LOCALID", "1"},      {"SLURM_STEP_NODELIST", "gpu[03-05,09]"},
                               {"SLURM_JOB_ID", "4711"},    {"SLURM_STEP_NUM_NODES", "4"},
                               {"SLURM_RESTART_COUNT", "1"}};
  const Launch launch = read(variables);
  EXPECT_EQ(launch.launcher, "slurm");
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.size, 16);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.restart, 1);
  EXPECT_EQ(launch.address, "gpu03");
  EXPECT_GT(launch.port, 1024);
  EXPECT_EQ(read(with(variables, "SLURM_JOB_ID", "4711")).port, launch.port);
  EXPECT_NE(read(with(variables, "SLURM_JOB_ID", "4712")).port, launch.port);
  EXPECT_EQ(read(with(variables, "MASTER_PORT", "1234")).port, 1234);
  EXPECT_THAT(refusal(without(variables, "SLURM_LOCALID")), HasSubstr("SLURM_LOCALID"));
}

TEST(Launch, Mpi) {
  const Launch open_mpi = read({{"OMPI_COMM_WORLD_RANK", "1"},
                                {"OMPI_COMM_WORLD_SIZE", "2"},
                                {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(open_mpi.launcher, "mpi");
  EXPECT_EQ(open_mpi.address, "127.0.0.1");
  EXPECT_EQ(read({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "a"}}).rank, 1);
  EXPECT_THAT(refusal({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), HasSubstr("MASTER_ADDR"));
}

TEST(Launch, FirstMachine) {
  EXPECT_EQ(first_machine("gpu[03-05,09],login"), "gpu03");
  EXPECT_EQ(first_machine("gpu[7]"), "gpu7");
  EXPECT_EQ(first_machine("login,gpu[1-2]"), "login");
  EXPECT_EQ(first_machine("alone"), "alone");
}

// One process communicates with nobody: sums are its own, and work of the first rank is its own.
TEST(Ranks, Alone) {
  Ranks ranks;
  EXPECT_EQ(ranks.size(), 1);
  EXPECT_TRUE(ranks.first());
  EXPECT_EQ(ranks.sum({1, 2}), (std::vector<double>{1, 2}));
  bool ran = false;
  ranks.first_does("save", [&] { ran = true; });
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace elf
