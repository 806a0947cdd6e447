// elf-inspect on files: datasets, caches of latents and their statistics, safetensors, files of torch.save,
// tokenizer models.
#include <algorithm>
#include <fstream>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/data/dataset.h"
#include "elf/data/latent_cache.h"
#include "elf/model/latent_statistics.h"
#include "elf/tensor/safetensors_shapes.h"
#include "elf/tensor/torch_pickle.h"
#include "elf/text/sentencepiece_tokenizer.h"
#include "inspect.h"

namespace elf::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string first_bytes(const fs::path& path) {
  std::string first(64, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(first.data(), 64);
  first.resize(static_cast<size_t>(in.gcount()));
  return first;
}

// ---------------------------------------------------------------------------------------------- datasets

// A row as text where that is known, else as ids.
Json row_of(const Dataset& dataset, int64_t row, const SentencePieceTokenizer* tokenizer) {
  const std::vector<int32_t> ids = dataset.tokens(row);
  Json object = {{"row", row}, {"length", ids.size()}};
  if (dataset.info().is_pairs()) {
    object["condition_length"] = dataset.cond_length(row);
    object["source"] = dataset.source_text(row);
    object["target"] = dataset.target_text(row);
  }
  if (tokenizer) {
    object["text"] = tokenizer->decode(ids, {.skip_special = false});
  } else {
    object["ids"] = ids;
  }
  return object;
}

Json sample_rows(const Dataset& dataset, const InspectOptions& options) {
  std::optional<SentencePieceTokenizer> tokenizer;
  if (!options.tokenizer.empty()) {
    tokenizer = SentencePieceTokenizer::load(options.tokenizer);
    dataset.require_tokenizer(tokenizer->hash(), tokenizer->size());
  }
  const int64_t rows = dataset.info().rows, count = std::min(options.show, rows);
  Json list = Json::array();
  for (int64_t i = 0; i < count; ++i)
    list.push_back(row_of(dataset, i * rows / count, tokenizer ? &*tokenizer : nullptr));
  return list;
}

void fill_dataset(const InspectOptions& options, Json& object) {
  const Dataset dataset = Dataset::open(options.path);
  const DatasetInfo& info = dataset.info();
  object["dataset_kind"] = info.kind;
  object["sequences"] = info.rows;
  object["tokens"] = info.tokens;
  object["mean_length"] =
      static_cast<double>(info.tokens) / static_cast<double>(std::max<int64_t>(1, info.rows));
  object["longest"] = info.longest_row;
  object["max_length"] = info.max_length;
  object["max_input_length"] = info.max_input_length;
  object["vocabulary"] = info.vocab_size;
  object["tokenizer_hash"] = info.tokenizer_hash;
  object["data_hash"] = info.data_hash;
  object["settings"] = parse_json<Json>(info.settings);
  if (options.show > 0) object["sample_rows"] = sample_rows(dataset, options);
  if (!options.verify) return;
  object["verified"] = false;
  const std::string found = DatasetWriter::content_hash(dataset);
  if (found != info.data_hash)
    usage_error("the hash of its content is ", found, ", its data_hash is ", info.data_hash);
  object["verified"] = true;
}

// ----------------------------------------------------------------------------------------------- latents

void fill_latents(const InspectOptions& options, Json& object) {
  const LatentCache cache = LatentCache::open(options.path);
  const LatentCacheInfo& info = cache.info();
  object["rows"] = info.rows;
  object["length"] = info.length;
  object["dim"] = info.dim;
  object["dtype"] = info.dtype;
  object["bytes"] = latent_cache_bytes(info.rows, info.length, info.dim, info.dtype);
  object["pad_id"] = info.pad_id;
  object["encoder"] = info.encoder;
  object["data_hash"] = info.data_hash;
  if (!options.verify) return;
  object["verified"] = false;
  cache.verify();
  object["verified"] = true;
}

void fill_statistics(const fs::path& path, Json& object) {
  const LatentStatistics statistics = read_statistics(path);
  object["mean"] = statistics.mean;
  object["std"] = statistics.std;
  object["dim"] = statistics.channel_mean.numel();
  object["positions"] = statistics.positions;
  object["source"] = statistics.source;
}

// Other JSON files lie about, too.
bool is_statistics(const fs::path& path) {
  const Json content = parse_json<Json>(read_file(path));
  return content.is_object() && (content.contains("channel_mean") || content.contains("channel_std"));
}

// ------------------------------------------------------------------------------------------------- .pt

// Dictionaries and scalars of the upper levels; tensors are listed apart.
Json outline(const TorchObject& object, int depth) {
  using Kind = TorchObject::Kind;
  switch (object.kind) {
    case Kind::kNone:
      return nullptr;
    case Kind::kBool:
      return object.integer != 0;
    case Kind::kInteger:
      return object.integer;
    case Kind::kReal:
      return object.real;
    case Kind::kText:
      return object.text;
    case Kind::kBytes:
      return cat(object.text.size(), " bytes");
    case Kind::kTensor:
      return "tensor";
    case Kind::kOpaque:
      return "not run: " + object.text;
    case Kind::kSequence:
      return cat("list of ", object.items.size());
    case Kind::kDict:
      break;
  }
  if (depth == 0 || object.entries.size() > 100) return cat("dictionary of ", object.entries.size());
  Json inner = Json::object();
  for (const auto& [key, value] : object.entries) {
    const Json name = outline(*key, 0);
    if (!value->is(Kind::kTensor))
      inner[name.is_string() ? name.get<std::string>() : name.dump()] = outline(*value, depth - 1);
  }
  return inner;
}

void fill_torch(const fs::path& path, Json& object) {
  object["hash"] = digest_of_file(path);
  const TorchFile file = TorchFile::read(path);
  object["content"] = outline(file.root(), 2);
  if (const TorchObject* step = file.root().find("step"); step && step->is(TorchObject::Kind::kInteger))
    object["step"] = step->integer;
  object["skipped"] = file.skipped();
  std::map<std::string, TensorShape> shapes;
  for (const auto& [name, tensor] : all_tensors(file.root()))
    shapes[name] = {tensor.scalar_type(), tensor.sizes().vec()};
  add_tensors(shapes, object);
}

}  // namespace

