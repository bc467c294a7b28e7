"""The web page in a real Chromium: ask, see why, teach, watch, browse; by mouse and by keyboard."""

from __future__ import annotations

import os
import re
import shutil

import pytest

from ramify.serve.keys import add_key
from shared.serving import served

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = "the web page is NOT TESTED, because there is no Chromium here: apt-get install chromium"

NOTES = [
    ("acute chest pain on breathing", ["R07.1", "R07"]),
    ("chest pain, unspecified", ["R07.9", "R07"]),
    ("kidney stone", ["N20.0", "N20"]),
    ("stone in the ureter", ["N20.1", "N20"]),
    ("persistent dry cough", ["R05"]),
    ("nosebleed", ["R04.0"]),
] * 40
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip(MISSING)
    with served(tmp_path_factory.mktemp("page") / "diagnoses", "--publish-seconds", "0.05") as service:
        for start in range(0, len(NOTES), 6):
            service.learn(NOTES[start : start + 6])
        service.learn([("hostile", [HOSTILE])])
        service.wait_for_version(len(NOTES) + 1)
        yield service


@pytest.fixture(scope="module")
def browser(service):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(service, browser):
    """The page, which must not report any error of its own."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.set_default_timeout(20_000)
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: message.type == "error" and faults.append(message.text))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.goto(service.address)
    yield page
    picture(page, os.environ.get("PYTEST_CURRENT_TEST", "page").split("::")[-1].split(" ")[0])
    page.close()
    assert faults == []


def picture(page, name):
    """Keep a screenshot if a folder for them is named."""
    folder = os.environ.get("RAMIFY_SCREENSHOTS")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def shows(page, selector, pattern):
    """Wait until the first element shows this text. The page's policy forbids `wait_for_function`: it evaluates."""
    from playwright.sync_api import expect

    expect(page.locator(selector).first).to_contain_text(re.compile(pattern), timeout=20_000)


def type_text(page, text):
    page.fill("#text", text)
    page.wait_for_selector("#answers li", state="attached" if text else "detached")


def test_labels_appear_while_typing(page):
    page.locator("#text").press_sequentially("kidney stone", delay=5)
    shows(page, "#answers .name", r"^N20")
    assert "%" in page.locator("#answers .share").first.text_content()
    assert "Best: N20" in page.locator("#status").text_content()


def test_why_marks_words_and_shows_the_path(page):
    type_text(page, "My Kidney STONE hurts")
    page.locator(".answer").first.click()
    page.wait_for_selector("#why:not([hidden]) mark.for")
    assert "STONE" in page.locator("#marked mark.for").all_text_contents()
    assert page.locator("#marked").text_content() == "My Kidney STONE hurts"
    assert page.locator("#path li").count() >= 1


def test_a_correction_with_a_new_label_changes_the_answer(page, service):
    type_text(page, "glass splinter in the thumb")
    while page.locator("#chosen button").count():
        page.locator("#chosen button").first.click()
    assert "none applies" in page.locator("#none-chosen:visible").text_content()
    page.fill("#add", "S61 open wound")
    page.wait_for_selector("#found li")
    assert "New label" in page.locator("#found li").last.text_content()
    page.locator("#found li").last.click()
    assert page.locator("#chosen li").text_content().startswith("S61 open wound")
    page.click("#learn")
    changed = "#answers li:has-text('S61') .change"
    shows(page, changed, "new in the list")  # see the answer change
    shows(page, "#taught", "^Learned")
    page.click("#learn")
    shows(page, "#answers .name", "^S61")
    shows(page, changed, "rose from")
    service.wait_for_version(service.client.get("/v1/progress").json()["n_examples"])  # labels are those published
    found = service.client.get("/v1/labels", params={"search": "S61"}).json()["labels"]
    assert found[0]["n_examples"] == 2


