// What devices of a program send each other, as it was before it left.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "hlo/literal.h"

namespace hloom::compiler {

/// Any number of devices may call it.
class TransferOracle {
 public:
  struct Way {
    std::int64_t mailbox = 0, source = 0, target = 0;  ///< devices
    auto operator<=>(const Way&) const = default;
  };

  /// Before the source sends it.
  void give(const Way&, hlo::Literal value);
  /// The first value of those given that was not taken, once the target has received; nothing if there is none.
  std::optional<hlo::Literal> take(const Way&);

 private:
  std::mutex mutex_;
  std::map<Way, std::deque<hlo::Literal>> given_;
};

}  // namespace hloom::compiler
