"""A code runner of an application's own, in Python: it asks the guard about the
code and about what the tools are given, runs the code in a sandbox of its own, and
always ends that.

It calls the guard API and E2B's with the standard library alone, so that it runs
where no package can be installed; with E2B's SDK, run_in_sandbox is Sandbox.create,
run_code and kill.

Usage: GUARD_URL=… E2B_API_URL=… E2B_API_KEY=… run_code_safely.py < input.json
where the input is {"language": "python", "code": …} or {"fetch": …}; the result is
printed as JSON.
"""

import json
import os
import sys
import urllib.error
import urllib.request

TIMEOUT = 20
INTERPRETER_PORT = "49999"


def post(url, body, headers):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{error.code} from {url}: {error.read().decode()}") from error


def guard(text):
    """Returns (rejected, reasoning). Whatever is no verdict is an error."""
    answer = json.loads(post(os.environ["GUARD_URL"], {"text": text}, {"Authorization": "Bearer " + os.environ["E2B_API_KEY"]}))
    message = answer["choices"][0]["message"]
    return {"pass": False, "block": True}[message["content"]["classification"]], message["reasoning"]


def run_in_sandbox(language, code):
    """Returns (stdout, stderr, error) of code in a sandbox that lives for it."""
    api, key = os.environ["E2B_API_URL"], {"X-API-Key": os.environ["E2B_API_KEY"]}
    new = {"templateID": "code-interpreter-v1", "timeout": TIMEOUT, "secure": True, "allow_internet_access": False}
    sandbox = json.loads(post(api + "/v2/sandboxes", new, key))
    try:
        events = post(
            api + "/execute",
            {"code": code, "language": "javascript" if language == "node" else language},
            {
                "E2b-Sandbox-Id": sandbox["sandboxID"],
                "E2b-Sandbox-Port": INTERPRETER_PORT,
                "X-Access-Token": sandbox["envdAccessToken"],
                "E2b-Traffic-Access-Token": sandbox["trafficAccessToken"],
            },
        )
    finally:
        urllib.request.urlopen(urllib.request.Request(api + "/sandboxes/" + sandbox["sandboxID"], method="DELETE", headers=key), timeout=60).close()
    out = {"stdout": "", "stderr": "", "error": ""}
    for event in map(json.loads, events.splitlines()):
        if event["type"] in ("stdout", "stderr"):
            out[event["type"]] += event["text"]
        elif event["type"] == "error":
            out["error"] = f"{event['name']}: {event['value']}"
    return out["stdout"], out["stderr"], out["error"]


def run_code_safely(language, code):
    try:
        rejected, reasoning = guard(code)
        if rejected:
            return {"status": "block", "reasoning": reasoning}
        stdout, stderr, error = run_in_sandbox(language, code)
        return {"status": "error" if error else "pass", "reasoning": error or reasoning, "stdout": stdout, "stderr": stderr}
    except Exception as error:  # whatever went wrong, nothing is taken for a pass
        return {"status": "error", "reasoning": str(error)}


def guarded_fetch(url):
    try:
        rejected, reasoning = guard("FETCH " + url)
        if rejected:
            return {"status": "block", "reasoning": reasoning}
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            return {"status": "pass", "code": response.status, "body": response.read().decode()}
    except Exception as error:
        return {"status": "error", "reasoning": str(error)}


if __name__ == "__main__":
    given = json.load(sys.stdin)
    result = guarded_fetch(given["fetch"]) if "fetch" in given else run_code_safely(given["language"], given["code"])
    print(json.dumps(result))
