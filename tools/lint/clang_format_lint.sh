#!/bin/sh
# clang_format_lint.sh FILE...: fails if clang-format would change a file.
exec clang-format --dry-run --Werror --style=file "$@"
