// The service: answers as JSON, and events that go on after a restart.

export class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

export async function get(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" }, cache: "no-store" });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, problem.detail ?? answer.statusText);
  }
  return answer.json();
}

// Whether the service wants a token, and what the cookie allows.
export const session = () => get("/session");

// The token becomes a cookie that scripts cannot read; it is not kept here.
export async function open(token) {
  const answer = await fetch("/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
  if (!answer.ok) throw new Refused(answer.status, "The service does not know this token.");
}

const KINDS = ["rows", "alarm", "model", "refused", "expired", "store"];
const SOONEST = 500, LATEST = 5000;

export class Events {
  // on : {rows, alarm, ... , up, down}; `up` comes with every new connection, also after a restart of the service
  constructor(path, on) {
    this.path = path;
    this.on = on;
    this.wait = SOONEST;
    this.connect();
  }

  connect() {
    this.source = new EventSource(this.path);
    this.source.onopen = () => {
      this.wait = SOONEST;
      this.on.up?.();
    };
    this.source.onerror = () => {
      this.on.down?.();
      // A browser that was refused does not try again by itself, and others wait longer than we do.
      this.source.close();
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(this.wait * 1.5, LATEST);
    };
    for (const kind of KINDS) this.source.addEventListener(kind, (event) => this.on[kind]?.(JSON.parse(event.data)));
  }

  close() {
    clearTimeout(this.timer);
    this.source.close();
  }
}