void add_tensors(const std::map<std::string, TensorShape>& shapes, Json& object) {
  int64_t parameters = 0;
  Json listed = Json::object();
  for (const auto& [name, shape] : shapes) {
    parameters += c10::multiply_integers(shape.sizes);
    listed[name] = {{"dtype", c10::toString(shape.dtype)}, {"shape", shape.sizes}};
  }
  object["parameters"] = parameters;
  object["tensors"] = listed;
}

void describe_safetensors(const fs::path& path, Json& object) {
  Metadata metadata;
  add_tensors(read_safetensors_shapes(path, metadata), object);
  if (!metadata.empty()) object["metadata"] = metadata;
}

Json describe_tokenizer(const fs::path& path) {
  return described("tokenizer", path, [&](Json& object) {
    const SentencePieceTokenizer tokenizer = SentencePieceTokenizer::load(path);
    object["model_type"] = tokenizer.model_type();
    object["vocabulary"] = tokenizer.size();
    object["pieces"] = tokenizer.pieces();
    object["extra_ids"] = tokenizer.extra_ids();
    object["pad_id"] = tokenizer.pad_id();
    object["eos_id"] = tokenizer.eos_id();
    object["unk_id"] = tokenizer.unk_id();
    object["tokenizer_hash"] = tokenizer.hash();
  });
}

Json describe_file(const InspectOptions& options) {
  const fs::path path = options.path;
  const std::string first = first_bytes(path), ending = path.extension().string();
  if (first.starts_with("\x89HDF") || ending == ".h5") {
    const bool latents = is_latent_cache(path);
    return described(latents ? "latents" : "dataset", path, [&](Json& object) {
      latents ? fill_latents(options, object) : fill_dataset(options, object);
    });
  }
  if (first.starts_with("PK\x03\x04") || first.starts_with("\x80") || ending == ".pt" || ending == ".bin")
    return described("torch", path, [&](Json& object) { fill_torch(path, object); });
  if (ending == ".safetensors" || (first.size() > 8 && first[8] == '{')) {
    return described("safetensors", path, [&](Json& object) {
      object["hash"] = digest_of_file(path);
      describe_safetensors(path, object);
    });
  }
  if (ending == ".model") return describe_tokenizer(path);
  if (first.starts_with("{") && is_statistics(path))
    return described("statistics", path, [&](Json& object) { fill_statistics(path, object); });
  const std::string look = what_bytes_look_like(first);
  usage_error(options.path, ": ", look.empty() ? "nothing that is known here" : "is " + look,
              "; expected a dataset or latents (.h5), .safetensors, .pt, a tokenizer (.model) or statistics "
              "of latents (.json)");
}

}  // namespace elf::app
