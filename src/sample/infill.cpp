#include "elf/sample/infill.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "elf/base/error.h"
#include "elf/config/schedules.h"
#include "elf/data/masks.h"
#include "elf/sample/decode.h"
#include "elf/sample/score.h"

namespace elf {

// One text with its gaps' lengths fixed.
struct Infiller::Row {
  size_t text;  // index into the texts
  const InfillText* known;
  const TokenIds* condition;
  std::vector<int64_t> lengths;
};

// Rows as tensors [B, L], on the device. The text starts behind the condition.
struct Infiller::Layout {
  at::Tensor ids;        // int64; padding in the gaps
  at::Tensor condition;  // bool
  at::Tensor known;      // bool: text that stays, its end and the padding behind it included
  at::Tensor gap;        // bool: gaps of given length, where only words may stand
  at::Tensor valid;  // bool: condition and text with its gaps, without padding; to the last position where
                     // the end is open
};

InfillMethod parse_infill_method(std::string_view name, std::string_view option) {
  if (name == "path") return InfillMethod::kPath;
  if (name == "reencode") return InfillMethod::kReencode;
  if (name == "pin") return InfillMethod::kPin;
  usage_error(option, ": found '", name, "', expected path, reencode or pin");
}

std::vector<std::vector<int64_t>> gap_lengths(const InfillText& text, int64_t room, int64_t tries,
                                              std::string_view place) {
  int64_t known = 0, least = 0;
  for (const TokenIds& stretch : text.known) known += static_cast<int64_t>(stretch.size());
  const size_t closed = text.gaps.size() - (text.open_end ? 1 : 0);
  for (size_t i = 0; i < closed; ++i) least += text.gaps[i].least;
  if (known + least > room)
    usage_error(place, ": ", known, " known tokens and gaps of at least ", least, " do not fit the model's ",
                room);
  std::vector<std::vector<int64_t>> all{{}};
  for (size_t i = 0; i < closed; ++i) {
    least -= text.gaps[i].least;  // of the gaps still to come
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t>& lengths : all) {
      int64_t used = known + least;
      for (const int64_t length : lengths) used += length;
      for (int64_t n = text.gaps[i].least; n <= std::min(text.gaps[i].most, room - used); ++n) {
        longer.push_back(lengths);
        longer.back().push_back(n);
      }
    }
    // Thinned on the way, so that many gaps do not make thousands.
    const size_t keep = std::min<size_t>(longer.size(), static_cast<size_t>(tries));
    all.clear();
    for (size_t k = 0; k < keep; ++k) all.push_back(longer[k * longer.size() / keep]);
  }
  if (text.open_end) {
    for (std::vector<int64_t>& lengths : all) lengths.push_back(-1);
  }
  return all;
}

namespace {

// The text of one row read off its ids [L] on the CPU.
InfilledText read_row(const InfillText& text, const std::vector<int64_t>& lengths, int64_t begin,
                      const at::Tensor& row, int64_t eos) {
  const int64_t* ids = row.data_ptr<int64_t>();
  const int64_t* at = ids + begin;
  InfilledText result;
  for (size_t i = 0; i < text.known.size(); ++i) {
    at += text.known[i].size();
    result.ids.insert(result.ids.end(), text.known[i].begin(), text.known[i].end());
    if (i == lengths.size()) break;
    const int64_t* end = lengths[i] < 0 ? std::find(at, ids + row.numel(), eos) : at + lengths[i];
    result.fills.emplace_back(at, end);
    result.ids.insert(result.ids.end(), at, end);
    at = end;
  }
  return result;
}

}  // namespace

Infiller::Infiller(const SamplerModel& model, LatentCodec& codec, const GeneratorShape& shape,
                   const SamplingConfig& config, const InfillSettings& settings, at::Device device)
    : network_(model.network, config, make_recorder(device)),
      model_{network_, model.traits, model.noise_scale, model.t_eps},
      codec_(codec),
      shape_(shape),
      config_(config),
      settings_(settings),
      device_(device) {
  if (shape.max_input_length > 0) return;
  config_.cfg = 1.0;  // known text is no condition: there is no prediction without it to guide away from
  config_.cfg_schedule.clear();
}

