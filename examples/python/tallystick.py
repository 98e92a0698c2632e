"""Speaks to a Tallystick server over HTTP, and does the work of calls. The standard library is enough."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator


class Tallystick:
    """A client of one server."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token

    def start(self, agent: str, text: str, key: str) -> str:
        """Starts a run, once for each key. Returns its id."""
        return self._send("POST", "/runs", {"agent": agent, "input": text}, key)["runId"]

    def result(self, run_id: str, wait_ms: int = 20_000) -> dict:
        """Waits until a run has stopped. Returns what it waits for, or how it ended."""
        while True:
            result = self._send("GET", f"/runs/{run_id}/result?waitMs={wait_ms}")
            if result.get("status") != "under_way":
                return result

    def approve(self, run_id: str, call: dict) -> dict:
        """Approves the call as it was shown. If its input or attempt has changed, the decision has no effect."""
        shown = {name: call[name] for name in ("toolCallId", "attempt", "inputDigest")}
        return self._send("POST", f"/runs/{run_id}/approve", shown)

    def settle(self, run_id: str, tool_call_id: str, result: str) -> dict:
        """Supplies the result of a call whose work was done here. A call that has its result answers `not_deferred`."""
        body = {"toolCallId": tool_call_id, "result": result}
        return self._send("POST", f"/runs/{run_id}/settle", body)

    def follow(self, run_id: str, after: int = 0) -> Iterator[dict]:
        """Yields the events of a run after a given one as they are recorded, each once and in order, until the run ends."""
        headers = {"accept": "text/event-stream", "last-event-id": str(after)}
        with self._open("GET", f"/runs/{run_id}/events", headers, timeout=60) as stream:
            data = []
            for line in stream:
                text = line.decode().rstrip("\n")
                if text.startswith("data:"):
                    data.append(text[5:].removeprefix(" "))
                elif text == "" and data:
                    yield json.loads("\n".join(data))
                    data = []

    def _send(self, method: str, path: str, body: dict | None = None, key: str | None = None) -> dict:
        headers = {} if key is None else {"idempotency-key": key}
        try:
            with self._open(method, path, headers, body, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            problem = json.load(error)
            # A command that the run no longer accepts, such as settling a call twice, is an answer too.
            if error.code == 409:
                return problem
            raise RuntimeError(f"{method} {path}: {problem['code']}, {problem.get('detail', '')}") from None

    def _open(self, method: str, path: str, headers: dict, body: dict | None = None, timeout: int = 60):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data=data, method=method)
        request.add_header("authorization", f"Bearer {self._token}")
        for name, value in headers.items():
            request.add_header(name, value)
        if data is not None:
            request.add_header("content-type", "application/json")
        return urllib.request.urlopen(request, timeout=timeout)


def work(
    tallystick: Tallystick,
    run_id: str,
    tools: dict[str, Callable[[dict, str], str]],
    decide: Callable[[dict], bool],
) -> dict:
    """
    Does what the calls of a run ask for, until it has ended or waits for a decision that is not taken here. It keeps
    nothing: any worker takes over where another one died, since what a run waits for is in the ledger.
    """
    while True:
        result = tallystick.result(run_id)
        has_moved = False
        for call in result.get("deferredCalls", []):
            answer = tools[call["name"]](call["input"], call["toolCallId"])
            tallystick.settle(run_id, call["toolCallId"], answer)
            has_moved = True
        for call in result.get("pendingApprovals", []):
            if decide(call):
                tallystick.approve(run_id, call)
                has_moved = True
        if result["status"] == "done" or not has_moved:
            return result
