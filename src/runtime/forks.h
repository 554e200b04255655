// What must be whole in a child of fork(). Internal to runtime/.
#pragma once

namespace hloom::runtime {

/// An object that a forked child goes on using. Its locks are taken before the fork, so that no other thread is in the
/// middle of something, and released after it in both processes. Needs: no thread holds locks of two of these objects
/// at once, or of one while it calls start_surviving() or stop_surviving().
class SurvivesFork {
 public:
  SurvivesFork(const SurvivesFork&) = delete;
  SurvivesFork& operator=(const SurvivesFork&) = delete;

 protected:
  SurvivesFork() = default;
  virtual ~SurvivesFork() = default;
  /// When the object is complete; and before anything of it goes.
  void start_surviving();
  void stop_surviving();

 private:
  friend class Forks;
  virtual void before_fork() = 0;
  /// In the child there is no thread but the one that forked.
  virtual void after_fork(bool in_child) = 0;
};

}  // namespace hloom::runtime
