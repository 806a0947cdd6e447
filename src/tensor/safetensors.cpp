#include "elf/tensor/safetensors.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/tensor/safetensors_shapes.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

constexpr std::pair<const char*, at::ScalarType> kDtypes[] = {
    {"F64", at::kDouble}, {"F32", at::kFloat}, {"F16", at::kHalf},  {"BF16", at::kBFloat16},
    {"I64", at::kLong},   {"I32", at::kInt},   {"I16", at::kShort}, {"I8", at::kChar},
    {"U8", at::kByte},    {"BOOL", at::kBool}};

constexpr uint64_t kLargestSize = uint64_t{1} << 48;
constexpr size_t kMostDimensions = 64;  // what LibTorch's operators take

at::ScalarType dtype_of(const std::string& name, const std::string& where) {
  for (const auto& [known, type] : kDtypes) {
    if (name == known) return type;
  }
  usage_error(where, ": dtype '", name, "' is not one of F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL");
}

const char* name_of(at::ScalarType type) {
  for (const auto& [name, known] : kDtypes) {
    if (type == known) return name;
  }
  usage_error("safetensors: tensors of dtype ", at::toString(type), " cannot be stored");
}

struct Entry {
  std::string name;
  at::ScalarType dtype;
  std::vector<int64_t> shape;
  uint64_t begin, end;
};

// Bytes of a tensor; throws when the product overflows or exceeds `limit`.
uint64_t checked_bytes(const Entry& entry, uint64_t limit, const std::string& where) {
  const bool empty = std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end();
  if (entry.shape.size() > kMostDimensions)
    usage_error(where, ": has ", entry.shape.size(), " dimensions, expected at most ", kMostDimensions);
  if (empty) limit = kLargestSize;  // the other sizes make strides
  uint64_t bytes = c10::elementSize(entry.dtype);
  for (const int64_t size : entry.shape) {
    if (static_cast<uint64_t>(size) > limit / bytes + 1)
      usage_error(where, ": its shape is larger than the file");
    bytes *= static_cast<uint64_t>(std::max<int64_t>(1, size));
  }
  return empty ? 0 : bytes;
}

Entry parse_entry(const std::string& name, const json& value, const std::string& file) {
  const std::string where = cat(file, ": tensor '", name, "'");
  try {
    Entry entry{name, dtype_of(value.at("dtype").get<std::string>(), where), {}, 0, 0};
    for (const json& size : value.at("shape")) {
      if (!size.is_number_unsigned() || size.get<uint64_t>() > kLargestSize) {
        usage_error(where, ": shape must hold non-negative integers, found ", size.dump());
      }
      entry.shape.push_back(size.get<int64_t>());
    }
    const json& offsets = value.at("data_offsets");
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      usage_error(where, ": data_offsets must be two non-negative integers, found ", offsets.dump());
    }
    entry.begin = offsets[0].get<uint64_t>();
    entry.end = offsets[1].get<uint64_t>();
    return entry;
  } catch (const json::exception&) {
    usage_error(where, ": expected {dtype, shape, data_offsets}");
  }
}

// A whole file in memory: pages are read when they are touched, and are copied when they are written to.
class Mapping {
 public:
  Mapping(const std::string& file, uint64_t size) : size_(size) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) environment_error(file, ": cannot be read: ", std::strerror(errno));
    void* start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0);
    const int problem = errno;
    ::close(descriptor);
    if (start == MAP_FAILED) environment_error(file, ": cannot be mapped: ", std::strerror(problem));
    start_ = static_cast<char*>(start);
  }
  ~Mapping() { ::munmap(start_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  char* at(uint64_t offset) const { return start_ + offset; }

 private:
  char* start_ = nullptr;
  uint64_t size_;
};

// The tensor where it lies in the file, which stays mapped as long as the tensor lives; a copy where another
// program wrote it to an address that its dtype cannot be read at.
at::Tensor mapped_tensor(const Entry& entry, const std::shared_ptr<const Mapping>& mapping,
                         uint64_t first_byte) {
  const auto options = at::TensorOptions().dtype(entry.dtype);
  if (entry.end == entry.begin) return at::empty(entry.shape, options);
  char* data = mapping->at(first_byte + entry.begin);
  if (reinterpret_cast<uintptr_t>(data) % c10::elementSize(entry.dtype) == 0)
    return at::from_blob(
        data, entry.shape, [mapping](void*) {}, options);
  at::Tensor copy = at::empty(entry.shape, options);
  std::memcpy(copy.data_ptr(), data, entry.end - entry.begin);
  return copy;
}

json parse_header(const std::string& text, const std::string& file) {
  std::set<std::string> seen;
  std::string duplicate;
  const json::parser_callback_t note_names = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1 && !seen.insert(parsed.get<std::string>()).second) {
      duplicate = parsed.get<std::string>();
    }
    return true;
  };
  if (json_nests_too_deep(text))
    usage_error(file, ": the safetensors header nests more than ", kDeepestJson, " deep");
  json header = json::parse(text, note_names, /*allow_exceptions=*/false);
  if (header.is_discarded() || !header.is_object())
    usage_error(file, ": the safetensors header is no JSON object");
  if (!duplicate.empty()) usage_error(file, ": tensor '", duplicate, "' occurs twice in the header");
  return header;
}

