#include "elf/dist/launch.h"

#include <cstdlib>

#include "elf/base/error.h"

namespace elf {
namespace {

// Reads numbers of the environment; every complaint names the variable and the launcher it belongs to.
class Variables {
 public:
  Variables(const Environment& environment, std::string launcher)
      : environment_(environment), launcher_(std::move(launcher)) {}

  bool has(const char* name) const { return !environment_(name).empty(); }
  std::string text(const char* name) const {
    const std::string value = environment_(name);
    if (value.empty())
      usage_error(name, " is not set, but other variables of ", launcher_,
                  " are; start with the launcher, or unset them all to run one process");
    return value;
  }
  int64_t number(const char* name, int64_t min = 0) const {
    const std::string value = text(name);
    size_t used = 0;
    int64_t number = -1;
    try {
      number = std::stoll(value, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used == 0 || used != value.size() || number < min)
      usage_error(name, " is '", value, "', expected an integer of at least ", min);
    return number;
  }
  int64_t number_or(const char* name, int64_t other, int64_t min = 0) const {
    return has(name) ? number(name, min) : other;
  }

 private:
  const Environment& environment_;
  std::string launcher_;
};

// `names`: the variables of rank, size and local rank.
void read_place(const Variables& variables, const char* const (&names)[3], Launch& launch) {
  launch.rank = variables.number(names[0]);
  launch.size = variables.number(names[1], 1);
  launch.local_rank = variables.number(names[2]);
  if (launch.rank >= launch.size)
    usage_error(names[0], " is ", launch.rank, ", but ", names[1], " is ", launch.size,
                ": ranks go from 0 to ", launch.size - 1);
}

void read_meeting_point(const Variables& variables, Launch& launch, const std::string& address,
                        int64_t port) {
  launch.address_variable = "MASTER_ADDR";
  launch.port_variable = "MASTER_PORT";
  launch.address = variables.has("MASTER_ADDR") || address.empty() ? variables.text("MASTER_ADDR") : address;
  launch.port = variables.has("MASTER_PORT") || port == 0 ? variables.number("MASTER_PORT", 1) : port;
  if (launch.port > 65535) usage_error("MASTER_PORT is ", launch.port, ", expected a port below 65536");
}

Launch of_torchrun(const Environment& environment) {
  const Variables variables(environment, "torchrun");
  Launch launch{.launcher = "torchrun"};
  read_place(variables, {"RANK", "WORLD_SIZE", "LOCAL_RANK"}, launch);
  launch.local_size = variables.number_or("LOCAL_WORLD_SIZE", 0, 1);
  launch.restart = variables.number_or("TORCHELASTIC_RESTART_COUNT", 0);
  launch.agent_store = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (!launch.alone()) read_meeting_point(variables, launch, "", 0);
  return launch;
}

Launch of_slurm(const Environment& environment) {
  const Variables variables(environment, "Slurm");
  Launch launch{.launcher = "slurm"};
  const bool step = variables.has("SLURM_STEP_NUM_TASKS");
  read_place(variables, {"SLURM_PROCID", step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", "SLURM_LOCALID"},
             launch);
  launch.local_size = 0;  // not told as one number
  if (variables.has("SLURM_STEP_NUM_NODES") && variables.number("SLURM_STEP_NUM_NODES", 1) == 1)
    launch.local_size = launch.size;
  launch.restart = variables.number_or("SLURM_RESTART_COUNT", 0);
  if (launch.alone()) return launch;
  std::string list = environment("SLURM_STEP_NODELIST");
  if (list.empty()) list = environment("SLURM_JOB_NODELIST");
  const int64_t job = variables.number_or("SLURM_JOB_ID", 0);
  const int64_t step_number = variables.number_or("SLURM_STEP_ID", 0);
  const int64_t port = job > 0 ? 20000 + (job * 8 + step_number % 8) % 12000 : 0;
  read_meeting_point(variables, launch, first_machine(list), port);
  return launch;
}

Launch of_mpi(const Environment& environment) {
  const Variables variables(environment, "MPI");
  Launch launch{.launcher = "mpi"};
  if (variables.has("OMPI_COMM_WORLD_RANK") || variables.has("OMPI_COMM_WORLD_SIZE")) {
    read_place(variables, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
               launch);
    launch.local_size = variables.number_or("OMPI_COMM_WORLD_LOCAL_SIZE", 0, 1);
  } else {
    launch.rank = variables.number("PMI_RANK");
    launch.size = variables.number("PMI_SIZE", 1);
    launch.local_rank = variables.number_or("MPI_LOCALRANKID", launch.rank);
    launch.local_size = variables.number_or("MPI_LOCALNRANKS", 0, 1);
    if (launch.rank >= launch.size)
      usage_error("PMI_RANK is ", launch.rank, ", but PMI_SIZE is ", launch.size);
  }
  const bool one_machine = launch.local_size == launch.size;
  if (!launch.alone()) read_meeting_point(variables, launch, one_machine ? "127.0.0.1" : "", 29500);
  return launch;
}

}  // namespace

std::string first_machine(const std::string& list) {
  const size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const size_t end = list.find_first_of("-,]", bracket);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

Launch read_launch(const Environment& environment) {
  const auto any_of = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (!environment(name).empty()) return true;
    }
    return false;
  };
  if (any_of({"RANK", "WORLD_SIZE", "LOCAL_RANK"})) return of_torchrun(environment);
  if (any_of({"SLURM_PROCID"}) && any_of({"SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"}))
    return of_slurm(environment);
  if (any_of({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE"}))
    return of_mpi(environment);
  return {};
}

Launch read_launch() {
  static const Launch launch = read_launch([](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  });
  return launch;
}

}  // namespace elf
