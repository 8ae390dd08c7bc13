RECORD: tuple[str, ...]
ADVICE: dict[str, str]
STATUS: tuple[str, ...]
