#include "elf/config/ablation_spec.h"

#include <algorithm>
#include <set>

#include "ablation_reading.h"
#include "resolve.h"
#include "schema.h"
#include "yaml_reader.h"

namespace elf {
namespace config {
namespace {
namespace fs = std::filesystem;

// Path keys that may name the run folder of another arm.
constexpr const char* kUsable[] = {"latents.decoder", "train.init_from", "distillation.teacher"};

// Names become folders, job names and words of --only.
void check_name(const std::string& name, const Part& part) {
  const bool good = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("._+-").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (!good)
    usage_error(part.place, ": ", part.name, ": found '", name, "', expected letters, digits and . _ + -");
}

// What all arms share, and the arms as they stand, before any of them is resolved.
class SpecReader {
 public:
  explicit SpecReader(const fs::path& file) : source_(read_source(file, "")) {
    spec_.file = file;
    spec_.name = file.stem().string();
  }

  AblationSpec read() {
    const Part root{source_, "", source_.name, parsed(source_)};
    read_known_keys(root, {{"title", into(spec_.title)},
                           {"base", [&](const Part& p) { bases(p, base_); }},
                           {"recipes", [&](const Part& p) { recipes(p); }},
                           {"rows", into(spec_.rows, at_least(0))},
                           {"set", [&](const Part& p) { sections(p, set_); }},
                           {"seeds", into(spec_.seeds)},
                           {"train", [&](const Part& p) { train_ = p.node; }},
                           {"sample", [&](const Part& p) { sample(p); }},
                           {"score", [&](const Part& p) { spec_.score = read_score(p); }},
                           {"published", [&](const Part& p) { spec_.published = read_published(p); }},
                           {"expect", [&](const Part& p) { expect(p); }}});
    require(root);
    read_named(root.under("train", train_, source_.place(train_.Mark())),
               [&](const std::string& name, const Part& part) { arm(name, part); });
    check();
    return std::move(spec_);
  }

 private:
  void require(const Part& root) const {
    const std::set<std::string> here = [&] {
      std::set<std::string> keys;
      for (const auto& pair : root.node) keys.insert(pair.first.Scalar());
      return keys;
    }();
    for (const char* key : {"base", "train", "sample", "score"}) {
      if (!here.contains(key))
        usage_error(source_.name, ": key '", key, "' is missing; see docs/REPRODUCE.md");
    }
    if (spec_.seeds.empty()) usage_error(source_.name, ": seeds: the list is empty");
  }

  void bases(const Part& part, std::vector<Entry>& entries) const {
    const auto one = [&](const Part& name) {
      const fs::path file = source_.folder / value_of<std::string>(name);
      if (!fs::exists(file)) usage_error(name.place, ": ", name.name, ": ", file.string(), ": no such file");
      for (Entry& entry : read_files(file.lexically_normal())) entries.push_back(std::move(entry));
    };
    if (part.node.IsSequence()) {
      read_list(part, one);
    } else {
      one(part);
    }
  }

  void sections(const Part& part, std::vector<Entry>& entries) const {
    read_named(part, [&](const std::string& name, const Part& section) {
      read_section(name, section.node, section.place, source_, entries);
    });
  }

  void recipes(const Part& part) {
    read_list(part, [&](const Part& item) { spec_.recipes.push_back(value_of<std::string>(item, path())); });
  }

  void sample(const Part& part) {
    read_named(part, [&](const std::string& name, const Part& setting) {
      check_name(name, setting);
      for (SampleArm& one : read_sample_arm(name, setting)) spec_.sample.push_back(std::move(one));
    });
  }

  void expect(const Part& part) {
    read_list(part, [&](const Part& item) {
      Expectation verdict;
      read_known_keys(item, {{"better", into(verdict.better)}, {"than", into(verdict.than)}});
      spec_.expect.push_back(verdict);
    });
  }

  void uses(const Part& part, TrainArm& arm) const {
    read_named(part, [&](const std::string& key, const Part& value) {
      if (std::ranges::find(kUsable, key) == std::end(kUsable))
        usage_error(value.place, ": ", part.name, ": found '", key,
                    "', expected latents.decoder, train.init_from or distillation.teacher");
      const std::string name = value_of<std::string>(value);
      if (spec_.arm(name) == nullptr)
        usage_error(value.place, ": ", value.name, ": found '", name, "', expected an arm above this one");
      arm.uses[key] = name;
    });
  }

