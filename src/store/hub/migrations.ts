/** Append only: this database is the only record of what was sent to a hub. */
export const HUB_MIGRATIONS: readonly [name: string, sql: string][] = [
  [
    "001-pushed",
    `
    create table meta (key text primary key, value text not null) without rowid;

    -- state: sent (the hub has it), leaving (the hub is to delete it), gone (deleted there, not taken again), refused.
    create table pushed (
      source text not null,
      id text not null,
      -- As the history's feed names it, which is all that a deletion tells.
      conversation text,
      -- What the hub calls it.
      shared_id text not null,
      project text not null,
      state text not null,
      -- Of all that decides what would be sent: equal marks, nothing to do.
      mark text not null,
      digest text,
      rev integer,
      why text,
      -- The redaction's version that a secret was left by.
      rules integer,
      at integer not null,
      primary key (source, id)
    ) without rowid;
    create index pushed_conversation on pushed (conversation);
    create index pushed_state on pushed (state);

    -- Never sent, whatever its project is.
    create table held (source text not null, id text not null, at integer not null, primary key (source, id)) without rowid;

    -- Consents that were withdrawn here, and of which the hub has not heard.
    create table withdrawn (project text primary key, at integer not null) without rowid;
    `,
  ],
]
