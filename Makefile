# Verbs. CMakeLists.txt describes the build; this file only knows how to ask for it.
BUILD  := build
CMAKE  := cmake -S . -G Ninja
# Tests are built with everything that finds faults; what is shipped is built for speed.
ASAN   := -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 -DHOLDFAST_WERROR=ON -DHOLDFAST_TESTS=ON \
          -DHOLDFAST_SANITIZE=address,undefined
TSAN   := -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 -DHOLDFAST_WERROR=ON -DHOLDFAST_TESTS=ON \
          -DHOLDFAST_SANITIZE=thread
CTEST  := ctest --output-on-failure --parallel 2

.PHONY: all test tsan demo bench format packages clean

all:
	@$(CMAKE) -B $(BUILD) >/dev/null
	@cmake --build $(BUILD)

packages:
	@tools/install-packages

test: packages
	@$(CMAKE) -B $(BUILD) >/dev/null
	@cmake --build $(BUILD)
	@$(CMAKE) -B $(BUILD)/asan $(ASAN) -DHOLDFAST_RELEASE_DIR=$(CURDIR)/$(BUILD) >/dev/null
	@cmake --build $(BUILD)/asan
	@$(CTEST) --test-dir $(BUILD)/asan

tsan: packages
	@$(CMAKE) -B $(BUILD)/tsan $(TSAN) -DHOLDFAST_RELEASE_DIR=$(CURDIR)/$(BUILD) >/dev/null
	@cmake --build $(BUILD)/tsan
	@$(CTEST) --test-dir $(BUILD)/tsan -LE house

demo: packages all
	@tools/demo.sh $(BUILD)

bench: packages all
	@$(BUILD)/bench/holdfast-bench --json $(BUILD)/bench.jsonl

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	@rm -rf $(BUILD)
