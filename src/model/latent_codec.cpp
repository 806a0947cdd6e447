#include "elf/model/latent_codec.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/model/latent_statistics.h"
#include "elf/model/t5.h"
#include "elf/model/token_table.h"

namespace elf {
namespace {

// The encoder's scores and biases take N L L numbers a row; rows are encoded in groups of at most this many,
// so that memory stays bounded.
constexpr int64_t kScoresAtOnce = int64_t{1} << 26;

// (e - mean) / std, scalars or one pair a channel.
struct Normalisation {
  at::Tensor mean, std;  // [1] or [D]
  at::Tensor apply(const at::Tensor& raw) const { return (raw - mean) / std; }
};

Normalisation make_normalisation(const LatentsConfig& config, int64_t dim, const std::string& source,
                                 at::Device device) {
  Normalisation result{at::full({1}, config.mean), at::full({1}, config.std)};
  if (config.statistics.empty()) {
    if (!(config.std > 0)) usage_error("latents.std: found ", config.std, ", expected a number above 0");
  } else {
    const LatentStatistics statistics = read_statistics(config.statistics);
    if (statistics.channel_mean.numel() != dim) {
      usage_error(config.statistics, ": has ", statistics.channel_mean.numel(), " channels, ", config.path,
                  " has ", dim);
    }
    if (!statistics.source.empty() && statistics.source != source) {
      usage_error(config.statistics, ": was measured on ", statistics.source, ", but ", config.path, " is ",
                  source, "; run `elf-prepare statistics` again");
    }
    if (const double least = statistics.channel_std.min().item<double>(); !(least > 0)) {
      usage_error(config.statistics, ": channel_std ", statistics.channel_std.argmin().item<int64_t>(),
                  " is ", least, ", expected numbers above 0");
    }
    result = {statistics.channel_mean.to(at::kFloat), statistics.channel_std.to(at::kFloat)};
  }
  return {result.mean.to(device), result.std.to(device)};
}

std::string codec_digest(const std::string& source, const Normalisation& normalisation) {
  std::string text = source;
  for (const at::Tensor& tensor : {normalisation.mean.cpu(), normalisation.std.cpu()}) {
    text += digest({static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()});
  }
  return digest(text);
}

// The tokenizer that `elf-prepare encoder` noted beside the weights; "" for an encoder that others made.
std::string hash_in_record(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "pretraining.json")) return {};
  return text_in(parse_json(read_file(folder / "pretraining.json")), "tokenizer_hash");
}

void check_ids(const at::Tensor& ids, int64_t rows) {
  if (!ids.is_cpu() || ids.numel() == 0) return;
  const int64_t low = ids.min().item<int64_t>(), high = ids.max().item<int64_t>();
  if (low < 0 || high >= rows) {
    usage_error("token table: id ", low < 0 ? low : high, " is outside its ", rows,
                " rows; was the text prepared with another tokenizer?");
  }
}

class T5Codec final : public LatentCodec {
 public:
  T5Codec(T5Model model, const LatentsConfig& config, at::Device device) : encoder_(model), device_(device) {
    source_ = encoder_.digest();
    if (config.dtype == EncoderDtype::kBFloat16) {
      source_ += " bfloat16";
      to_dtype(model, at::kBFloat16);
      encoder_ = T5Encoder(std::move(model));
    }
    tokenizer_hash_ = hash_in_record(config.path);
    normalisation_ = make_normalisation(config, dim(), source_, device);
    digest_ = codec_digest(source_, normalisation_);
  }

  at::Tensor encode(const at::Tensor& ids, const at::Tensor& mask) override {
    const at::NoGradGuard no_gradients;
    check_t5_ids(ids, encoder_.config());
    const at::Tensor ids_here = ids.to(device_);
    const at::Tensor mask_here = mask.defined() ? mask.to(device_) : mask;
    const int64_t scores = encoder_.config().num_heads * ids.size(1) * ids.size(1);
    const int64_t rows = std::max<int64_t>(1, kScoresAtOnce / std::max<int64_t>(1, scores));
    std::vector<at::Tensor> parts;
    for (int64_t begin = 0; begin < ids.size(0); begin += rows) {
      const int64_t count = std::min(rows, ids.size(0) - begin);
      const at::Tensor part_mask = mask.defined() ? mask_here.narrow(0, begin, count) : mask_here;
      parts.push_back(normalisation_.apply(encoder_.forward(ids_here.narrow(0, begin, count), part_mask)));
    }
    return parts.size() == 1 ? parts[0] : at::cat(parts);
  }