  void arm(const std::string& name, const Part& part) {
    check_name(name, part);
    TrainArm arm;
    arm.name = name;
    std::vector<Entry> entries = base_, own;
    if (!part.node.IsNull()) {
      read_named(part, [&](const std::string& key, const Part& value) {
        if (key == "base") {
          bases(value, entries);
        } else if (key == "about") {
          arm.about = value_of<std::string>(value);
        } else if (key == "uses") {
          uses(value, arm);
        } else if (key == "sample") {
          arm.scored = !(value.node.IsScalar() && value.node.Scalar() == "none");
          if (arm.scored) arm.sample = value_of<std::vector<std::string>>(value);
        } else {
          read_section(key, value.node, value.place, source_, own);
        }
      });
    }
    entries.insert(entries.end(), set_.begin(), set_.end());
    entries.insert(entries.end(), own.begin(), own.end());
    arm.config = resolved(std::move(entries), part.place, {});
    spec_.train.push_back(std::move(arm));
  }

  // Names that stand for others must be those of something.
  void check() const {
    if (spec_.train.empty()) usage_error(source_.name, ": train: holds no arm");
    if (spec_.sample.empty()) usage_error(source_.name, ": sample: holds no setting");
    const auto known = [&](const std::string& sample) {
      return std::ranges::any_of(spec_.sample, [&](const SampleArm& arm) { return arm.name == sample; });
    };
    for (const TrainArm& arm : spec_.train) {
      for (const std::string& name : arm.sample) {
        if (!known(name))
          usage_error(source_.name, ": train.", arm.name, ".sample: '", name, "' is not one of `sample:`");
      }
    }
    for (const Expectation& verdict : spec_.expect) {
      for (const std::string& name : {verdict.better, verdict.than}) {
        if (spec_.arm(name) == nullptr)
          usage_error(source_.name, ": expect: '", name, "' is not one of `train:`");
      }
    }
    for (const PublishedRow& row : spec_.published.rows) {
      if (row.name.empty() && spec_.arm(row.train) == nullptr)
        usage_error(source_.name, ": published.rows: '", row.train, "' is not one of `train:`");
      if (!row.sample.empty() && !known(row.sample))
        usage_error(source_.name, ": published.rows: '", row.sample, "' is not one of `sample:`");
    }
  }

  Source source_;
  AblationSpec spec_;
  std::vector<Entry> base_, set_;
  YAML::Node train_;
};

}  // namespace

void read_named(const Part& part, const std::function<void(const std::string&, const Part&)>& use) {
  if (part.node.IsNull()) return;
  if (!part.node.IsMap()) usage_error(part.place, ": ", part.name, ": expected keys with values");
  for_each_key(part.node, part.name, part.source,
               [&](const std::string& key, const YAML::Node& node, const std::string& place) {
                 use(key, part.under(key, node, place));
               });
}

void read_known_keys(const Part& part, const std::vector<std::pair<std::string, UsePart>>& known) {
  read_named(part, [&](const std::string& key, const Part& value) {
    const auto found = std::ranges::find(known, key, &std::pair<std::string, UsePart>::first);
    if (found != known.end()) return found->second(value);
    std::vector<std::string> names;
    for (const auto& [name, use] : known) names.push_back(name);
    usage_error(value.place, ": unknown key '", value.name, "'; the nearest known one is '",
                nearest(key, names), "'");
  });
}

void read_list(const Part& part, const UsePart& use) {
  if (!part.node.IsSequence()) usage_error(part.place, ": ", part.name, ": expected a list");
  for (const auto& item : part.node) use({part.source, part.name, part.source.place(item.Mark()), item});
}

}  // namespace config

const TrainArm* AblationSpec::arm(const std::string& wanted) const {
  const auto found = std::ranges::find(train, wanted, &TrainArm::name);
  return found == train.end() ? nullptr : &*found;
}

std::vector<const SampleArm*> AblationSpec::settings_of(const TrainArm& arm) const {
  std::vector<const SampleArm*> settings;
  for (const SampleArm& one : sample) {
    // "sde gamma=1" is of the arm "sde": its list made several of it.
    const std::string family = one.name.substr(0, one.name.find(' '));
    const bool wanted = arm.sample.empty() || std::ranges::find(arm.sample, family) != arm.sample.end();
    if (arm.scored && wanted) settings.push_back(&one);
  }
  return settings;
}

void use_run(RunConfig& config, const std::string& key, const std::filesystem::path& run) {
  config::assign(config::read_assignment(key + "=" + run.string()), config);
}

AblationSpec load_ablation_spec(const std::filesystem::path& file) {
  return config::SpecReader(file).read();
}

}  // namespace elf
