// Seeded damage to files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

namespace elf::test {

// `bytes` with one to four changes, a function of `seed`: bits flipped, bytes set, numbers made extreme,
// pieces removed, repeated or moved, the end cut off.
inline std::string mutated(std::string bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](size_t limit) {
    return limit == 0 ? size_t{0} : static_cast<size_t>(random() % limit);
  };
  const size_t changes = 1 + below(4);
  for (size_t i = 0; i < changes && !bytes.empty(); ++i) {
    // Half of the changes strike the first part, where headers are.
    const size_t reach = below(2) == 0 ? std::min<size_t>(bytes.size(), 600) : bytes.size();
    const size_t at = below(reach), length = 1 + below(std::min<size_t>(bytes.size() - at, 40));
    switch (below(8)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:  // an extreme number
        for (size_t k = 0; k < length && k < 8; ++k) bytes[at + k] = below(2) == 0 ? '\xff' : '\x7f';
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        break;
      case 5:
        bytes.resize(at);
        break;
      case 6:
        bytes[at] = "0123456789{}[]\":,-.()tR}]Q"[below(26)];
        break;  // letters of JSON and of pickles
      case 7:
        std::swap(bytes[at], bytes[below(bytes.size())]);
        break;
    }
  }
  return bytes;
}

}  // namespace elf::test