def test_teaching_by_keyboard_alone(page, service):
    page.focus("#text")
    page.keyboard.type("dry cough at night")
    page.wait_for_selector("#answers li")
    page.focus("#add")
    page.keyboard.type("R04")
    page.wait_for_selector("#found li[aria-selected=true]")
    assert page.get_attribute("#add", "aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    chosen = page.locator("#chosen li").all_text_contents()
    assert any(text.startswith("R04.0") for text in chosen)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "learn"
    page.keyboard.press("Enter")
    shows(page, "#taught", "^Learned")


def test_an_empty_model_asks_for_its_first_label(browser, tmp_path):
    with served(tmp_path / "empty") as service:
        page = browser.new_page()
        page.goto(service.address)
        page.fill("#text", "kidney stone")
        shows(page, "#none-chosen", "add its first one below")
        assert page.locator("#learn").is_disabled()
        page.fill("#add", "N20.0")
        shows(page, "#found li", "New label")
        page.keyboard.press("Enter")
        page.click("#learn")
        shows(page, "#taught", "^Learned and saved")
        shows(page, "#answers .name", "^N20.0")
        page.close()


def test_a_label_that_is_chosen_already_is_said(page):
    type_text(page, "kidney stone")
    page.wait_for_selector("#chosen li:has-text('N20.0')")
    page.fill("#add", "N20.0")
    shows(page, "#taught", "^N20.0 is chosen already")
    page.fill("#add", "R05")
    shows(page, "#found li", "^R05")
    shows(page, "#taught", "^$")


def test_control_and_enter_teach_from_the_text(page):
    type_text(page, "nosebleed again")
    page.focus("#text")
    page.keyboard.press("Control+Enter")
    shows(page, "#taught", "^Learned and saved")


def test_labels_of_one_text_are_not_taught_with_the_next(page, service):
    type_text(page, "kidney stone")
    page.wait_for_selector("#learn:not([disabled])")
    before = service.client.get("/v1/progress").json()["n_examples"]
    held = []
    page.route("**/v1/predict", lambda route: held.append(route))  # no answer yet
    page.fill("#text", "dry cough")
    assert page.locator("#learn").is_disabled()
    page.keyboard.press("Control+Enter")
    shows(page, "#taught", "not here yet")
    assert page.get_attribute("#answers", "aria-busy") == "true"
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    page.wait_for_selector("#learn:not([disabled])")
    shows(page, "#answers .name", "^R05")
    assert page.get_attribute("#answers", "aria-busy") is None
    assert service.client.get("/v1/progress").json()["n_examples"] == before


def test_an_explanation_that_comes_late_is_not_shown(page):
    type_text(page, "kidney stone")
    page.wait_for_selector("#why:not([hidden])")
    held = []
    page.route("**/v1/explain", lambda route: held.append(route) if not held else route.continue_())
    page.fill("#text", "nosebleed")
    while not held:
        page.wait_for_timeout(20)
    page.fill("#text", "persistent dry cough")
    shows(page, "#marked", "persistent dry cough")
    with page.expect_response("**/v1/explain"):
        held[0].continue_()
    page.wait_for_timeout(100)
    assert page.locator("#marked").text_content() == "persistent dry cough"


def test_the_best_label_is_explained_while_typing(page):
    type_text(page, "kidney stone")
    page.wait_for_selector("#why:not([hidden]) mark.for")
    best = page.locator("#answers .name").first.text_content()
    assert page.locator("#why-label").text_content() == best
    assert page.locator(".answer").first.get_attribute("aria-pressed") == "true"
    type_text(page, "")
    page.wait_for_selector("#why", state="hidden")


def test_a_step_of_the_path_opens_its_node_of_the_tree(browser, tmp_path):
    with served(tmp_path / "deep") as service:
        service.learn([(f"word{n}", [f"label {n}"]) for n in range(400)])
        service.wait_for_version(400)
        page = browser.new_page()
        page.goto(service.address)
        page.fill("#text", "word7 word8")
        page.wait_for_selector("#path .link")
        page.locator("#path .link").last.click()
        page.wait_for_selector("#view-tree:not([hidden]) #children li")
        assert page.locator("#crumbs button").count() >= 2
        assert page.evaluate("document.activeElement.id") == "tree-title"
        page.locator("#crumbs button").first.click()
        page.wait_for_selector("#children button")
        page.go_back()
        page.wait_for_selector("#view-ask:not([hidden])")
        page.close()


def test_a_service_that_is_gone_is_said_until_it_is_back(service, browser):
    page = browser.new_page()
    page.goto(service.address)
    shows(page, "#summary", "labels")
    page.route("**/v1/**", lambda route: route.abort())
    page.fill("#text", "kidney")
    shows(page, "#problem", "cannot be reached")
    page.click("[data-view=learning]")
    page.unroute("**/v1/**")
    page.wait_for_selector("#problem", state="hidden", timeout=20_000)
    page.close()


def test_a_service_with_keys_asks_for_one(browser, tmp_path):
    key = add_key(tmp_path / "keys.json", "alice", ["ask", "teach"])
    with served(tmp_path / "team", "--keys", str(tmp_path / "keys.json")) as service:
        page = browser.new_page()
        page.goto(service.address)
        page.wait_for_selector("#key-panel:not([hidden])", timeout=20_000)
        page.fill("#key", key)
        page.keyboard.press("Enter")
        shows(page, "#summary", "0 examples learned, 0 labels")
        page.fill("#text", "first note")
        shows(page, "#no-answers:visible", "no label for this yet")
        page.fill("#add", "first label")
        page.wait_for_selector("#found li")
        page.keyboard.press("Enter")
        page.keyboard.press("Control+Enter")
        shows(page, "#taught", "example 1 of")
        shows(page, "#answers .name", "^first label")
        assert page.evaluate("sessionStorage.getItem('key')") == key
        assert page.evaluate("document.cookie + localStorage.length") == "0"
        page.close()


def test_labels_are_text_and_never_markup(page):
    type_text(page, "hostile")
    shows(page, "#answers", "<img")
    page.locator(".answer").first.click()
    page.wait_for_selector("#why:not([hidden])")
    assert page.locator("img").count() == 0


def test_learning_is_shown(page):
    page.click("[data-view=learning]")
    page.wait_for_selector("#charts svg")
    assert page.locator("#numbers dd").first.text_content() >= "1"
    page.wait_for_selector("#frequent li:nth-child(5)")  # labels come with a request of their own
    assert "P@1" in page.get_attribute("#charts svg", "aria-label")
    assert page.locator("#charts .up").first.text_content() == "100 %50 %0.0 %"


def test_the_tree_is_browsed_down_and_up(page):
    page.click("[data-view=tree]")
    page.wait_for_selector("#children li")
    assert "labels below" in page.locator("#node").text_content()
    assert page.locator("#crumbs button").count() == 1


def test_everything_has_a_name_for_screen_readers(page):
    type_text(page, "kidney stone")
    page.locator(".answer").first.click()
    page.wait_for_selector("#why:not([hidden])")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, textarea, [role=img]')]
            .filter((one) => !one.closest('[hidden]'))
            .filter((one) => !(one.textContent.trim() || one.getAttribute('aria-label') || one.labels?.length))
            .map((one) => one.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("main:visible").count() == 1
    assert page.get_attribute("html", "lang") == "en"


def test_a_narrow_screen_needs_no_sideways_scrolling(page):
    page.set_viewport_size({"width": 340, "height": 700})
    type_text(page, "kidney stone " + "x" * 200)
    page.locator(".answer").first.click()
    page.wait_for_selector("#why:not([hidden])")
    for view in ("ask", "learning", "tree"):
        page.click(f"[data-view={view}]")
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), view
    page.click("[data-view=ask]")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_light_and_dark(page, scheme):
    page.emulate_media(color_scheme=scheme)
    type_text(page, "kidney stone")
    page.locator(".answer").first.click()
    page.wait_for_selector("#why:not([hidden]) mark.for")
    for inside, ground in ((".quiet", ".card"), ("#marked", ".card"), ("mark.for", "mark.for"), ("#learn", "#learn")):
        colours = [
            page.locator(f"{selector}:visible").first.evaluate(f"one => getComputedStyle(one).{what}")
            for selector, what in ((inside, "color"), (ground, "backgroundColor"))
        ]
        assert contrast(*map(numbers, colours)) >= 4.5, (inside, colours)


def numbers(colour):
    return [float(part) for part in colour.partition("(")[2].rstrip(")").split(",")[:3]]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    linear = [v / 255 / 12.92 if v / 255 <= 0.03928 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in colour]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
