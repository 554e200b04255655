// Where the computations of a module stand, found without reading them.
#pragma once

#include <string_view>
#include <unordered_map>

#include "text/errors.h"

namespace hloom::text {

/// The start of each computation (its name or the word ENTRY), by name.
class Outline {
 public:
  struct Entry {
    const char* at;
    PlaceFinder places;  ///< at that place
  };

  /// Looks through `text`, which begins where the computations do. Cost: linear. Text that is no sequence of
  /// computations ends the search.
  Outline(std::string_view text, PlaceFinder places);
  const Entry* find(std::string_view name) const;

 private:
  std::unordered_map<std::string_view, Entry> entries_;
};

/// The end of the group in braces, brackets or parentheses that begins at `p`; strings and comments do not count.
/// Null if it has none.
const char* group_end(const char* p, const char* end);

}  // namespace hloom::text
