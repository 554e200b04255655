// Orders need little memory: against all orders of small programs, and by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "buffers/orders.h"
#include "buffers/schedule.h"
#include "buffers/steps.h"
#include "buffers/test_plan.h"

namespace hloom::buffers {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using Order = ScheduleModel::Order;

// Concatenates arrays to arrays of any size, so that no two values are alike.
std::unique_ptr<hlo::Module> random_program(unsigned seed, int count) {
  std::mt19937 random(seed);
  auto module = std::make_unique<hlo::Module>("m");
  Computation* c = module->add_computation("e");
  std::vector<Instruction*> made{c->add_parameter(0, Shape::array(DType::F32, {64}))};
  for (int k = 0; k < count; ++k) {
    std::vector<Instruction*> operands;
    std::int64_t elements = 0;
    for (std::size_t o = 1 + random() % 3; o > 0; --o) {
      operands.push_back(made[random() % made.size()]);
      elements += operands.back()->shape().dim(0);
    }
    Instruction* whole = c->add(Opcode::Concatenate, Shape::array(DType::F32, {elements}), operands);
    whole->set_dimensions({0});
    const auto kept = static_cast<std::int64_t>(1 + random() % 2048) % elements + 1;
    Instruction* part = c->add(Opcode::Slice, Shape::array(DType::F32, {kept}), {whole});
    part->mutable_attr<hlo::SliceAttr>() = {{0}, {kept}, {1}};
    made.push_back(part);
  }
  std::vector<Instruction*> last;
  for (Instruction* i : made)
    if (i->users().empty()) last.push_back(i);
  c->set_root(c->add_tuple(last));
  module->set_entry(c);
  module->sort();
  return module;
}

// The least peak of all orders in which operands stand before their users.
class Exhaustive {
 public:
  explicit Exhaustive(const ScheduleModel& model) : model_(model), waiting_(static_cast<std::size_t>(model.size())) {
    for (int n = 0; n < model.size(); ++n)
      waiting_[static_cast<std::size_t>(n)] = static_cast<int>(model.before(n).size());
  }
  std::int64_t least() {
    go_on();
    return least_;
  }

 private:
  void go_on() {
    if (static_cast<int>(order_.size()) == model_.size()) {
      least_ = std::min(least_, model_.cost(order_).peak_bytes);
      return;
    }
    for (int n = 0; n < model_.size(); ++n) {
      int& waiting = waiting_[static_cast<std::size_t>(n)];
      if (waiting != 0) continue;
      waiting = -1;
      order_.push_back(n);
      for (const int next : model_.after(n)) --waiting_[static_cast<std::size_t>(next)];
      go_on();
      for (const int next : model_.after(n)) ++waiting_[static_cast<std::size_t>(next)];
      order_.pop_back();
      waiting = 0;
    }
  }

  const ScheduleModel& model_;
  std::vector<int> waiting_;
  Order order_;
  std::int64_t least_ = INT64_MAX;
};

bool is_order(const ScheduleModel& model, const Order& order) {
  std::vector<int> place(static_cast<std::size_t>(model.size()), -1);
  for (std::size_t k = 0; k < order.size(); ++k) place[static_cast<std::size_t>(order[k])] = static_cast<int>(k);
  for (int n = 0; n < model.size(); ++n)
    for (const int before : model.before(n))
      if (place[static_cast<std::size_t>(n)] <= place[static_cast<std::size_t>(before)]) return false;
  return static_cast<int>(order.size()) == model.size() && std::ranges::count(place, -1) == 0;
}

TEST(Orders, HaveOperandsBeforeUsers) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const auto module = random_program(seed, 20);
    const ScheduleModel model(*module->entry(), Role::Entry, {});
    for (const Among among : {Among::First, Among::Last}) EXPECT_TRUE(is_order(model, greedy_order(model, among)));
    for (const First first : {First::Large, First::Demanding})
      EXPECT_TRUE(is_order(model, depth_first_order(model, first)));
    EXPECT_TRUE(is_order(model, backward_order(model)));
    const Order improved = improve_order(model, model.present_order());
    EXPECT_TRUE(is_order(model, improved));
    EXPECT_LE(model.cost(improved).peak_bytes, model.cost(model.present_order()).peak_bytes);
  }
}

TEST(Schedule, IsCloseToTheBestOfSmallPrograms) {
  double sum = 0, least_sum = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const auto module = random_program(seed, 4);
    const ScheduleModel model(*module->entry(), Role::Entry, {});
    const std::int64_t least = Exhaustive(model).least();
    schedule(*module);
    const std::int64_t bytes = peak_bytes(*module->entry());
    EXPECT_GE(bytes, least);
    sum += static_cast<double>(bytes);
    least_sum += static_cast<double>(least);
  }
  EXPECT_LE(sum, 1.01 * least_sum);
}

}  // namespace
}  // namespace hloom::buffers
