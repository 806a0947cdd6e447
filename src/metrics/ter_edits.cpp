// The search behind TER. Its limits and its order of preference are Tercom's as sacreBLEU has them: scores
// depend on each.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "elf/base/error.h"
#include "elf/metrics/ter.h"

namespace elf {
namespace {

using Words = std::vector<int32_t>;

constexpr int64_t kLongestMove = 10, kFarthestMove = 50, kMostMoves = 1000, kBeam = 25;
constexpr int64_t kUnreached = int64_t{1} << 50;

// What makes the hypothesis' words so far those of the reference.
enum class Edit : uint8_t { kKeep, kReplace, kInsert, kDelete, kNone };

struct Cell {
  int64_t cost = kUnreached;
  Edit edit = Edit::kNone;
};

// Edit distance to one reference, within a band around the diagonal. The rows of the last full table serve
// for hypotheses that begin alike.
class EditDistance {
 public:
  explicit EditDistance(const Words& reference) : reference_(reference) {}

  // The whole table, kept.
  int64_t fill(const Words& hypothesis) {
    table_.assign(hypothesis.size() + 1, Row(reference_.size() + 1));
    for (size_t j = 0; j <= reference_.size(); ++j) table_[0][j] = {static_cast<int64_t>(j), Edit::kInsert};
    for (size_t i = 1; i <= hypothesis.size(); ++i) fill_row(hypothesis, i, table_[i - 1], table_[i]);
    return table_.back().back().cost;
  }

  // Of a hypothesis of the same length whose first `same` words are those of the last one filled in.
  int64_t cost(const Words& hypothesis, size_t same) {
    const Row* above = &table_[same];
    for (size_t i = same + 1; i <= hypothesis.size(); ++i) {
      Row& row = spare_[i % 2];
      row.assign(reference_.size() + 1, {});
      fill_row(hypothesis, i, *above, row);
      above = &row;
    }
    return above->back().cost;
  }

  // The edits of the last full table, from left to right.
  std::vector<Edit> edits() const {
    std::vector<Edit> edits;
    for (size_t i = table_.size() - 1, j = reference_.size(); i > 0 || j > 0;) {
      const Edit edit = table_[i][j].edit;
      edits.push_back(edit);
      if (edit == Edit::kNone) usage_error("TER: a segment whose lengths differ too much to be aligned");
      if (edit != Edit::kInsert) --i;
      if (edit != Edit::kDelete) --j;
    }
    std::reverse(edits.begin(), edits.end());
    return edits;
  }

 private:
  using Row = std::vector<Cell>;

  void fill_row(const Words& hypothesis, size_t i, const Row& above, Row& row) const {
    const auto length = static_cast<int64_t>(reference_.size());
    const double ratio = static_cast<double>(length) / static_cast<double>(hypothesis.size());
    const int64_t beam =
        static_cast<double>(kBeam) < ratio / 2 ? static_cast<int64_t>(std::ceil(ratio / 2 + kBeam)) : kBeam;
    const auto diagonal = static_cast<int64_t>(std::floor(static_cast<double>(i) * ratio));
    const int64_t first = std::max<int64_t>(0, diagonal - beam);
    const int64_t last = i == hypothesis.size() ? length : std::min(length, diagonal + beam - 1);
    for (int64_t j = first; j <= last; ++j) {
      if (j == 0) {
        row[0] = {above[0].cost + 1, Edit::kDelete};
        continue;
      }
      const bool same = hypothesis[i - 1] == reference_[static_cast<size_t>(j - 1)];
      // Of equal costs the first: the alignment is read from the other side, hence deletion before insertion.
      Cell best;
      const auto offer = [&best](int64_t cost, Edit edit) {
        if (cost < best.cost) best = {cost, edit};
      };
      offer(above[j - 1].cost + (same ? 0 : 1), same ? Edit::kKeep : Edit::kReplace);
      offer(above[j].cost + 1, Edit::kDelete);
      offer(row[j - 1].cost + 1, Edit::kInsert);
      row[j] = best;
    }
  }

