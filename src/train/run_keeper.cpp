#include "run_keeper.h"

#include "elf/base/error.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "faults.h"
#include "hook.h"

namespace elf {
using json = nlohmann::json;
using nlohmann::ordered_json;

RunKeeper::RunKeeper(const RunPlan& plan, const ResumeChoice& resume, Ranks& ranks)
    : plan_(plan), ranks_(ranks) {
  if (!ranks.first()) return;
  const TrainConfig& train = plan.config.train;
  folder_ = std::make_unique<RunFolder>(plan, resume);
  saver_ =
      std::make_unique<Saver>(folder_->checkpoints(), SavePolicy{.keep_last = train.keep_last,
                                                                 .keep_every = train.keep_every,
                                                                 .background = train.save_in_background});
}

json RunKeeper::restore(const Trained& trained) {
  std::string text;
  if (ranks_.first() && folder_->checkpoint()) text = read(*folder_->checkpoint(), trained).dump();
  text = ranks_.of_first(text);
  if (text.empty()) return nullptr;
  const json state = parse_json_or_throw(text);
  for (const ParamRef& parameter : trained.network.parameters()) ranks_.of_first(parameter.tensor);
  for (const auto& [name, tensor] : trained.ema.averages()) ranks_.of_first(tensor);
  const TensorMap buffers = trained.optimizer.state();
  for (const auto& [name, tensor] : buffers) ranks_.of_first(tensor);
  trained.ema.load(trained.ema.averages(), state.at("ema_updates").get<int64_t>());
  trained.optimizer.load_state(buffers, state.at("optimizer_steps").get<int64_t>());
  last_saved_ = state.at("step").get<int64_t>();
  return state;
}

void RunKeeper::begin() {
  ranks_.first_does("opening the run folder", [&] {
    folder_->begin(plan_.config);
    if (const auto& checkpoint = folder_->checkpoint())
      log_info(cat("resuming ", checkpoint->string(), " at step ", last_saved_));
  });
}

json RunKeeper::read(const std::filesystem::path& path, const Trained& trained) const {
  const Checkpoint checkpoint = load_checkpoint(path);
  const json& state = checkpoint.state;
  if (state.at("train_data").get<std::string>() != plan_.train->info().data_hash) {
    usage_error(path.string(), ": was trained on another dataset than ", plan_.config.data.train,
                "; give another --out");
  }
  const int64_t step = state.at("step").get<int64_t>();
  trained.network.load(checkpoint.model, path.string());
  if (!fault_at("forget_ema", step)) trained.ema.load(checkpoint.ema, 0);
  if (!fault_at("forget_optimizer", step)) trained.optimizer.load_state(checkpoint.optimizer, 0);
  return state;
}

ordered_json RunKeeper::save(const Trained& trained, json state, bool is_best) {
  const int64_t step = last_saved_ = state.at("step").get<int64_t>();
  Checkpoint checkpoint;
  bool background = false, waits = true;
  if (ranks_.first()) {
    state.update({{"optimizer_steps", trained.optimizer.steps()},
                  {"ema_updates", trained.ema.updates()},
                  {"ranks", ranks_.size()},
                  {"train_data", plan_.train->info().data_hash},
                  {"tokenizer", plan_.tokenizer->hash()}});
    checkpoint = {trained.network.state(), trained.ema.averages(), trained.optimizer.state(),
                  std::move(state)};
    background = saver_->in_background(size_of(checkpoint));
    waits = !background || saver_->busy();
  }
  const auto write = [&] { saver_->save(step, checkpoint, is_best, background); };
  if (ranks_.of_first(waits ? 1.0 : 0.0) > 0) {
    ranks_.first_does("save", write);
  } else if (ranks_.first()) {
    write();
  }
  const std::string& hook = plan_.config.train.hook;
  std::string figures = "{}";
  if (hook.empty()) return ordered_json::object();
  ranks_.first_does("hook", [&] {
    saver_->wait();
    figures = hook_figures(hook, folder_->path(), step).dump();
  });
  return parse_json_or_throw<ordered_json>(ranks_.of_first(figures));
}

void RunKeeper::mark_best(int64_t step) {
  if (ranks_.first()) elf::mark_best(folder_->checkpoints(), step);
}

void RunKeeper::finish() {
  ranks_.first_does("save", [&] { saver_->wait(); });
}

}  // namespace elf
