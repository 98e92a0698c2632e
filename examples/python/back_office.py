"""python3 back_office.py start KEY | work RUN | approve RUN | follow RUN AFTER"""

import json
import os
import sys
import tempfile
from pathlib import Path

from tallystick import Tallystick, work

SHOP = Path(os.environ.get("SHOP", tempfile.gettempdir()))


def stock_level(given: dict, _call_id: str) -> str:
    return f"{given['article']}: {3 if given['article'] == 'lamp' else 120} pieces"


def order_goods(given: dict, call_id: str) -> str:
    # The call's id is the key of the order, so a worker that repeats the call places no second order.
    order = SHOP / f"order-{call_id}.json"
    if not order.exists():
        new = order.with_suffix(".new")
        new.write_text(json.dumps(given))
        new.rename(order)
    if os.environ.get("DIES_AFTER_ORDER") == "yes":
        os._exit(9)  # The goods are ordered, and the run does not know it yet.
    return f"{given['pieces']} pieces of {given['article']} are ordered"


def follow(tallystick: Tallystick, run_id: str, after: int) -> None:
    last = after
    for event in tallystick.follow(run_id, after):
        last = event["seq"]
        if event["type"] == "assistant_text_delta":
            print(event["text"], end="", flush=True)
        elif event["type"] == "tool_started":
            print(last, event["name"], "starts")
        elif event["type"] == "run_finished":
            print(f"\n{last} {event['reason']}")
        elif event["type"] == "approval_requested":
            break  # A page shows the question now, and follows the run later.
    print("read up to", last)


def main(verb: str = "", subject: str = "", after: str = "0") -> None:
    url = os.environ.get("BACK_OFFICE_URL", "http://127.0.0.1:4870")
    tallystick = Tallystick(url, os.environ.get("BACK_OFFICE_TOKEN", ""))
    if verb == "start":
        print(tallystick.start("buyer", "What is short? Order it.", subject))
    elif verb in ("work", "approve"):
        tools = {"stock_level": stock_level, "order_goods": order_goods}
        result = work(tallystick, subject, tools, lambda _call: verb == "approve")
        for call in result["pendingApprovals"]:
            print("waits:", call["name"], json.dumps(call["input"], separators=(",", ":")))
        print(f"{result['status']}: {result['text']}")
    elif verb == "follow":
        follow(tallystick, subject, int(after))
    else:
        sys.exit(__doc__)


main(*sys.argv[1:4])
