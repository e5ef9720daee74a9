import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

import dtflab as tf
from dtflab import viz
from dtflab.graph.node import Node
from dtflab.runtime.placer import place
from dtflab.viz.drawing.palette import in_order, look
from dtflab.viz.drawing.svg import text_width
from tests.viz.programs import PS, mlp, traced, worker

SVG = "{http://www.w3.org/2000/svg}"


def towers():
    return mlp(prefix="a/") + mlp(task=1, prefix="b/")


PICTURES = {
    "mlp": lambda: viz.placement(mlp()),
    "all ops": lambda: viz.placement(mlp((64, 80, 40, 10)), max_boxes=200),
    "towers": lambda: viz.placement(towers()),
    "a single op": lambda: viz.placement([Node("a", "Const", device=PS)]),
    "not placed": lambda: viz.placement([Node("a", "Const"), Node("b", "Neg", [("a", 0)])]),
    "timeline": lambda: viz.timeline(traced(mlp())),
    "timeline of two workers": lambda: viz.timeline(traced(towers())),
}


@pytest.fixture(params=PICTURES, scope="module")
def picture(request):
    return PICTURES[request.param]()


def texts(root):
    """Every text with its extent on the page, groups' translations added."""

    def walk(element, dx, dy):
        move = re.match(r"translate\(([-\d.]+) ([-\d.]+)\)", element.get("transform", ""))
        if move:
            dx, dy = dx + float(move[1]), dy + float(move[2])
        if element.tag == SVG + "text" and element.text:
            classes = element.get("class", "").split()
            size = 11 if "s11" in classes else 14 if "14px" in element.get("style", "") else 12
            width = text_width(element.text, size, "b" in classes)
            x = float(element.get("x")) + dx - width * ("end" in classes) - width / 2 * ("mid" in classes)
            y = float(element.get("y")) + dy
            yield element, (x, y - size * 0.8, x + width, y + size * 0.25)
        for child in element:
            yield from walk(child, dx, dy)

    yield from walk(root, 0, 0)


def test_every_form_is_well_formed(picture):
    root = ET.fromstring(picture.svg.partition("\n")[2])
    assert root.tag == SVG + "svg" and root.get("role") == "img"
    assert root.get("aria-label") == picture.sentence and len(picture.sentence) > 20
    page = ET.fromstring(f"<page>{picture.html}</page>")
    (svg,) = page.iter(SVG + "svg")
    assert svg.get("role") == "img" and svg.get("aria-label") == picture.sentence
    assert all(table.findall("thead/tr/th[@scope='col']") for table in page.iter("table"))
    assert page.find("div/details/summary").text and page.find("div/details/table/tbody/tr/td") is not None


def test_html_is_static_and_alone(picture):
    found = []

    class Reader(HTMLParser):
        def handle_starttag(self, name, attrs):
            found.append(name)
            assert not [key for key, _ in attrs if key.startswith("on") or key in ("id", "href")]
            assert all(value.startswith("data:") for key, value in attrs if key == "src")
            assert name != "script" or dict(attrs) == {"type": "application/json", "class": "dtf-data"}

    Reader().feed(picture.html)
    assert not {"iframe", "link", "object", "foreignobject"} & set(found)
    assert "url(" not in picture.html


def test_text_is_legible_inside_the_page_and_apart(picture):
    root = ET.fromstring(picture.svg.partition("\n")[2])
    width, height = float(root.get("width")), float(root.get("height"))
    placed = [(element.text, box) for element, box in texts(root)]
    assert all(min(x, y) >= 0 and right <= width and bottom <= height for _, (x, y, right, bottom) in placed)
    overlapping = [
        (a, b)
        for i, (a, p) in enumerate(placed)
        for b, q in placed[:i]
        if p[0] < q[2] - 1 and q[0] < p[2] - 1 and p[1] < q[3] - 1 and q[1] < p[3] - 1
    ]
    assert overlapping == []
    assert set(re.findall(r"font-size:(\d+)px", picture.svg)) <= {"11", "12", "14"}


