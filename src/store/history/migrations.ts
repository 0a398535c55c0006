/** Append only. Never edit a released entry: it has run on somebody's only copy. */
export const HISTORY_MIGRATIONS: readonly [name: string, sql: string][] = [
  [
    "001-history",
    `
    create table meta (key text primary key, value text not null) without rowid;

    create table project (
      id integer primary key,
      path text not null unique,
      git_remote text,
      private integer not null default 0
    );

    -- What is read in one piece: a transcript file, or one conversation's rows in another program's database.
    create table unit (
      id integer primary key,
      source text not null,
      key text not null,
      path text not null,
      stamp text not null,
      cursor text not null,
      born_at integer not null,
      modified_at integer not null,
      connector_version integer not null,
      redaction_version integer not null,
      state text not null default 'present',
      raw_withheld integer not null default 0,
      skipped text not null default '[]',
      unknown text not null default '{}',
      redactions text not null default '{}',
      unique (source, key)
    );

    -- A database of many conversations that need not be opened while its stamp stays the same.
    create table container (source text not null, path text not null, stamp text not null, primary key (source, path)) without rowid;

    -- Redacted source records, zstd over JSON lines. kind 0: what the source holds; 1: what it held before a rewrite.
    create table raw (
      unit_id integer not null,
      kind integer not null,
      seq integer not null,
      records integer not null,
      bytes integer not null,
      data blob not null,
      primary key (unit_id, kind, seq)
    ) without rowid;

    create table conversation (
      id integer primary key,
      source text not null,
      native_id text not null,
      unit_id integer not null,
      authority integer not null,
      project_id integer,
      kind text not null,
      title text,
      title_from text,
      cwds text not null default '[]',
      git_branch text,
      git_commit text,
      agent_version text,
      parent_id text,
      parent_call_id text,
      fork_of text,
      resume_of text,
      started_at integer,
      ended_at integer,
      models text not null default '[]',
      usage text,
      message_count integer not null,
      copied_count integer not null default 0,
      last_number integer not null,
      estimated_tokens integer not null,
      text_bytes integer not null,
      change_seq integer not null,
      unique (source, native_id)
    );
    create index conversation_ended on conversation (ended_at);
    create index conversation_change on conversation (change_seq);
    create index conversation_unit on conversation (unit_id);
    create index conversation_parent on conversation (source, parent_id) where parent_id is not null;
    create index conversation_project on conversation (project_id, ended_at);

    -- flags: 1 abandoned, 2 superseded, 4 copied, 8 prompt (holds a person's words)
    create table message (
      conversation_id integer not null,
      number integer not null,
      position integer,
      chunk integer not null,
      key blob not null,
      role text not null,
      flags integer not null,
      at integer,
      version integer not null,
      primary key (conversation_id, number)
    ) without rowid;
    create index message_prompt on message (key) where flags & 8;

    -- The messages' parts, zstd over about 128 kB of JSON.
    create table body (conversation_id integer not null, chunk integer not null, data blob not null, primary key (conversation_id, chunk)) without rowid;

    create table claim (native_id text not null, unit_id integer not null, primary key (native_id, unit_id)) without rowid;
    create index claim_unit on claim (unit_id);

    create table file (id integer primary key, project_id integer, path text not null);
    create unique index file_path on file (path, ifnull(project_id, 0));
    create table touch (
      conversation_id integer not null,
      number integer not null,
      file_id integer not null,
      action text not null,
      written text,
      added integer,
      removed integer,
      primary key (conversation_id, number, file_id, action)
    ) without rowid;
    create index touch_file on touch (file_id);

    -- Which commands failed, for finding them; their words stand in the message.
    create table command (
      conversation_id integer not null,
      number integer not null,
      seq integer not null,
      exit_status integer,
      failed integer,
      primary key (conversation_id, number, seq)
    ) without rowid;

    create table made (
      conversation_id integer not null,
      number integer not null,
      kind text not null,
      name text not null,
      subject text,
      branch text,
      primary key (conversation_id, number, kind, name)
    ) without rowid;
    create index made_name on made (name);

    create table deletion (change_seq integer primary key, conversation_id integer not null);
    create table tombstone (hash blob primary key) without rowid;
    `,
  ],
  [
    "002-collections",
    `
    -- Documents that somebody added. They themselves are conversations of the source docs, their ids begin with the name.
    create table collection (
      name text primary key,
      kind text not null,
      origin text not null,
      root text not null,
      only text,
      project text,
      version text,
      added_at integer not null,
      synced_at integer,
      problems text not null default '[]'
    ) without rowid;
    `,
  ],
  [
    "003-tellers",
    `
    -- Several units may tell one conversation. Null: the conversation's own unit tells this message.
    alter table message add column unit_id integer;
    alter table claim add column authority integer;
    -- 0: all that the unit tells of this conversation is superseded.
    alter table claim add column live integer;
    -- When what it tells begins.
    alter table claim add column began_at integer;
    `,
  ],
  [
    "004-projects-elsewhere",
    `
    alter table project add column root_commit text;
    -- Folders, on another machine or before it moved, that are this project.
    create table project_path (path text primary key, project_id integer not null) without rowid;
    `,
  ],
  [
    "005-checksums",
    `
    -- A checksum of the row's other values (sums.ts). Null in rows that an older dex wrote, until a sync gives them one.
    ${["meta", "project", "project_path", "unit", "container", "raw", "conversation", "message", "body", "claim", "file", "touch", "command", "made", "deletion", "tombstone", "collection"].map((table) => `alter table ${table} add column sum integer;`).join("\n    ")}

    -- How many rows a conversation has in message, body, touch, command and made, and a unit in raw: a row whose key was
    -- damaged is found nowhere. Null while some of them have no checksum.
    alter table conversation add column held text;
    alter table unit add column blocks integer;
    create index conversation_unsealed on conversation (id) where held is null;
    create index unit_unsealed on unit (id) where blocks is null;

    -- What cannot be made again from anything else is there twice, on pages of its own.
    create index tombstone_copy on tombstone (hash);
    create index meta_copy on meta (key, value);
    `,
  ],
  [
    "006-repositories",
    `
    -- A JSON array of the network addresses from which it is fetched.
    alter table project add column remotes text;
    -- The state of its git folder when dex last asked git about it.
    alter table project add column stamp text;
    -- 1: never joined with another project, because the user split them.
    alter table project add column apart integer;
    -- Why the folder belongs to the project.
    alter table project_path add column why text;
    `,
  ],
]
