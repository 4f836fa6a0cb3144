"""mini-swe-agent: a loop around bash, which asks OpenAI's chat format."""

from __future__ import annotations

import json
from typing import Any

from proctor.agents.base import Turn
from proctor.agents.installed.program import HOME, InstalledAgent, Start, merged, without_nones
from proctor.agents.sources import PythonSource
from proctor.core.models import Door
from proctor.core.wires import CHAT

_TRAJECTORY = "trajectory.json"


class MiniSweAgent(InstalledAgent):
    """mini-swe-agent with its own prompts (`mini.yaml`), without confirmation and without limits of its own."""

    name = "mini-swe-agent"
    source = PythonSource("mini-swe-agent", "2.4.6")
    version_words = ("-c", "from importlib.metadata import version; print(version('mini-swe-agent'))")
    apis = frozenset({CHAT})
    logs = (_TRAJECTORY,)

    def start(self, turn: Turn, door: Door) -> Start:
        """The instruction in a configuration file, which has room for any; keys come by variables alone."""
        config = merged({"agent": {"cost_limit": 0}}, self.config, _required(turn, door))
        words = ("-m", "minisweagent.run.mini", "-o", f"{HOME}/{_TRAJECTORY}")
        return Start(
            (*words, "-c", "mini.yaml", "-c", f"{HOME}/config.yaml"),
            # JSON is YAML
            files={"config.yaml": json.dumps(config).encode()},
            env={
                "MSWEA_GLOBAL_CONFIG_DIR": HOME,
                "MSWEA_CONFIGURED": "true",
                "MSWEA_SILENT_STARTUP": "1",
                # what its model costs is counted at the gateway, and its own table may not know it
                "MSWEA_COST_TRACKING": "ignore_errors",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            },
        )


def _required(turn: Turn, door: Door) -> dict[str, Any]:
    task = turn.instruction
    if turn.skills:
        places = "".join(f"\n- /skills/{pack.name}/SKILL.md" for pack in turn.skills)
        task = f"{task}\n\nSkills are described in these files. Read them before you start:{places}"
    # its client leaves out what it thinks that a model does not know
    asked = {
        "max_tokens": door.max_output_tokens,
        "reasoning_effort": door.effort,
        "allowed_openai_params": ["reasoning_effort"] if door.effort is not None else None,
    }
    return {
        "run": {"task": task},
        "agent": {"mode": "yolo", "confirm_exit": False},
        "model": {"model_name": f"openai/{door.model}", "model_kwargs": without_nones(asked)},
    }
