# `make` prints docs/help.txt. The runner reads the variables of the command line; BATCH=1,8 is its --batch=1,8.
SHELL := /bin/bash
.DEFAULT_GOAL := help
# Those that the command line defines. All names below are overridden, so that it can replace none of them.
override GIVEN := $(sort $(foreach v,$(filter-out -% .%,$(.VARIABLES)),$(if $(findstring command line,$(origin $(v))),$(v))))
# These say how environments are made, and may come from the environment as well.
override SETTINGS := BOOTSTRAP_PYTHON WHEELHOUSE PADDLE_INDEX PADDLE_VERSION
override COMMANDS := bench ab start stream reproduce publish explain ladder report compare export list new setup doctor
override TARGETS := help $(COMMANDS) test test-fast lint lock clean
.PHONY: $(TARGETS)
# A line break would end a recipe's line: what follows would be a command, which runs with -i.
override define newline


endef
$(foreach v,$(GIVEN) $(SETTINGS) UPGRADE,$(if $(findstring $(newline),$(value $(v))),$(error $(v) holds a line break; write it in one line)))
$(if $(findstring $(newline),$(MAKECMDGOALS) $(.VARIABLES)),$(error The name of a target or variable holds a line break; `make` lists them))
# Before the next line, which would define it as empty.
BOOTSTRAP_PYTHON ?= python3
# Exported, a value would be expanded, and what is in $(shell …) run. With the last Python would not find the modules.
unexport $(GIVEN) $(SETTINGS) UPGRADE PYTHONSAFEPATH

# Texts, and variables' values, as words of a shell.
override escaped = '$(subst ','\'',$(1))'
override quoted = $(call escaped,$(value $(1)))
override settings = $(foreach v,WHEELHOUSE PADDLE_INDEX PADDLE_VERSION,$(if $(value $(v)),$(v)=$(call quoted,$(v))))
override variables = $(foreach v,$(filter-out SHELL $(SETTINGS),$(GIVEN)),$(call escaped,$(v)=$(value $(v))))
override several = $(if $(word 2,$(MAKECMDGOALS)),--skip-others)
override python = .venvs/runner/bin/python
override bootstrap = $(call quoted,BOOTSTRAP_PYTHON)
override check_python = $(bootstrap) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo \
    'setup: '$(bootstrap)' is not Python 3.11 or newer; name one: make BOOTSTRAP_PYTHON=/path/to/python3.11' >&2; exit 2; }; \
    $(bootstrap) -c 'import ensurepip, venv' 2>/dev/null || { echo \
    'setup: '$(bootstrap)' has no venv module; on Debian and Ubuntu: apt install python3-venv' >&2; exit 2; }
override environments = $(settings) $(bootstrap) -m environments.environments

help:
	@cat docs/help.txt

$(COMMANDS): $(python)
	@$(settings) EAGER_VS_GRAPH_UNDECIDED_PASSES=1 $(python) runner.py $@ $(several) $(variables)

# What is no target is answered with the nearest one.
.DEFAULT:
	@$(bootstrap) -c 'import difflib, sys; near = difflib.get_close_matches(sys.argv[1], sys.argv[2:], 1, 0.5); \
	    sys.exit(f"There is no target {sys.argv[1]}; " + (f"did you mean {near[0]}?" if near else "`make` lists them"))' $(call escaped,$@) $(TARGETS); exit 2

# The targets below run no command of the runner: what they do not take is refused here.
override spare = $(firstword $(filter-out $(1) $(SETTINGS) SHELL,$(GIVEN)))
override only = $(if $(several),,$(if $(spare),$(error make $@ does not take $(spare); it takes $(or $(1),none))))
override space := $(subst x, ,x)
override comma := ,
override frameworks = $(strip $(filter-out all,$(subst $(comma), ,$(if $(filter FRAMEWORK,$(GIVEN)),$(value FRAMEWORK)))))
override named = $(foreach f,$(frameworks),$(call escaped,$(f)))

# With FRAMEWORK only its environment is made, and only tests that are about it run.
test: $(python)
	@$(call only,FRAMEWORK)$(environments) setup $(named) --device cpu
	$(python) -m pytest $(if $(frameworks),-k $(call escaped,$(subst $(space), or ,$(frameworks))))

# Tests that need no framework and start no worker.
test-fast: $(python)
	@$(call only)
	$(python) -m pytest -m "not slow"

lint: $(python)
	@$(call only)
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy
	$(python) -m pytest -q tests/test_prose.py

lock:
	@$(check_python)
	@$(call only,FRAMEWORK UPGRADE)$(environments) lock $(named) $(if $(value UPGRADE),--upgrade)

# The interpreter is a link to one older than this checkout: the stamp carries the time.
$(python): .venvs/runner/.stamp
.venvs/runner/.stamp: requirements.txt requirements-uv.txt
	@$(check_python)
	@$(environments) runner && touch $@

clean:
	@$(call only)
	rm -rf .venvs .cache .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './.git/*' -exec rm -rf {} +
