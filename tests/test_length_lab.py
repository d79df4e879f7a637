"""The length-generalisation lab: its gradients, its parts, and the ordering that it shows."""

import copy
import io
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import posenc
from posenc import lab

encodings = pytest.mark.parametrize("encoding", lab.ENCODINGS)


def rng(seed=0):
    return np.random.default_rng(seed)


def lively(encoding):
    """A model whose every parameter differs from zero."""
    model = lab.AttentionModel(encoding, rng(1))
    for parameter in model.parameters.values():
        parameter += rng(2).standard_normal(parameter.shape) / 10
    return model


@encodings
@pytest.mark.parametrize("task", lab.TASKS)
def test_gradient_is_that_of_finite_differences(encoding, task):
    model = lively(encoding)
    batch = lab.draw_task(task, 3, 7, rng(3))
    _, gradients = model.loss_and_gradients(*batch)
    assert set(gradients) == set(model.parameters)
    step = 1e-5
    for name, parameter in model.parameters.items():
        assert gradients[name].shape == parameter.shape
        assert gradients[name].dtype == np.float64
        # The entries with the largest gradients, and some drawn from all.
        order = np.argsort(np.abs(gradients[name]), axis=None)
        drawn = rng(4).choice(parameter.size, min(8, parameter.size), replace=False)
        for flat in {*order[-8:].tolist(), *drawn.tolist()}:
            index = np.unravel_index(flat, parameter.shape)
            value = parameter[index]
            losses = []
            for moved in (value + step, value - step):
                parameter[index] = moved
                losses.append(model.loss_and_gradients(*batch)[0])
            parameter[index] = value
            slope = (losses[0] - losses[1]) / (2 * step)
            assert gradients[name][index] == pytest.approx(slope, rel=1e-6, abs=2e-10)


def test_gradient_of_an_extended_model_is_right_too():
    model = lab.extend(lively("rope"), "ntk", 4)
    model.sharpness = 1.7
    batch = lab.draw_task("copy-1", 3, 7, rng(3))
    _, gradients = model.loss_and_gradients(*batch)
    for name in ("w_q", "w_k"):
        parameter, step = model.parameters[name], 1e-5
        losses = []
        for sign in (1, -1):
            parameter[3, 5] += sign * step
            losses.append(model.loss_and_gradients(*batch)[0])
            parameter[3, 5] -= sign * step
        slope = (losses[0] - losses[1]) / (2 * step)
        assert gradients[name][3, 5] == pytest.approx(slope, rel=1e-6)


def test_rows_that_do_not_count_have_no_say():
    model = lively("learned")
    tokens, targets, scored = lab.draw_task("copy-3", 2, 8, rng(5))
    other = targets.copy()
    other[:, ~scored] = (other[:, ~scored] + 1) % lab.VOCABULARY
    first, second = (model.loss_and_gradients(tokens, t, scored) for t in (targets, other))
    assert first[0] == second[0]
    for name in first[1]:
        np.testing.assert_array_equal(first[1][name], second[1][name])


def test_loss_of_a_model_that_guesses_is_the_logarithm_of_sixteen():
    model = lab.AttentionModel("none", rng())
    model.parameters["readout"][:] = 0
    loss, _ = model.loss_and_gradients(*lab.draw_task("copy-1", 2, 9, rng()))
    assert loss == pytest.approx(math.log(16))


