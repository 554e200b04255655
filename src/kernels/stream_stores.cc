#include "kernels/stream_stores.h"

#include <algorithm>
#include <vector>

namespace hloom::kernels {
namespace {

constexpr std::int64_t kLine = 64;
// Shorter pieces fill the buffers that gather a line too slowly.
constexpr std::int64_t kShortestPiece = 32;
// Machines that have a few cores of a processor may call the cache of the whole processor theirs.
constexpr std::int64_t kLargestCache = 64 << 20;

class Streaming {
 public:
  Streaming(Kernel& kernel, const LeastStreamed& least)
      : kernel_(kernel), least_(least), bytes_(kernel.arguments.size() + 1), turned_(kernel.values.size()) {
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
      const Argument& a = kernel.arguments[i];
      if (a.written && !a.may_overlap) bytes_[i] = argument_bytes(a);
    }
  }

  void run() {
    const std::int64_t least = std::min(least_.in_order, least_.apart);
    if (std::ranges::none_of(bytes_, [&](std::int64_t bytes) { return bytes >= std::max<std::int64_t>(least, 1); })) return;
    find_loads(kernel_.body);
    mark(kernel_.body, nullptr);
  }

 private:
  void find_loads(const Block& block) {
    for (const Statement& s : block) {
      if (const auto* load = std::get_if<Load>(&s.of)) {
        bytes_[static_cast<std::size_t>(load->argument)] = 0;
      } else if (const auto* call = std::get_if<Call>(&s.of)) {
        for (const Call::Pointer& p : call->arguments) bytes_[static_cast<std::size_t>(p.argument)] = 0;
      }
      each_block(s, [&](const Block& inner) { find_loads(inner); });
    }
  }

  // `lanes`: the loop by lanes that the block is in.
  void mark(Block& block, const Loop* lanes) {
    for (Statement& s : block) {
      if (const auto* t = std::get_if<Transpose>(&s.of))
        for (const Value v : t->results) turned_[static_cast<std::size_t>(v)] = true;
      if (auto* store = std::get_if<Store>(&s.of)) store->streamed = lanes != nullptr && pays(*store, *lanes);
      const auto* loop = std::get_if<Loop>(&s.of);
      each_block(s, [&](Block& inner) { mark(inner, loop != nullptr && loop->lanes > 0 ? loop : lanes); });
    }
  }

  bool pays(const Store& store, const Loop& loop) const {
    const std::int64_t bytes = bytes_[static_cast<std::size_t>(store.argument)];
    const std::int64_t least = turned_[static_cast<std::size_t>(store.value)] ? least_.apart : least_.in_order;
    if (bytes == 0 || bytes < least || store.mask != kNoValue) return false;
    const std::int64_t piece = loop.lanes * byte_width(kernel_.type(store.value));
    return piece >= kLine || (piece >= kShortestPiece && follows(store, loop));
  }

  // Whether the loop stores to the argument nothing but this, piece after piece.
  bool follows(const Store& store, const Loop& loop) const {
    const Index::Term own{loop.variable, 1};
    int stores = 0;
    for (const Statement& s : loop.body) {
      if (const auto* other = std::get_if<Store>(&s.of)) stores += other->argument == store.argument ? 1 : 0;
      if (std::holds_alternative<Loop>(s.of)) return false;
    }
    return stores == 1 && std::ranges::find(store.index.terms, own) != store.index.terms.end();
  }

  template <typename S, typename Visit>
  static void each_block(S& statement, const Visit& visit) {
    if (auto* loop = std::get_if<Loop>(&statement.of)) {
      visit(loop->body);
    } else if (auto* repeated = std::get_if<While>(&statement.of)) {
      visit(repeated->condition);
      visit(repeated->body);
    } else if (auto* branch = std::get_if<If>(&statement.of)) {
      for (auto& inner : branch->branches) visit(inner);
    }
  }

  Kernel& kernel_;
  const LeastStreamed least_;
  std::vector<std::int64_t> bytes_;  // by argument, the scratch last; 0: no store to it goes past the caches
  std::vector<bool> turned_;         // by value: made by a transpose
};

}  // namespace

LeastStreamed least_streamed_bytes(const base::Target& target, bool read_again) {
  const std::int64_t cache = std::min(target.l3_bytes, kLargestCache);
  const std::int64_t in_order = read_again ? cache : cache / 2;
  return {in_order, std::min(in_order, target.l2_bytes)};
}

void stream_stores(Kernel& kernel, const LeastStreamed& least) { Streaming(kernel, least).run(); }

}  // namespace hloom::kernels
