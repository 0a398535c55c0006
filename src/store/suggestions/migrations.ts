/** Append only: subscriptions and mutes are the user's own choices and cannot be recreated. */
export const SUGGESTION_MIGRATIONS: readonly [name: string, sql: string][] = [
  [
    "001-suggestions",
    `
    -- A number is never given twice: whoever streams resumes after the last one it saw.
    create table suggestion (
      seq integer primary key autoincrement,
      id text not null unique,
      at integer not null,
      project text not null,
      source text,
      session text,
      subscription text,
      -- 1: it was only noted that this would have been said
      would integer not null,
      status text not null,
      latency_ms real not null,
      moment text not null
    );
    create index suggestion_session on suggestion (source, session);
    create index suggestion_at on suggestion (at);
    create index suggestion_subscription on suggestion (subscription, seq) where subscription is not null;

    create table item (
      suggestion integer not null,
      number integer not null,
      kind text not null,
      key text not null,
      -- source:id of the conversation or document that it quotes
      quotes text,
      relevance real not null,
      status text not null,
      -- the verdict that the weights were moved by
      counted real,
      body text not null,
      primary key (suggestion, number)
    ) without rowid;
    create index item_quotes on item (quotes) where quotes is not null;

    create table mute (type text not null, name text not null, at integer not null, primary key (type, name)) without rowid;
    create table weight (name text primary key, value real not null) without rowid;
    create table meta (key text primary key, value text not null) without rowid;

    create table subscription (
      id text primary key,
      project text not null,
      session text,
      patterns text not null,
      deliver text not null,
      url text,
      secret text,
      min_relevance real not null,
      max_per_trigger integer not null,
      cooldown_ms integer not null,
      last_triggered_at integer,
      enabled integer not null,
      disabled_because text,
      created_at integer not null
    ) without rowid;

    -- What a webhook must still be told. Bodies are made when they are sent: what is forgotten meanwhile is not in them.
    create table outbox (
      suggestion integer primary key,
      id text not null unique,
      subscription text not null,
      state text not null,
      attempts integer not null,
      next_at integer not null,
      last_problem text,
      ended_at integer
    );
    create index outbox_due on outbox (next_at) where state = 'waiting';
    create index outbox_waiting on outbox (subscription, next_at, suggestion) where state = 'waiting';
    `,
  ],
]
