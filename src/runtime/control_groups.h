// Where the limits of this process's control groups stand. Internal to runtime/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hloom::runtime {

/// A group's folder, of version 2 or 1, with a file for each limit.
struct GroupFolder {
  std::string path;
  bool version2 = false;
};

/// Folders of the groups that `membership` (the text of /proc/self/cgroup) names and of all groups above them, for one
/// controller ("cpu"), under `root` ("/sys/fs/cgroup"). In a container the group's path may be that of the host, and
/// its files those of the root, so some may not exist.
std::vector<GroupFolder> group_folders(const std::string& root, std::string_view membership,
                                       std::string_view controller);

/// The file's text; empty if it cannot be read.
std::string contents(const std::string& path);

}  // namespace hloom::runtime
