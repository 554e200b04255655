#include "runtime/control_groups.h"

#include <fstream>
#include <sstream>

namespace hloom::runtime {
namespace {

void append_upwards(const std::string& root, std::string path, bool version2, std::vector<GroupFolder>& folders) {
  folders.push_back({root, version2});
  for (; !path.empty() && path != "/"; path.resize(path.find_last_of('/'))) folders.push_back({root + path, version2});
}

bool names(std::string_view controllers, std::string_view controller) {
  const std::string with_commas = "," + std::string(controllers) + ",";
  return with_commas.find("," + std::string(controller) + ",") != std::string::npos;
}

}  // namespace

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<GroupFolder> group_folders(const std::string& root, std::string_view membership,
                                       std::string_view controller) {
  std::vector<GroupFolder> folders;
  std::istringstream lines{std::string(membership)};
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/group", or "0::/group" for version 2
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (path.empty() || path[0] != '/') continue;
    if (controllers.empty()) append_upwards(root, path, true, folders);
    if (!names(controllers, controller)) continue;
    append_upwards(root + "/" + std::string(controller), path, false, folders);
    if (controller == "cpu") append_upwards(root + "/cpu,cpuacct", path, false, folders);  // where the two share a mount
  }
  return folders;
}

}  // namespace hloom::runtime