std::vector<InfilledText> Infiller::fill(const std::vector<int64_t>& samples,
                                         const std::vector<InfillText>& texts,
                                         const std::vector<TokenIds>& conditions, int64_t rows_at_once) {
  const TokenIds none;
  std::vector<Row> rows;
  for (size_t i = 0; i < texts.size(); ++i) {
    for (std::vector<int64_t>& lengths :
         gap_lengths(texts[i], room(), settings_.tries, cat("text of sample ", samples[i]))) {
      rows.push_back({i, &texts[i], conditions.empty() ? &none : &conditions[i], std::move(lengths)});
    }
  }
  std::vector<InfilledText> results(texts.size());
  std::vector<int64_t> seen(texts.size(), 0);
  for (const Row& row : rows) ++seen[row.text];
  std::vector<bool> filled(texts.size(), false);
  for (size_t first = 0; first < rows.size(); first += static_cast<size_t>(rows_at_once)) {
    const size_t last = std::min(rows.size(), first + static_cast<size_t>(rows_at_once));
    const std::vector<Row> part(rows.begin() + static_cast<std::ptrdiff_t>(first),
                                rows.begin() + static_cast<std::ptrdiff_t>(last));
    std::vector<int64_t> names;
    bool choice = false;
    for (const Row& row : part) {
      names.push_back(samples[row.text]);
      choice = choice || seen[row.text] > 1;
    }
    const Layout layout = lay_out(part);
    const at::Tensor ids = sample(layout, names);
    const std::vector<double> scores =
        choice ? score(layout, ids, names) : std::vector<double>(part.size(), 0.0);
    const at::Tensor host = ids.cpu();
    for (size_t b = 0; b < part.size(); ++b) {
      InfilledText& best = results[part[b].text];
      if (filled[part[b].text] && scores[b] <= best.log_prob) continue;
      filled[part[b].text] = true;
      best = read_row(*part[b].known, part[b].lengths, static_cast<int64_t>(part[b].condition->size()),
                      host[static_cast<int64_t>(b)], shape_.eos_id);
      best.tried = seen[part[b].text];
      best.log_prob = best.tried > 1 ? scores[b] : 0.0;
    }
  }
  return results;
}

Infiller::Layout Infiller::lay_out(const std::vector<Row>& rows) const {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t padding = settings_.eos_padding ? shape_.eos_id : shape_.pad_id;
  Layout layout{at::full({count, shape_.length}, padding, at::kLong),
                at::zeros({count, shape_.length}, at::kBool),
                {},
                {},
                {}};
  layout.known = at::zeros_like(layout.condition);
  layout.gap = at::zeros_like(layout.condition);
  layout.valid = at::zeros_like(layout.condition);
  for (int64_t b = 0; b < count; ++b) {
    const Row& row = rows[static_cast<size_t>(b)];
    int64_t* ids = layout.ids.data_ptr<int64_t>() + b * shape_.length;
    const auto mark = [&](at::Tensor& mask, int64_t begin, int64_t end) {
      std::fill(mask.data_ptr<bool>() + b * shape_.length + begin,
                mask.data_ptr<bool>() + b * shape_.length + end, true);
    };
    int64_t at = 0;
    const auto put = [&](const TokenIds& stretch, at::Tensor& mask) {
      std::copy(stretch.begin(), stretch.end(), ids + at);
      mark(mask, at, at + static_cast<int64_t>(stretch.size()));
      at += static_cast<int64_t>(stretch.size());
    };
    put(*row.condition, layout.condition);
    const bool open = row.known->open_end;
    for (size_t i = 0; i < row.known->known.size(); ++i) {
      put(row.known->known[i], layout.known);
      if (i == row.lengths.size() || row.lengths[i] < 0) break;
      mark(layout.gap, at, at + row.lengths[i]);
      at += row.lengths[i];
    }
    mark(layout.valid, 0, open ? shape_.length : std::min(at + 1, shape_.length));
    if (open) continue;
    if (at < shape_.length) ids[at] = shape_.eos_id;
    mark(layout.known, at, shape_.length);
  }
  for (at::Tensor* mask : {&layout.condition, &layout.known, &layout.gap, &layout.valid})
    *mask = mask->to(device_);
  layout.ids = layout.ids.to(device_);
  return layout;
}

