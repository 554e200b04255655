#include "text/reserved.h"

#include <unordered_set>

#include "hloom/shape.h"

namespace hloom::text {

bool is_reserved(std::string_view word) {
  static const auto* const kWords = new std::unordered_set<std::string_view>{"true",
                                                                             "false",
                                                                             "inf",
                                                                             "nan",
                                                                             "HloModule",
                                                                             "ENTRY",
                                                                             "ROOT",
                                                                             "FileNames",
                                                                             "maximal",
                                                                             "FunctionNames",
                                                                             "FileLocations",
                                                                             "StackFrames",
                                                                             "replicated",
                                                                             "manual",
                                                                             "unknown",
                                                                             "unreduced",
                                                                             "shard_as",
                                                                             "shard_like",
                                                                             "last_tile_dim_replicate"};
  if (word.find('.') != std::string_view::npos) return false;  // so have most names
  return kWords->contains(word) || dtype_named(word).has_value();
}

}  // namespace hloom::text
