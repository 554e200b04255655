// Words that cannot be names without a `%` (hlo-text 1.3).
#pragma once

#include <string_view>

namespace hloom::text {

bool is_reserved(std::string_view word);

}  // namespace hloom::text
