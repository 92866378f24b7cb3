# `make` prints what there is. Variables given on the command line become the runner's flags: BATCH=1,8 is --batch=1,8.
SHELL := /bin/bash
.DEFAULT_GOAL := help
# This file's own names, which a command line would replace before it is checked.
override OWN_NAMES := newline TARGETS DEFINITION PARAMETERS escaped quoted OWN FLAGS CLUSTER OTHERS SETTINGS SWITCHES KNOWN UNKNOWN NEAREST
override GIVEN := $(foreach v,$(filter-out -% .%,$(.VARIABLES)),$(if $(findstring command line,$(origin $(v))),$(v)))
$(if $(filter $(OWN_NAMES),$(GIVEN)),$(error There is no variable $(filter $(OWN_NAMES),$(GIVEN)); `make` lists them))
TARGETS := help setup wheelhouse new-workload bench ladder explain reproduce report compare ab history watch gather site selfcheck list test lint lock clean
.PHONY: $(TARGETS)
# These say how environments are made, and may come from the environment as well.
SETTINGS := BOOTSTRAP_PYTHON WHEELHOUSE PADDLE_INDEX PADDLE_VERSION UPGRADE
# A line break would end a recipe's line: what follows would be a command, which runs with -i.
define newline


endef
$(foreach v,$(GIVEN) $(SETTINGS),$(if $(findstring $(newline),$(value $(v))),$(error $(v) holds a line break; write it in one line)))
$(if $(findstring $(newline),$(MAKECMDGOALS) $(.VARIABLES)),$(error The name of a target or variable holds a line break; `make` lists them))
# An environment variable of the same name never changes what is measured.
# Workloads' parameters, read off their definitions: `Parameter(name, flag, ...)`.
DEFINITION := Parameter\(\s*"\w+",\s*"\K[\w-]+
PARAMETERS := $(sort $(shell grep -zohP '$(DEFINITION)' workloads/*.py | tr '\0a-z-' '\nA-Z_'))
# Makes the environments; workers run in those, or in PYTHON=/path/to/python, which is measured instead. Before it is
# unexported, which would define it as empty.
BOOTSTRAP_PYTHON ?= python3
# Texts, and variables' values, as words of a shell.
escaped = '$(subst ','\'',$(1))'
quoted = $(call escaped,$(value $(1)))
# And those of users' own models: parameters of a file's `inputs`, which is read and not run, or of a library's models.
OWN = $(or $(findstring .py,$(value WORKLOAD)),$(findstring :,$(value WORKLOAD)))
PARAMETERS += $(if $(and $(findstring command line,$(origin WORKLOAD)),$(OWN)),$(shell \
    PYTHONSAFEPATH= $(call quoted,BOOTSTRAP_PYTHON) -m workloads.signature $(call quoted,WORKLOAD)))
FLAGS := FRAMEWORK WORKLOAD IMPL MODE PASS $(sort $(PARAMETERS)) THREADS DEVICE DTYPE PROFILE BUDGET SEED WEIGHTS OUT SWEEP RESUME FILTER TIMEOUT \
         PYTHON REQUIREMENTS COMPILE_CACHE SHAPES UNSEEN_SEQ POLICY PRESET
CLUSTER := LAUNCHER NODES PARTITION ACCOUNT TIME GRES CONSTRAINT LINES SCRATCH CONTAINER
OTHERS := NAME TABLE FROM RUN A B VERSIONS MAX_SLOWDOWN REPEATS LOAD
SWITCHES := DRY_RUN FORCE ISOLATE ACROSS
# Exported, a value would be expanded, and what is in $(shell …) run: those that are needed are passed on quoted.
unexport $(FLAGS) $(CLUSTER) $(OTHERS) $(SWITCHES) $(SETTINGS)
# With it Python would not find the suite's modules.
unexport PYTHONSAFEPATH
# A misspelt variable would be ignored, and something else measured than was asked for.
KNOWN := $(FLAGS) $(CLUSTER) $(OTHERS) $(SWITCHES) $(SETTINGS) SHELL
UNKNOWN := $(filter-out $(KNOWN),$(GIVEN))
NEAREST := import difflib, sys; names = {name.lower(): name for name in sys.argv[2:]}; \
           near = difflib.get_close_matches(sys.argv[1].lower(), names, 1, 0.5); \
           print(f"did you mean {names[near[0]]}?" if near else "`make` lists them")
$(if $(UNKNOWN),$(error There is no variable $(UNKNOWN); \
    $(shell $(call quoted,BOOTSTRAP_PYTHON) -c '$(NEAREST)' $(call escaped,$(firstword $(UNKNOWN))) $(KNOWN) || echo '`make` lists them')))

RUNNER := .venvs/runner/bin/python
settings = $(foreach v,WHEELHOUSE PADDLE_INDEX PADDLE_VERSION,$(if $(value $(v)),$(v)=$(call quoted,$(v))))
lower = $(strip $(subst A,a,$(subst B,b,$(subst C,c,$(subst D,d,$(subst E,e,$(subst F,f,$(subst G,g,$(subst H,h,$(subst I,i,\
        $(subst J,j,$(subst K,k,$(subst L,l,$(subst M,m,$(subst N,n,$(subst O,o,$(subst P,p,$(subst Q,q,$(subst R,r,\
        $(subst S,s,$(subst T,t,$(subst U,u,$(subst V,v,$(subst W,w,$(subst X,x,$(subst Y,y,$(subst Z,z,$(subst _,-,$(1)))))))))))))))))))))))))))))
given = $(and $(findstring command line,$(origin $(1))),$(value $(1)))
space := $(subst x, ,x)
comma := ,
frameworks = $(strip $(filter-out all,$(subst $(comma), ,$(call given,FRAMEWORK))))
named = $(foreach v,$(1),$(if $(call given,$(v)),$(call quoted,$(v))))
# What a command would not take is refused before it runs; of several in one line another may take it.
superfluous = $(if $(word 2,$(MAKECMDGOALS)),,$(firstword $(filter-out $(1) $(filter-out UPGRADE,$(SETTINGS)) SHELL,$(GIVEN))))
only = $(if $(call superfluous,$(1)),$(error make $@ does not take $(call superfluous,$(1)); $(if $(strip $(1)),it takes $(strip $(1)),it takes none)))
flags = $(foreach v,$(1),$(if $(call given,$(v)),--$(call lower,$(v))=$(call quoted,$(v)))) \
        $(foreach v,$(2),$(if $(filter-out 0,$(call given,$(v))),--$(call lower,$(v))))
# All that a command takes: variables whose values are words, those that become flags, switches. No value is an option.
options = $(call only,$(1) $(2) $(3))$(call flags,$(2),$(3))$(if $(1), -- $(call named,$(1)))

# What is no target is answered with the nearest one.
.DEFAULT:
	@echo $(call escaped,There is no target $@;) "$$($(call quoted,BOOTSTRAP_PYTHON) -c '$(NEAREST)' $(call escaped,$@) $(TARGETS))" >&2; exit 2

define HELP
First: make bench FRAMEWORK=torch WORKLOAD=mlp sets up, measures, prints a table: two minutes
Then:  make report                             the page; `make bench` alone measures all frameworks

Measure
  make bench [FRAMEWORK=paddle] [DEVICE=gpu]   eager against graph modes; DRY_RUN=1 prints the plan
  make bench WORKLOAD=path/to/model.py         your own model: docs/own-models.md
  make new-workload NAME=x [FRAMEWORK=torch]   write a file to begin with
  make bench PRESET=service-bert               a question asked often; `make list` has them
  make ladder [FRAMEWORK=torch]                eager to the last graph in steps: what each brings
  make explain [MODE=eager,graph]              profile a call in each mode: where the time goes
  make reproduce [TABLE=paddle-bert]           a published table again; alone: lists them
  make selfcheck [FRAMEWORK=jax]               is this machine fit? REPEATS=n, LOAD=n
Read
  make report [RUN=newest] [FRAMEWORK=jax]     table, report.md, report.html; ACROSS=1: all machines
  make compare A=<run> B=<run>                 faster, slower or the same; MAX_SLOWDOWN=5%
  make ab A=<python> B=<python>                two environments; VERSIONS=jax==0.10,jax==0.11
  make history RUN=<run>,<run>,<run>           a line per cell over many runs, and where it stepped
  make watch [RUN=newest]                      how far a run is, from any machine
  make gather RUN=<run>,<run> [OUT=all.csv]    runs of several machines in one CSV
  make site [OUT=site]                         the published runs as pages for a static host
  make list [FRAMEWORK=jax] [WORKLOAD=mlp]     workloads, presets, modes, and what runs here
Maintain
  make setup [FRAMEWORK=torch] [DEVICE=gpu]    make the environments, all frameworks unless named
  make wheelhouse [FRAMEWORK=jax] [OUT=FOLDER] collect packages for a machine without internet
  make test [FRAMEWORK=jax] | lint             the tests, all unless named; ruff, mypy
  make lock [FRAMEWORK=jax] [UPGRADE=1]        compile the lock files, all unless named
  make clean                                   remove environments and caches, never results

What is measured; lists are BATCH=1,2,4, ranges SEQ=32..512 (doubling) or SEQ=32..512..32 (steps)
  FRAMEWORK=torch,paddle,tensorflow,jax  WORKLOAD=bert-base,mlp,…  IMPL=library|plain
  PASS=inference|training|prefill|decode|generate  DEVICE=cpu|gpu|gpu:1|gpu:all
  MODE=eager,graph|all|ladder|<mode>  DTYPE=fp32|bf16|fp16|tf32  THREADS=1,2
  by `make list`: BATCH SEQ MASK=none|full|padded ATTENTION=fused|explicit CACHE=static WIDTH …
  SHAPES=static|dynamic  UNSEEN_SEQ=N  WEIGHTS=FOLDER  SEED=0  POLICY=users  FILTER=text
How
  PROFILE=quick|standard|rigorous  BUDGET=SECONDS  TIMEOUT=900  COMPILE_CACHE=cold|warm  ISOLATE=1
  SWEEP=FILE.toml  PRESET=name  OUT=FOLDER  RESUME=newest  DRY_RUN=1  FORCE=1
Where
  PYTHON=/path/to/python        measure this interpreter instead of the environment made here
  REQUIREMENTS=FILE             an environment with what your model needs beside its framework
  BOOTSTRAP_PYTHON=python3.12   make the environments with this Python (3.11 or newer)
  WHEELHOUSE=FOLDER             make the environments from a wheelhouse, without any index
  LAUNCHER=slurm                on this Slurm job's nodes, or in a job submitted for it, with
                                NODES=2 PARTITION= ACCOUNT= TIME= GRES= CONSTRAINT= LINES=FILE
  SCRATCH=FOLDER                workers run from each node's own disk
  CONTAINER=apptainer:FILE      they run in a container; also CONTAINER=pyxis:IMAGE
  PADDLE_INDEX=URL              take paddlepaddle-gpu from that package index (PADDLE_VERSION=3.3.1)
endef

help:
	$(info $(HELP))
	@:

setup: $(RUNNER)
	@$(settings) $(RUNNER) runner.py setup $(call options,,FRAMEWORK DEVICE)

wheelhouse: $(RUNNER)
	@$(settings) $(RUNNER) runner.py wheelhouse $(call options,,FRAMEWORK DEVICE OUT)

new-workload: $(RUNNER)
	@$(RUNNER) runner.py new-workload $(call options,,NAME FRAMEWORK)

bench: $(RUNNER)
	@$(settings) $(RUNNER) runner.py bench $(call options,,$(FLAGS) $(CLUSTER),$(filter-out ACROSS,$(SWITCHES)))

ladder: $(RUNNER)
	@$(settings) $(RUNNER) runner.py ladder $(call options,,$(FLAGS) $(CLUSTER),$(filter-out ACROSS,$(SWITCHES)))

explain: $(RUNNER)
	@$(settings) $(RUNNER) runner.py explain $(call options,,$(filter-out PROFILE BUDGET SEED RESUME COMPILE_CACHE UNSEEN_SEQ,$(FLAGS)),DRY_RUN FORCE)

reproduce: $(RUNNER)
	@$(settings) $(RUNNER) runner.py reproduce $(call options,,TABLE DEVICE OUT RESUME FROM FRAMEWORK MODE THREADS PROFILE BUDGET TIMEOUT \
	    PYTHON COMPILE_CACHE,DRY_RUN FORCE ISOLATE)

report: $(RUNNER)
	@$(settings) $(RUNNER) runner.py report $(call options,RUN,FRAMEWORK WORKLOAD IMPL MODE PASS DTYPE DEVICE FILTER OUT,ACROSS)

compare: $(RUNNER)
	@$(settings) $(RUNNER) runner.py compare $(call options,A B,MAX_SLOWDOWN FILTER OUT)

ab: $(RUNNER)
	@$(settings) $(RUNNER) runner.py ab $(call options,,$(filter-out PYTHON REQUIREMENTS,$(FLAGS)) A B VERSIONS MAX_SLOWDOWN,$(filter-out ACROSS,$(SWITCHES)))

history: $(RUNNER)
	@$(settings) $(RUNNER) runner.py history $(call options,RUN,FILTER OUT)

watch: $(RUNNER)
	@$(settings) $(RUNNER) runner.py watch $(call options,RUN)

gather: $(RUNNER)
	@$(settings) $(RUNNER) runner.py gather $(call options,RUN,OUT)

site: $(RUNNER)
	@$(settings) $(RUNNER) runner.py site $(call options,,OUT)

selfcheck: $(RUNNER)
	@$(settings) $(RUNNER) runner.py selfcheck $(call options,,FRAMEWORK WORKLOAD IMPL MODE SEQ DEVICE THREADS PROFILE BUDGET REPEATS LOAD PYTHON OUT)

list: $(RUNNER)
	@$(settings) $(RUNNER) runner.py list $(call options,,FRAMEWORK WORKLOAD PYTHON)

# With FRAMEWORK only its environment is made, and only tests that are about it run.
test: $(RUNNER)
	@$(call only,FRAMEWORK)$(settings) $(call quoted,BOOTSTRAP_PYTHON) -m environments.environments setup $(foreach f,$(frameworks),$(call escaped,$(f))) --device cpu
	$(RUNNER) -m pytest $(if $(frameworks),-k $(call escaped,$(subst $(space), or ,$(frameworks))))

lint: $(RUNNER)
	@$(call only)
	.venvs/runner/bin/ruff check .
	.venvs/runner/bin/ruff format --check .
	.venvs/runner/bin/mypy

lock:
	$(check_python)
	@$(call only,FRAMEWORK UPGRADE)$(settings) $(call quoted,BOOTSTRAP_PYTHON) -m environments.environments lock $(foreach f,$(frameworks),$(call escaped,$(f))) $(if $(value UPGRADE),--upgrade)

# The interpreter is a link to one older than this checkout: the stamp carries the time.
$(RUNNER): .venvs/runner/.stamp
.venvs/runner/.stamp: requirements.txt requirements-uv.txt
	$(check_python)
	@$(settings) $(call quoted,BOOTSTRAP_PYTHON) -m environments.environments runner && touch $@

define check_python
@$(call quoted,BOOTSTRAP_PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo \
  'setup: '$(call quoted,BOOTSTRAP_PYTHON)' is not Python 3.11 or newer; name one: make BOOTSTRAP_PYTHON=/path/to/python3.11' >&2; exit 2; }
@$(call quoted,BOOTSTRAP_PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo \
  'setup: '$(call quoted,BOOTSTRAP_PYTHON)' has no venv module; on Debian and Ubuntu: apt install python3-venv' >&2; exit 2; }
endef

clean:
	@$(call only)
	rm -rf .venvs .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './.git/*' -exec rm -rf {} +