// A file whose header was read and checked; the data lie `data` bytes from its start, in the entries' order.
struct OpenSafetensors {
  std::ifstream in;
  std::string file;
  std::vector<Entry> entries;
  uint64_t data = 0;
};

std::string read_header(OpenSafetensors& open, const fs::path& path, uint64_t file_size) {
  const std::string& file = open.file;
  std::string first(std::min<uint64_t>(file_size, 256), '\0');
  open.in.read(first.data(), static_cast<std::streamsize>(first.size()));
  if (const std::string kind = what_bytes_look_like(first); !kind.empty()) usage_error(file, ": is ", kind);
  if (file_size < 8) usage_error(file, ": too short for a safetensors file (", file_size, " bytes)");
  uint64_t header_size;
  std::memcpy(&header_size, first.data(), 8);  // little endian, as this machine
  if (header_size > file_size - 8) {
    usage_error(file, ": the header's length, ", header_size, ", exceeds the file (", file_size,
                " bytes); truncated or no safetensors file");
  }
  std::string text(header_size, '\0');
  open.in.seekg(8);
  open.in.read(text.data(), static_cast<std::streamsize>(header_size));
  if (!open.in) environment_error(path.string(), ": reading failed");
  open.data = 8 + header_size;
  return text;
}

// Offsets are contiguous and cover the data, shapes fit them.
void check_entries(const std::vector<Entry>& entries, uint64_t data_size, const std::string& file) {
  uint64_t position = 0;
  for (const Entry& entry : entries) {
    const std::string where = cat(file, ": tensor '", entry.name, "'");
    if (entry.begin != position || entry.end < entry.begin) {
      usage_error(where, ": data_offsets [", entry.begin, ", ", entry.end,
                  "] do not follow the tensor before, which ends at ", position);
    }
    if (entry.end > data_size)
      usage_error(where, ": ends at ", entry.end, " of ", data_size, " data bytes; the file is truncated");
    if (const uint64_t bytes = checked_bytes(entry, data_size, where); bytes != entry.end - entry.begin) {
      usage_error(where, ": shape and dtype need ", bytes, " bytes, data_offsets give ",
                  entry.end - entry.begin);
    }
    position = entry.end;
  }
  if (position != data_size)
    usage_error(file, ": ", data_size - position, " bytes behind the last tensor; padded or damaged");
}

OpenSafetensors open_safetensors(const fs::path& path, Metadata& metadata) {
  OpenSafetensors open;
  open.file = path.string();
  std::error_code error;
  if (!fs::exists(path, error)) usage_error(open.file, ": no such file");
  if (!fs::is_regular_file(path, error)) usage_error(open.file, ": is no file");
  const uint64_t file_size = fs::file_size(path);
  open.in.open(path, std::ios::binary);
  if (!open.in) environment_error(open.file, ": cannot be read: ", std::strerror(errno));
  const json header = parse_header(read_header(open, path, file_size), open.file);
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      open.entries.push_back(parse_entry(name, value, open.file));
      continue;
    }
    for (const auto& [key, text] : value.items())
      metadata[key] = text.is_string() ? text.get<std::string>() : text.dump();
  }
  std::sort(open.entries.begin(), open.entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  check_entries(open.entries, file_size - open.data, open.file);
  return open;
}

}  // namespace

TensorMap read_safetensors(const fs::path& path) {
  Metadata ignored;
  return read_safetensors(path, ignored);
}

TensorMap read_safetensors(const fs::path& path, Metadata& metadata) {
  const OpenSafetensors open = open_safetensors(path, metadata);
  const auto mapped = std::make_shared<const Mapping>(open.file, fs::file_size(path));
  TensorMap tensors;
  for (const Entry& entry : open.entries)
    tensors.emplace(entry.name, mapped_tensor(entry, mapped, open.data));
  return tensors;
}

std::map<std::string, TensorShape> read_safetensors_shapes(const fs::path& path, Metadata& metadata) {
  std::map<std::string, TensorShape> shapes;
  for (const Entry& entry : open_safetensors(path, metadata).entries)
    shapes[entry.name] = {entry.dtype, entry.shape};
  return shapes;
}

void write_safetensors(const fs::path& path, const TensorMap& tensors, const Metadata& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t position = 0;
  std::vector<at::Tensor> stored;
  for (const auto& [name, tensor] : tensors) {
    stored.push_back(tensor.detach().to(at::kCPU).contiguous());
    const uint64_t bytes = stored.back().nbytes();
    header[name] = {{"dtype", name_of(tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {position, position + bytes}}};
    position += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begin at a multiple of 8
  const uint64_t header_size = text.size();

  AtomicFile target(path);
  std::ofstream out(target.temporary(), std::ios::binary);
  if (!out) path_error(path, "cannot be written", {errno, std::generic_category()});
  out.write(reinterpret_cast<const char*>(&header_size), 8);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  for (const at::Tensor& tensor : stored) {
    if (tensor.nbytes() > 0)
      out.write(static_cast<const char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
  }
  out.close();
  if (!out) environment_error(path.string(), ": writing failed: ", std::strerror(errno));
  target.commit();
}

}  // namespace elf