def test_labels_stay_inside_their_boxes():
    root = ET.fromstring(viz.placement(mlp(), max_boxes=200).svg.partition("\n")[2])
    boxes = [g for g in root.iter(SVG + "g") if any(r.get("class") == "box" for r in g.findall(SVG + "rect"))]
    assert len(boxes) > 30
    for group in boxes:
        rect = next(r for r in group.findall(SVG + "rect") if r.get("class") == "box")
        left, right = float(rect.get("x")), float(rect.get("x")) + float(rect.get("width"))
        for text in group.findall(SVG + "text"):
            classes = text.get("class", "").split()
            width = text_width(text.text, 11 if "s11" in classes else 12, "b" in classes)
            x = float(text.get("x")) - width * ("end" in classes) - width / 2 * ("mid" in classes)
            assert left <= x and x + width <= right, text.text


def test_the_same_data_give_the_same_picture():
    for make in PICTURES.values():
        assert make().html == make().html


def test_names_are_escaped_everywhere():
    evil = '<b onclick="x">&\x07'
    nodes = [Node(evil, "Const", device=PS), Node(f"{evil}/</svg>", "Neg", [(evil, 0)], device=worker())]
    picture = viz.placement(nodes)
    ET.fromstring(picture.svg.partition("\n")[2])
    page = ET.fromstring(f"<page>{picture.html}</page>")
    assert not list(page.iter("b")) and not list(page.iter(SVG + "b"))
    assert any("<b onclick" in (title.text or "") for title in page.iter(SVG + "title"))


def test_what_crosses_devices_is_seen():
    picture = viz.placement([Node("a", "Const", device=PS), Node("b", "Neg", [("a", 0)], device=worker())])
    assert picture.sentence == "Graph of 2 ops on 2 devices, 1 tensor sent between them: ps:0 1 op, worker:0 1 op."
    assert "a:0 → b (ps:0 → worker:0)" in picture.svg
    assert f'class="x" stroke="{look(PS).colour.line}"' in picture.svg
    assert picture.tables[1] == ("Tensors sent between devices", ("tensor", "from", "to", "used by"),
                                 [["a:0", "ps:0", "worker:0", "b"]])  # fmt: skip


def test_ops_without_a_device_are_on_none():
    with tf.Graph().as_default() as graph:
        a = tf.constant(1.0, name="a")
        assert tf.viz.placement(graph).sentence.startswith("Graph of 1 op: not placed 1 op.")
        with tf.device("/job:worker/task:7"):
            tf.negative(a, name="b")
    assert tf.viz.placement(graph).sentence.startswith("Graph of 2 ops on 1 device, 1 not placed: worker:7 1 op,")


def test_closed_groups_say_how_much_they_hold():
    picture = viz.placement(mlp(), max_boxes=1)
    assert "ops</text>" in picture.svg
    total = sum(map(int, re.findall(r'class="s11 soft end">(\d+) ops?<', picture.svg)))
    assert 0 < total <= len(mlp())


def test_plain_text_lists_ops_by_device():
    text = repr(viz.placement(mlp()))
    assert text.splitlines()[1].split() == ["device", "ops", "names"]
    assert text.splitlines()[2].startswith(PS) and "layer1/weights" in text
    bundle = viz.placement(mlp())._repr_mimebundle_()
    assert bundle.keys() == {"text/plain", "text/html"} and bundle["text/plain"] == text


def test_reasons_are_told():
    nodes = [Node("a", "Const", device=PS), Node("s/b", "Neg", [("a", 0)], device=worker()),
             Node("s/c", "Neg", [("s/b", 0)], device=worker())]  # fmt: skip
    reasons = {"a": "pinned to /job:ps", "s/b": "default device", "s/c": "default device"}
    picture = viz.placement(nodes, reasons=reasons, max_boxes=2)
    titles = [title.text for title in ET.fromstring(picture.svg.partition("\n")[2]).iter(SVG + "title")]
    assert any(title.splitlines() == ["a = Const", PS, "pinned to /job:ps"] for title in titles)
    assert any("s/b = Neg: default device\ns/c = Neg: default device" in title for title in titles)
    _, heads, rows = picture.tables[0]
    assert heads[-1] == "why" and [row[-1] for row in rows] == ["pinned to /job:ps", "default device", "default device"]
    said = [line.split() for line in repr(picture).splitlines()]
    assert ["default", "device", "2", "s/b,", "s/c"] in said and ["pinned", "to", "/job:ps", "1", "a"] in said


def test_the_placers_result_brings_its_reasons():
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="a")
    where = place(graph.nodes(), ["/job:localhost/replica:0/task:0/device:CPU:0"], "/job:localhost/replica:0/task:0")
    assert viz.placement(graph, where).tables[0][2][0][-1] == "the only device"
    assert "why" not in viz.placement(graph, dict(where)).tables[0][1]


