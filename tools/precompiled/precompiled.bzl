"""precompiled_header: a header that GCC reads in its compiled form."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context

    # GCC takes common.h.gch in place of the common.h that lies beside it.
    header = ctx.actions.declare_file(ctx.file.header.basename)
    ctx.actions.symlink(output = header, target_file = ctx.file.header)
    compiled = ctx.actions.declare_file(ctx.file.header.basename + ".gch")
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = ctx.file.header.path,
        output_file = compiled.path,
        user_compile_flags = ctx.fragments.cpp.copts +
                             ctx.fragments.cpp.cxxopts + ctx.attr.copts +
                             ["-x", "c++-header"],
        include_directories = context.includes,
        quote_include_directories = depset(
            [ctx.label.workspace_root or "."] if ctx.files.included else [],
            transitive = [context.quote_includes],
        ),
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
        use_pic = True,
    )
    action = "c++-compile"
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = action,
        ),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        inputs = depset(
            [ctx.file.header] + ctx.files.included,
            transitive = [context.headers, toolchain.all_files],
        ),
        outputs = [compiled],
        mnemonic = "PrecompileHeader",
        progress_message = "Precompiling " + ctx.file.header.short_path,
    )
    return [CcInfo(compilation_context = cc_common.create_compilation_context(
        headers = depset(
            [header, compiled] + ctx.files.included,
            transitive = [context.headers],
        ),
        includes = context.includes,
        quote_includes = context.quote_includes,
        system_includes = context.system_includes,
    ))]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "header": attr.label(allow_single_file = [".h"], mandatory = True),
        # Headers of the same folder that it includes.
        "included": attr.label_list(allow_files = [".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