// Ids that the latent source has no row for stand as padding.
at::Tensor Infiller::encode(const Layout& layout, const at::Tensor& ids, const at::Tensor& valid) const {
  const at::Tensor readable = ids.masked_fill(ids.ge(codec_.vocabulary()), shape_.pad_id);
  return codec_.encode(readable.cpu(), encoder_mask(valid, layout.condition).cpu()).to(device_);
}

// [B, L] ids that the latents read as, what is known being in its place.
at::Tensor Infiller::guess(const Layout& layout, const at::Tensor& latents) {
  const double w = ScaleSchedule::of(config_.self_cond_cfg, config_.self_cond_cfg_schedule, "sc-cfg").at(1.0);
  const at::Tensor ids =
      decode(model_, latents, {.w = w, .banned = settings_.banned, .banned_at = layout.gap}).ids;
  ++forwards_;
  rows_ += latents.size(0);
  return at::where(layout.known.logical_or(layout.condition), layout.ids, ids);
}

at::Tensor Infiller::sample(const Layout& layout, const std::vector<int64_t>& samples) {
  const at::Tensor sure = layout.known.logical_or(layout.condition);
  const at::Tensor latents = encode(layout, layout.ids, layout.valid.logical_and(sure));
  SampleConditions conditions;
  const bool conditional = shape_.max_input_length > 0;
  if (settings_.method == InfillMethod::kPin) {
    conditions.latents = latents;
    conditions.mask = sure;
  } else {
    conditions.known = {latents, layout.known, {}};
    if (conditional) conditions.latents = latents, conditions.mask = layout.condition;
    if (settings_.method == InfillMethod::kReencode) {
      conditions.known.refresh = [&](const at::Tensor& x_hat) {
        const at::Tensor ids = guess(layout, x_hat);
        const at::Tensor ended = ids.eq(shape_.eos_id).logical_and(layout.condition.logical_not());
        const at::Tensor before_end = ended.cumsum(1).sub(ended.to(at::kLong)).eq(0);  // the end included
        return encode(layout, ids, layout.valid.logical_and(before_end));
      };
    }
  }
  const SamplerDraws draws = draw_sampler(config_, samples, shape_.length, shape_.latent_dim, device_);
  const LatentSamples result = sample_latents(model_, config_, draws, conditions);
  forwards_ += result.forwards;
  rows_ += result.rows;
  return guess(layout, result.latents);
}

std::vector<double> Infiller::score(const Layout& layout, const at::Tensor& ids,
                                    const std::vector<int64_t>& samples) {
  ScoreRequest request;
  const at::Tensor ended = ids.eq(shape_.eos_id).logical_and(layout.condition.logical_not());
  request.latents =
      encode(layout, ids, layout.valid.logical_and(ended.cumsum(1).sub(ended.to(at::kLong)).eq(0)));
  request.ids = ids;
  if (shape_.max_input_length > 0) request.condition = layout.condition;
  request.samples = samples;
  request.seed = config_.seed;
  request.w = ScaleSchedule::of(config_.self_cond_cfg, config_.self_cond_cfg_schedule, "sc-cfg").at(1.0);
  const at::Tensor counted = layout.condition.logical_not();
  const at::Tensor sums = denoising_log_prob(model_, request).mul(counted).sum(1).to(at::kCPU, at::kDouble);
  forwards_ += 2 * static_cast<int64_t>(request.times.size());
  rows_ += 2 * static_cast<int64_t>(request.times.size()) * ids.size(0);
  return {sums.data_ptr<double>(), sums.data_ptr<double>() + sums.numel()};
}

}  // namespace elf