def test_many_reasons_are_not_all_listed():
    nodes = [Node(f"n{i}", "Const", device=PS) for i in range(20)]
    text = repr(viz.placement(nodes, reasons={node.name: f"because {node.name}" for node in nodes}))
    assert text.count("because") == 12 and text.endswith("8 more reasons: see the table")


def test_save(tmp_path):
    picture = viz.placement(mlp())
    picture.save(tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_text(encoding="utf-8") == picture.svg
    picture.save(str(tmp_path / "p.html"))
    assert picture.html in (tmp_path / "p.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"saved as \.svg, \.png or \.html, not 'p\.jpg'"):
        picture.save(tmp_path / "p.jpg")
    with pytest.raises(tf.errors.NotFoundError, match=r"none.p\.svg; No such file or directory"):
        picture.save(tmp_path / "none" / "p.svg")


def test_wrong_input():
    with pytest.raises(ValueError, match="The graph is empty"):
        viz.placement([])
    with pytest.raises(ValueError, match=r"max_boxes must be at least 1, not 0\. Leave it out"):
        viz.placement(mlp(), max_boxes=0)


def test_a_session_says_where_ops_really_are():
    with tf.Graph().as_default() as graph, tf.Cluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps"):
            far = tf.constant(1.0, name="far")
        here = tf.add(tf.constant(2.0, name="near"), far, name="sum")
        with tf.Session(cluster.target) as session:
            for what in (None, graph, here, [here]):
                text = viz.placement(what, session).text
                assert "2 devices" in text and "no device" not in text
                assert re.search(r"/job:worker/replica:0/task:0/device:CPU:0 .*near, sum", text), text
                assert re.search(r"/job:ps/replica:0/task:0/device:CPU:0 .*far", text), text
                assert "default device" in text or "asks for" in text or "pinned" in text, "and why"
        with tf.Graph().as_default() as other, tf.Session() as stranger:
            x = tf.constant(1.0)
        for what in (here, graph):
            with pytest.raises(ValueError, match=r"another graph. Draw its own: viz.placement\(sess.graph, sess\)"):
                viz.placement(what, stranger)
        assert x.graph is other


def test_a_placement_that_is_none_says_what_is_wanted():
    with pytest.raises(TypeError, match="must be a dict from op names to devices, or a session, not of type str"):
        viz.placement(mlp(), "/cpu:0")


def test_a_device_looks_the_same_in_every_picture():
    assert look(PS) == look(PS) and look(PS).letter == "P0" and look(PS).label == "ps:0"
    colours = {look(d).colour.fill for d in (PS, worker(0), worker(1), worker(2))}
    assert len(colours) == 4
    gpu = look("/job:worker/replica:0/task:1/device:GPU:2")
    assert (gpu.letter, gpu.label, gpu.hatched) == ("W1g2", "worker:1 GPU:2", True)
    local = [look(f"/job:localhost/replica:0/task:0/device:{d}") for d in ("CPU:0", "GPU:0", "GPU:1")]
    assert [one.label for one in local] == ["CPU:0", "GPU:0", "GPU:1"]
    assert len({one.colour for one in local}) == 3 and [one.hatched for one in local] == [False, True, True]
    assert look("").label == "not placed" and look("nonsense").label == "nonsense"


def test_devices_are_listed_as_people_do():
    assert in_order([worker(10), worker(2), "", PS]) == [PS, worker(2), worker(10), ""]


def test_only_what_is_in_a_scope():
    with tf.Graph().as_default() as graph:
        with tf.name_scope("net"):
            x = tf.constant(1.0, name="x")
        tf.negative(x, name="network")
    assert viz.placement(graph, scope="net/").tables[0][2] == [["not placed", "net/x", "Const", ""]]
    with pytest.raises(ValueError, match="No op of this graph is in the scope 'nett'"):
        viz.placement(graph, scope="nett")


def test_only_the_columns_of_a_graph_with_gradients_rise():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 2], name="start")
        for i in range(30):
            x = tf.matmul(x, x, name=f"op{i}")
        forward = tf.viz.placement(graph, max_boxes=60).svg
    heights = [float(re.search(rf'y="([\d.]+)">op{i}<', forward)[1]) for i in range(30)]
    turned = [i for i in range(29) if heights[i + 1] < heights[i]]
    assert 1 <= len(turned) <= 3, "down every column"
