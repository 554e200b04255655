#include "buffers/orders.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace hloom::buffers {

using Order = ScheduleModel::Order;
using Local = ScheduleModel::Local;

namespace {

std::size_t at(int n) { return static_cast<std::size_t>(n); }

/// What is ready, by how much an instruction gains at the time that it was put there.
class Ready {
 public:
  explicit Ready(Among among) : among_(among) {}
  void push(std::int64_t gain, int n) {
    const std::int64_t rank = among_ == Among::First ? -static_cast<std::int64_t>(n) : ++time_;
    queue_.push({gain, rank, n});
  }
  bool empty() const { return queue_.empty(); }
  std::pair<std::int64_t, int> pop() {
    const Entry top = queue_.top();
    queue_.pop();
    return {top.gain, top.n};
  }

 private:
  struct Entry {
    std::int64_t gain = 0, rank = 0;
    int n = 0;
    bool operator<(const Entry& o) const { return gain != o.gain ? gain < o.gain : rank < o.rank; }
  };
  Among among_;
  std::int64_t time_ = 0;
  std::priority_queue<Entry> queue_;
};

}  // namespace

Order greedy_order(const ScheduleModel& model, Among among) {
  ScheduleModel::Run run(model);
  std::vector<int> waiting(at(model.size()));
  std::vector<bool> done(waiting.size());
  Order order;
  Ready ready(among);
  for (int n = 0; n < model.size(); ++n) {
    waiting[at(n)] = static_cast<int>(model.before(n).size());
    if (waiting[at(n)] == 0) ready.push(run.gain(n), n);
  }
  while (!ready.empty()) {
    const auto [gain, n] = ready.pop();
    if (done[at(n)]) continue;
    if (run.gain(n) != gain) {
      ready.push(run.gain(n), n);
      continue;
    }
    done[at(n)] = true;
    order.push_back(n);
    run.step(n);
    for (const int next : model.after(n))
      if (--waiting[at(next)] == 0) ready.push(run.gain(next), next);
    // A value with one reader left makes that reader more attractive.
    for (const Local v : model.reads(n))
      if (run.uses_left(v) == 1)
        for (const int reader : model.readers(v))
          if (!done[at(reader)] && waiting[at(reader)] == 0) ready.push(run.gain(reader), reader);
  }
  return order;
}

namespace {

/// What is alive before an instruction if all behind it is known.
class Backward {
 public:
  explicit Backward(const ScheduleModel& model) : model_(model), alive_(model.num_values()) {
    for (Local v = 0; v < alive_.size(); ++v) alive_[v] = model.is_read_by_caller(v) || model.maker(v) < 0;
  }
  // Bytes that end, going back over `n`, less those that begin.
  std::int64_t gain(int n) const {
    std::int64_t bytes = 0;
    for (const Local v : model_.makes(n)) bytes += model_.bytes(v);
    for (const Local v : model_.reads(n))
      if (!alive_[v]) bytes -= model_.bytes(v);
    return bytes;
  }
  void step(int n) {
    for (const Local v : model_.reads(n)) alive_[v] = true;
  }
  bool is_alive(Local v) const { return alive_[v]; }

 private:
  const ScheduleModel& model_;
  std::vector<bool> alive_;
};

}  // namespace

Order backward_order(const ScheduleModel& model) {
  Backward state(model);
  std::vector<int> waiting(at(model.size()));
  std::vector<bool> done(waiting.size());
  Order order;
  Ready ready(Among::Last);
  for (int n = 0; n < model.size(); ++n) {
    waiting[at(n)] = static_cast<int>(model.after(n).size());
    if (waiting[at(n)] == 0) ready.push(state.gain(n), n);
  }
  while (!ready.empty()) {
    const auto [gain, n] = ready.pop();
    if (done[at(n)]) continue;
    if (state.gain(n) != gain) {
      ready.push(state.gain(n), n);
      continue;
    }
    done[at(n)] = true;
    order.push_back(n);
    std::vector<Local> begun;
    for (const Local v : model.reads(n))
      if (!state.is_alive(v)) begun.push_back(v);
    state.step(n);
    for (const int before : model.before(n))
      if (--waiting[at(before)] == 0) ready.push(state.gain(before), before);
    for (const Local v : begun)
      for (const int reader : model.readers(v))
        if (!done[at(reader)] && waiting[at(reader)] == 0) ready.push(state.gain(reader), reader);
  }
  std::ranges::reverse(order);
  return order;
}

namespace {

// How much an instruction needs to be reached if operands come one after the other, the most demanding first, as for an
// expression; what is shared counts each time.
std::vector<std::int64_t> demands(const ScheduleModel& model) {
  std::vector<std::int64_t> demand(at(model.size()));
  std::vector<int> operands;
  for (int n = 0; n < model.size(); ++n) {
    operands = model.before(n);
    const auto excess = [&](int k) { return demand[at(k)] - model.made_bytes(k); };
    std::ranges::stable_sort(operands, std::greater(), excess);
    std::int64_t held = 0, most = 0;
    for (const int k : operands) {
      most = std::max(most, held + demand[at(k)]);
      held += model.made_bytes(k);
    }
    demand[at(n)] = std::max(most, held + model.made_bytes(n));
  }
  return demand;
}

}  // namespace

