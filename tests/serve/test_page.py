"""The page in a real browser, on a real server: a visitor's ways through it, alone by keys, too, and nothing that shuts
people out."""

import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import topnrank as tnr
from support.browser import MissingPartError, axe, chromium
from support.processes import serving as running

pytestmark = pytest.mark.process
KEY = "a-key-for-the-tests"
PAGES = {
    "first visit": "",
    "picks": "#like=7&like=21&dislike=35&n=5",
    "compare": "#like=7&like=21&with=linear&n=5",
    "no parts": "#like=7&model=popular&n=5",
    "status": "status",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        with chromium() as found:
            yield found
    except MissingPartError as error:
        pytest.skip(f"THE PAGE IS NOT TESTED IN A BROWSER: {error}")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def serve(models: Path, folder: Path, **environment: str) -> Iterator[str]:
    """The address of a server of its own with three models, as `topnrank serve` starts it."""
    port = free_port()
    files = [str(models / f"{name}.safetensors") for name in ("films", "linear", "popular")]
    command = [sys.executable, "-m", "topnrank", "serve", *files, "--items", str(models / "items.csv")]
    command += ["--port", str(port), "--workers", "1", "--events", str(folder / "events.db")]
    address = f"http://127.0.0.1:{port}/"

    def ready() -> str | None:
        try:
            with urllib.request.urlopen(f"{address}readyz", timeout=10):
                return address
        except (urllib.error.URLError, OSError):
            return None

    with running("topnrank-serve", command, folder, os.environ | environment) as server:
        yield server.wait_for("answer", ready)


@pytest.fixture(scope="module")
def address(serving: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(serving, tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens a page in a window of its own; at the end: nothing was asked of other hosts, and nothing went wrong."""
    contexts, asked, wrong = [], [], []

    def open_page(path: str = "", width: int = 1280, **settings: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 800}, reduced_motion="reduce", **settings)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(address + path)
        page.wait_for_selector("[data-row], .cards")
        page.wait_for_load_state("networkidle")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert asked
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
    assert wrong == []


def listed(page: Any, place: int = 0) -> list[int]:
    """The items of a list on the page, in order."""
    rows = page.locator(".list").nth(place).locator(".item")
    return [int(item) for item in rows.evaluate_all("rows => rows.map(row => row.dataset.item)")]


def settle(page: Any) -> None:
    page.wait_for_selector(".lists[aria-busy=false]")


def said(page: Any) -> str:
    return str(page.locator("main > [role=status]").inner_text())


def best(serving: Path, address: str, likes: list[int], name: str = "films") -> list[int]:
    """What the model itself recommends to somebody who likes these items; the server says which rating a like is."""
    with urllib.request.urlopen(f"{address}v1/models", timeout=60) as answer:
        like = next(model["like"] for model in json.load(answer)["models"] if model["name"] == name)
    table = tnr.load(serving / f"{name}.safetensors").recommend(history=[(item, like) for item in likes])
    return [int(item) for item in table["item"].to_pylist()]


def test_picks_by_keyboard_alone(visit, serving, address):
    page = visit()
    first = listed(page)
    titles = tnr.demo_titles()
    likes = [3, 50, 120]
    for item in likes:
        page.keyboard.press("/")
        page.keyboard.type(titles[item].rpartition(" (")[0], delay=2)
        option = page.locator("[role=option]:first-child", has_text=titles[item].rpartition(" (")[0])
        option.wait_for()
        page.get_by_text("1 found", exact=True).wait_for(state="attached")
        assert page.locator("#search").get_attribute("aria-activedescendant") == option.get_attribute("id")
        page.keyboard.press("Enter")
        page.wait_for_selector("#found", state="hidden")
        page.keyboard.press("Escape")
        page.evaluate("document.activeElement.blur()")
    settle(page)
    assert page.locator(".pick .chips .chip").count() == 3
    assert listed(page) == best(serving, address, likes) != first
    assert re.fullmatch(r"List updated: .*(new|moved).*, first is .+\.", said(page))

    # on through the list by keys: like the second row, and the focus stays with what was in it
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = listed(page)[1]
    assert page.evaluate("document.activeElement.closest('[data-row]').dataset.item") == str(second)
    page.keyboard.press("l")
    settle(page)
    assert listed(page) == best(serving, address, [*likes, second])
    assert page.locator(".change.new").count() > 0


def test_focus_stays_with_a_row_that_moves(visit):
    page = visit("#like=3&like=50")
    item = listed(page)[4]
    page.locator(f".item[data-item='{item}'] .title").focus()
    page.evaluate("document.querySelector('.pick .chip button').click()")  # another part of the page changes the list
    settle(page)
    if item in listed(page):
        assert page.evaluate("document.activeElement.closest('[data-row]').dataset.item") == str(item)


def test_parts_add_up_to_the_score(visit):
    page = visit("#like=7&like=21&dislike=35&like=120")
    for place in range(4):
        page.locator(".item .title").nth(place).click()
        item = listed(page)[place]
        page.wait_for_selector(f".why[data-item='{item}'] data.sum")
        parts = page.locator("data.part").evaluate_all("all => all.map(one => [Number(one.value), one.textContent])")
        score, shown = page.locator("data.sum").evaluate("one => [Number(one.value), one.textContent]")
        assert len(parts) >= 3
        assert sum(value for value, _ in parts) == pytest.approx(score, abs=1e-9)
        in_list = float(page.locator(f".item[data-item='{item}'] .score").get_attribute("title"))
        assert in_list == pytest.approx(score, rel=1e-5, abs=1e-6)  # scores are sums in float32, parts in float64
        decimals = len(shown.partition(".")[2])
        whole = [round(float(text.replace("−", "-")) * 10**decimals) for _, text in parts]
        assert sum(whole) == round(float(shown.replace("−", "-")) * 10**decimals)  # what is printed adds up, too


def test_two_models_side_by_side(visit, serving, address):
    page = visit("#like=7&like=21")
    page.locator("#with").select_option("linear")
    page.wait_for_selector(".list >> nth=1")
    settle(page)
    assert page.locator(".list > header h2").all_inner_texts() == ["films", "linear"]
    ours, theirs = listed(page, 0), listed(page, 1)
    assert (ours, theirs) == (best(serving, address, [7, 21]), best(serving, address, [7, 21], name="linear"))
    both = len(set(ours) & set(theirs))
    assert re.search(rf"^{both} items? of 10 in both", page.locator(".overlap").inner_text())
    assert page.locator(".list >> nth=0").locator(".only").count() == 10 - both
    page.locator(".list >> nth=0").locator(".title").nth(1).click()
    page.wait_for_selector(f".list >> nth=0 >> .why[data-item='{ours[1]}'] data.sum")
    page.locator(".list >> nth=1").locator(".title").first.click()  # EASE, whose scores have no parts: the page says so
    page.get_by_text("does not build its scores").wait_for()


def test_the_address_holds_all(visit):
    page = visit("#like=7")
    page.locator("#popularity").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.locator("#variety").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#group").select_option("2")
    page.locator("#rows").select_option("20")
    page.locator(".item .verdict button:last-child").nth(1).click()
    settle(page)
    assert "-30 %" not in page.locator(".settings").inner_text()
    assert "30 % less known" in page.locator(".settings").inner_text()
    rows, chips = listed(page), page.locator(".pick .chip .name").all_inner_texts()
    assert len(chips) == 2
    other = visit(page.url.partition("/#")[2].join(["#", ""]))
    assert listed(other) == rows
    assert other.locator(".pick .chip .name").all_inner_texts() == chips
    page.reload()
    page.wait_for_selector("[data-item]")
    settle(page)
    assert listed(page) == rows


def test_what_the_address_names_wrongly_is_said(visit):
    page = visit("#like=7&model=films&n=x")
    assert page.locator(".error").count() == 0
    other = page.context.new_page()
    other.goto(page.url.partition("#")[0] + "#like=7&like=999999&model=nowhere&with=films")
    other.wait_for_selector(".error")
    assert "999999" in other.locator(".error").inner_text()
    assert other.locator(".pick .chip").count() == 1


@pytest.mark.parametrize("settings", ["#like=7&dislike=21&n=5", "#like=7&with=linear&n=5&popularity=0.5&variety=0.3"])
def test_the_code_shown_gives_the_list_shown(visit, settings, tmp_path):
    page = visit(settings)
    page.locator(".code summary").click()
    expected = listed(page) + (listed(page, 1) if "with" in settings else [])
    python = page.locator("#code-Python").text_content()
    done = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert [int(line.split()[1]) for line in done.stdout.splitlines()] == expected
    curl = page.locator("#code-curl").text_content()
    done = subprocess.run(["sh", "-c", curl.replace("curl", "curl -s", 1)], capture_output=True, text=True, check=False)
    if done.returncode == 127:
        pytest.skip("curl is not installed")
    answer = json.loads(done.stdout)
    assert [row["item"] for one in answer.get("answers", [answer]) for row in one["items"]] == expected


def test_the_map_is_a_way_in(visit):
    page = visit("#like=7")
    page.get_by_text("The map as a table").click()
    row = page.locator(".map tbody tr").first
    name = row.locator("th").inner_text()
    row.get_by_role("button", name=f"Like {name}", exact=True).click()
    settle(page)
    assert name in "".join(page.locator(".pick .chip .name").all_inner_texts())
    box = page.locator(".map canvas").bounding_box()
    page.locator(".map canvas").scroll_into_view_if_needed()
    box = page.locator(".map canvas").bounding_box()
    drawn = page.locator(".map canvas").evaluate(
        "canvas => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size"
    )
    assert drawn > 20
    for step in range(60):  # over the middle of the map, until an item is near
        page.mouse.move(box["x"] + box["width"] * (0.2 + step / 100), box["y"] + box["height"] / 2)
        if page.locator(".under .chip").count():
            break
    page.mouse.down()
    page.mouse.up()
    page.locator(".under .chip .verdict button").first.click()
    settle(page)
    assert page.locator(".pick .chip").count() == 3


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (320, "dark")])
def test_nobody_is_shut_out(visit, width, scheme):
    try:
        script = axe()
    except MissingPartError as error:
        pytest.skip(f"THE PAGE IS NOT TESTED FOR ACCESSIBILITY: {error}")
    for name, path in PAGES.items():
        page = visit(path, width, color_scheme=scheme)
        if name == "picks":
            page.locator(".item .title").first.click()
            page.wait_for_selector("data.sum")
            page.locator("#search").fill("the")
            page.wait_for_selector("#found:not([hidden])")
            page.evaluate("document.querySelectorAll('details').forEach(one => (one.open = true))")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        page.evaluate(script)
        found = page.evaluate("axe.run({resultTypes: ['violations']}).then(done => done.violations)")
        assert [(one["id"], one["help"], [node["html"] for node in one["nodes"]]) for one in found] == [], name


def test_rounded_parts_add_up_whatever_they_are(visit):
    page = visit()
    wrong = page.evaluate("""async () => {
        const { roundedParts } = await import('./parts.js');
        const wrong = [];
        for (let seed = 1; seed < 400; seed++) {
            const places = [...Array(1 + seed % 9).keys()];
            const parts = places.map(k => Math.sin(seed * 12.9898 + k * 78.233) * 10 ** (seed % 4 - 2));
            const sum = parts.reduce((a, b) => a + b, 0);
            const shown = roundedParts(parts, sum, 3).map(value => Math.round(value * 1000));
            const total = shown.reduce((a, b) => a + b, 0);
            const far = shown.some((one, k) => Math.abs(one - 1000 * parts[k]) > 1);
            if (total !== Math.round(sum * 1000) || far) wrong.push(parts);
        }
        return wrong;
    }""")
    assert wrong == []


def test_the_page_asks_for_a_key_and_keeps_it_to_itself(browser, serving, tmp_path):
    with serve(serving, tmp_path, TOPNRANK_API_KEYS=f"tests read {KEY}") as address:
        page = browser.new_page()
        page.goto(f"{address}#like=7")
        page.get_by_label("This server wants a key").fill(KEY)
        page.get_by_role("button", name="Use this key").click()
        page.wait_for_selector("[data-item]")
        settle(page)
        assert len(listed(page)) == 10
        page.locator(".code summary").click()
        assert "$TOPNRANK_KEY" in page.locator("#code-curl").inner_text()
        assert KEY not in page.content() + page.url
        page.close()


def test_vendored_libraries_are_the_ones_they_say():
    vendor = Path(tnr.__file__).parent / "serve" / "page" / "vendor"
    told = dict(re.findall(r"^\| (\S+) \|.*\| ([0-9a-f]{64}) \|$", (vendor / "README.md").read_text(), re.MULTILINE))
    assert told == {
        path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(vendor.glob("*.mjs"), reverse=True)
    }
    assert {path.name for path in vendor.glob("*LICENSE*")} == {"preact-LICENSE.txt", "htm-LICENSE.txt"}
