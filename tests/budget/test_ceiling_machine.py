"""The ceiling under any interleaving: every answer and every amount as a fold from scratch, over all that was said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from proctor.budget.ceiling import Ceiling, Limits, ModelLimits, Scope
from proctor.core.money import Usd

# small amounts: so that sums come to lie on the limits, and one beside them
AMOUNTS = st.integers(0, 12)
MODELS = st.sampled_from(["one", "two"])


@dataclass
class Said:
    """A block as the test remembers it: only what was admitted, held and charged, no sums."""

    model: str
    reserve: int
    charged: list[int] = field(default_factory=list)
    holds: dict[str, int] = field(default_factory=dict)

    @property
    def open(self) -> int:
        return max(self.reserve - sum(self.charged), sum(self.holds.values()))


class Interleavings(RuleBasedStateMachine):
    blocks = Bundle("blocks")
    exchanges = Bundle("exchanges")

    @initialize(
        before=AMOUNTS,
        cap=st.integers(0, 40),
        margin=AMOUNTS,
        caps=st.tuples(st.integers(0, 30), st.integers(0, 30)),
        reserves=st.tuples(AMOUNTS, AMOUNTS),
        past=st.dictionaries(MODELS, AMOUNTS),
    )
    def begin(
        self,
        before: int,
        cap: int,
        margin: int,
        caps: tuple[int, int],
        reserves: tuple[int, int],
        past: dict[str, int],
    ) -> None:
        limits = {
            name: ModelLimits(Usd(most), Usd(reserve))
            for name, most, reserve in zip(["one", "two"], caps, reserves, strict=True)
        }
        self.limits = limits
        self.before, self.cap, self.hard = before, cap, cap + margin
        self.past = past
        self.ceiling = Ceiling(Limits(Usd(before), Usd(cap), Usd(margin), limits), past)
        self.said: dict[int, Said] = {}
        self.ended: list[Said] = []
        self.overran = self.ceiling_said = self.cap_said = False
        self.crossed = self.total >= self.hard
        self.models_said: set[str] = set()
        self.numbers = 0

    @property
    def all(self) -> list[Said]:
        return [*self.said.values(), *self.ended]

    def settled(self, model: str | None = None) -> int:
        return sum(sum(b.charged) for b in self.all if model in (None, b.model)) + sum(
            amount for name, amount in self.past.items() if model in (None, name)
        )

    def open(self, model: str | None = None) -> int:
        return sum(b.open for b in self.said.values() if model in (None, b.model))

    @property
    def total(self) -> int:
        return self.before + self.settled() + self.open()

    @rule(target=blocks, model=MODELS, empty=st.booleans())
    def admit(self, model: str, empty: bool) -> int:
        self.numbers += 1
        index = self.numbers
        reserve = 0 if empty else self.limits[model].reserve.pico
        most = self.limits[model].cap.pico
        fits = self.total + reserve <= self.cap
        fits_model = self.settled(model) + self.open(model) + reserve <= most
        never = self.before + self.settled() + reserve > self.cap
        never_model = self.settled(model) + reserve > most
        stopped = self.crossed or self.overran or self.ceiling_said or self.cap_said or model in self.models_said
        denial = self.ceiling.admit_block(index, model, empty=empty)
        assert (denial is None) == (empty or (not stopped and fits and fits_model))
        if denial is None:
            self.said[index] = Said(model, reserve)
            return index
        assert denial.final == (stopped or never or never_model)
        if not stopped:
            wanted = (denial.spent.pico, denial.wanted.pico, denial.limit.pico, denial.model)
            if denial.scope is Scope.MODEL_CAP:
                assert wanted == (self.settled(model) + self.open(model), reserve, most, model)
                assert not fits_model
            else:
                assert (denial.scope, wanted) == (Scope.CAP, (self.total, reserve, self.cap, None))
                assert not fits
            if denial.final:
                self.cap_said = self.cap_said or denial.scope is Scope.CAP
                self.models_said |= {model} if denial.scope is Scope.MODEL_CAP else set()
        return index

    @rule(target=exchanges, index=blocks, amount=AMOUNTS)
    def hold(self, index: int, amount: int) -> tuple[int, str]:
        self.numbers += 1
        exchange = str(self.numbers)
        if index not in self.said:
            self.refuses(lambda: self.ceiling.hold(exchange, index, Usd(amount)))
            return index, exchange
        before, block = self.total, self.said[index]
        block.holds[exchange] = amount
        after = self.total
        denial = self.ceiling.hold(exchange, index, Usd(amount))
        assert (denial is None) == (after <= self.hard and not self.crossed)
        if denial is not None:
            del block.holds[exchange]
            assert denial.final and denial.spent.pico == before
            assert denial.scope is (Scope.CEILING if after > self.hard or before >= self.hard else Scope.OVERRUN)
            self.ceiling_said = self.ceiling_said or after > self.hard
        return index, exchange

    @rule(which=consumes(exchanges), share=st.fractions(0, 1))
    def settle(self, which: tuple[int, str], share: Fraction) -> None:
        index, exchange = which
        held = self.said[index].holds.get(exchange) if index in self.said else None
        if held is None:
            self.refuses(lambda: self.ceiling.settle(exchange, Usd(0)))
            return
        charged = int(held * share)
        assert not self.ceiling.settle(exchange, Usd(charged))
        self.charge(index, exchange, charged)
        self.refuses(lambda: self.ceiling.settle(exchange, Usd(charged)))

    @precondition(lambda self: self.numbers > 6)
    @rule(which=consumes(exchanges), more=st.integers(1, 9))
    def overrun(self, which: tuple[int, str], more: int) -> None:
        index, exchange = which
        held = self.said[index].holds.get(exchange) if index in self.said else None
        if held is None:
            return
        assert self.ceiling.settle(exchange, Usd(held + more))
        self.charge(index, exchange, held + more)
        self.overran = True
        self.crossed = self.crossed or self.total > self.hard
        assert self.ceiling.overrun() is not None

    @rule(index=consumes(blocks))
    def end(self, index: int) -> None:
        if index not in self.said or self.said[index].holds:
            self.refuses(lambda: self.ceiling.end_block(index))
            return
        self.ceiling.end_block(index)
        self.ended.append(self.said.pop(index))

    def charge(self, index: int, exchange: str, charged: int) -> None:
        del self.said[index].holds[exchange]
        self.said[index].charged.append(charged)

    @staticmethod
    def refuses(call: Callable[[], object]) -> None:
        try:
            call()
        except ValueError:
            return
        raise AssertionError("what was over could be done again")

    @invariant()
    def it_is_as_counted_from_scratch(self) -> None:
        if not hasattr(self, "numbers"):
            return
        assert self.ceiling.total.pico == self.total
        assert self.ceiling.settled.pico == self.before + self.settled()
        assert self.ceiling.held.pico == sum(sum(b.holds.values()) for b in self.said.values())

    @invariant()
    def the_ceiling_holds(self) -> None:
        if not hasattr(self, "numbers"):
            return
        assert self.total <= max(self.hard, self.before + sum(self.past.values())) or self.overran
        passed = self.ceiling.passed()
        assert (passed is not None) == (self.crossed and self.total >= self.hard)
        assert passed is None or (passed.spent.pico, passed.wanted.pico) == (self.total, 0)

    def teardown(self) -> None:
        if not hasattr(self, "numbers"):
            return
        for index, block in list(self.said.items()):
            for exchange in list(block.holds):
                self.ceiling.settle(exchange, Usd(0))
                self.charge(index, exchange, 0)
            self.ceiling.end_block(index)
            self.ended.append(self.said.pop(index))
        assert self.ceiling.held == Usd(0)
        assert self.ceiling.total.pico == self.before + self.settled()


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
