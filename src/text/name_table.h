// The names of one computation as the text has them: names in the module may differ by a suffix.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hlo/instruction.h"

namespace hloom::text {

/// A hash table of 16 bytes a slot; the names stay in the text.
class NameTable {
 public:
  struct Entry {
    hlo::Instruction* instruction = nullptr;  ///< null: it was there, but wrong
    const char* at = nullptr;                 ///< its name in the text; null: no such name
  };

  /// Needs: all names lie in `text`, of less than 2^36 bytes, and a name is followed by a byte that is none of a
  /// name's, or by its end.
  explicit NameTable(std::string_view text) : text_(text) {}

  Entry find(std::string_view name) const;
  /// Adds a name as a wrong one, until set() says what it stands for; or gives the one that is there.
  Entry add(std::string_view name);
  /// Needs: the name has been added. Cost: none if it was the last one.
  void set(std::string_view name, hlo::Instruction*);
  /// All names, for suggestions.
  std::vector<std::string_view> names() const;

 private:
  static constexpr int kOffsetBits = 36;
  struct Slot {
    hlo::Instruction* instruction = nullptr;
    std::uint64_t key = 0;  ///< offset + 1 of the name, and above it bits of the hash; 0 = free
  };

  const char* start_of(const Slot& slot) const { return text_.data() + (slot.key & ((1ull << kOffsetBits) - 1)) - 1; }
  bool holds(const Slot&, std::string_view name) const;
  std::size_t slot_of(std::string_view name, std::uint32_t hash) const;
  void grow();

  std::string_view text_;
  std::vector<Slot> slots_;
  std::size_t used_ = 0, last_ = 0;
};

}  // namespace hloom::text
