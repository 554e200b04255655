#include "jit/object_queue.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>

#include "base/check.h"
#include "base/try.h"
#include "jit/disk_cache.h"
#include "jit/object_key.h"

namespace hloom::jit {

/// A thread's code generator.
class ObjectQueue::Machine {
 public:
  explicit Machine(const ObjectQueue& queue)
      : queue_(queue), machine_(make_target_machine(queue.target_, queue.level_)) {}

  Expected<Object> compile(const BuildModule& build) {
    if (!machine_) return machine_.error();
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = TRY(build(context));
    HLOOM_CHECK(module != nullptr);
    if (queue_.cache_ == nullptr) return compile_object(*module, **machine_);
    const ObjectKey key = key_of(*module, queue_.target_, queue_.level_);
    if (std::optional<Object> found = queue_.cache_->load(key)) return *std::move(found);
    Object object = TRY(compile_object(*module, **machine_));
    queue_.cache_->store(key, object, queue_.target_);
    return object;
  }

 private:
  const ObjectQueue& queue_;
  Expected<std::unique_ptr<llvm::TargetMachine>> machine_;
};

ObjectQueue::ObjectQueue(int num_threads, const base::Target& target, Level level, DiskCache* cache)
    : num_threads_(static_cast<std::size_t>(std::max(num_threads, 1))), target_(target), level_(level), cache_(cache) {}

ObjectQueue::~ObjectQueue() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (base::Thread& thread : threads_) thread.join();
}

// Compiles without the lock.
void ObjectQueue::compile_next(std::unique_lock<std::mutex>& lock, Machine& machine) {
  const std::size_t number = next_++;
  const BuildModule build = std::move(modules_[number]);
  lock.unlock();
  Expected<Object> object = machine.compile(build);
  lock.lock();
  failed_ |= !object;
  objects_[number].emplace(std::move(object));
  changed_.notify_all();
}

void ObjectQueue::work_alone() {
  Machine machine(*this);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ended_ || (next_ < modules_.size() && !failed_); });
    if (ended_) return;
    compile_next(lock, machine);
  }
}

std::size_t ObjectQueue::add(BuildModule build) {
  std::unique_lock lock(mutex_);
  modules_.push_back(std::move(build));
  objects_.emplace_back();
  // The first is for this thread, if no more come.
  if (modules_.size() - next_ > 1 && threads_.size() + 1 < num_threads_)
    if (auto thread = base::Thread::start("hloom-compile", [this] { work_alone(); })) threads_.push_back(*std::move(thread));
  changed_.notify_one();
  if (own_ == nullptr && modules_.size() > kMostWaiting) own_ = std::make_unique<Machine>(*this);
  while (modules_.size() - next_ > kMostWaiting && !failed_) compile_next(lock, *own_);
  return modules_.size() - 1;
}

Expected<Object> ObjectQueue::take(std::size_t number) {
  if (own_ == nullptr) own_ = std::make_unique<Machine>(*this);
  std::unique_lock lock(mutex_);
  HLOOM_CHECK(number < modules_.size());
  while (!objects_[number]) {
    if (next_ < modules_.size() && !failed_) {
      compile_next(lock, *own_);
      continue;
    }
    HLOOM_CHECK(number < next_);  // else nobody will: an earlier one failed, and its error was not heeded
    changed_.wait(lock);
  }
  return std::move(*objects_[number]);
}

}  // namespace hloom::jit
