// Orders of a computation's instructions that need little memory. Internal to buffers/.
#pragma once

#include "buffers/schedule_model.h"

namespace hloom::buffers {

/// Of what is ready, the instruction that lets go of most bytes net of those it makes; among equals the first, or the one
/// that became ready last.
enum class Among : std::uint8_t { First, Last };
ScheduleModel::Order greedy_order(const ScheduleModel&, Among);

/// From the end: of what nothing waits for any more, the instruction before which least is alive.
ScheduleModel::Order backward_order(const ScheduleModel&);

/// Operands right before their first user: first those that make most, or those that need most beside what they make.
enum class First : std::uint8_t { Large, Demanding };
ScheduleModel::Order depth_first_order(const ScheduleModel&, First);

/// Moves what can be moved past the peak: what makes a value that is kept over it goes behind it, what reads such a
/// value last goes before it, each with all that has to go along, for as long as the peak or the number of steps at it
/// becomes less. Cost: a bounded number of orders, each counted in linear time.
ScheduleModel::Order improve_order(const ScheduleModel&, ScheduleModel::Order);

}  // namespace hloom::buffers
