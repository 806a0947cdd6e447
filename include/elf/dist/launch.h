// Which process of how many this is, as the launcher says it in the environment: torchrun, Slurm, MPI, or
// none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace elf {

struct Launch {
  std::string launcher = "none";                    // or "torchrun", "slurm", "mpi"
  int64_t rank = 0, size = 1;                       // of all processes, 0 <= rank < size
  int64_t local_rank = 0, local_size = 1;           // of those on this machine; local_size 0: not known
  int64_t restart = 0;                              // how often the launcher has started the job again
  std::string address = "", address_variable = "";  // where the ranks meet, and the variable that says so
  int64_t port = 0;
  std::string port_variable = "";
  bool agent_store = false;  // the launcher listens there already

  bool alone() const { return size == 1; }
  bool several_machines() const { return local_size > 0 && size > local_size; }
};

// Looks up a variable: "" when it is not set.
using Environment = std::function<std::string(const char* name)>;

// From the variables of
//   torchrun  RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT [LOCAL_WORLD_SIZE TORCHELASTIC_*]
//   Slurm     SLURM_PROCID SLURM_NTASKS SLURM_LOCALID [SLURM_STEP_NODELIST SLURM_JOB_ID SLURM_RESTART_COUNT]
//   MPI       OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK} or PMI_{RANK,SIZE}
// in this order; MASTER_ADDR and MASTER_PORT win everywhere. Under Slurm the ranks meet by default at the
// step's first machine, at a port made from the job's number; under MPI at this machine.
// Throws Error (usage) naming the variable that is missing, no number, or out of range.
Launch read_launch(const Environment& environment);
Launch read_launch();  // of this process; read once

// The first name of a Slurm list of machines: "gpu[03-05,09],login" -> "gpu03".
std::string first_machine(const std::string& list);

}  // namespace elf
