"""source_digest: the SHA-256 of all sources that targets are built from."""

_Sources = provider(fields = ["files"])

_WORKSPACE = Label("//testing/certificate:source_digest.bzl").workspace_name

_ATTRIBUTES = ["deps", "srcs", "hdrs", "textual_hdrs", "data"]

def _is_own(file):
    return file.is_source and file.owner.workspace_name == _WORKSPACE

def _collect_impl(target, ctx):
    files = []
    transitive = []
    for name in _ATTRIBUTES:
        files += [
            file
            for file in getattr(ctx.rule.files, name, [])
            if _is_own(file)
        ]
        value = getattr(ctx.rule.attr, name, None)
        for dep in value if type(value) == type([]) else []:
            if type(dep) == "Target" and _Sources in dep:
                transitive.append(dep[_Sources].files)
    return [_Sources(files = depset(files, transitive = transitive))]

_collect = aspect(implementation = _collect_impl, attr_aspects = _ATTRIBUTES)

def _short_path(file):
    return file.short_path

def _source_digest_impl(ctx):
    files = depset(
        transitive = [dep[_Sources].files for dep in ctx.attr.deps],
    ).to_list()
    files = sorted(files, key = _short_path)

    # Neither the names of the files nor the place of the workspace count.
    ctx.actions.run_shell(
        inputs = files,
        outputs = [ctx.outputs.out],
        arguments = [ctx.outputs.out.path, ctx.attr.macro] +
                    [file.path for file in files],
        command = """
          out=$1; macro=$2; shift 2
          digest=$(sha256sum -- "$@" | cut -c1-64 | sha256sum | cut -c1-64)
          echo "#define $macro \\"$digest\\"" > "$out"
        """,
        mnemonic = "SourceDigest",
        progress_message = "Hashing %d sources" % len(files),
    )

source_digest = rule(
    implementation = _source_digest_impl,
    doc = """A header that defines `macro` as the SHA-256 of the sources of
`deps` and of all that they depend on in this workspace, data included: one that
changes where any of them does.""",
    attrs = {
        "deps": attr.label_list(aspects = [_collect], mandatory = True),
        "macro": attr.string(mandatory = True),
        "out": attr.output(mandatory = True),
    },
)
