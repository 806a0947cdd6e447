#include "ranks_impl.h"

#ifdef ELF_HAVE_C10D

#include <ATen/ATen.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/base/plugin.h"

namespace elf {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMeetingTimeout{40000};

milliseconds in_milliseconds(double seconds) {
  return milliseconds(static_cast<int64_t>(seconds * 1000));
}

std::string machine_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string first_line(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = of_torch ? of_torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

// The address of this machine on the way to `host`: nothing is sent, the kernel only looks up the route.
std::string own_address_towards(const std::string& host, int64_t port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return "";
  std::string address;
  for (const addrinfo* one = found; one != nullptr && address.empty(); one = one->ai_next) {
    const int socket = ::socket(one->ai_family, SOCK_DGRAM, 0);
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    char text[NI_MAXHOST];
    if (socket >= 0 && ::connect(socket, one->ai_addr, one->ai_addrlen) == 0 &&
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      address = text;
    }
    if (socket >= 0) ::close(socket);
  }
  ::freeaddrinfo(found);
  return address;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::shared_ptr<::gloo::transport::Device> gloo_device(const Launch& launch, std::string& address) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr && *interface != '\0') {
    address = cat("interface ", interface);
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  }
  address = own_address_towards(launch.address, launch.port);
  if (launch.several_machines() && (address.empty() || is_loopback(address))) {
    usage_error("rank ", launch.rank, " on ", machine_name(), ": ", launch.address_variable, "=",
                launch.address, " is reached over ", address.empty() ? "no interface" : address,
                ", but the ranks are on several machines; set ", launch.address_variable,
                " to a name that all of them reach, or GLOO_SOCKET_IFNAME to the interface to use");
  }
  return address.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                         : c10d::ProcessGroupGloo::createDeviceForHostname(address);
}

}  // namespace

Ranks::Impl::Impl(const Launch& given, at::Device device, const std::string& job, const RankTimeouts& limits)
    : launch(given), timeouts(limits) {
  meet();
  refuse_strangers(job);
  watch.emplace(watched, place());
  open_groups(device);
}

std::string Ranks::Impl::place() const {
  return cat("rank ", launch.rank, " of ", launch.size, " on ", machine_name());
}

void Ranks::Impl::meet() {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(launch.port);
  options.isServer = launch.rank == 0 && !launch.agent_store;
  options.waitWorkers = false;
  options.timeout = kMeetingTimeout;
  try {
    connection = c10::make_intrusive<c10d::TCPStore>(launch.address, options);
    watched = connection->clone();
  } catch (const std::exception& error) {
    environment_error(place(), options.isServer ? " cannot listen on " : " cannot reach rank 0 at ",
                      launch.address, ":", launch.port, " (", first_line(error), "); set ",
                      launch.port_variable, " to a free port and ", launch.address_variable,
                      " to the machine of rank 0, the same for all ranks");
  }
  const std::string prefix = cat("elf/", launch.restart);
  store = c10::make_intrusive<c10d::PrefixStore>(prefix, connection);
  watched = c10::make_intrusive<c10d::PrefixStore>(prefix, watched);
}

// A rank of another job that came to the same port is told so.
void Ranks::Impl::refuse_strangers(const std::string& job) {
  const std::string advice = cat("; is ", launch.address, ":", launch.port, " used by two jobs? Set ",
                                 launch.port_variable, " to another port");
  std::vector<uint8_t> of_first;
  try {
    const int64_t arrivals = store->add(cat("arrived/", launch.rank), 1);
    if (arrivals > 1) environment_error(place(), ": there is a rank ", launch.rank, " already", advice);
    if (launch.rank == 0) store->set("job", job);
    store->wait({"job"}, kMeetingTimeout);
    of_first = store->get("job");
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    environment_error(place(), " reached ", launch.address, ":", launch.port, ", but rank 0 is not there (",
                      first_line(error), ")", advice);
  }
  if (std::string(of_first.begin(), of_first.end()) != job) {
    environment_error(place(), " was started with another configuration, data or job than rank 0", advice);
  }
}

void Ranks::Impl::open_groups(at::Device device) {
  const int rank = static_cast<int>(launch.rank), size = static_cast<int>(launch.size);
  const milliseconds timeout = in_milliseconds(timeouts.collective);
  // Processes of one job may start seconds apart.
  auto options = c10d::ProcessGroupGloo::Options::create(std::max(timeout, kMeetingTimeout));
  std::string address;
  waiting_for("meeting the other ranks", [&] {
    options->devices.push_back(gloo_device(launch, address));
    control = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>("gloo", store), rank, size, options);
    return 0;
  });
  control->setTimeout(timeout);
  group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, control);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  if (device.is_cuda()) {
    const auto nccl = make_nccl(c10::make_intrusive<c10d::PrefixStore>("nccl", store), rank, size, timeout);
    group->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL, nccl);
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::NCCL);
  }
  group->setGroupName("elf");
  log_info(cat(place(), ", ", launch.launcher, ", address ", address, ", device ", device.str()));
}

// What the watch has seen, and no question to the store: it may be what stands still.
void Ranks::Impl::explain(const std::string& what, const std::exception& error) {
  for (int i = 0; i < 20 && watch->seen() == FailureWatch::Seen::kNothing; ++i)
    std::this_thread::sleep_for(milliseconds(100));
  const FailureWatch::Seen seen = watch->seen();
  environment_error(place(), " waited for ", what, ": ",
                    seen == FailureWatch::Seen::kFailure   ? "another rank failed"
                    : seen == FailureWatch::Seen::kNoStore ? "rank 0 is gone"
                                                           : first_line(error));
}

at::Tensor Ranks::Impl::gather(const at::Tensor& mine) {
  return waiting_for("the other ranks", [&] {
    const at::NoGradGuard no_grad;
    std::vector<int64_t> sizes = mine.sizes().vec();
    sizes[0] *= launch.size;
    const at::Tensor all = at::empty(sizes, mine.options().requires_grad(false));
    std::vector<std::vector<at::Tensor>> outputs{all.chunk(launch.size, 0)};
    std::vector<at::Tensor> inputs{mine.detach().contiguous()};
    if (mine.is_cpu()) {
      control->allgather(outputs, inputs)->wait();
    } else {
      group->allgather(outputs, inputs)->wait();
    }
    return all;
  });
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            milliseconds timeout) {
  using Make = void (*)(const c10::intrusive_ptr<c10d::Store>&, int, int, milliseconds,
                        c10::intrusive_ptr<c10d::Backend>&);
  const PluginFunction found = plugin_function("libelf_nccl.so", "elf_make_nccl");
  if (found.address == nullptr) {
    environment_error(
        "several ranks on CUDA devices need libelf_nccl.so beside the program or on LD_LIBRARY_PATH (",
        found.failure, "); it is built where the headers of NCCL and CUDA are found");
  }
  c10::intrusive_ptr<c10d::Backend> backend;
  reinterpret_cast<Make>(found.address)(store, rank, size, timeout, backend);
  return backend;
}

}  // namespace elf

#endif