Order depth_first_order(const ScheduleModel& model, First first) {
  const std::vector<std::int64_t> demand = first == First::Demanding ? demands(model) : std::vector<std::int64_t>();
  const auto key = [&](int k) {
    return first == First::Large ? model.made_bytes(k) : demand[at(k)] - model.made_bytes(k);
  };
  Order order, stack;
  std::vector<char> state(at(model.size()));
  const auto visit = [&](int start) {
    stack.push_back(start);
    while (!stack.empty()) {
      const int n = stack.back();
      char& s = state[at(n)];
      if (s != 0) {
        stack.pop_back();
        if (s == 1) order.push_back(n);
        s = 2;
        continue;
      }
      s = 1;
      std::vector<int> operands = model.before(n);
      std::ranges::stable_sort(operands, {}, key);
      for (const int k : operands)
        if (state[at(k)] == 0) stack.push_back(k);
    }
  };
  visit(model.root());
  for (int n = 0; n < model.size(); ++n) visit(n);
  return order;
}

namespace {

/// A search by moves over the peak.
class Improver {
 public:
  Improver(const ScheduleModel& model, Order order) : model_(model), order_(std::move(order)), cost_(model.cost(order_)) {}

  Order run() {
    while (work_ < kMostWork && improve()) continue;
    return std::move(order_);
  }

 private:
  static constexpr std::int64_t kMostWork = 4'000'000;  // instructions counted

  bool improve() {
    place_.resize(order_.size());
    for (std::size_t k = 0; k < order_.size(); ++k) place_[at(order_[k])] = static_cast<int>(k);
    std::vector<Local> kept = kept_over_peak();
    std::ranges::stable_sort(kept, std::greater(), [&](Local v) { return model_.bytes(v); });
    for (const Local v : kept) {
      if (work_ >= kMostWork) return false;
      if (model_.maker(v) >= 0 && take(behind_peak(place_[at(model_.maker(v))]))) return true;
      if (!model_.is_read_by_caller(v) && take(before_peak(v))) return true;
    }
    return false;
  }

  // Made before the peak and read behind it, or by it and behind it.
  std::vector<Local> kept_over_peak() const {
    std::vector<Local> kept;
    for (Local v = 0; v < model_.num_values(); ++v) {
      if (model_.bytes(v) == 0) continue;
      const int maker = model_.maker(v) < 0 ? -1 : place_[at(model_.maker(v))];
      if (maker < cost_.at && (model_.is_read_by_caller(v) || last_reader(v) >= cost_.at)) kept.push_back(v);
    }
    return kept;
  }

  int last_reader(Local v) const {
    int last = -1;
    for (const int r : model_.readers(v)) last = std::max(last, place_[at(r)]);
    return last;
  }

  bool take(const Order& order) {
    if (order.empty()) return false;
    work_ += model_.size();
    const ScheduleModel::Cost cost = model_.cost(order);
    if (!(cost < cost_)) return false;
    order_ = order;
    cost_ = cost;
    return true;
  }

  // What stands at `from` and all that needs it comes behind the peak. Nothing, if the peak needs it.
  Order behind_peak(int from) const {
    std::vector<bool> moves(order_.size());
    moves[at(order_[at(from)])] = true;
    Order kept, moved;
    for (int k = from; k <= cost_.at; ++k) {
      const int n = order_[at(k)];
      const bool needs = moves[at(n)] || std::ranges::any_of(model_.before(n), [&](int b) { return moves[at(b)]; });
      moves[at(n)] = needs;
      if (needs && k == cost_.at) return {};
      (needs ? moved : kept).push_back(n);
    }
    return with(from, kept, moved, cost_.at + 1);
  }

  // The value's readers behind the peak, and all that they need, come before it. Nothing, if they need the peak.
  Order before_peak(Local v) const {
    const int last = last_reader(v);
    std::vector<bool> moves(order_.size());
    for (const int r : model_.readers(v)) moves[at(r)] = place_[at(r)] > cost_.at;
    Order kept, moved;
    for (int k = last; k >= cost_.at; --k) {
      const int n = order_[at(k)];
      if (moves[at(n)] && k == cost_.at) return {};
      if (moves[at(n)])
        for (const int b : model_.before(n)) moves[at(b)] = true;
      (moves[at(n)] ? moved : kept).push_back(n);
    }
    if (moved.empty()) return {};
    std::ranges::reverse(moved);
    std::ranges::reverse(kept);
    return with(cost_.at, moved, kept, last + 1);
  }

  // The order with [from, to) replaced by both parts.
  Order with(int from, const Order& first, const Order& second, int to) const {
    Order order(order_.begin(), order_.begin() + from);
    order.insert(order.end(), first.begin(), first.end());
    order.insert(order.end(), second.begin(), second.end());
    order.insert(order.end(), order_.begin() + to, order_.end());
    return order;
  }

  const ScheduleModel& model_;
  Order order_;
  ScheduleModel::Cost cost_;
  std::vector<int> place_;  // of each instruction in the order
  std::int64_t work_ = 0;
};

}  // namespace

Order improve_order(const ScheduleModel& model, Order order) { return Improver(model, std::move(order)).run(); }

}  // namespace hloom::buffers
