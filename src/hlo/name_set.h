// The names in use in a module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hloom::hlo {

/// A set of strings that stay with their owners, 12 bytes a slot. Names that differ in their last byte alone, as
/// add.10 … add.19, lie together, so that a program's consecutive names share cache lines.
class NameSet {
 public:
  bool contains(std::string_view name) const { return !hashes_.empty() && owners_[slot_of(name)] != nullptr; }
  /// Needs: not there yet; the string keeps its address and value until it is erased.
  void insert(const std::string& name);
  /// Needs: there.
  void erase(const std::string& name);

 private:
  static constexpr std::uint32_t kFree = 0, kErased = 1;

  std::size_t slot_of(std::string_view name) const;
  void grow();

  std::vector<std::uint32_t> hashes_;
  std::vector<const std::string*> owners_;
  std::size_t used_ = 0;    ///< slots that are not free
  std::size_t erased_ = 0;  ///< of them, erased ones
};

}  // namespace hloom::hlo
