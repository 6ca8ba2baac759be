"""One [[expect]] with `each` is as many expectations as it makes combinations."""

from __future__ import annotations

import pytest

from peerlearn.errors import InputError
from peerlearn.lab.file.expecting import count_expectations, for_each
from peerlearn.toml_reader import TomlTable


def written_out(**values):
    return [each.values for each in for_each(TomlTable(values, "mine.toml", "expect[1]."))]


def test_without_each_nothing_changes():
    entry = {"source": "table 1", "where": {"data": "g50c"}, "value": 0.1}
    assert written_out(**entry) == [entry]


def test_numbers_are_given_in_the_order_of_combinations_the_last_key_fastest():
    found = written_out(
        source=["table 1", "table 1", "table 2", "table 2"],
        each={"data": ["a", "b"], "alpha": [0.1, 0.2]},
        where={"model": "ESN"},
        value=[1, 2, 3, 4],
        spread=0.5,
    )
    assert [
        (each["source"], each["where"]["data"], each["where"]["alpha"], each["value"])
        for each in found
    ] == [
        ("table 1", "a", 0.1, 1),
        ("table 1", "a", 0.2, 2),
        ("table 2", "b", 0.1, 3),
        ("table 2", "b", 0.2, 4),
    ]
    assert all(
        each["where"]["model"] == "ESN" and each["spread"] == 0.5 and "to" not in each
        for each in found
    )
    assert not any("each" in each for each in found)


def test_both_sides_of_a_claim_get_the_values_but_for_those_that_the_other_has_itself():
    found = written_out(
        each={"data": ["a", "b"], "agents": [5, 10]},
        where={"model": "CONS"},
        relation="below",
        to={"model": "L", "agents": 5},
    )
    assert [each["where"] for each in found] == [
        {"model": "CONS", "data": data, "agents": agents} for data in "ab" for agents in (5, 10)
    ]
    assert [each["to"] for each in found] == [
        {"model": "L", "data": data, "agents": 5} for data in "aabb"
    ]


def test_a_list_in_where_still_means_any_of_them():
    (found,) = written_out(each={"data": ["a"]}, where={"model": ["x", "y"]}, value=1)
    assert found["where"] == {"data": "a", "model": ["x", "y"]}


def test_a_claim_without_another_side_stays_without_one():
    (found,) = written_out(each={"data": ["a"]}, where={"model": "x"}, relation="below")
    assert "to" not in found  # which checking refuses


def test_a_list_of_another_length_is_refused():
    with pytest.raises(
        InputError, match=r"expect\[1\].spread in mine.toml has 3 items, and `each` makes 2"
    ):
        written_out(each={"data": ["a", "b"]}, where={}, value=[1, 2], spread=[1, 2, 3])


def test_how_many_expectations_a_file_has():
    assert (
        count_expectations([{"value": 1}, {"each": {"data": ["a", "b"], "alpha": [1, 2, 3]}}]) == 7
    )
