#!/bin/sh
# A variable belongs to one file: a second value in another file changes the recipes of the first.
# once.sh FILES
twice=$(for file in "$@"; do sed -nE 's/^([A-Za-z0-9_]+) *[:?+]?=.*/\1/p' "$file" | sort -u; done | sort | uniq -d)
[ -z "$twice" ] || { echo "assigned in two makefiles:" $twice; exit 1; }