  const Words& reference_;
  std::vector<Row> table_;
  Row spare_[2];
};

// Where the words of the reference lie in the hypothesis, and which words of either are wrong.
struct Alignment {
  std::vector<int64_t> place;  // of each word of the reference, -1: before the first
  std::vector<bool> reference_wrong, hypothesis_wrong;
};

Alignment align(const std::vector<Edit>& edits) {
  Alignment alignment;
  int64_t place = -1;
  for (const Edit edit : edits) {
    const bool wrong = edit != Edit::kKeep;
    if (edit != Edit::kInsert) {
      ++place;
      alignment.hypothesis_wrong.push_back(wrong);
    }
    if (edit != Edit::kDelete) {
      alignment.place.push_back(place);
      alignment.reference_wrong.push_back(wrong);
    }
  }
  return alignment;
}

// `length` words from `start` on, put before the word that stood at `target`; within the stretch and right
// behind it the target counts from the stretch's own end.
Words moved(const Words& words, int64_t start, int64_t length, int64_t target) {
  Words result(words);
  const auto at = [&](int64_t i) { return result.begin() + i; };
  if (target < start) {
    std::rotate(at(target), at(start), at(start + length));
  } else if (target > start + length) {
    std::rotate(at(start), at(start + length), at(target));
  } else {
    std::rotate(at(start), at(start + length),
                at(std::min<int64_t>(target + length, static_cast<int64_t>(words.size()))));
  }
  return result;
}

bool any_wrong(const std::vector<bool>& wrong, int64_t start, int64_t length) {
  return std::any_of(wrong.begin() + start, wrong.begin() + start + length, [](bool value) { return value; });
}

// One search for the best move.
class MoveSearch {
 public:
  MoveSearch(const Words& hypothesis, const Words& reference, EditDistance& distance, int64_t& tried)
      : hypothesis_(hypothesis), reference_(reference), distance_(distance), tried_(tried) {}

  // Edits saved by the best move (0 and less: none helps); `words` becomes the moved hypothesis.
  int64_t run(Words& words) {
    before_ = distance_.fill(hypothesis_);
    alignment_ = align(distance_.edits());
    const auto hypothesis_size = static_cast<int64_t>(hypothesis_.size()),
               reference_size = static_cast<int64_t>(reference_.size());
    for (int64_t from = 0; from < hypothesis_size; ++from) {
      for (int64_t to = 0; to < reference_size; ++to) {
        if (std::abs(to - from) > kFarthestMove) continue;
        for (int64_t length = 1;
             length <= kLongestMove && from + length <= hypothesis_size && to + length <= reference_size &&
             hypothesis_[from + length - 1] == reference_[to + length - 1];
             ++length) {
          try_moves(from, to, length);
          if (tried_ >= kMostMoves) return finish(words);
        }
      }
    }
    return finish(words);
  }

 private:
  // The stretch at `from`, which the reference has at `to`, put before each word that stands there.
  void try_moves(int64_t from, int64_t to, int64_t length) {
    if (!any_wrong(alignment_.hypothesis_wrong, from, length)) return;
    if (!any_wrong(alignment_.reference_wrong, to, length)) return;
    if (from <= alignment_.place[to] && alignment_.place[to] < from + length) return;
    int64_t previous = -1;
    for (int64_t offset = -1; offset < length; ++offset) {
      const int64_t target = to + offset == -1 ? 0 : alignment_.place[to + offset] + 1;
      if (target == previous) continue;
      previous = target;
      Words words = moved(hypothesis_, from, length, target);
      const int64_t saved = before_ - distance_.cost(words, static_cast<size_t>(std::min(from, target)));
      ++tried_;
      const std::tuple rank(saved, length, -from, -target);
      if (found_ && rank <= best_) continue;
      found_ = true;
      best_ = rank;
      best_words_ = std::move(words);
    }
  }

  int64_t finish(Words& words) {
    if (!found_) return 0;
    words = std::move(best_words_);
    return std::get<0>(best_);
  }

  const Words &hypothesis_, &reference_;
  EditDistance& distance_;
  int64_t& tried_;
  int64_t before_ = 0;
  Alignment alignment_;
  bool found_ = false;
  std::tuple<int64_t, int64_t, int64_t, int64_t> best_;
  Words best_words_;
};

}  // namespace

int64_t ter_edits(const std::vector<int32_t>& hypothesis, const std::vector<int32_t>& reference) {
  if (reference.empty()) return static_cast<int64_t>(hypothesis.size());
  EditDistance distance(reference);
  Words words = hypothesis;
  int64_t moves = 0;
  for (int64_t tried = 0;;) {
    Words better;
    const int64_t saved = MoveSearch(words, reference, distance, tried).run(better);
    if (tried >= kMostMoves || saved <= 0) break;
    ++moves;
    words = std::move(better);
  }
  return moves + distance.fill(words);
}

}  // namespace elf
