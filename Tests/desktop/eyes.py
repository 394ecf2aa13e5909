"""A user's eyes and hands over the accessibility tree (AT-SPI), as a screen reader sees the app.

Debian's Python runs this file, because it has the bindings (`gi`); the tests talk to it in lines of
JSON: {"do": name, ...} -> {"ok": value} or {"failed": text}.
"""

import json
import sys

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib  # noqa: E402

CLICKABLE = ("click", "activate", "press", "toggle")


def app_of(pid):
    desktop = Atspi.get_desktop(0)
    for index in range(desktop.get_child_count()):
        app = desktop.get_child_at_index(index)
        if app is not None and app.get_process_id() == pid:
            return app
    return None


def walk(node):
    """Everything that is on the screen: (node, role, name)."""
    if node is None:
        return
    try:
        yield node, node.get_role_name(), node.get_name() or ""
        for index in range(node.get_child_count()):
            yield from walk(node.get_child_at_index(index))
    except GLib.Error:  # the widget is gone meanwhile
        return


def text_of(node):
    try:
        return Atspi.Text.get_text(node, 0, Atspi.Text.get_character_count(node))
    except GLib.Error:
        return ""


def words_of(node):
    """What the labels below this say."""
    return [name for _, role, name in walk(node) if role == "label" and name.strip()]


class Eyes:
    def __init__(self):
        self.pid = 0

    def nodes(self):
        Atspi.Accessible.clear_cache(Atspi.get_desktop(0))
        app = app_of(self.pid)
        if app is None:
            return
        app.clear_cache()
        # A dialog is modal: its window is the newest one, and the only one that takes clicks.
        windows = [app.get_child_at_index(index) for index in range(app.get_child_count())]
        if windows:
            yield from walk(windows[-1])

    def attach(self, pid):
        self.pid = pid
        return app_of(pid) is not None

    def texts(self):
        return [[role, name, text_of(node)] for node, role, name in self.nodes()]

    def find(self, name, role=None, part=False):
        for node, found_role, found in self.nodes():
            # The buttons of libadwaita's dialogs have their label twice: one per layout.
            same = found in (name, f"{name} {name}") or (part and name in found)
            if same and (role is None or role == found_role):
                return node
        return None

    def click(self, name, role=None, part=False):
        node = self.find(name, role, part)
        if node is None:
            return False
        if not node.get_state_set().contains(Atspi.StateType.SENSITIVE):
            return False
        try:
            for index in range(Atspi.Action.get_n_actions(node)):
                if Atspi.Action.get_action_name(node, index).lower() in CLICKABLE:
                    return Atspi.Action.do_action(node, index)
        except GLib.Error:
            pass
        # GTK 4.8 gives the rows of a list no action: the mouse clicks on the middle of the row.
        place = Atspi.Component.get_extents(node, Atspi.CoordType.WINDOW)
        return [place.x + place.width // 2, place.y + place.height // 2]

    def focused(self):
        for node, role, name in self.nodes():
            if node.get_state_set().contains(Atspi.StateType.FOCUSED):
                return [role, name]
        return None

    def sticking_out(self, width):
        """What is wider than the window. GTK gives the content its least width, also if that is more."""
        found = []
        whole = 0
        for node, role, name in self.nodes():
            try:
                place = Atspi.Component.get_extents(node, Atspi.CoordType.WINDOW)
            except GLib.Error:  # it has no place, as a page of a stack
                continue
            if role != "frame" and whole == 0:
                whole = place.width
            if place.width > width:
                found.append(f"{role} {name}: {place.width}")
        return found if whole > width else []

    def lines(self, name):
        """What is said of the entry that begins so: its name, and its description."""
        for node, role, found in self.nodes():
            if role == "list item" and found.startswith(name):
                return [found, node.get_description() or ""]
        return []

    def wordless(self):
        """The buttons that show a picture and no word. Those of the window itself are known."""
        window = ("Minimize", "Maximize", "Close")
        return [
            name
            for node, role, name in self.nodes()
            if role in ("push button", "toggle button")
            and name not in window
            and not words_of(node)
        ]

    def type(self, name, text, role=None):
        node = self.find(name, role)
        if node is None:
            return False
        return Atspi.EditableText.set_text_contents(node, text)


def main():
    eyes = Eyes()
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = {"ok": getattr(eyes, order.pop("do"))(**order)}
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