@encodings
def test_model_is_attention_with_that_encoding(encoding):
    model, positions = lively(encoding), np.arange(5, 17)
    p = model.parameters
    tokens = rng(6).integers(0, 16, (2, 12))
    x = p["embedding"][tokens]
    if encoding == "learned":
        x = x + p["positions"][positions]
    if encoding == "sinusoidal":
        x = posenc.add_positions(x, posenc.sinusoidal_table(40, 32), start=5)
    if encoding in ("learned", "sinusoidal", "none"):
        mixed, _ = posenc.self_attention(x, p["w_q"], p["w_k"], p["w_v"], causal=True)
    else:
        queries, keys = x @ p["w_q"], x @ p["w_k"]
        if encoding == "rope":
            scores = posenc.rope_scores(queries, keys, positions, positions)
        else:
            scores = queries @ np.swapaxes(keys, 1, 2) / math.sqrt(32)
        distance = positions[:, np.newaxis] - positions
        if encoding == "alibi":
            scores = scores - distance / 2
        if encoding == "t5":
            # Below 16 each distance has a bucket of its own.
            scores = scores + p["biases"][np.maximum(distance, 0)]
        scores[:, distance < 0] = -np.inf
        mixed = posenc.softmax(scores) @ (x @ p["w_v"])
    expected = mixed @ p["w_o"] @ p["readout"]
    np.testing.assert_allclose(model.logits(tokens, start=5), expected, atol=1e-12)


@pytest.mark.parametrize("encoding", ["rope", "t5", "alibi", "none"])
def test_relative_encodings_do_not_see_where_a_sequence_starts(encoding):
    model, tokens = lively(encoding), rng(7).integers(0, 16, (2, 20))
    moved = model.logits(tokens, start=100)
    np.testing.assert_allclose(moved, model.logits(tokens), atol=1e-10)


@pytest.mark.parametrize("encoding", ["learned", "sinusoidal"])
def test_absolute_encodings_do(encoding):
    model, tokens = lively(encoding), rng(7).integers(0, 16, (2, 20))
    assert np.abs(model.logits(tokens, start=100) - model.logits(tokens)).max() > 0.1


@pytest.mark.parametrize("distance", [1, 3])
def test_copying_asks_for_an_earlier_token(distance):
    tokens, targets, scored = lab.draw_task(f"copy-{distance}", 4, 10, rng())
    assert tokens.shape == targets.shape == (4, 10)
    assert scored.tolist() == [False] * distance + [True] * (10 - distance)
    np.testing.assert_array_equal(targets[:, scored], tokens[:, :-distance])


def test_index_task_asks_for_the_position():
    _, targets, scored = lab.draw_task("index-mod-4", 2, 6, rng(), start=9)
    assert targets.tolist() == [[1, 2, 3, 0, 1, 2]] * 2
    assert scored.all()


def test_adam_follows_the_algorithm_of_its_paper():
    gradients = rng(8).standard_normal(20)
    parameters = {"x": np.array([0.5])}
    adam = lab.Adam(parameters)
    theta, m, v = 0.5, 0.0, 0.0
    for t, g in enumerate(gradients, start=1):
        adam.step({"x": np.array([g])}, 0.01)
        m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
        theta -= 0.01 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.98**t)) + 1e-9)
    assert parameters["x"][0] == pytest.approx(theta, abs=1e-14)


