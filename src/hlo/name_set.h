// The names in use in a module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hloom::hlo {

/// A hash whose low two bits are those of the name's last byte, and whose others do not depend on them: add.10 …
/// add.13 are neighbours, so that a program's consecutive names share cache lines.
std::uint32_t hash_name(std::string_view name);

/// A set of strings that stay with their owners, 12 bytes a slot.
class NameSet {
 public:
  bool contains(std::string_view name) const { return !hashes_.empty() && owners_[slot_of(name)] != nullptr; }
  /// Adds a name, or says false if it is there. Needs: the string keeps its address and value until it is erased.
  bool insert(const std::string& name);
  /// Needs: there.
  void erase(const std::string& name);

 private:
  static constexpr std::uint32_t kFree = 0, kErased = 1;

  std::size_t slot_of(std::string_view name) const;
  void put(std::uint32_t hash, const std::string* owner);
  void grow();

  std::vector<std::uint32_t> hashes_;  ///< or a mark
  std::vector<const std::string*> owners_;
  std::size_t used_ = 0;    ///< slots that are not free
  std::size_t erased_ = 0;  ///< of them, erased ones
};

}  // namespace hloom::hlo
