// How the choices of the configuration are spelt, once: YAML, --set, command lines, dumps and documentation
// read these tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "elf/base/error.h"
#include "elf/config/flow_config.h"
#include "elf/config/latents_config.h"
#include "elf/config/model_config.h"
#include "elf/config/optimizer_config.h"
#include "elf/config/sampling_config.h"
#include "elf/config/train_config.h"

namespace elf {

template <class E>
struct NamedValue {
  const char* name;
  E value;
};

inline constexpr NamedValue<TimeDistribution> kTimeDistributionNames[] = {
    {"logit_normal", TimeDistribution::kLogitNormal}, {"uniform", TimeDistribution::kUniform}};
inline constexpr NamedValue<PadToken> kPadTokenNames[] = {{"pad", PadToken::kPad}, {"eos", PadToken::kEos}};
inline constexpr NamedValue<Branch> kBranchNames[] = {{"per_example", Branch::kPerExample},
                                                      {"per_step", Branch::kPerStep}};
inline constexpr NamedValue<DecodeCondition> kDecodeConditionNames[] = {{"noisy", DecodeCondition::kNoisy},
                                                                        {"clean", DecodeCondition::kClean}};
inline constexpr NamedValue<LatentSource> kLatentSourceNames[] = {
    {"t5", LatentSource::kT5}, {"table", LatentSource::kTable}, {"learned", LatentSource::kLearned}};
inline constexpr NamedValue<EncoderDtype> kEncoderDtypeNames[] = {{"float32", EncoderDtype::kFloat32},
                                                                  {"bfloat16", EncoderDtype::kBFloat16}};
inline constexpr NamedValue<OptimizerKind> kOptimizerKindNames[] = {{"muon", OptimizerKind::kMuon},
                                                                    {"adamw", OptimizerKind::kAdamW}};
inline constexpr NamedValue<LrSchedule> kLrScheduleNames[] = {
    {"constant", LrSchedule::kConstant}, {"cosine", LrSchedule::kCosine}, {"linear", LrSchedule::kLinear}};
inline constexpr NamedValue<Precision> kPrecisionNames[] = {
    {"auto", Precision::kAuto}, {"float32", Precision::kFloat32}, {"bf16", Precision::kBf16}};
inline constexpr NamedValue<SamplerKind> kSamplerKindNames[] = {{"sde", SamplerKind::kSde},
                                                                {"ode", SamplerKind::kOde},
                                                                {"heun", SamplerKind::kHeun},
                                                                {"multistep", SamplerKind::kMultistep}};
inline constexpr NamedValue<SdeUpdate> kSdeUpdateNames[] = {{"published", SdeUpdate::kPublished},
                                                            {"paper", SdeUpdate::kPaper}};
inline constexpr NamedValue<TimeGrid> kTimeGridNames[] = {
    {"logit_normal", TimeGrid::kLogitNormal},
    {"uniform", TimeGrid::kUniform},
    {"logit_normal_quantiles", TimeGrid::kLogitNormalQuantiles}};

inline constexpr NamedValue<Conditioning> kConditioningNames[] = {{"in_context", Conditioning::kInContext},
                                                                  {"adaln_zero", Conditioning::kAdaLnZero}};
inline constexpr NamedValue<Prediction> kPredictionNames[] = {
    {"x", Prediction::kX}, {"v", Prediction::kV}, {"epsilon", Prediction::kEpsilon}};
inline constexpr NamedValue<TrainObjective> kTrainObjectiveNames[] = {
    {"flow", TrainObjective::kFlow}, {"distillation", TrainObjective::kDistillation}};

constexpr const auto& enum_names(Conditioning) {
  return kConditioningNames;
}
constexpr const auto& enum_names(Prediction) {
  return kPredictionNames;
}
constexpr const auto& enum_names(TrainObjective) {
  return kTrainObjectiveNames;
}
constexpr const auto& enum_names(TimeDistribution) {
  return kTimeDistributionNames;
}
constexpr const auto& enum_names(PadToken) {
  return kPadTokenNames;
}
constexpr const auto& enum_names(Branch) {
  return kBranchNames;
}
constexpr const auto& enum_names(DecodeCondition) {
  return kDecodeConditionNames;
}
constexpr const auto& enum_names(LatentSource) {
  return kLatentSourceNames;
}
constexpr const auto& enum_names(EncoderDtype) {
  return kEncoderDtypeNames;
}
constexpr const auto& enum_names(OptimizerKind) {
  return kOptimizerKindNames;
}
constexpr const auto& enum_names(LrSchedule) {
  return kLrScheduleNames;
}
constexpr const auto& enum_names(Precision) {
  return kPrecisionNames;
}
constexpr const auto& enum_names(SamplerKind) {
  return kSamplerKindNames;
}
constexpr const auto& enum_names(SdeUpdate) {
  return kSdeUpdateNames;
}
constexpr const auto& enum_names(TimeGrid) {
  return kTimeGridNames;
}

// "logit_normal". Throws Error (usage) for a value outside the table (a cast gone wrong).
template <class E>
std::string enum_name(E value) {
  for (const auto& entry : enum_names(E{})) {
    if (entry.value == value) return entry.name;
  }
  usage_error("no name for choice number ", static_cast<int>(value));
}

// "adamw, muon": the names in the order of the table.
template <class E>
std::string enum_choices(const char* separator = ", ") {
  std::string text;
  for (const auto& entry : enum_names(E{})) text += (text.empty() ? "" : separator) + std::string(entry.name);
  return text;
}

// Sets `value` and returns true when `name` is in the table; `-` counts as `_`, as command lines write it.
template <class E>
bool find_enum(std::string_view name, E& value) {
  std::string wanted(name);
  for (char& c : wanted) c = c == '-' ? '_' : c;
  for (const auto& entry : enum_names(E{})) {
    if (wanted == entry.name) {
      value = entry.value;
      return true;
    }
  }
  return false;
}

// The same for an option of a command line; throws Error (usage) naming `option`, the value found and the
// choices.
template <class E>
E parse_enum(std::string_view name, std::string_view option) {
  E value{};
  if (!find_enum(name, value)) {
    usage_error(option, ": found '", name, "', expected one of ", enum_choices<E>());
  }
  return value;
}

}  // namespace elf