def test_training_is_the_same_from_the_same_seed_and_another_from_another():
    (first, losses), (again, same), (_, other) = (
        lab.train("rope", "copy-1", seed=seed, steps=8, batch=4) for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(losses, same)
    np.testing.assert_array_equal(first.parameters["w_q"], again.parameters["w_q"])
    assert (losses != other).all()


def test_training_tells_how_far_it_is():
    seen = []
    lab.train("none", "copy-1", steps=4, batch=1, report=seen.append)
    assert seen == [1, 2, 3, 4]


def test_accuracy_counts_the_rows_asked_for():
    model = lab.AttentionModel("none", rng())
    model.parameters["readout"][:] = 0
    tokens, _, _ = lab.draw_task("copy-1", 64, 20, rng(1000))
    # All logits are equal, so the answer is always token 0.
    assert lab.accuracy(model, "copy-1", 20) == np.mean(tokens[:, :-1] == 0)
    assert lab.accuracy(model, "copy-1", 20, first=15) == np.mean(tokens[:, 14:-1] == 0)
    assert lab.accuracy(model, "index-mod-4", 1, start=8) == 1
    assert lab.accuracy(model, "index-mod-4", 1, start=9) == 0


def test_extensions_change_frequencies_as_they_say():
    model = lab.AttentionModel("rope", rng())
    before = model.frequencies.copy()
    ratios = {name: lab.extend(model, name, 4).frequencies / before for name in lab.EXTENSIONS}
    np.testing.assert_array_equal(ratios["none"], 1)
    np.testing.assert_array_equal(ratios["log-n"], 1)
    np.testing.assert_allclose(ratios["pi"], 1 / 4)
    np.testing.assert_allclose(ratios["ntk"], 4.0 ** (-np.arange(16) / 15))
    turns = 32 * before / (2 * np.pi)
    share = np.clip((turns - 0.25) / (2 - 0.25), 0, 1)
    np.testing.assert_allclose(ratios["by-parts"], share + (1 - share) / 4)
    assert lab.extend(model, "log-n", 4).sharpness == pytest.approx(math.log(128, 32))
    np.testing.assert_array_equal(model.frequencies, before)
    assert model.sharpness == 1
    assert lab.extend(model, "pi", 4).parameters is model.parameters


@pytest.fixture(scope="module")
def copying():
    """The short form, from one seed."""
    results = lab.run(tasks=["copy-1"])
    return {
        name: {measure: seeds[0] for measure, seeds in measured.items()}
        for name, measured in results["length"]["copy-1"].items()
    }, {
        name: {factor: seeds[0] for factor, seeds in factors.items()}
        for name, factors in results["extension"]["copy-1"].items()
    }


def test_all_but_the_model_without_positions_learn_to_copy(copying):
    accuracies, _ = copying
    for encoding in ("learned", "sinusoidal", "rope", "t5", "alibi"):
        assert accuracies[encoding]["32"] > 0.95
    assert accuracies["none"]["32"] < 0.4


def test_absolute_encodings_guess_beyond_the_trained_length(copying):
    accuracies, _ = copying
    for encoding in ("learned", "sinusoidal"):
        assert accuracies[encoding]["rows 64-127"] < 0.2
        assert accuracies[encoding]["32 from 64"] < 0.7


def test_relative_encodings_go_on_and_alibi_furthest(copying):
    accuracies, _ = copying
    at_128 = {encoding: measured["128"] for encoding, measured in accuracies.items()}
    for encoding in ("rope", "t5"):
        assert at_128[encoding] > 0.2 + max(at_128[name] for name in ("learned", "sinusoidal"))
        assert accuracies[encoding]["32 from 64"] > 0.95
        assert at_128["alibi"] > at_128[encoding] + 0.02
    assert at_128["none"] < 0.25 < at_128["learned"]


def test_extension_without_training_is_ordered(copying):
    _, accuracies = copying
    at_4, at_8 = ({name: row[factor] for name, row in accuracies.items()} for factor in "48")
    assert at_4["pi"] + 0.2 < at_4["none"] < at_4["ntk"] - 0.02
    assert at_8["pi"] + 0.2 < at_8["none"] < at_8["by-parts"] - 0.05
    assert at_8["ntk"] + 0.05 < at_8["by-parts"]
    assert at_4["by-parts"] > at_4["none"] + 0.02


@pytest.mark.slow
def test_no_encoding_wins_every_task():
    results = lab.run(tasks=["copy-3", "index-mod-4"])
    copied, index = (
        {name: row["32"][0] for name, row in results["length"][task].items()}
        for task in ("copy-3", "index-mod-4")
    )
    # One slope prefers the nearest token, and can't be made to prefer the third.
    assert copied["alibi"] < 0.2
    for encoding in ("learned", "sinusoidal", "rope", "t5"):
        assert copied[encoding] > 0.9
    # What only knows distances can't say where it is; a quarter would be a guess.
    for encoding in ("rope", "t5", "alibi", "none"):
        assert index[encoding] < 0.4
    assert index["learned"] > 0.9
    assert 0.5 < index["sinusoidal"] < 0.95
    longer = results["extension"]["copy-3"]
    assert longer["pi"]["4"][0] + 0.5 < longer["none"]["4"][0] < longer["by-parts"]["4"][0]


def quick(**changed):
    return lab.run(
        **{"tasks": ["copy-1"], "encodings": ["rope"], "steps": 2, "batch": 1, **changed}
    )


@pytest.fixture(scope="module")
def untrained():
    return quick(seeds=[0, 1])


def test_results_are_what_json_holds(untrained):
    results = untrained
    assert json.loads(json.dumps(results)) == results
    assert results["settings"] == {"steps": 2, "batch": 1, "seeds": [0, 1]}
    assert list(results["length"]["copy-1"]["rope"]) == list(lab.MEASURES)
    assert all(len(seeds) == 2 for seeds in results["length"]["copy-1"]["rope"].values())
    assert list(results["extension"]["copy-1"]) == list(lab.EXTENSIONS)
    assert list(results["extension"]["copy-1"]["pi"]) == ["1", "2", "4", "8"]
    assert len(results["loss"]["copy-1"]["rope"]) == 2


def test_only_rope_is_extended_and_only_where_it_copies():
    assert quick(encodings=["none"])["extension"] == {}
    assert quick(tasks=["index-mod-4"])["extension"] == {}


def test_table_shows_means_over_seeds(untrained):
    results = copy.deepcopy(untrained)
    results["length"]["copy-1"]["rope"]["64"] = [0.25, 0.75]
    results["extension"]["copy-1"]["pi"]["8"] = [0.125, 0.25]
    text = lab.table(results)
    heading, row = text.splitlines()[1:3]
    assert row.split()[0] == "rope"
    assert row.split()[heading.split().index("64")] == "0.500"
    (extension,) = [line for line in text.splitlines() if line.startswith("pi")]
    assert extension.split()[-1] == "0.188"
    assert len({len(line) for line in text.splitlines()[1:3]}) == 1


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_in_a_file_is_a_plain_line_a_model():
    file = io.StringIO()
    quick(encodings=["none"], seeds=[0, 1], progress=file)
    first, second = file.getvalue().splitlines()
    assert first == "  0%: copy-1, none, seed 0"
    assert second.startswith(" 50%, ")
    assert second.endswith(" s left: copy-1, none, seed 1")


def test_progress_on_a_terminal_is_a_bar_that_goes_away():
    terminal = Terminal()
    quick(encodings=["none"], seeds=[0, 1], progress=terminal)
    shown = terminal.getvalue()
    assert "\n" not in shown
    assert shown.count("\r") >= 3
    assert f"[{'#' * 10}{' ' * 10}] 50%, " in shown
    assert shown.endswith("\r\x1b[K")


def test_without_a_place_for_it_there_is_no_progress(capsys):
    quick(encodings=["none"])
    assert capsys.readouterr() == ("", "")


def test_long_form_prints_tables_and_writes_json(tmp_path):
    file = tmp_path / "new" / "lab.json"
    words = [sys.executable, "-m", "posenc.lab", "--steps", "1", "--batch", "1", "--seeds", "1"]
    done = subprocess.run(
        [*words, "--out", str(file)],
        cwd=Path(lab.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "copy-3: RoPE, extended without training" in done.stdout
    assert str(file) in done.stdout.splitlines()[-1]
    assert len(done.stderr.splitlines()) == len(lab.TASKS) * len(lab.ENCODINGS)
    assert set(json.loads(file.read_text("utf-8"))) == {"settings", "loss", "length", "extension"}


@pytest.mark.parametrize("word", ["0", "-3", "many"])
def test_long_form_refuses_a_number_of_steps_in_one_sentence(word, capsys):
    with pytest.raises(SystemExit):
        lab.main(["--steps", word])
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"argument --steps: must be a whole number above 0, got '{word}'" in said


def test_long_form_that_is_stopped_says_so(tmp_path, monkeypatch):
    def interrupted(**options):
        raise KeyboardInterrupt

    monkeypatch.setattr(lab, "run", interrupted)
    with pytest.raises(SystemExit, match="nothing was written"):
        lab.main(["--out", str(tmp_path / "lab.json")])
    assert not list(tmp_path.iterdir())
