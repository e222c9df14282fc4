"""add_lint_tests: call it last in every BUILD file that lists C++."""

def add_lint_tests(vendored = []):
    """Tests the formatting, the include directions and the comments of this package.

    Args:
      vendored: files of others, which stay as they are.
    """
    sources = native.glob(["*.cc", "*.h"], exclude = vendored)
    if not sources:
        return
    args = ["$(location {})".format(source) for source in sources]
    native.sh_test(
        name = "clang_format_lint",
        size = "small",
        srcs = ["//tools/lint:clang_format_lint.sh"],
        args = args,
        data = sources + ["//:.clang-format"],
        tags = ["lint"],
    )
    native.sh_test(
        name = "include_lint",
        size = "small",
        srcs = ["//tools/lint:include_lint.sh"],
        args = args,
        data = sources,
        tags = ["lint"],
    )
    pages = sources + native.glob(["*.md", "*.py"])
    native.sh_test(
        name = "sentence_lint",
        size = "small",
        srcs = ["//tools/lint:sentence_lint.py"],
        args = ["$(location {})".format(page) for page in pages],
        data = pages,
        tags = ["lint"],
    )
