# What the example's schema costs PostgreSQL at ten million activities. See docs/scale.md.
#
#   bench-server   makes the tables, measures them, prints the targets and records the figures. DATA=folder keeps the
#                  data there for the next run; ARGUMENTS="--only measure" leaves out the partitions

.PHONY: bench-server

bench-server: | $(PYTHON)
	@PYTHONPATH=Tests/server $(PYTHON) -B Tests/scale/bench.py $(if $(DATA),'$(DATA)') $(ARGUMENTS)
