# The two commands are `make run` and `make test`. Each installs what is missing first (tools/setup.sh) and says what
# it does. CMakePresets.json has the builds themselves.
jobs := $(shell nproc)
release := build/release
sanitized := text interp buffers collectives runtime

.PHONY: run build test sanitize format tidy
run: build
	$(release)/bin/hloom run examples/decode
	cmake --install $(release) --prefix $(release)/installed >/dev/null
	cmake -G Ninja -S examples/decode -B $(release)/decode -DCMAKE_PREFIX_PATH=$(CURDIR)/$(release)/installed >/dev/null
	cmake --build $(release)/decode
	$(release)/decode/decode examples/decode
build:
	tools/setup.sh build optional
	cmake --preset release >/dev/null
	cmake --build --preset release --target bin/hloom libhloom.a
test:
	tools/setup.sh build optional
	cmake --preset release >/dev/null
	cmake --build --preset release
	ctest --preset release -j$(jobs)
sanitize:
	tools/setup.sh build optional sanitize
	cmake --preset asan >/dev/null
	cmake --build --preset asan --target $(sanitized:=_test) parse_fuzz
	ctest --preset asan -j$(jobs) -L '^($(shell echo $(sanitized) | tr ' ' '|'))$$'
	cmake --preset tsan >/dev/null
	cmake --build --preset tsan --target collectives_test runtime_test
	ctest --preset tsan -j$(jobs) -L '^(collectives|runtime)$$'
format:
	tools/setup.sh format
	git ls-files '*.cc' '*.h' | xargs clang-format-22 -i
tidy:
	tools/setup.sh build format
	cmake --preset dev >/dev/null
	git ls-files 'src/*.cc' | xargs -P$(jobs) -n4 clang-tidy-22 -p build/dev --quiet