  at::Tensor normalise(const at::Tensor& raw) const override { return normalisation_.apply(raw); }
  int64_t dim() const override { return encoder_.config().d_model; }
  int64_t vocabulary() const override { return encoder_.config().vocab_size; }
  std::string source_digest() const override { return source_; }
  std::string digest() const override { return digest_; }
  std::string tokenizer_hash() const override { return tokenizer_hash_; }

 private:
  T5Encoder encoder_;
  at::Device device_;
  Normalisation normalisation_;
  std::string source_, digest_, tokenizer_hash_;
};

class TableCodec final : public LatentCodec {
 public:
  TableCodec(const TokenTable& table, const LatentsConfig& config, at::Device device) {
    const at::Tensor raw = table.weight.contiguous();
    tokenizer_hash_ = text_in(table.made, "tokenizer_hash");
    source_ = elf::digest({static_cast<const char*>(raw.data_ptr()), raw.nbytes()});
    normalisation_ = make_normalisation(config, raw.size(1), source_, device);
    digest_ = codec_digest(source_, normalisation_);
    table_ = normalise(raw.to(device));
  }

  at::Tensor encode(const at::Tensor& ids, const at::Tensor&) override {
    const at::NoGradGuard no_gradients;
    check_ids(ids, vocabulary());
    return table_.index_select(0, ids.to(table_.device()).reshape({-1}))
        .view({ids.size(0), ids.size(1), dim()});
  }

  at::Tensor normalise(const at::Tensor& raw) const override { return normalisation_.apply(raw); }
  int64_t dim() const override { return table_.size(1); }
  int64_t vocabulary() const override { return table_.size(0); }
  std::string source_digest() const override { return source_; }
  std::string digest() const override { return digest_; }
  std::string tokenizer_hash() const override { return tokenizer_hash_; }
  at::Tensor token_table() const override { return table_; }

 private:
  Normalisation normalisation_;
  at::Tensor table_;  // normalised
  std::string source_, digest_, tokenizer_hash_;
};

// x = normalised row of the network's own unembedding: one matrix for the way in and the way out, of which
// the denoise branch trains the one use and the decode branch the other.
class LearnedCodec final : public LatentCodec {
 public:
  explicit LearnedCodec(at::Device device) : device_(device) {}

  at::Tensor encode(const at::Tensor& ids, const at::Tensor&) override {
    if (!unembedding_.defined()) usage_error("learned latents: no network is bound");
    check_ids(ids, vocabulary());
    const at::Tensor rows = unembedding_.t().index_select(0, ids.to(device_).reshape({-1}));
    return normalise_rows(rows).view({ids.size(0), ids.size(1), dim()});
  }
  void bind(const at::Tensor& unembedding) override { unembedding_ = unembedding; }

  int64_t dim() const override { return unembedding_.defined() ? unembedding_.size(0) : 0; }
  int64_t vocabulary() const override { return unembedding_.defined() ? unembedding_.size(1) : 0; }
  // The weights are the network's; what names those names these.
  std::string digest() const override { return elf::digest("learned"); }

 private:
  at::Device device_;
  at::Tensor unembedding_;  // [D, V]
};

}  // namespace

at::Tensor normalise_rows(const at::Tensor& rows) {
  const at::Tensor centred = rows - rows.mean(-1, /*keepdim=*/true);
  return centred / centred.square().mean(-1, /*keepdim=*/true).add(1e-12).sqrt();
}

void renormalise_unembedding(at::Tensor unembedding) {
  const at::NoGradGuard no_gradients;
  unembedding.copy_(normalise_rows(unembedding.t()).t());
}

void require_tokenizer(const LatentCodec& codec, const std::string& path, const std::string& tokenizer_hash,
                       int64_t tokenizer_size) {
  if (codec.vocabulary() < tokenizer_size) {
    usage_error(path, ": knows ", codec.vocabulary(), " tokens, but the tokenizer has ", tokenizer_size,
                "; make it with the data of that tokenizer");
  }
  if (const std::string own = codec.tokenizer_hash(); !own.empty() && own != tokenizer_hash) {
    usage_error(path, ": was made for the tokenizer ", own, ", but the tokenizer is ", tokenizer_hash);
  }
}

std::unique_ptr<LatentCodec> make_latent_codec(const LatentsConfig& config, at::Device device) {
  if (config.source == LatentSource::kLearned) return std::make_unique<LearnedCodec>(device);
  if (config.path.empty())
    usage_error("latents.path: is empty; expected the folder of a T5 or of a token table");
  if (config.source == LatentSource::kTable)
    return std::make_unique<TableCodec>(load_token_table(config.path), config, device);
  T5Model model = load_t5(config.path);
  to_device(model, device);
  return std::make_unique<T5Codec>(std::move(model), config, device);
}

}  // namespace elf
