"""Counts the test cases of a `bazel test` run.

  count_tests.py EVENTS STATUS

EVENTS is what --build_event_json_file wrote and STATUS what Bazel exited with.
Prints the failed cases and, as the last line, `N passed, N failed`. Exits 0
only if a case passed, none failed and STATUS is 0.
"""

import json
import sys
import urllib.parse
import urllib.request
import xml.etree.ElementTree


def count_cases(xml_path):
    """Returns the passed and skipped counts and the failed names of a log."""
    passed, skipped, failed = 0, 0, []
    for case in xml.etree.ElementTree.parse(xml_path).iter("testcase"):
        # A case that a shard leaves to another, or that is filtered out.
        if case.get("status") == "notrun":
            continue
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append("{}.{}".format(case.get("classname", ""),
                                         case.get("name")).lstrip("."))
        elif case.get("result") == "skipped":
            skipped += 1
        else:
            passed += 1
    return passed, skipped, failed


def local_path(uri):
    return urllib.request.url2pathname(urllib.parse.urlparse(uri).path)


def main(arguments):
    events_path, bazel_status = arguments[0], int(arguments[1])
    passed, skipped, failed = 0, 0, []
    # By target, shard and run: of several attempts the last one counts.
    results = {}
    with open(events_path, encoding="utf-8") as events:
        for line in events:
            event = json.loads(line)
            identity = event["id"]
            if "testResult" in identity:
                name = identity["testResult"]
                key = (name["label"], name.get("shard"), name.get("run"))
                # Interrupted, it has no result.
                results[key] = event.get("testResult", {"status": "ABORTED"})
            elif "targetCompleted" in identity:
                if not event.get("completed", {}).get("success"):
                    label = identity["targetCompleted"]["label"]
                    failed.append("{} (not built)".format(label))
    for (label, _, _), result in sorted(results.items(), key=str):
        logs = [
            output["uri"] for output in result.get("testActionOutput", [])
            if output["name"] == "test.xml"
        ]
        cases = (0, 0, [])
        if logs:
            try:
                cases = count_cases(local_path(logs[0]))
            except (OSError, xml.etree.ElementTree.ParseError) as error:
                cases = (0, 0, ["test.xml: {}".format(error)])
        passed += cases[0]
        skipped += cases[1]
        failed += ["{} {}".format(label, name) for name in cases[2]]
        # A program that died or timed out may have left no failed case.
        if result.get("status") != "PASSED" and not cases[2]:
            failed.append("{} ({})".format(label, result.get("status")))
    if bazel_status != 0 and not failed:
        failed.append("bazel test (exit status {})".format(bazel_status))
    for name in failed:
        print("FAILED", name)
    if skipped:
        print("{} skipped".format(skipped))
    if not passed and not failed:
        print("no test ran")
    print("{} passed, {} failed".format(passed, len(failed)), flush=True)
    return 0 if passed and not failed and bazel_status == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
