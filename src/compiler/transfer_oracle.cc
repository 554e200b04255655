#include "compiler/transfer_oracle.h"

#include <utility>

namespace hloom::compiler {

void TransferOracle::give(const Way& way, hlo::Literal value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  given_[way].push_back(std::move(value));
}

std::optional<hlo::Literal> TransferOracle::take(const Way& way) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::deque<hlo::Literal>& values = given_[way];
  if (values.empty()) return std::nullopt;
  hlo::Literal value = std::move(values.front());
  values.pop_front();
  return value;
}

}  // namespace hloom::compiler
