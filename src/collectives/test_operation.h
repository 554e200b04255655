// Operations of tests.
#pragma once

#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "collectives/operation.h"

namespace hloom::collectives {

using Groups = std::vector<std::vector<std::int64_t>>;

inline Operation operation(std::string name, Kind kind, const Groups& groups, std::int64_t num_devices,
                           std::int64_t number = 0) {
  Operation o;
  o.name = std::move(name);
  o.number = number;
  o.kind = kind;
  set_groups(o, groups, num_devices);
  return o;
}

inline std::vector<std::int64_t> everyone(std::int64_t n) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Calls body(device) on a thread for each of them.
inline void on_threads(const std::vector<std::int64_t>& devices, const std::function<void(std::int64_t)>& body) {
  std::vector<std::thread> threads;
  for (const std::int64_t device : devices) threads.emplace_back(body, device);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace hloom::collectives
